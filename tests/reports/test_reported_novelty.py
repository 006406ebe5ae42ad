"""Real findings of the studies of novelty, from predictions drawn at random, all the way into a report."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from shiftproof.reports import build_report
from shiftproof.reports.decomposition import accuracy_behind, parts_of
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart
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
    assert accuracy_behind(parts_of(found)) == pytest.approx(right, abs=1e-9)
