"""The report's section on temporal robustness, drawn from findings of its study on made-up predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from reports import made_up
from shiftproof.metrics.accuracy import to_top5
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.trends import fit_line
from shiftproof.metrics.wording import figure
from shiftproof.reference import load_table
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Filmstrip, Folded, Heading, Section, Table
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.studies.temporal.study import TemporalStudy
from shiftproof.types import (
    Classes,
    Curve,
    DatasetRef,
    Fact,
    Finding,
    Image,
    Measurement,
    ModelRef,
    Predictions,
    Results,
    Run,
)
from studies.contracts import findings_of

if TYPE_CHECKING:
    from playwright.sync_api import Page as BrowserPage

CLIPS = DatasetRef("clips", "f00d")
CLASSES = Classes(("otter", "tabby", "crane"), ("otter", "tabby", "crane"))
ANCHORS, LARGEST_K = 40, 3
OFFSETS = range(-LARGEST_K, LARGEST_K + 1)
KNOWLEDGE = {"steady": 4.0, "shaky": 1.5}


def answers(run: Run) -> Predictions:
    """Seven frames around each of forty anchors, half of which are I frames."""
    rng = np.random.default_rng(sum(map(ord, run.model.name)))
    frames = [(anchor, offset) for anchor in range(ANCHORS) for offset in OFFSETS]
    labels = np.array([anchor % 3 for anchor, _ in frames])
    logits = rng.normal(size=(len(frames), 3)) + KNOWLEDGE[run.model.name] * (np.arange(3) == labels[:, None])
    facts: dict[str, tuple[str | int, ...]] = {
        "anchor": tuple(f"{anchor}/0.png" for anchor, _ in frames),
        "offset": tuple(offset for _, offset in frames),
        "frame_type": tuple("IP"[anchor % 2] for anchor, _ in frames),
    }
    ids = tuple(f"{anchor}/{offset}.png" for anchor, offset in frames)
    return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"), CLASSES, logits, facts=facts)


def findings(*models: str, dataset: DatasetRef = CLIPS, largest_k: int = LARGEST_K) -> list[Finding]:
    study = TemporalStudy([ModelRef(name, name) for name in models], dataset, largest_k=largest_k)
    return findings_of(study, answers)


def number(found: list[Finding], metric: str, **about: str | int) -> Measurement:
    (one,) = [
        one
        for one in found
        if isinstance(one, Measurement) and one.metric == metric and about.items() <= dict(one.about).items()
    ]
    return one


def section_of(found: list[Finding]) -> Section:
    (section,) = [one for one in draw_sections(Page(Results(tuple(found)))) if one.key == "temporal"]
    return section


def chart_called(section: Section, title: str) -> Chart:
    (chart,) = [part for part in section.parts if isinstance(part, Chart) and part.title.startswith(title)]
    return chart


def table_called(section: Section, title: str) -> Table:
    (table,) = [part for part in section.parts if isinstance(part, Table) and part.title.startswith(title)]
    return table


def test_every_finding_of_the_study_is_drawn_and_none_is_left_over() -> None:
    found = reviewed_findings("shaky")
    assert "more" not in [section.key for section in draw_sections(Page(Results(tuple(found))))]
    section = section_of(found)
    parts = [one for part in section.parts for one in (part.parts if isinstance(part, Folded) else [part])]
    tables = [part for part in parts if isinstance(part, Table)]
    shown = {cell.text for table in tables for row in table.rows for cell in row}
    for one in found:
        if isinstance(one, Measurement) and (one.metric != "pm_k_accuracy" or one.about["k"] == LARGEST_K):
            assert figure(one.value, metric_info(one.metric).unit) in shown, one.metric
    strips = [part for part in section.parts if isinstance(part, Filmstrip)]
    assert len(strips) == 4


def test_every_chart_is_drawn_by_vega_lite_with_all_its_marks() -> None:
    import vl_convert

    charts = [part for part in section_of(reviewed_findings("shaky", "steady")).parts if isinstance(part, Chart)]
    assert len(charts) == 6
    for chart in charts:
        svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
        assert "<path" in svg, chart.title
        assert "NaN" not in svg, chart.title


def test_the_summary_says_how_many_anchors_stand_with_all_frames_around_them() -> None:
    found = findings("shaky")
    anchor, around = number(found, "anchor_accuracy"), number(found, "pm_k_accuracy", k=LARGEST_K)
    summary = summarise(Page(Results(tuple(found))))
    (headline,) = summary.headlines
    right = f"About {100 * anchor.value:.0f} of 100 anchor frames are classified correctly"
    assert headline.startswith(f"{right}, but only about {100 * around.value:.0f} on every frame within 3 of them (")
    assert "95\u202f% CI" in headline
    assert headline.endswith("40 images).")
    assert f"k = {LARGEST_K} · " in next(tile.detail for tile in summary.tiles if "pm-k" in tile.title)


def test_several_models_stand_side_by_side_in_the_summary_with_both_accuracies() -> None:
    found = findings("shaky", "steady")
    summary = summarise(Page(Results(tuple(found))))
    assert [sentence.partition(":")[0] for sentence in summary.headlines] == ["shaky", "steady"]
    assert summary.table is not None
    for row, model in zip(summary.table.rows, ("shaky", "steady"), strict=True):
        numbers = number(found, "anchor_accuracy", model=model), number(found, "pm_k_accuracy", model=model, k=LARGEST_K)
        assert [cell.text for cell in row[1:3]] == [f"{100 * one.value:.1f}\u202f%" for one in numbers]


def test_a_line_for_each_model_starts_at_the_anchor_alone_and_ends_at_the_largest_k() -> None:
    found = findings("shaky", "steady")
    rows = chart_called(section_of(found), "pm-k accuracy: correct on every frame").spec["data"]["values"]
    for model in KNOWLEDGE:
        line = [row for row in rows if row["series"] == model]
        assert [row["x"] for row in line] == [0, 1, 2, 3]
        assert line[0]["y"] == number(found, "anchor_accuracy", model=model).value
        assert line[-1]["y"] == number(found, "pm_k_accuracy", model=model, k=LARGEST_K).value
        assert all(row["low"] < row["y"] < row["high"] for row in line)


def test_a_single_distance_is_a_table_and_no_line() -> None:
    found = findings("shaky", largest_k=1)
    table = table_called(section_of(found), "Accuracy k frames from a correct anchor")
    (curve,) = [one for one in found if isinstance(one, Curve) and one.name == "conditional_robustness"]
    assert [row[2].order for row in table.rows] == list(curve.y)


@pytest.mark.parametrize("table", ["imagenet_vid_robust_models", "ytbb_robust_models"])
def test_models_stand_among_those_of_the_table_that_the_study_measured_from(table: str) -> None:
    found = findings_of(TemporalStudy([ModelRef("shaky", "shaky")], CLIPS, largest_k=LARGEST_K, published=table), answers)
    chart = chart_called(section_of(found), "Among published models")
    published = load_table(table)
    places = [(row["x"], row["y"]) for row in chart.spec["data"]["values"] if not row["own"]]
    expected = [(float(row["original"]) / 100, float(row["perturbed"]) / 100) for row in published]
    assert places == expected
    (own,) = [row for row in chart.spec["data"]["values"] if row["own"]]
    drawn = chart.spec["layer"][0]["data"]["values"]
    line = fit_line(np.array([x for x, _ in expected]), np.array([y for _, y in expected]))
    assert [row["y"] for row in drawn] == pytest.approx([line.intercept + line.slope * row["x"] for row in drawn])
    # so the drawing and the number tell the same: the model lies as far above the line as it is robust
    above = own["y"] - (line.intercept + line.slope * own["x"])
    assert above == pytest.approx(number(found, "effective_robustness", axes="linear").value)
    assert "other images" in chart.note


def test_a_model_more_accurate_than_all_published_ones_lies_where_the_line_is_extrapolated() -> None:
    found = findings("shaky", "steady")
    most = max(float(row["original"]) for row in load_table("imagenet_vid_robust_models")) / 100
    assert (
        number(found, "anchor_accuracy", model="shaky").value < most < number(found, "anchor_accuracy", model="steady").value
    )
    assert chart_called(section_of(found), "Among published models").note.endswith("the line is extrapolated: steady.")
    assert "extrapolated" not in chart_called(section_of(findings("shaky")), "Among published models").note


def test_subsets_have_a_column_for_the_anchor_alone_and_one_for_all_frames_around_it() -> None:
    found = findings("shaky")
    table = table_called(section_of(found), "Subsets of the anchors")
    assert [column.title for column in table.columns] == ["Subset", "k = 0", "k = 3", "Drop", "Anchors"]
    for row in table.rows:
        for cell, k in zip(row[1:3], (0, LARGEST_K), strict=True):
            assert cell.order == number(found, "pm_k_subset_accuracy", subset=row[0].text, k=k).value
        assert row[3].order == number(found, "pm_k_subset_drop", subset=row[0].text).value
    assert [(row[0].text, row[-1].text) for row in table.rows] == [("without I", "20"), ("without P", "20")]


def reviewed_answers(run: Run) -> Predictions:
    """The same frames with distances that grow with the offset; people rejected the earliest, which changed wholly."""
    plain = answers(run)
    offsets = [int(offset or 0) for offset in plain.facts["offset"]]
    more: dict[str, tuple[Fact, ...]] = {
        "reviewed": tuple("dissimilar" if offset == -LARGEST_K else True for offset in offsets),
        "pixel_distance": tuple(1.0 if offset == -LARGEST_K else abs(offset) / 4 for offset in offsets),
    }
    return dataclasses.replace(plain, facts={**plain.facts, **more})


def reviewed_findings(*models: str) -> list[Finding]:
    study = TemporalStudy([ModelRef(name, name) for name in models], CLIPS, largest_k=LARGEST_K)
    return findings_of(study, reviewed_answers)


def test_frames_that_people_rejected_are_told_with_and_without() -> None:
    found = reviewed_findings("shaky")
    table = table_called(section_of(found), "Frames rejected in review")
    assert [column.title for column in table.columns] == ["Rejected", "k = 0", "k = 3", "Drop", "Anchors"]
    without, with_all = table.rows
    assert [row[0].text for row in table.rows] == ["left out", "kept"]
    assert without[2].order == number(found, "pm_k_accuracy", k=LARGEST_K).value
    assert float(with_all[2].order) < float(without[2].order)


def test_models_on_the_same_hardest_frames_stand_beside_each_on_its_own_worst() -> None:
    found = findings("shaky", "steady")
    table = table_called(section_of(found), "The same frames for every model")
    for row, model in zip(table.rows, ("shaky", "steady"), strict=True):
        assert row[0].text == model
        assert row[1].order == number(found, "pm_k_accuracy", model=model, k=LARGEST_K).value
        assert row[2].order == number(found, "hardest_frames_accuracy", model=model).value
        assert float(row[1].order) <= float(row[2].order), "no set of frames is worse for a model than its own worst"


def test_lines_of_distances_rise_from_nothing_to_all_pairs() -> None:
    found = reviewed_findings("shaky", "steady")
    chart = chart_called(section_of(found), "Pixel distance from the anchor")
    rows = chart.spec["data"]["values"]
    series = list(dict.fromkeys(row["series"] for row in rows))
    expected = ["all pairs (240)", "reviewed pairs (200)", "misclassifications of shaky (", "misclassifications of steady ("]
    assert all(name.startswith(start) for name, start in zip(series, expected, strict=True))
    for name in series:
        line = [(row["x"], row["y"]) for row in rows if row["series"] == name]
        assert (line[0], line[-1]) == ((0, 0), (1, 1))
        assert line == sorted(line)
    # around each anchor two frames at 1/4, two at 1/2, one at 3/4, and one at 1 that was rejected
    everyone, reviewed, *_ = ([cell.order for cell in row[1:]] for row in chart.figures.rows)
    assert everyone == [0.25, 0.5, 1.0, 6 * ANCHORS]
    assert reviewed == [0.25, 0.5, 0.75, 5 * ANCHORS]


def test_the_least_steady_classes_come_first() -> None:
    found = findings("shaky")
    table = table_called(section_of(found), "By class: k = 3")
    assert [column.title for column in table.columns] == ["Class", "k = 0", "k = 3", "Drop", "Anchors"]
    values = [float(row[2].order) for row in table.rows]
    assert values == sorted(values)
    assert {row[0].text for row in table.rows} == set(CLASSES.names)
    assert all(float(row[3].order) == pytest.approx(float(row[1].order) - float(row[2].order)) for row in table.rows)
    lost = np.median([float(row[3].order) for row in table.rows])
    assert number(found, "pm_k_median_class_drop").value == pytest.approx(lost)


def test_errors_by_offset_over_all_models_are_drawn_before_and_after_review() -> None:
    chart = chart_called(section_of(reviewed_findings("shaky", "steady")), "Error by offset before and after review")
    assert chart.title.endswith("mean over 2 models")
    rows = chart.spec["data"]["values"]
    lines = {name: [row["x"] for row in rows if row["series"] == name] for name in ("after review", "before review")}
    # the earliest frames were rejected
    assert lines == {"after review": [-2, -1, 0, 1, 2, 3], "before review": [-3, -2, -1, 0, 1, 2, 3]}
    plain = chart_called(section_of(findings("shaky", "steady")), "Error by offset, mean over 2 models")
    assert {row["series"] for row in plain.spec["data"]["values"]} == {"all models"}


def test_few_frames_have_a_tick_each_and_none_between_them() -> None:
    axis = chart_called(section_of(findings("shaky")), "Accuracy k frames from a correct anchor").spec["layer"][-1][
        "encoding"
    ]["x"]
    assert axis["axis"]["values"] == [1, 2, 3]


def one_clip(run: Run) -> Predictions:
    """The same frames, all of one clip."""
    plain = answers(run)
    return dataclasses.replace(plain, facts={**plain.facts, "clip": ("parrot.mp4",) * len(plain.ids)})


def test_of_one_clip_tables_and_summary_say_that_it_is_one_case_in_place_of_an_interval() -> None:
    found = findings_of(TemporalStudy([ModelRef("shaky", "shaky")], CLIPS, largest_k=LARGEST_K), one_clip)
    section = section_of(found)
    for title in ("In short", "Subsets of the anchors", "By class"):
        assert table_called(section, title).note.endswith(
            "No CI: anchors of one clip are one case (cluster), and at least 5 clips are needed."
        )
    assert "No band: anchors of one clip are one case" in chart_called(section, "pm-k accuracy: correct on every frame").note
    (headline,) = summarise(Page(Results(tuple(found)))).headlines
    assert headline.endswith("(40 anchors of 1 clip, so no CI).")
    assert "one case" not in table_called(section_of(findings("shaky")), "In short").note


def test_a_filmstrip_has_its_frames_in_order_of_time_and_marks_the_wrong_ones() -> None:
    found = findings("shaky")
    strip = next(part for part in section_of(found).parts if isinstance(part, Filmstrip))
    assert [frame.offset for frame in strip.frames] == [-3, -2, -1, 0, 1, 2, 3]
    predictions = answers(Run(ModelRef("shaky", "shaky"), CLIPS))
    for frame in strip.frames:
        row = predictions.ids.index(frame.picture.id)
        answer = int(predictions.top5.classes[row, 0])
        assert frame.picture.caption.startswith(CLASSES.names[answer])
        assert frame.correct == (answer == predictions.labels[row, 0])


def test_a_wrong_frame_bears_a_sign_and_not_a_colour_alone() -> None:
    def open_image(dataset: DatasetRef, image_id: str) -> Image:
        return np.full((60, 80, 3), 120, np.uint8)

    found = findings("shaky")
    strips = [part for part in section_of(found).parts if isinstance(part, Filmstrip)]
    html = build_report(Results(tuple(found)), open_image=open_image)
    wrong = sum(not frame.correct for strip in strips for frame in strip.frames)
    assert html.count("✗ wrong") == html.count('<li class="wrong"') == wrong > 0
    assert html.count("data-anchor>") == html.count('<span class="offset">anchor') == len(strips)
    assert html.count('<span class="offset">−3') == html.count('<span class="offset">+3') == len(strips)


def test_a_class_whose_name_ends_in_wrong_is_drawn_as_correct_where_it_is() -> None:
    def seals(run: Run) -> Predictions:
        return dataclasses.replace(answers(run), classes=Classes(("seal (wrong)", "tabby", "crane")))

    found = findings_of(TemporalStudy([ModelRef("shaky", "shaky")], CLIPS, largest_k=LARGEST_K), seals)
    strips = [part for part in section_of(list(found)).parts if isinstance(part, Filmstrip)]
    predictions = answers(Run(ModelRef("shaky", "shaky"), CLIPS))
    label_of = dict(zip(predictions.ids, predictions.labels[:, 0].tolist(), strict=True))
    seals_shown = [frame for strip in strips for frame in strip.frames if frame.picture.caption.startswith("seal (wrong) ")]
    assert {frame.correct for frame in seals_shown} == {True, False}
    assert all(frame.correct == (label_of[frame.picture.id] == 0) for frame in seals_shown)


def test_sets_of_several_datasets_stand_under_headings() -> None:
    found = [*findings("shaky"), *findings("shaky", dataset=DatasetRef("other clips", "beef"))]
    section = section_of(found)
    for parts in (section.main, section.details):
        assert [part.title for part in parts if isinstance(part, Heading)] == ["On clips", "On other clips"]


@pytest.mark.real
def test_on_a_phone_the_filmstrip_scrolls_and_not_the_page_and_the_anchor_is_in_view(
    show: Callable[..., BrowserPage],
) -> None:
    page = show(Results(tuple(findings("shaky", dataset=made_up.PHOTOS))), width=420, opened=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    strip = page.locator(".filmstrip").first
    assert strip.evaluate("strip => strip.scrollWidth > 2 * strip.clientWidth")
    assert strip.locator("img").count() == len(OFFSETS)
    anchor, view = strip.locator("[data-anchor]").bounding_box(), strip.bounding_box()
    assert anchor is not None
    assert view is not None
    assert view["x"] <= anchor["x"]
    assert anchor["x"] + anchor["width"] <= view["x"] + view["width"]
