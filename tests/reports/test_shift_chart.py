"""The chart of one's own models among published ones under natural shifts."""

from __future__ import annotations

import json

import pytest
from scipy.stats import linregress, norm

from shiftproof.metrics.published import FAMILIES
from shiftproof.reference import load_table
from shiftproof.reports.parts import Chart
from shiftproof.studies.accuracy.shift_chart import among_published
from shiftproof.types import Interval, Measurement


def number(metric: str, value: float, *, as_published: bool = True) -> Measurement:
    about = {"model": "mine", "dataset": "shifted"}
    return Measurement(metric, value, about, 10_000, {}, Interval(value - 0.01, value + 0.01), as_published=as_published)


def chart_of(published: str, *found: Measurement) -> Chart:
    (chart,) = among_published(published, found)
    return chart


BOTH = number("top1_accuracy", 0.62), number("imagenet_accuracy", 0.75), number("shift_effective_robustness", -0.01)


def test_every_family_is_a_series_and_its_models_points() -> None:
    layers = chart_of("imagenet-v2", *BOTH).spec["layer"]
    series = {rows[0]["series"]: rows[0] for layer in layers if "series" in (rows := layer["data"]["values"])[0]}
    assert tuple(series) == FAMILIES
    drawn = {
        (family, name): (x, y)
        for family, rows in series.items()
        for x, y, name in zip(rows["x"], rows["y"], rows["name"], strict=True)
    }
    row = next(row for row in load_table("timm_imagenet_shifts") if row["model"] == "resnet152.tv_in1k")
    assert drawn["ImageNet-1k", "resnet152.tv_in1k"] == (round(float(row["imagenet"]), 1), round(float(row["v2"]), 1))
    assert len([key for key in drawn if key[0] == "ImageNet-1k"]) > 800


def test_the_curve_is_the_trend_that_scipy_fits() -> None:
    rows = [row for row in load_table("timm_imagenet_shifts") if row["family"] == "ImageNet-1k"]
    line = linregress(*(norm.ppf([float(row[name]) / 100 for row in rows]) for name in ("imagenet", "sketch")))
    chart = chart_of("imagenet-sketch", *BOTH)
    (trend,) = [layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "line"]
    for point in trend["data"]["values"]:
        expected = 100 * norm.cdf(line.intercept + line.slope * norm.ppf(point["x"] / 100))
        assert point["y"] == pytest.approx(expected, abs=0.03)  # x is rounded to hundredths
    assert f"R² {line.rvalue**2:.2f}" in chart.note


def test_ones_own_model_is_a_point_with_its_intervals_and_its_standing() -> None:
    chart = chart_of("imagenet-v2", *BOTH)
    own = [row for layer in chart.spec["layer"] for row in layer["data"]["values"] if row.get("name") == "mine"]
    assert own
    assert (own[0]["x"], own[0]["y"], own[0]["y_low"], own[0]["x_high"]) == (75.0, 62.0, 61.0, 76.0)
    values = [
        float(row["v2"]) for table in ("timm_imagenet_shifts", "open_clip_zero_shot_shifts") for row in load_table(table)
    ]
    below = sum((value < 62) + (value == 62) / 2 for value in values) / len(values)
    assert f"mine: more accurate than {100 * below:.1f}\u202f%" in chart.note
    assert chart.figures.rows[0][0].text == "mine"
    assert len(chart.figures.rows) == 1 + len(FAMILIES)


@pytest.mark.parametrize(
    ("published", "known", "missing", "said"),
    [("imagenet-v2", "y", "x", "--imagenet-accuracy"), ("imagenet", "x", "y", "more accurate than")],
)
def test_where_one_accuracy_is_known_a_line_marks_it(published: str, known: str, missing: str, said: str) -> None:
    chart = chart_of(published, BOTH[0])
    dashed = [layer for layer in chart.spec["layer"] if "strokeDash" in layer["mark"]]
    assert len(dashed) == 1
    assert dashed[0]["data"]["values"][0][known] == 62.0
    assert missing not in dashed[0]["encoding"]
    assert said in chart.note


def test_a_part_of_the_images_makes_a_rough_comparison() -> None:
    assert "rough" not in chart_of("imagenet-v2", *BOTH).note  # all 10,000
    assert "measured on 10,000 images alone, so the comparison is rough" in chart_of("imagenet-r", *BOTH).note


def test_numbers_that_do_not_compare_are_not_drawn() -> None:
    assert among_published("imagenet-a", [number("top1_accuracy", 0.3, as_published=False)]) == []
    assert among_published("imagenet-c", [number("top1_accuracy", 0.3)]) == []
    assert among_published("imagenet-v2", []) == []


@pytest.mark.parametrize("published", ["imagenet", "imagenet-v2", "imagenet-sketch", "imagenet-a", "imagenet-r"])
def test_a_chart_stays_small(published: str) -> None:
    chart = chart_of(published, *BOTH)
    assert len(json.dumps(chart.spec)) < 100_000
