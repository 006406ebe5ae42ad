"""Real findings of the studies of novelty, from predictions drawn at random, all the way into a report."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from shiftproof.detectors import ready
from shiftproof.metrics import auroc
from shiftproof.reports import build_report
from shiftproof.reports.decomposition import accuracy_behind, decomposition, parts_of
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Table
from shiftproof.reports.sections import draw_sections
from shiftproof.studies.out_of_distribution import OutOfDistributionStudy
from shiftproof.studies.results import Results
from shiftproof.types import Classes, Condition, Head, ImageSetRef, ModelRef, Predictions, Run, Top5

INSIDE, HATS, SHOES = (ImageSetRef(name, name) for name in ("drawn", "hats", "shoes"))
MODELS = (ModelRef("first", "1"), ModelRef("second", "2"))
FOG = Condition("fog", 3, edition="imagenet-224")
CLASSES, WIDTH = 8, 16


@cache
def predictions(run: Run) -> Predictions:
    """Features around the directions of their classes, hats and shoes around none; fog shrinks what is seen."""
    rng = np.random.default_rng([len(run.model.name), len(run.image_set.name), run.condition.severity])
    weights = np.eye(CLASSES, WIDTH) * 3
    images = 60 if run.image_set in (HATS, SHOES) else 240
    labels = rng.integers(0, CLASSES, images)
    strength = 0.3 if run.image_set in (HATS, SHOES) else 1.4 - 0.3 * run.condition.severity
    features = np.abs(rng.normal(size=(images, WIDTH)) + strength * weights[labels] / 2)
    logits = features @ weights.T
    order = np.argsort(-logits, axis=1)[:, :5]
    top5 = Top5(order, np.take_along_axis(logits, order, axis=1), np.log(np.exp(logits).sum(axis=1)))
    return Predictions(
        ids=tuple(f"{place}.png" for place in range(images)),
        labels=np.full((images, 1), -1) if run.image_set in (HATS, SHOES) else labels[:, None],
        gives="logits",
        top5=top5,
        classes=Classes(tuple(f"kind {place}" for place in range(CLASSES))),
        logits=logits,
        features=features,
        head=Head(weights, np.zeros(CLASSES)),
    )


@pytest.fixture(scope="module")
def results() -> Results:
    study = OutOfDistributionStudy(
        MODELS,
        INSIDE,
        conditions=[FOG],
        out_sets={"hats": HATS, "shoes": SHOES},
        detectors=["msp", "energy", "max_cosine", "gradnorm", "ash_b", "entropy", "max_logit"],
        random_networks={"first": [ModelRef("redrawn first", "3"), ModelRef("redrawn", "4")]},
    )
    return Results(tuple(study.measure(predictions)))


def test_everything_found_of_novelty_has_a_section_of_its_own(results: Results) -> None:
    keys = [section.key for section in draw_sections(Page(results))]
    assert "more" not in keys
    assert keys[:2] == ["novelty", "noticed"]


def test_a_report_of_novelty_shows_every_kind_of_chart(results: Results) -> None:
    titles = [part.title for section in draw_sections(Page(results)) for part in section.parts if isinstance(part, Chart)]
    for title in ("(ROC)", "against answers given", "published", "thrown away", "comes from", "against distance", "random"):
        assert any(title in one for one in titles), title
    html = build_report(results)
    assert "noticing new classes" in html
    assert "not known" not in html


def test_the_accuracy_that_the_parts_tell_is_the_models_own(results: Results) -> None:
    found = DetectorFindings("first", [one for one in results.findings if one.about.get("model") == "first"])
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
    study = OutOfDistributionStudy(MODELS[:1], INSIDE, out_sets={"hats": HATS}, detectors=names)
    found = DetectorFindings("first", list(study.measure(load)))
    inside, hats = (load(Run(MODELS[0], images)) for images in (INSIDE, HATS))
    aurocs = {name: auroc(ready(name)(inside)[inside.labelled], ready(name)(hats)) for name in names}
    (bars, _) = decomposition(found)
    assert isinstance(bars, Chart)
    ends = [row["to"] for row in bars.spec["data"]["values"] if row["series"] == "wrong answers"]
    assert ends == pytest.approx(sorted(aurocs.values(), reverse=True), abs=1e-12)
    assert auroc(ready("msp")(inside), ready("msp")(hats)) != pytest.approx(aurocs["msp"], abs=1e-4)
    assert "Images without a label are neither" in bars.note


def test_a_further_inside_set_has_its_columns_but_is_no_style() -> None:
    more = ImageSetRef("drawn again", "again")
    study = OutOfDistributionStudy(
        MODELS[:1],
        INSIDE,
        more_inside={"drawn again": more},
        conditions=[FOG],
        out_sets={"hats": HATS},
        detectors=["msp", "energy"],
    )
    sections = {section.key: section for section in draw_sections(Page(Results(tuple(study.measure(predictions)))))}
    (table,) = [part for part in sections["novelty"].parts if getattr(part, "title", "").startswith("Detectors and goals")]
    assert isinstance(table, Table)
    assert [column.title for column in table.columns[1:4]] == ["drawn", "drawn again", "fog 3"]
    (styles,) = [part for part in sections["noticed"].parts if getattr(part, "title", "").startswith("New classes among")]
    assert isinstance(styles, Chart)
    assert {row["series"] for row in styles.spec["data"]["values"]} == {"drawn", "fog 3"}


def test_means_over_models_stand_in_a_table(results: Results) -> None:
    (section,) = [section for section in draw_sections(Page(results)) if section.key == "novelty"]
    (means,) = [part for part in section.parts if getattr(part, "title", "").startswith("Other numbers, mean")]
    assert isinstance(means, Table)
    titles = [(column.over, column.title) for column in means.columns]
    (msp,) = [row for row in means.rows if row[0].text == "MSP"]
    where = {"detector": "msp", "inside": "drawn", "outside": "all outside"}
    own = [one.value for one in results.measurements if one.metric == "aurc" and where.items() <= one.about.items()]
    assert len(own) == 2
    cell = msp[titles.index(("Failures", "AURC"))]
    assert cell.text == f"{100 * np.mean(own):.1f}"
    assert cell.below == f"± {100 * np.std(own, ddof=1):.1f}"
