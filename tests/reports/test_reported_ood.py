"""Real findings of the OOD studies, from predictions drawn at random, all the way into a report."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from shiftproof.metrics import auroc
from shiftproof.ood import ready
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Folded, Panels, Part, Pictures, Table
from shiftproof.reports.sections import draw_sections
from shiftproof.studies.ood.findings import DetectorFindings
from shiftproof.studies.ood.noticed_charts import accuracy_behind, decomposition, parts_of
from shiftproof.studies.ood.study import OODStudy
from shiftproof.types import Classes, Condition, DatasetRef, Head, ModelRef, Predictions, Results, Run, Top5
from studies.contracts import findings_of

INSIDE, HATS, SHOES = (DatasetRef(name, name) for name in ("drawn", "hats", "shoes"))
MODELS = (ModelRef("first", "1"), ModelRef("second", "2"))
FOG = Condition("fog", 3, edition="imagenet-224")
CLASSES, WIDTH = 8, 16


@cache
def predictions(run: Run) -> Predictions:
    """Features around the directions of their classes, hats and shoes around none; fog shrinks what is seen."""
    rng = np.random.default_rng([len(run.model.name), len(run.dataset.name), run.condition.severity])
    weights = np.eye(CLASSES, WIDTH) * 3
    images = 60 if run.dataset in (HATS, SHOES) else 240
    labels = rng.integers(0, CLASSES, images)
    strength = 0.3 if run.dataset in (HATS, SHOES) else 1.4 - 0.3 * run.condition.severity
    features = np.abs(rng.normal(size=(images, WIDTH)) + strength * weights[labels] / 2)
    logits = features @ weights.T
    order = np.argsort(-logits, axis=1)[:, :5]
    top5 = Top5(order, np.take_along_axis(logits, order, axis=1), np.log(np.exp(logits).sum(axis=1)))
    return Predictions(
        ids=tuple(f"{place}.png" for place in range(images)),
        labels=np.full((images, 1), -1) if run.dataset in (HATS, SHOES) else labels[:, None],
        gives="logits",
        top5=top5,
        classes=Classes(tuple(f"kind {place}" for place in range(CLASSES))),
        logits=logits,
        features=features,
        head=Head(weights, np.zeros(CLASSES)),
    )


@pytest.fixture(scope="module")
def results() -> Results:
    study = OODStudy(
        MODELS,
        INSIDE,
        conditions=[FOG],
        ood_datasets={"hats": HATS, "shoes": SHOES},
        detectors=["msp", "energy", "max_cosine", "gradnorm", "ash_b", "entropy", "max_logit"],
        random_networks={"first": [ModelRef("redrawn first", "3"), ModelRef("redrawn", "4")]},
    )
    return Results(tuple(findings_of(study, predictions)))


def test_everything_found_of_novelty_has_a_section_of_its_own(results: Results) -> None:
    keys = [section.key for section in draw_sections(Page(results))]
    assert "more" not in keys
    assert keys[:2] == ["ood", "noticed"]


def test_a_report_of_novelty_shows_every_kind_of_chart(results: Results) -> None:
    titles = [part.title for section in draw_sections(Page(results)) for part in section.parts if isinstance(part, Chart)]
    for title in ("ROC", "Risk-coverage", "published", "discarded", "Decomposition", "against distance", "random"):
        assert any(title in one for one in titles), title
    html = build_report(results)
    assert "new classes: " in html
    assert "not known" not in html


def test_the_accuracy_that_the_parts_tell_is_the_models_own(results: Results) -> None:
    found = DetectorFindings("first", [one for one in results.shown if one.about.get("model") == "first"])
    answers = predictions(Run(MODELS[0], INSIDE))
    right = (answers.top5.classes[:, :1] == answers.labels).mean()
    accuracy = accuracy_behind(found)
    assert accuracy is not None
    assert accuracy.value == pytest.approx(right)
    for one in parts_of(found, accuracy.value):
        assert sum(one.shares) == pytest.approx(one.whole.value, abs=1e-9)


def test_images_without_a_label_are_in_no_part_of_an_auroc() -> None:
    """Every third image has none: the parts make up the AUROC of the others, which is not that of all."""

    def load(run: Run) -> Predictions:
        given = predictions(run)
        return dataclasses.replace(given, labels=np.where(np.arange(len(given))[:, None] % 3, given.labels, -1))

    names = ["msp", "energy", "max_logit", "entropy", "gradnorm"]
    study = OODStudy(MODELS[:1], INSIDE, ood_datasets={"hats": HATS}, detectors=names)
    found = DetectorFindings("first", findings_of(study, load))
    id_set, hats = (load(Run(MODELS[0], images)) for images in (INSIDE, HATS))
    aurocs = {name: auroc(ready(name)(id_set)[id_set.labelled], ready(name)(hats)) for name in names}
    (bars, _) = decomposition(found)
    assert isinstance(bars, Chart)
    ends = [row["to"] for row in bars.spec["data"]["values"] if row["series"] == "misclassifications"]
    assert ends == pytest.approx(sorted(aurocs.values(), reverse=True), abs=1e-12)
    assert auroc(ready("msp")(id_set), ready("msp")(hats)) != pytest.approx(aurocs["msp"], abs=1e-4)
    assert "Images without a label are neither" in bars.note


def test_a_further_inside_set_has_its_columns_but_is_no_style() -> None:
    more = DatasetRef("drawn again", "again")
    study = OODStudy(
        MODELS[:1],
        INSIDE,
        id_datasets={"drawn again": more},
        conditions=[FOG],
        ood_datasets={"hats": HATS},
        detectors=["msp", "energy"],
    )
    sections = {section.key: section for section in draw_sections(Page(Results(tuple(findings_of(study, predictions)))))}
    (table,) = [part for part in sections["ood"].parts if getattr(part, "title", "").startswith("OOD detectors: AUROC")]
    assert isinstance(table, Table)
    assert [column.title for column in table.columns[1:4]] == ["drawn", "drawn again", "fog 3"]
    (styles,) = [part for part in sections["noticed"].parts if getattr(part, "title", "").startswith("New classes among")]
    assert isinstance(styles, Chart)
    assert {row["series"] for row in styles.spec["data"]["values"]} == {"drawn", "fog 3"}


def test_means_over_models_stand_in_a_table(results: Results) -> None:
    (section,) = [section for section in draw_sections(Page(results)) if section.key == "ood"]
    (means,) = [part for part in section.parts if getattr(part, "title", "").startswith("Other metrics, mean")]
    assert isinstance(means, Table)
    titles = [(column.over, column.title) for column in means.columns]
    (msp,) = [row for row in means.rows if row[0].text == "MSP"]
    where = {"ood_detector": "msp", "id": "drawn", "ood": "all OOD"}
    own = [one.value for one in results.measurements if one.metric == "aurc" and where.items() <= one.about.items()]
    assert len(own) == 2
    cell = msp[titles.index(("Failure detection", "AURC"))]
    assert cell.text == f"{100 * np.mean(own):.1f}"
    assert cell.below == f"± {100 * np.std(own, ddof=1):.1f}"


def parts_under(results: Results, title: str) -> list[Part]:
    """What is folded away under a title, of the first model."""
    parts = [part for section in draw_sections(Page(results)) for part in section.parts]
    return list(next(part.parts for part in parts if isinstance(part, Folded) and part.title.startswith(title)))


def test_shifted_images_are_drawn_by_right_and_wrong_answers(results: Results) -> None:
    first, *_ = parts_under(results, "OOD scores of covariate-shifted images")
    assert isinstance(first, Panels)
    answers = predictions(Run(MODELS[0], INSIDE, FOG))
    right = int((answers.top5.classes[:, :1] == answers.labels).sum())
    (panel,) = first.panels
    assert panel.title == f"fog 3 ({right} correct predictions, {240 - right} misclassifications)"
    rows = panel.spec["data"]["values"]
    for series in ("correct predictions", "misclassifications"):
        assert sum(row["y"] for row in rows if row["series"] == series) == pytest.approx(1, abs=1e-3)
    assert [entry.name for entry in first.legend] == ["correct predictions", "misclassifications", "hats, for comparison"]


def test_shifts_of_rank_are_drawn_image_by_image(results: Results) -> None:
    (panels,) = parts_under(results, "Rank shift of each image relative to MSP")
    assert isinstance(panels, Panels)
    assert "MSP" not in [panel.title for panel in panels.panels]
    assert [entry.name for entry in panels.legend] == ["correct predictions", "misclassifications", "new classes"]


def test_galleries_of_sets_stand_inside_first_and_shifted_ones_as_they_were_shown(results: Results) -> None:
    opened = []

    def open_image(ref: DatasetRef, key: str) -> np.ndarray:
        opened.append((ref.name, key))
        return np.full((40, 60, 3), 90, np.uint8)

    page = Page(results, open_image=open_image)
    parts = [part for section in draw_sections(page) for part in section.parts]
    galleries = next(
        part for part in parts if isinstance(part, Folded) and part.title.startswith("Largest disagreements of the two")
    )
    titles = [part.title for part in galleries.parts if isinstance(part, Pictures)]
    assert [title.partition(":")[0] for title in titles] == [
        *["drawn (ID)"] * 2,
        *["hats (OOD)"] * 2,
        *["shoes (OOD)"] * 2,
        *["fog 3 (shifted)"] * 2,
    ]
    shown = [part for part in galleries.parts if isinstance(part, Pictures)]
    plain, foggy = (next(part for part in shown if part.title.startswith(name)) for name in ("drawn", "fog 3"))
    assert len(plain.pictures) == 6
    assert len({picture.address for picture in plain.pictures}) == 1  # all of one grey
    assert plain.pictures[0].address != foggy.pictures[0].address  # in its fog
    assert "with a lower OOD score" in galleries.note
    scored = next(part for part in parts if isinstance(part, Folded) and part.title.startswith("Images at percentiles"))
    assert all(len(part.pictures) == 5 for part in scored.parts if isinstance(part, Pictures))


def test_lines_that_begin_apart_are_told_from_those_that_overlap(results: Results) -> None:
    tables = [part for section in draw_sections(Page(results)) for part in section.parts if isinstance(part, Table)]
    table = next(part for part in tables if part.title.startswith("Do the intercepts"))
    gaps = {
        (one.about["ood_detector"], one.about["versus"]): one.value
        for one in results.measurements
        if one.metric == "distance_intercept_gap" and one.about["model"] == "first"
    }
    for row in table.rows:
        detector = {"MSP": "msp", "Energy": "energy"}.get(row[0].text)
        if detector:
            gap = gaps[detector, row[2].text]
            assert row[4].text == f"{'apart' if gap > 0 else 'overlap'} by {100 * abs(gap):.1f} points"


def test_failures_stand_beside_those_that_random_networks_see(results: Results) -> None:
    tables = [part for section in draw_sections(Page(results)) for part in section.parts if isinstance(part, Table)]
    table = next(part for part in tables if part.title.startswith("Failure detection by random networks"))
    found = {
        (one.metric, one.about.get("ood")): one.value
        for one in results.measurements
        if {"model": "first", "ood_detector": "energy", "id": "fog 3"}.items() <= one.about.items()
        and one.about.get("goal") != "new-class"
    }
    rows = {row[2].text: row for row in table.rows if (row[0].text, row[1].text) == ("Energy", "fog 3")}
    alone, pooled = rows["misclassifications"], rows["misclassifications and all OOD"]
    assert alone[3].order == found["auroc_correct_wrong", None]
    assert alone[4].order == found["mean_random_network_failure_auroc", "mistakes alone"]
    assert pooled[3].order == found["auroc", "all OOD"]
