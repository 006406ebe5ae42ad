"""One's own models among the published ones: where they stand, what is said of it, and names that keep apart."""

from __future__ import annotations

import dataclasses

import pytest

from reports import made_up
from shiftproof.reference import load_table
from shiftproof.reports.parts import Chart
from shiftproof.reports.published import among_imagenet_a_o, among_imagenet_c, among_imagenet_p, response_rates
from shiftproof.reports.scatter_plot import Place, label_sides
from shiftproof.types import BaselineRef, Curve, Interval, Measurement, ModelRef


def overall(baseline: BaselineRef | str | None) -> list[Measurement]:
    found = made_up.corruption_findings("lite0", 0.13, baseline=baseline)
    return [one for one in found if isinstance(one, Measurement) and set(one.about) == {"model", "dataset"}]


def chart_of(baseline: BaselineRef | str | None) -> Chart:
    (chart,) = among_imagenet_c(overall(baseline))
    assert isinstance(chart, Chart)
    return chart


def test_every_published_model_is_a_point_and_ones_own_is_marked() -> None:
    chart = chart_of("torchvision:alexnet")
    rows = {row["name"]: row for row in chart.spec["data"]["values"]}
    for row in load_table("imagenet_c_models"):
        point = rows.pop(row["model"])
        assert (point["x"], point["y"]) == pytest.approx((float(row["clean_error"]) / 100, float(row["mce"]) / 100))
        assert not point["own"]
    assert list(rows) == ["lite0"]
    assert rows["lite0"]["own"]
    assert rows["lite0"]["y_low"] < rows["lite0"]["y"] < rows["lite0"]["y_high"]
    assert len(chart.figures.rows) == len(load_table("imagenet_c_models")) + 1


@pytest.mark.parametrize(
    ("baseline", "rough"),
    [
        (BaselineRef.of(ModelRef("torchvision:alexnet", "")), True),
        (BaselineRef("AlexNet's published errors, of jpeg85", alexnet=True, published=True, same_images=False), True),
        (BaselineRef("AlexNet's published errors on these images", alexnet=True, published=True), False),
    ],
)
def test_a_rough_comparison_is_called_so(baseline: BaselineRef, rough: bool) -> None:
    note = chart_of(baseline).note
    assert ("the comparison is rough" in note) == rough
    assert baseline.name in note


def test_a_baseline_that_is_only_named_like_alexnet_is_not_alexnet() -> None:
    chart = chart_of("not-alexnet-at-all")
    assert "lite0" not in [row["name"] for row in chart.spec["data"]["values"]]
    assert "normalised by not-alexnet-at-all, published ones by AlexNet" in chart.note


def test_multiples_of_another_model_are_not_placed_among_multiples_of_alexnet() -> None:
    chart = chart_of("squeezenet")
    assert "lite0" not in [row["name"] for row in chart.spec["data"]["values"]]
    assert "normalised by squeezenet, published ones by AlexNet" in chart.note


def test_without_a_baseline_the_clean_error_alone_is_placed_and_what_is_missing_is_said() -> None:
    chart = chart_of(None)
    assert "lite0" not in [row["name"] for row in chart.spec["data"]["values"]]
    lines = [layer["data"]["values"][0] for layer in chart.spec["layer"] if "data" in layer]
    assert lines[0] == {"x": 0.13, "label": "lite0: 13.0\u202f%"}
    assert "mCE needs a baseline's errors" in chart.note


def test_flip_rates_and_distances_are_placed_where_there_are_both() -> None:
    found = [one for one in made_up.perturbation_findings("lite0", 0.05, baseline="alexnet") if isinstance(one, Measurement)]
    (chart,) = among_imagenet_p([one for one in found if set(one.about) == {"model", "dataset"}])
    assert isinstance(chart, Chart)
    own = next(row for row in chart.spec["data"]["values"] if row["own"])
    assert (own["x"], own["y"]) == pytest.approx((0.05 * 1.4 / 0.14, 0.05 * 1.4 / 0.12))


def hard(metric: str, value: float, *, as_published: bool, **about: str) -> Measurement:
    found = Measurement(metric, value, {"model": "lite0", **about}, 500, {}, Interval(value - 0.02, value + 0.02))
    return dataclasses.replace(found, as_published=as_published)


HARD = (
    # what the scored classes are called tells nothing: these are the 200 of a model whose classes are called so
    hard("imagenet_a_accuracy", 0.08, scored="all 200 of 1000", as_published=True),
    hard("imagenet_a_accuracy", 0.05, scored="1000 of 1000", as_published=False),
    hard("imagenet_o_aupr", 0.19, ood_detector="msp", as_published=True),
    hard("imagenet_o_aupr", 0.23, ood_detector="max_logit", as_published=False),
)


def test_hard_photos_are_placed_by_two_hundred_classes_and_the_highest_probability_as_published() -> None:
    (chart,) = among_imagenet_a_o(HARD)
    assert isinstance(chart, Chart)
    rows = {row["name"]: row for row in chart.spec["data"]["values"]}
    assert (rows["lite0"]["x"], rows["lite0"]["y"]) == (0.08, 0.19)
    for row in load_table("imagenet_a_o_models"):
        point = (float(row["imagenet_a_accuracy"]) / 100, float(row["imagenet_o_aupr"]) / 100)
        assert (rows[row["model"]]["x"], rows[row["model"]]["y"]) == pytest.approx(point)
    assert "the comparison is rough" in chart.note


def test_without_novel_photos_accuracy_on_hard_ones_is_marked_alone() -> None:
    (chart,) = among_imagenet_a_o(HARD[:2])
    assert isinstance(chart, Chart)
    assert "lite0" not in [row["name"] for row in chart.spec["data"]["values"]]
    lines = [layer["data"]["values"][0] for layer in chart.spec["layer"] if "data" in layer]
    assert lines[0] == {"x": 0.08, "label": "lite0: 8.0\u202f%"}
    assert among_imagenet_a_o([]) == []


def test_names_go_to_the_first_side_that_is_free() -> None:
    # at 10 letters of 6.3 pixels a name needs 72 pixels beside its point; the second point lies 40 to the right of the first
    first, second = Place("ten letter", 0.5, 0.5, ""), Place("ten letter", 0.7, 0.5, "")
    sides = label_sides([first, second], (0, 1), (0, 1), width=200, height=100)
    assert sides == {first: "left", second: "above"}


def test_a_name_without_room_is_left_out_unless_it_is_ones_own() -> None:
    crowd = [Place(f"a name that is far too long {place}", 0.5, 0.5, "", own=place == 1) for place in range(3)]
    assert label_sides(crowd, (0, 1), (0, 1), width=100, height=100) == {crowd[1]: "upper right"}


@pytest.mark.parametrize("width", [235, 640])
def test_no_two_published_names_lie_over_each_other(width: int) -> None:
    places = [
        Place(row["model"], float(row["clean_error"]) / 100, float(row["mce"]) / 100, "")
        for row in load_table("imagenet_c_models")
    ]
    x_ends, y_ends = (0.15, 0.5), (0.5, 1.1)
    sides = label_sides(places, x_ends, y_ends, width=width, height=420)
    rows = []
    for place, side in sides.items():
        across = (place.x - x_ends[0]) / (x_ends[1] - x_ends[0]) * width
        down = (1 - (place.y - y_ends[0]) / (y_ends[1] - y_ends[0])) * 420
        long = 6 * len(place.name)
        left = across + 4 if "right" in side else across - 4 - long if "left" in side else across - long / 2
        top = down - 22 if side == "above" else down + 9 if side == "below" else down - 6
        top += {"upper": -11, "lower": 11}.get(side.partition(" ")[0], 0)
        rows.append((left, top, left + long, top + 12))
    assert len(rows) >= 7
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


@pytest.mark.parametrize("measured", [True, False])
def test_a_band_is_drawn_only_where_an_interval_was_measured(measured: bool) -> None:
    low, high = ((0.7, 0.5), (0.9, 0.7)) if measured else (None, None)
    x, y = (0.5, 1.0), (0.8, 0.6)
    curve = Curve("response_rate_accuracy", {}, "share answered", "accuracy", x, y, 10, {}, low=low, high=high)
    marks = [layer["mark"]["type"] for layer in response_rates([curve], ["toy"], description="Accuracy.")["layer"]]
    assert ("area" in marks) == measured
    assert "line" in marks
