"""The report's parts on detection, drawn from real findings of their studies on made-up boxes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shiftproof.reference import load_table
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Pictures, Section, Table
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.studies.detection.study import DetectionStudy
from shiftproof.studies.detection_corruption.study import DetectionCorruptionStudy
from shiftproof.types import DatasetRef, DrawnBox, Finding, FoundObjects, Gallery, Measurement, ModelRef, Results
from studies.contracts import findings_of
from studies.found_world import ANIMALS, Loads, world

if TYPE_CHECKING:
    from playwright.sync_api import Page as BrowserPage

PHOTOS = DatasetRef("photos", "f00d", "/photos")
SKILL = {"keen": 0.9, "dull": 0.4}
FRAMES: dict[str, list[Any]] = {
    "anchor": [f"{place // 3:02}" for place in range(30)],
    "offset": [place % 3 - 1 for place in range(30)],
    "frame_type": ["IP"[place // 3 % 2] for place in range(30)],
}


def scene(skill: float, **more: Any) -> FoundObjects:
    """A cat and a dog in each of thirty images, found with this chance, and a cat where none is."""
    rng = np.random.default_rng(11)
    images = {}
    for place in range(30):
        real = [("cat", 0.0), ("dog", 40.0)]
        hits = [(name, start, 0.4 + 0.5 * float(rng.random())) for name, start in real if rng.random() < skill]
        images[f"{place:03}.png"] = (real, [*hits, ("cat", 70.0, float(rng.random()))])
    return world(images, **more)


def refs(*models: str) -> list[ModelRef]:
    return [ModelRef(name, name) for name in models]


def found_in_photos(*models: str, **more: Any) -> list[Finding]:
    loads = Loads({name: scene(SKILL[name], **more) for name in models})
    return findings_of(DetectionStudy(refs(*models), PHOTOS, largest_k=1), loads)


def found_under_corruption() -> list[Finding]:
    cells = {"clean": 0.9, "fog 1": 0.8, "fog 5": 0.3, "gaussian_noise 1": 0.7, "gaussian_noise 5": 0.2}
    loads = Loads({name: scene(skill) for name, skill in cells.items()})
    study = DetectionCorruptionStudy(refs("keen"), PHOTOS, corruptions=("fog", "gaussian_noise"), severities=(1, 5))
    return findings_of(study, loads)


def section(findings: list[Finding], key: str = "detection") -> Section:
    drawn = draw_sections(Page(Results(tuple(findings))))
    assert "more" not in [one.key for one in drawn]  # every finding has its place
    (one,) = [one for one in drawn if one.key == key]
    return one


def titled(section: Section, title: str, kind: type[Any]) -> Any:
    (part,) = [part for part in section.parts if isinstance(part, kind) and part.title.startswith(title)]
    return part


def number(findings: list[Finding], metric: str, **about: str | int) -> Measurement:
    (one,) = [
        one
        for one in findings
        if isinstance(one, Measurement) and one.metric == metric and about.items() <= dict(one.about).items()
    ]
    return one


def test_overlaps_are_columns_and_what_is_told_at_the_first_alone_has_no_others() -> None:
    findings = found_in_photos("keen")
    table: Table = titled(section(findings), "Average precision and recall", Table)
    assert [column.title for column in table.columns] == ["Metric", "0.5", "0.75", "0.5 to 0.95", "Images"]
    rows = {row[0].text: [cell.text for cell in row[1:4]] for row in table.rows}
    assert list(rows) == ["mAP", "mAP, small objects", "Localization AP (class-agnostic)", "Average recall"]
    assert rows["Localization AP (class-agnostic)"][1:] == ["–", "–"]
    precision = number(findings, "mean_average_precision", iou="0.75")
    assert rows["mAP"][1] == f"{100 * precision.value:.1f}\u202f%"


def test_several_models_are_rows_of_one_table_and_lines_of_one_chart() -> None:
    drawn = section(found_in_photos("keen", "dull"))
    table: Table = titled(drawn, "Average precision and recall", Table)
    assert [row[0].text for row in table.rows] == ["keen"] * 4 + ["dull"] * 4
    chart: Chart = titled(drawn, "Precision-recall: all classes", Chart)
    assert {row["series"] for row in chart.spec["data"]["values"]} == {"keen", "dull"}


def test_own_detectors_stand_before_the_published_ones_which_are_of_other_images() -> None:
    findings = found_in_photos("keen", facts=FRAMES)
    table: Table = titled(section(findings), "mAP on the anchors and on the worst frames", Table)
    published = load_table("imagenet_vid_robust_detection")
    assert len(table.rows) == 2 + len(published)
    own = number(findings, "pm_k_average_precision", task="detection", k=1)
    assert table.rows[0][3].order == own.value
    assert [cell.text for cell in table.rows[2][2:5]] == ["62.8\u202f%", "48.8\u202f%", "14.0 points"]
    assert "other images" in table.note


def test_the_published_drops_are_the_differences_of_the_published_precisions() -> None:
    for row in load_table("imagenet_vid_robust_detection"):
        assert float(row["map_original"]) - float(row["map_perturbed"]) == pytest.approx(float(row["drop"]), abs=0.051)


def test_every_chart_can_be_drawn() -> None:
    import vl_convert

    parts = [
        *section(found_in_photos("keen", "dull", facts=FRAMES)).parts,
        *section(found_under_corruption(), "detection-corruption").parts,
    ]
    charts = [part for part in parts if isinstance(part, Chart)]
    # precision over k, precision over recall of both and of each, classes of each, and the cells under corruption
    assert len(charts) == 1 + 3 + 2 + 1
    for chart in charts:
        svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
        assert "<path" in svg, chart.title
        assert "NaN" not in svg, chart.title


def test_colours_of_cells_tell_what_is_lost_of_the_clean_precision() -> None:
    findings = found_under_corruption()
    chart: Chart = titled(section(findings, "detection-corruption"), "mAP by severity", Chart)
    shown = {(row["row"], row["column"]): row for row in chart.spec["data"]["values"] if "column" in row}
    clean = number(findings, "clean_average_precision").value
    for severity in (1, 5):
        cell = number(findings, "corrupted_average_precision", corruption="fog", severity=severity).value
        assert shown["fog", str(severity)]["fill"] == f"var(--heat-{int(10 * (1 - cell / clean))})"
        assert shown["fog", str(severity)]["text"] == f"{100 * cell:.1f}"


def test_images_without_boxes_of_their_own_show_what_was_found() -> None:
    drawn = section(found_in_photos("keen", boxed=False))
    table: Table = titled(drawn, "Detections", Table)
    assert {row[0].text for row in table.rows} <= set(ANIMALS.names)
    pictures: Pictures = titled(drawn, "Detections", Pictures)
    assert "without ground truth to compare with" in pictures.note


def test_the_summary_says_how_precise_and_what_is_left() -> None:
    findings = found_in_photos("keen", facts=FRAMES)
    precision = number(findings, "mean_average_precision", iou="0.5")
    around = number(findings, "pm_k_average_precision", task="detection", k=1)
    summary = summarise(Page(Results(tuple(findings))))
    (headline,) = summary.headlines
    assert headline.startswith(f"mAP is {100 * precision.value:.1f}\u202f% at IoU 0.5 (")
    assert headline.endswith(f"on the worst frame within 1 of each anchor {100 * around.value:.1f}\u202f%.")
    assert summary.tiles[0].title == "Mean average precision (mAP)"
    left = number(found_under_corruption(), "relative_performance_under_corruption")
    (headline,) = summarise(Page(Results(tuple(found_under_corruption())))).headlines
    assert headline.startswith(f"Corruption leaves {100 * left.value:.1f}\u202f% of the mAP")


def test_boxes_lie_on_the_picture_where_they_lie_in_the_image(show: Callable[..., BrowserPage]) -> None:
    page = show(Results(tuple(found_in_photos("keen"))), opened=True)
    button = page.locator(".gallery.boxed button").first
    place = button.locator("img").bounding_box()
    dog = button.locator("g.truth rect:not(.edge)").nth(1).bounding_box()
    assert place is not None
    assert dog is not None
    # from 40 to 60 of 200 across and of 100 down; the box is measured with its line, which is 1.5 pixels wide
    assert dog["x"] - place["x"] == pytest.approx(0.2 * place["width"], abs=2)
    assert dog["y"] - place["y"] == pytest.approx(0.4 * place["height"], abs=2)
    assert dog["width"] == pytest.approx(0.1 * place["width"], abs=3)


def test_what_a_box_beside_the_right_edge_says_stays_on_the_picture(show: Callable[..., BrowserPage]) -> None:
    box = DrawnBox((0.85, 0.4, 1.0, 0.6), "wrong", "dining table 38 %")
    galleries = [one for one in found_in_photos("keen") if isinstance(one, Gallery)]
    item = dataclasses.replace(galleries[0].items[0], boxes=(box,))
    page = show(Results((dataclasses.replace(galleries[0], items=(item,)),)), opened=True)
    button = page.locator(".gallery.boxed button").first
    place, said = button.bounding_box(), button.locator("text").bounding_box()
    assert place is not None
    assert said is not None
    assert place["x"] <= said["x"]
    assert said["x"] + said["width"] <= place["x"] + place["width"]


def test_an_enlarged_picture_keeps_its_boxes_and_the_next_one_has_its_own(show: Callable[..., BrowserPage]) -> None:
    page = show(Results(tuple(found_in_photos("keen"))), opened=True)
    for number_of_picture in (0, 3):
        button = page.locator(".gallery.boxed button").nth(number_of_picture)
        boxes = button.locator("g").count()
        button.click()
        assert page.locator("dialog .boxes g").count() == boxes
        place, svg = page.locator("dialog img").bounding_box(), page.locator("dialog .boxes").bounding_box()
        assert place == pytest.approx(svg)
        page.keyboard.press("Escape")
