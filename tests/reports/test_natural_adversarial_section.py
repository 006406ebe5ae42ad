"""The section of hard natural photos: both ways of scoring in the table, one curve a model."""

from __future__ import annotations

import pytest

from shiftproof.reports.natural_adversarial import draw_natural_adversarial
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Part, Table
from shiftproof.studies.results import Results
from shiftproof.types import Curve, Finding, Measurement

MODELS = {"lite0": 0.08, "lite4": 0.16}


def findings_of(model: str, accuracy: float) -> list[Finding]:
    hard = {"model": model, "image_set": "hard"}
    x, y = (0.5, 1.0), (1.5 * accuracy, accuracy)
    return [
        *(
            Measurement("imagenet_a_accuracy", accuracy - cost, {**hard, "scored": scored}, 500, {"classes": scored})
            for scored, cost in (("200 of 1000", 0.0), ("all 1000", 0.02))
        ),
        Measurement("imagenet_a_aurra", 1.2 * accuracy, {**hard, "scored": "200 of 1000"}, 500, {}),
        Measurement("imagenet_o_aupr", 0.2, {"model": model, "image_set": "novel", "detector": "max_logit"}, 500, {}),
        *(
            Curve("imagenet_a_response", {**hard, "scored": scored}, "share answered", "accuracy", x, y, 500, {})
            for scored in ("200 of 1000", "all 1000")
        ),
    ]


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    found = [one for model, accuracy in MODELS.items() for one in findings_of(model, accuracy)]
    return list(draw_natural_adversarial(found, Page(Results(tuple(found)))).parts)


def test_both_ways_of_scoring_are_in_the_table(parts: list[Part]) -> None:
    table = next(part for part in parts if isinstance(part, Table) and part.title == "Photos that models fail on")
    rows = {(row[0].text, row[2].text): row[3].text for row in table.rows}
    assert rows["lite0", "200 of 1000"] == "8.0\u202f%"
    assert rows["lite4", "all 1000"] == "14.0\u202f%"


def test_the_surest_answers_are_a_line_a_model_without_bands_that_nobody_measured(parts: list[Part]) -> None:
    chart = next(part for part in parts if isinstance(part, Chart) and part.title.startswith("Accuracy on the surest"))
    assert {row["series"] for row in chart.spec["data"]["values"]} == set(MODELS)
    assert len(chart.spec["data"]["values"]) == 2 * len(MODELS)
    assert "area" not in [layer["mark"]["type"] for layer in chart.spec["layer"]]


def test_a_detector_that_was_not_published_is_not_placed_among_the_published(parts: list[Part]) -> None:
    chart = next(part for part in parts if isinstance(part, Chart) and part.title.startswith("Among published"))
    assert not [row for row in chart.spec["data"]["values"] if row["own"]]
    lines = [layer["data"]["values"][0]["label"] for layer in chart.spec["layer"] if "data" in layer]
    assert "lite0: 8.0\u202f%" in lines
