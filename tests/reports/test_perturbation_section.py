"""The section of perturbations: flips and distances by perturbation and difficulty, and what stands in the summary."""

from __future__ import annotations

import dataclasses

import pytest

from reports import made_up
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Part, Pictures, Table
from shiftproof.reports.sections import summarise
from shiftproof.studies.perturbation.section import draw_perturbation
from shiftproof.types import DatasetRef, Finding, Gallery, GalleryItem, Results


def parts_of(*findings: Finding) -> list[Part]:
    return list(draw_perturbation(findings, Page(Results(findings))).parts)


def charts_of(parts: list[Part]) -> dict[str, Chart]:
    return {part.title: part for part in parts if isinstance(part, Chart)}


@pytest.fixture(scope="module")
def alone() -> list[Part]:
    return parts_of(*made_up.perturbation_findings("lite0", 0.05, baseline="squeezenet"))


@pytest.fixture(scope="module")
def several() -> list[Part]:
    found = [made_up.perturbation_findings(name, shaky, baseline="lite0") for name, shaky in (("lite0", 0.05), ("b", 0.06))]
    return parts_of(*(finding for findings in found for finding in findings))


def test_difficulties_of_one_model_are_series(alone: list[Part]) -> None:
    rows = charts_of(alone)["Flip probability"].spec["data"]["values"]
    assert len(rows) == 8 * 3
    assert list(dict.fromkeys(row["series"] for row in rows)) == ["difficulty 1", "difficulty 2", "difficulty 3"]


def test_several_models_are_series_at_the_least_difficulty_and_the_rest_is_in_the_figures(several: list[Part]) -> None:
    chart = charts_of(several)["Flip probability"]
    assert {row["series"] for row in chart.spec["data"]["values"]} == {"lite0", "b"}
    assert len(chart.spec["data"]["values"]) == 8 * 2
    assert len(chart.figures.rows) == 8 * 2 * 3
    assert "difficulty 1" in chart.note.lower()


def test_counts_stand_beside_their_ratios_which_name_the_baseline(alone: list[Part]) -> None:
    charts = charts_of(alone)
    assert list(charts)[:4] == [
        "Flip probability",
        "Flip rate (FR)",
        "Top-5 distance",
        "Top-5 distance relative to a baseline (T5D)",
    ]
    assert all(chart.half for chart in list(charts.values())[:4])
    assert "squeezenet" in charts["Flip rate (FR)"].note


def test_means_are_told_by_difficulty_the_first_one_too(alone: list[Part]) -> None:
    table = next(part for part in alone if isinstance(part, Table))
    assert [row[0].text for row in table.rows] == ["1", "2", "3"]


def test_without_a_baseline_the_published_models_are_listed_and_what_is_missing_is_said() -> None:
    parts = parts_of(*made_up.perturbation_findings("lite0", 0.05, difficulties=(1,)))
    chart = next(part for part in parts if isinstance(part, Chart) and part.title.startswith("Among published"))
    assert [row[0].text for row in chart.figures.rows] == [
        "lite0", "AlexNet", "ResNet-50", "DenseNet-121", "ResNeXt-50", "DenseNet-161", "ResNeXt-101",
    ]  # fmt: skip
    assert chart.note == (
        "For mFR and mT5D give a baseline (--baseline) with a flip probability above 0 under every perturbation."
    )


def test_every_chart_is_drawn_by_vega_lite(alone: list[Part], several: list[Part]) -> None:
    import vl_convert

    for chart in (*charts_of(alone).values(), *charts_of(several).values()):
        svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
        assert "<path" in svg, chart.title
        assert "NaN" not in svg, chart.title


def test_ratios_without_intervals_are_dots_alone() -> None:
    found = [
        dataclasses.replace(made_up.measured("flip_rate", value, {"model": "a", "perturbation": name}), interval=None)
        for name, value in (("tilt", 0.5), ("snow", 3.0))
    ]
    chart = charts_of(parts_of(*found))["Flip rate (FR)"]
    assert [layer["mark"]["type"] for layer in chart.spec["layer"]] == ["rule", "point", "text"], (
        "the rule is the baseline's"
    )


def test_photos_of_many_sets_stand_together() -> None:
    about = {"model": "lite0", "dataset": "clips"}
    found = tuple(
        Gallery("unstable_photos", about, DatasetRef(name, name), "Least stable photos", (GalleryItem(f"{name}.jpg", "x"),))
        for name in ("tilt", "snow")
    )
    (part,) = parts_of(*found)
    assert isinstance(part, Pictures)
    assert [picture.id for picture in part.pictures] == ["tilt.jpg", "snow.jpg"]


def test_the_summary_says_how_often_the_answer_changes() -> None:
    summary = summarise(Page(Results(tuple(made_up.perturbation_findings("lite0", 0.05, baseline="squeezenet")))))
    assert [sentence.partition(" (")[0] for sentence in summary.headlines] == [
        "About 7 of 100 frame pairs flip the prediction"
    ]
    assert any(sentence.startswith("mFR is 50.0\u202f%") for sentence in summary.sentences)
