"""The report's part on hard and novel photos, drawn from real findings of its study."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.metrics.accuracy import to_top5
from shiftproof.reference import ilsvrc_classes, load_table, wnids_of
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Section, Table
from shiftproof.reports.sections import draw_sections
from shiftproof.studies.natural_adversarial.study import NaturalAdversarialStudy
from shiftproof.types import DatasetRef, Finding, Measurement, ModelRef, Predictions, Results, Run
from studies.contracts import findings_of

HARD, ORDINARY, NOVEL = (DatasetRef(name, name) for name in ("hard", "ordinary", "novel"))
CLASSES = [ilsvrc_classes().keys.index(wnid) for wnid in wnids_of("imagenet_a_classes")]
KNOWLEDGE = {"hard": 2.0, "ordinary": 5.0, "novel": 0.0}


def answers(run: Run) -> Predictions:
    """150 photos of every kind, known better the more ordinary they are."""
    name = run.dataset.name
    rng = np.random.default_rng(sum(map(ord, name + run.model.name)))
    labels = np.full(150, -1) if name == "novel" else rng.choice(CLASSES, 150)
    logits = rng.normal(size=(150, 1000)) + KNOWLEDGE[name] * (np.arange(1000) == labels[:, None])
    ids = tuple(f"{place}.png" for place in range(150))
    return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"), ilsvrc_classes(), logits)


def findings(*models: str, ordinary: DatasetRef | None = None, novel: DatasetRef | None = None) -> list[Finding]:
    study = NaturalAdversarialStudy([ModelRef(name, name) for name in models], HARD, ordinary=ordinary, novel=novel)
    return findings_of(study, answers)


def section_of(found: list[Finding]) -> Section:
    (section,) = [one for one in draw_sections(Page(Results(tuple(found)))) if one.key == "natural-adversarial"]
    return section


def table_called(section: Section, title: str) -> Table:
    (table,) = [part for part in section.parts if isinstance(part, Table) and part.title == title]
    return table


def chart_called(section: Section, title: str) -> Chart:
    (chart,) = [part for part in section.parts if isinstance(part, Chart) and part.title.startswith(title)]
    return chart


def test_every_finding_is_drawn_in_the_section_and_none_is_left_over() -> None:
    found = findings("net", ordinary=ORDINARY, novel=NOVEL)
    keys = [section.key for section in draw_sections(Page(Results(tuple(found))))]
    assert "more" not in keys
    shown = {cell.text for part in section_of(found).parts if isinstance(part, Table) for row in part.rows for cell in row}
    for one in found:
        assert not isinstance(one, Measurement) or f"{100 * one.value:.1f}\u202f%" in shown


def test_detectors_are_held_against_the_share_of_novel_photos() -> None:
    table = table_called(section_of(findings("net", ordinary=ORDINARY, novel=NOVEL)), "OOD photos")
    detector = [column.title for column in table.columns].index("OOD detector")
    assert [row[detector].text for row in table.rows] == ["MSP", "Max-Logit"]
    of_novel_classes = {ilsvrc_classes().keys.index(wnid) for wnid in wnids_of("imagenet_o_classes")}
    ordinary = sum(label in of_novel_classes for label in answers(Run(ModelRef("net", "net"), ORDINARY)).labels[:, 0])
    assert f"{15000 / (150 + ordinary):.2f} %" in table.note


def test_a_model_stands_among_the_published_by_its_accuracy_among_200_classes_and_the_aupr_of_msp() -> None:
    found = findings("net", "other net", ordinary=ORDINARY, novel=NOVEL)
    rows = {row["name"]: row for row in chart_called(section_of(found), "Among published models").spec["data"]["values"]}
    published = load_table("imagenet_a_o_models")
    for line in published:
        percents = (float(line["imagenet_a_accuracy"]), float(line["imagenet_o_aupr"]))
        assert (rows[line["model"]]["x"], rows[line["model"]]["y"]) == pytest.approx([percent / 100 for percent in percents])
    assert set(rows) == {"net", "other net", *(line["model"] for line in published)}
    for name in ("net", "other net"):
        own = {
            one.metric: one.value
            for one in found
            if isinstance(one, Measurement)
            and one.about["model"] == name
            and (one.about.get("scored") == "200 of 1000" or one.about.get("ood_detector") == "msp")
        }
        assert (rows[name]["x"], rows[name]["y"]) == (own["imagenet_a_accuracy"], own["imagenet_o_aupr"])


def test_without_novel_photos_there_is_no_table_of_them_and_accuracy_alone_is_marked() -> None:
    section = section_of(findings("net"))
    assert "OOD photos" not in [part.title for part in section.parts if isinstance(part, Table)]
    chart = chart_called(section, "Among published models")
    assert "net" not in [row["name"] for row in chart.spec["data"]["values"]]
    assert any(layer["data"]["values"][0]["label"].startswith("net: ") for layer in chart.spec["layer"] if "data" in layer)


def test_a_line_for_each_model_ends_at_its_accuracy() -> None:
    found = findings("net", "other net")
    chart = chart_called(section_of(found), "Response-rate accuracy")
    rows = chart.spec["data"]["values"]
    for name in ("net", "other net"):
        ends = max((row for row in rows if row["series"] == name), key=lambda row: row["x"])
        (accuracy, _) = [
            one.value
            for one in found
            if isinstance(one, Measurement) and one.metric == "imagenet_a_accuracy" and one.about["model"] == name
        ]
        assert ends["y"] == pytest.approx(accuracy)


def test_published_ways_of_training_stand_in_a_table_of_their_own() -> None:
    table = table_called(section_of(findings("net")), "Published: training methods on ImageNet-A")
    assert [row[0].text for row in table.rows] == [line["technique"] for line in load_table("imagenet_a_augmentations")]
    assert table.rows[0][1].text == "2.2\u202f%"
