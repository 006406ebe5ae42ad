"""The section of novelty and failure: tables, charts and curves of all detectors, and published numbers beside them."""

from __future__ import annotations

import statistics

import pytest

from reports import made_up_ood as made_up
from shiftproof.reference import load_table
from shiftproof.reports.page import Page, name_of
from shiftproof.reports.parts import Chart, Panels, Part, SideBySide, Table
from shiftproof.reports.sections import draw_origins
from shiftproof.studies.ood.charts import roc_charts
from shiftproof.studies.ood.findings import DetectorFindings, written
from shiftproof.studies.ood.section import NAMES, draw_ood
from shiftproof.types import Curve, Finding, Measurement, Results


def parts_of(*findings: Finding) -> list[Part]:
    return list(draw_ood([one for one in findings if name_of(one) in NAMES], Page(Results(findings))).parts)


def table(parts: list[Part], title: str) -> Table:
    return next(part for part in parts if isinstance(part, Table) and part.title.startswith(title))


def chart(parts: list[Part], title: str) -> Chart:
    return next(part for part in parts if isinstance(part, Chart) and part.title.startswith(title))


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return list(made_up.ood_findings())


@pytest.fixture(scope="module")
def alone(found: list[Finding]) -> list[Part]:
    return parts_of(*found)


@pytest.fixture(scope="module")
def several(found: list[Finding]) -> list[Part]:
    other = list(made_up.ood_findings("lite4", seed=9))
    return parts_of(*found, *other, *made_up.means_over(found, other))


def aurocs(findings: list[Finding], **about: str) -> dict[str, Measurement]:
    return {
        str(one.about["ood_detector"]): one
        for one in findings
        if isinstance(one, Measurement) and one.metric == "auroc" and about.items() <= one.about.items()
    }


def test_the_table_has_every_detector_for_both_goals_on_every_inside_set(found: list[Finding], alone: list[Part]) -> None:
    goals = table(alone, "OOD detectors: AUROC")
    assert goals.headings == [
        ("", 1),
        ("New-class detection: all OOD", 4),
        ("Failure detection: all OOD", 4),
        ("Failure detection: misclassifications only", 1),
    ]
    assert [column.title for column in goals.columns[1:5]] == ["photos", "fog 3", "zoom blur 4", "gaussian noise 5"]
    known = aurocs(found, goal="failure", id="fog 3", ood="all OOD")
    cells = {row[0].text: row[6] for row in goals.rows}
    assert len(cells) == len(made_up.DETECTORS)
    for detector, one in known.items():
        low, high = one.ends or (0, 0)
        assert cells[written(detector)].text == f"{100 * one.value:.1f}"
        assert cells[written(detector)].below == f"{100 * low:.1f}–{100 * high:.1f}"


def test_a_dataset_called_like_a_corruption_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_up, "SHIFTED", {"zoom_blur 4": 1.4})
    goals = table(parts_of(*made_up.ood_findings("lite0", seed=5)), "OOD detectors: AUROC")
    assert [column.title for column in goals.columns[1:3]] == ["photos", "zoom_blur 4"]


def test_the_best_at_finding_new_classes_comes_first(alone: list[Part]) -> None:
    values = [row[1].order for row in table(alone, "OOD detectors: AUROC").rows]
    assert values == sorted(values, reverse=True, key=float)


def test_marks_are_signs_that_the_note_explains(alone: list[Part]) -> None:
    goals = table(alone, "OOD detectors: AUROC")
    marks = [[row[place].mark for row in goals.rows] for place in range(1, 10)]
    assert marks[0].count("★") == 1
    assert all(set(column) <= {"", "★"} or set(column) <= {"", "≈"} for column in marks)
    assert "★ is significantly better than every other" in goals.note
    assert "≈ is not significantly worse than the best" in goals.note


def test_every_outside_set_by_itself_is_one_click_away(alone: list[Part]) -> None:
    each = table(alone, "Each OOD dataset: AUROC")
    assert each.folded
    titles = [title for title, _ in each.headings if title]
    assert titles == [
        "New-class detection: clothing",
        "New-class detection: tools",
        "Failure detection: clothing",
        "Failure detection: tools",
        "Failure detection: misclassifications only",
    ]


def test_a_single_outside_set_goes_by_its_name(found: list[Finding]) -> None:
    parts = parts_of(*(one for one in found if one.about.get("ood") not in ("tools", "all OOD")))
    (_, (heading, _), *_) = table(parts, "OOD detectors: AUROC").headings
    assert heading == "New-class detection: clothing"
    each = table(parts, "Each OOD dataset: AUROC")
    assert [title for title, _ in each.headings if title] == ["Failure detection: misclassifications only"], (
        "under the shifts, which the first table has not"
    )


def test_other_numbers_and_every_convention_can_be_read(found: list[Finding], alone: list[Part]) -> None:
    others = table(alone, "AUPR, FPR")
    assert others.folded
    assert [column.title for column in others.columns][4:] == [
        "AUPR, OOD positive",
        "AUPR, ID positive",
        "FPR at the chosen TPR",
        "FPR at the chosen TPR, ID positive",
        "AURC",
        "E-AURC",
        "AUGRC",
        "Coverage at a chosen risk",
        "Images",
    ]
    assert "FPR at a TPR of 95 %, with OOD or with ID images as positives. Coverage is at a risk of 5 %." in others.note
    (conventions,) = [section for section in draw_origins(Results(tuple(found))) if section.key == "conventions"]
    told = {(row[0].text, row[1].text) for row in table(conventions.parts, "Conventions of each metric").rows}
    assert {("Positive class", "ood"), ("True positive rate", "95\u202f%")} <= told
    settings = {row[0].text: [cell.text for cell in row[1:]] for row in table(alone, "Parameters of the detectors").rows}
    assert settings["Energy"] == ["temperature 1", "authors"]
    assert settings["MSP"] == ["none", "authors"]


def test_leads_over_the_baseline_are_paired_differences(found: list[Finding], alone: list[Part]) -> None:
    known = aurocs(found, goal="new-class", id="photos", ood="all OOD")
    rows = chart(alone, "AUROC difference to MSP").spec["data"]["values"]
    drawn = {row["label"]: row["value"] for row in rows if row["series"] == "New-class detection"}
    assert drawn.keys() == {written(name) for name in known if name != "msp"}
    assert drawn["ViM"] == pytest.approx(known["vim"].value - known["msp"].value)


def test_the_line_of_a_blind_detector_is_marked_at_half(alone: list[Part]) -> None:
    spec = chart(alone, "AUROC by detector").spec
    marks = [layer["encoding"]["x"]["datum"] for layer in spec["layer"] if "datum" in layer["encoding"]["x"]]
    assert marks == [0.5]
    scales = [layer["encoding"]["x"]["scale"] for layer in spec["layer"] if "scale" in layer["encoding"]["x"]]
    assert all(scale["domain"][0] < 0.5 < scale["domain"][1] == 1.0 for scale in scales)


def test_published_numbers_stand_beside_ones_own_and_are_called_of_other_images(alone: list[Part]) -> None:
    for goal, title in (("new-class", "New-class detection: compared"), ("failure", "Failure detection: compared")):
        beside = chart(alone, title)
        drawn = {row["label"]: row["value"] for row in beside.spec["data"]["values"] if row["series"] != "here"}
        published = {row["method"]: row for row in load_table("imagenet_ood_auroc") if row["goal"] == goal}
        for method, row in published.items():
            assert drawn.pop(method) == pytest.approx(float(row["in_1k__ood"]) / 100)
        (alone_in_other_table,) = drawn
        assert alone_in_other_table == "GradNorm"
        assert "other images than here" in beside.note


def test_curves_of_the_best_are_drawn_and_all_others_can_be_chosen_and_read_off(alone: list[Part]) -> None:
    roc = chart(alone, "New-class detection: ROC")
    drawn = {row["series"] for row in roc.spec["data"]["values"]}
    (choice,) = roc.spec["params"]
    assert len(drawn) == 6
    assert "MSP" in drawn
    assert drawn | set(choice["bind"]["options"]) == {"", *map(written, made_up.DETECTORS)}
    assert len(roc.figures.rows) == len(made_up.DETECTORS)


def test_figures_of_a_curve_are_the_highest_tpr_at_each_fpr() -> None:
    about = {
        "model": "toy",
        "dataset": "photos",
        "ood_detector": "msp",
        "id": "photos",
        "ood": "hats",
        "goal": "new-class",
    }
    x, y = (0.0, 0.04, 0.1, 0.3, 1.0), (0.0, 0.2, 0.5, 0.9, 1.0)
    findings: list[Finding] = [
        Measurement("auroc", 0.8, about, 9, {}),
        Curve("roc", about, "false-positive rate", "true-positive rate", x, y, 9, {}),
    ]
    (roc,) = roc_charts(DetectorFindings("toy", findings))
    assert isinstance(roc, Chart)
    # at an FPR of 1, 5, 10, 20 and 50 %, read off the points by hand
    assert [cell.order for cell in roc.figures.rows[0][1:]] == [0.0, 0.2, 0.5, 0.5, 0.9]


def test_scores_are_small_drawings_on_one_axis_with_right_answers_in_each(alone: list[Part]) -> None:
    best, baseline = [part for part in alone if isinstance(part, Panels)]
    assert (best.title, baseline.title) == ("OOD scores of ViM", "OOD scores of MSP")
    assert [panel.title.partition(" (")[0] for panel in best.panels] == [
        "correct predictions",
        "misclassifications",
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
    together = table(several, "OOD detectors by model")
    assert [column.title for column in together.columns] == ["Detector", *["lite0", "lite4", "Mean"] * 2]
    for row in together.rows:
        first, second, mean = (float(cell.order) for cell in row[1:4])
        assert mean == pytest.approx((first + second) / 2)
        assert row[3].below == f"± {100 * statistics.stdev([first, second]):.1f}"
    both = [one for one in [*found, *made_up.ood_findings("lite4", seed=9)] if name_of(one) in NAMES]
    section = draw_ood(both, Page(Results(tuple(both))))
    columns = [part for part in section.details if isinstance(part, SideBySide)]
    assert columns
    assert all(part.models == ["lite0", "lite4"] for part in columns)
    series = {row["series"] for row in chart(several, "New-class detection: AUROC by detector").spec["data"]["values"]}
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
    id_set = [one for one in found if one.about.get("group") == "correct"]
    renamed = [
        Curve(one.name, {**one.about, "group": "id"}, one.x_label, one.y_label, one.x, one.y, one.images, {})
        for one in id_set
        if isinstance(one, Curve)
    ]
    parts = parts_of(*unlabelled, *renamed)
    assert [title for title, _ in table(parts, "OOD detectors: AUROC").headings if title] == ["New-class detection: all OOD"]
    panels = next(part for part in parts if isinstance(part, Panels))
    assert panels.legend[1].name == "ID images, for comparison"


def test_without_outside_sets_mistakes_alone_are_to_be_found(found: list[Finding]) -> None:
    parts = parts_of(*(one for one in found if one.about.get("ood", "mistakes alone") == "mistakes alone"))
    goals = table(parts, "OOD detectors: AUROC")
    assert [title for title, _ in goals.headings if title] == ["Failure detection: misclassifications only"]
    assert "Positives: misclassifications; negatives: correct predictions" in goals.note
