"""The section on calibration: response-rate accuracy, and temperature scaling."""

from __future__ import annotations

import pytest

from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Part, Table
from shiftproof.studies.calibration.section import draw_calibration
from shiftproof.studies.calibration.study import AFTER, BEFORE
from shiftproof.types import Curve, Finding, Interval, Measurement, Results


def findings_of(model: str, temperature: float) -> list[Finding]:
    about = {"model": model, "dataset": "photos"}
    told = {"temperature": f"{temperature}, fitted on the other 500 images"}
    curve = Curve(
        "response_rate_accuracy", about, "response rate", "accuracy", (0.5, 1.0), (0.9, 0.8), 1000, {},
        counts=(500, 1000), low=(0.85, 0.75), high=(0.95, 0.85),
    )  # fmt: skip
    return [
        curve,
        Measurement("expected_calibration_error", 0.2, about, 1000, {}),
        Measurement("expected_calibration_error", 0.21, {**about, "scaling": BEFORE}, 480, told),
        Measurement("overconfidence", 0.2, {**about, "scaling": BEFORE}, 480, told, Interval(0.1, 0.3)),
        Measurement("expected_calibration_error", 0.03, {**about, "scaling": AFTER}, 480, told),
        Measurement("overconfidence", 0.01, {**about, "scaling": AFTER}, 480, told, Interval(-0.02, 0.04)),
    ]


def parts_of(*models: str) -> dict[str, Part]:
    found = tuple(one for place, model in enumerate(models) for one in findings_of(model, 1.5 + place))
    return {
        part.title: part for part in draw_calibration(found, Page(Results(found))).parts if isinstance(part, Table | Chart)
    }


@pytest.mark.parametrize("models", [("old",), ("old", "new")])
def test_every_number_stands_once_before_and_once_after(models: tuple[str, ...]) -> None:
    table = parts_of(*models)["Temperature scaling"]
    assert isinstance(table, Table)
    titles = [column.title for column in table.columns]
    assert titles == [*(["Model"] if len(models) > 1 else []), "Metric", "Uncalibrated", "Scaled", "Images"]
    texts = [[cell.text.replace("\u202f", " ") for cell in row] for row in table.rows]
    assert texts[0][-4:] == ["Expected calibration error", "21.0 %", "3.0 %", "480"]
    assert texts[1][-4:] == ["Overconfidence", "+20.0 points", "+1.0 points", "480"]
    assert [row[0] for row in texts] == (
        [name for name in models for _ in range(2)] if len(models) > 1 else texts[0][:1] + texts[1][:1]
    )
    for place, name in enumerate(models):
        whose = f"{name} " if len(models) > 1 else ""
        assert f"{whose}{1.5 + place}, fitted on the other 500 images" in table.note


def test_the_other_numbers_are_of_all_images_alone() -> None:
    table = parts_of("old")["Calibration in numbers"]
    assert isinstance(table, Table)
    assert [[cell.text for cell in row][-1] for row in table.rows] == ["1,000"]


def test_the_surest_answers_of_all_models_share_a_chart_that_names_how_many_are_answered() -> None:
    chart = parts_of("old", "new")["Response-rate accuracy"]
    assert isinstance(chart, Chart)
    rows = chart.spec["data"]["values"]
    assert [row["series"] for row in rows] == ["old", "old", "new", "new"]
    assert rows[0]["x_tip"].replace("\u202f", " ") == "50.0 % (500 images)"
    assert rows[1]["tip"].replace("\u202f", " ") == "80.0 %"
    assert "old, new" in chart.spec["description"]


def test_without_temperatures_there_is_no_table_of_them() -> None:
    found = tuple(one for one in findings_of("old", 1.5) if "scaling" not in one.about)
    titles = [getattr(part, "title", "") for part in draw_calibration(found, Page(Results(found))).parts]
    assert titles == ["Response-rate accuracy", "Calibration in numbers"]
