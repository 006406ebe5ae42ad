"""The section of novelty and failure: tables, charts and curves of all detectors, and published numbers beside them."""

from __future__ import annotations

import statistics

import pytest

from reports import made_up_novelty as made_up
from shiftproof.reference import load_table
from shiftproof.reports.detector_curves import roc_charts
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import written
from shiftproof.reports.out_of_distribution import NAMES, draw_out_of_distribution
from shiftproof.reports.page import Page, name_of
from shiftproof.reports.parts import Chart, Definitions, Heading, Panels, Part, Table
from shiftproof.studies.results import Results
from shiftproof.types import Curve, Finding, Measurement


def parts_of(*findings: Finding) -> list[Part]:
    return list(draw_out_of_distribution([one for one in findings if name_of(one) in NAMES], Page(Results(findings))).parts)


def table(parts: list[Part], title: str) -> Table:
    return next(part for part in parts if isinstance(part, Table) and part.title.startswith(title))


def chart(parts: list[Part], title: str) -> Chart:
    return next(part for part in parts if isinstance(part, Chart) and part.title.startswith(title))


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return list(made_up.novelty_findings())


@pytest.fixture(scope="module")
def alone(found: list[Finding]) -> list[Part]:
    return parts_of(*found)


@pytest.fixture(scope="module")
def several(found: list[Finding]) -> list[Part]:
    other = list(made_up.novelty_findings("lite4", seed=9))
    return parts_of(*found, *other, *made_up.means_over(found, other))


def aurocs(findings: list[Finding], **about: str) -> dict[str, Measurement]:
    return {
        str(one.about["detector"]): one
        for one in findings
        if isinstance(one, Measurement) and one.metric == "auroc" and about.items() <= one.about.items()
    }


def test_the_table_has_every_detector_for_both_goals_on_every_inside_set(found: list[Finding], alone: list[Part]) -> None:
    goals = table(alone, "Detectors and goals")
    assert goals.headings == [("", 1), ("New classes: all outside", 4), ("Failures: all outside", 4), ("Mistakes alone", 1)]
    assert [column.title for column in goals.columns[1:5]] == ["photos", "fog 3", "zoom blur 4", "gaussian noise 5"]
    known = aurocs(found, goal="failure", inside="fog 3", outside="all outside")
    cells = {row[0].text: row[6] for row in goals.rows}
    assert len(cells) == len(made_up.DETECTORS)
    for detector, one in known.items():
        low, high = one.interval or (0, 0)
        assert cells[written(detector)].text == f"{100 * one.value:.1f}"
        assert cells[written(detector)].below == f"{100 * low:.1f}–{100 * high:.1f}"


def test_the_best_at_finding_new_classes_comes_first(alone: list[Part]) -> None:
    values = [row[1].order for row in table(alone, "Detectors and goals").rows]
    assert values == sorted(values, reverse=True, key=float)


def test_marks_are_signs_that_the_note_explains(alone: list[Part]) -> None:
    goals = table(alone, "Detectors and goals")
    marks = [[row[place].mark for row in goals.rows] for place in range(1, 10)]
    assert marks[0].count("★") == 1
    assert all(set(column) <= {"", "★"} or set(column) <= {"", "≈"} for column in marks)
    assert "★ is better than every other" in goals.note
    assert "≈ is within chance of the best" in goals.note


def test_every_outside_set_by_itself_is_one_click_away(alone: list[Part]) -> None:
    each = table(alone, "Each outside set by itself")
    assert each.folded
    titles = [title for title, _ in each.headings if title]
    assert titles == [
        "New classes: clothing",
        "New classes: tools",
        "Failures: clothing",
        "Failures: tools",
        "Mistakes alone",
    ]


def test_a_single_outside_set_goes_by_its_name(found: list[Finding]) -> None:
    parts = parts_of(*(one for one in found if one.about.get("outside") not in ("tools", "all outside")))
    (_, (heading, _), *_) = table(parts, "Detectors and goals").headings
    assert heading == "New classes: clothing"
    each = table(parts, "Each outside set by itself")
    assert [title for title, _ in each.headings if title] == ["Mistakes alone"], (
        "under the shifts, which the first table has not"
    )


def test_other_numbers_and_every_convention_can_be_read(alone: list[Part]) -> None:
    others = table(alone, "AUPR, false alarms")
    assert others.folded
    assert [column.title for column in others.columns][4:] == [
        "AUPR, outside positive",
        "AUPR, inside positive",
        "False alarms at the chosen share found",
        "Let through at the chosen share kept",
        "AURC",
        "E-AURC",
        "AUGRC",
        "Answered at a chosen risk",
        "Images",
    ]
    assert "counted at 95 % found, images let through at 95 % kept. Coverage is at a risk of 5 %." in others.note
    (how,) = [part for part in alone if isinstance(part, Definitions)]
    assert how.entries["Positive class"] == "outside"
    assert how.entries["True positive rate"] == "95\u202f%"
    settings = {row[0].text: [cell.text for cell in row[1:]] for row in table(alone, "Parameters of the detectors").rows}
    assert settings["Energy"] == ["temperature 1", "authors"]
    assert settings["MSP"] == ["none", "authors"]


def test_leads_over_the_baseline_are_paired_differences(found: list[Finding], alone: list[Part]) -> None:
    known = aurocs(found, goal="new-class", inside="photos", outside="all outside")
    rows = chart(alone, "Ahead of MSP").spec["data"]["values"]
    drawn = {row["label"]: row["value"] for row in rows if row["series"] == "New classes"}
    assert drawn.keys() == {written(name) for name in known if name != "msp"}
    assert drawn["ViM"] == pytest.approx(known["vim"].value - known["msp"].value)


def test_the_line_of_a_blind_detector_is_marked_at_half(alone: list[Part]) -> None:
    spec = chart(alone, "How well each detector").spec
    marks = [layer["encoding"]["x"]["datum"] for layer in spec["layer"] if "datum" in layer["encoding"]["x"]]
    assert marks == [0.5]
    scales = [layer["encoding"]["x"]["scale"] for layer in spec["layer"] if "scale" in layer["encoding"]["x"]]
    assert all(scale["domain"][0] < 0.5 < scale["domain"][1] == 1.0 for scale in scales)


def test_published_numbers_stand_beside_ones_own_and_are_called_of_other_images(alone: list[Part]) -> None:
    for goal, title in (("new-class", "New classes: beside"), ("failure", "Failures: beside")):
        beside = chart(alone, title)
        drawn = {row["label"]: row["value"] for row in beside.spec["data"]["values"] if row["series"] != "here"}
        published = {row["method"]: row for row in load_table("imagenet_ood_auroc") if row["goal"] == goal}
        for method, row in published.items():
            assert drawn.pop(method) == pytest.approx(float(row["in_1k__ood"]) / 100)
        (alone_in_other_table,) = drawn
        assert alone_in_other_table == "GradNorm"
        assert "other images than here" in beside.note


def test_curves_of_the_best_are_drawn_and_all_others_can_be_chosen_and_read_off(alone: list[Part]) -> None:
    roc = chart(alone, "New classes: found")
    drawn = {row["series"] for row in roc.spec["data"]["values"]}
    (choice,) = roc.spec["params"]
    assert len(drawn) == 6
    assert "MSP" in drawn
    assert drawn | set(choice["bind"]["options"]) == {"", *map(written, made_up.DETECTORS)}
    assert len(roc.figures.rows) == len(made_up.DETECTORS)


def test_figures_of_a_curve_are_what_is_found_with_no_more_false_alarms() -> None:
    about = {
        "model": "toy",
        "image_set": "photos",
        "detector": "msp",
        "inside": "photos",
        "outside": "hats",
        "goal": "new-class",
    }
    x, y = (0.0, 0.04, 0.1, 0.3, 1.0), (0.0, 0.2, 0.5, 0.9, 1.0)
    findings: list[Finding] = [
        Measurement("auroc", 0.8, about, 9, {}),
        Curve("roc", about, "false alarms", "found", x, y, 9, {}),
    ]
    (roc,) = roc_charts(DetectorFindings("toy", findings))
    assert isinstance(roc, Chart)
    # at 1, 5, 10, 20 and 50 % false alarms, read off the points by hand
    assert [cell.order for cell in roc.figures.rows[0][1:]] == [0.0, 0.2, 0.5, 0.5, 0.9]


def test_scores_are_small_drawings_on_one_axis_with_right_answers_in_each(alone: list[Part]) -> None:
    best, baseline = [part for part in alone if isinstance(part, Panels)]
    assert (best.title, baseline.title) == ("Scores of ViM", "Scores of MSP")
    assert [panel.title.partition(" (")[0] for panel in best.panels] == [
        "right answers",
        "wrong answers",
        "fog 3",
        "zoom blur 4",
        "gaussian noise 5",
        "clothing",
        "tools",
    ]
    domains = {str(layer["encoding"]["x"]["scale"]["domain"]) for panel in best.panels for layer in panel.spec["layer"]}
    assert len(domains) == 1
    assert [len(panel.spec["layer"]) for panel in best.panels] == [1, *[2] * 6]


def test_several_models_stand_side_by_side_with_their_mean_and_spread(found: list[Finding], several: list[Part]) -> None:
    together = table(several, "Detectors, goals and models")
    assert [column.title for column in together.columns] == ["Detector", *["lite0", "lite4", "Mean"] * 2]
    for row in together.rows:
        first, second, mean = (float(cell.order) for cell in row[1:4])
        assert mean == pytest.approx((first + second) / 2)
        assert row[3].below == f"± {100 * statistics.stdev([first, second]):.1f}"
    assert [part.title for part in several if isinstance(part, Heading)] == ["lite0", "lite4"]
    series = {row["series"] for row in chart(several, "New classes: how well").spec["data"]["values"]}
    assert series == {"lite0", "lite4"}


def test_every_chart_is_drawn_by_vega_lite(alone: list[Part]) -> None:
    import vl_convert

    for part in alone:
        specs = (
            [part.spec]
            if isinstance(part, Chart)
            else [one.spec for one in part.panels[:2]]
            if isinstance(part, Panels)
            else []
        )
        for spec in specs:
            svg = vl_convert.vegalite_to_svg({**spec, "width": 500})
            assert "<path" in svg
            assert "NaN" not in svg
            assert spec["description"]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_kind_of_finding_that_is_missing_or_alone_breaks_nothing(found: list[Finding], name: str) -> None:
    assert parts_of(*(one for one in found if name_of(one) != name))
    parts_of(*(one for one in found if name_of(one) == name))


def test_unlabelled_images_have_one_goal_and_no_right_answers(found: list[Finding]) -> None:
    unlabelled = [
        one
        for one in found
        if one.about.get("goal") != "failure"
        and one.about.get("group") not in ("correct", "wrong")
        and name_of(one) in NAMES
    ]
    inside = [one for one in found if one.about.get("group") == "correct"]
    renamed = [
        Curve(one.name, {**one.about, "group": "inside"}, one.x_label, one.y_label, one.x, one.y, one.images, {})
        for one in inside
        if isinstance(one, Curve)
    ]
    parts = parts_of(*unlabelled, *renamed)
    assert [title for title, _ in table(parts, "Detectors and goals").headings if title] == ["New classes: all outside"]
    panels = next(part for part in parts if isinstance(part, Panels))
    assert panels.legend[1].name == "inside, for comparison"


def test_without_outside_sets_mistakes_alone_are_to_be_found(found: list[Finding]) -> None:
    parts = parts_of(*(one for one in found if one.about.get("outside", "mistakes alone") == "mistakes alone"))
    goals = table(parts, "Detectors and goals")
    assert [title for title, _ in goals.headings if title] == ["Mistakes alone"]
    assert "wrong answers among right ones" in goals.note
