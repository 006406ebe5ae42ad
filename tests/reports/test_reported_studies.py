"""Real findings of the studies, from predictions drawn at random, all the way into a report."""

from __future__ import annotations

import dataclasses
import re
from functools import partial

import numpy as np
import pytest

from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.sections import draw_sections
from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.studies.calibration.study import CalibrationStudy
from shiftproof.studies.comparison.study import ComparisonStudy
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.types import Classes, DatasetRef, Fact, Finding, ModelRef, Predictions, Results, Run, Study, Top5
from studies.contracts import findings_of

IMAGES = DatasetRef("drawn", "0")
MODELS = (ModelRef("first", "1"), ModelRef("second", "2"))


def predictions(run: Run, *, labelled: bool) -> Predictions:
    """400 images of 8 classes from two sites; the second model knows less."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 8, (400, 1))
    knowledge = (3.0 if run.model.name == "first" else 1.0) - 0.4 * run.condition.severity
    logits = rng.normal(size=(400, 8)) + knowledge * (np.arange(8) == labels)
    order = np.argsort(-logits, axis=1)[:, :5]
    top5 = Top5(order, np.take_along_axis(logits, order, axis=1), np.log(np.exp(logits).sum(axis=1)))
    return Predictions(
        ids=tuple(f"{place}.png" for place in range(400)),
        labels=labels if labelled else np.full((400, 1), -1),
        gives="logits",
        top5=top5,
        classes=Classes(tuple(f"kind {place}" for place in range(8))),
        logits=logits,
        facts={"site": tuple("north" if place % 3 else "south" for place in range(400))},
    )


def findings(*, labelled: bool) -> tuple[Finding, ...]:
    studies: list[Study] = [study(MODELS, IMAGES) for study in (AccuracyStudy, ComparisonStudy)]
    studies.append(CalibrationStudy(MODELS, IMAGES, thorough=True))
    load = partial(predictions, labelled=labelled)
    return tuple(found for study in studies for found in findings_of(study, load))


@pytest.mark.parametrize("labelled", [True, False])
def test_everything_the_studies_find_has_a_section_of_its_own(labelled: bool) -> None:
    keys = [section.key for section in draw_sections(Page(Results(findings(labelled=labelled))))]
    assert "more" not in keys
    assert {"comparison", "accuracy", "calibration"} <= set(keys)


def frames(run: Run) -> Predictions:
    """40 images under two perturbations, 10 frames each, answers that change now and then."""
    still = predictions(run, labelled=False)
    rows = np.repeat(np.arange(40), 20)
    facts: dict[str, tuple[Fact, ...]] = {
        "sequence": tuple(f"image {row}" for row in rows),
        "frame": tuple(place % 10 for place in range(800)),
        "perturbation": tuple("tilt" if place % 20 < 10 else "shot_noise" for place in range(800)),
        "level": (1,) * 800,
    }
    changed = np.where(np.random.default_rng(3).random(800) < 0.1, rows + 40, rows)
    taken = still.take(changed)
    return dataclasses.replace(taken, ids=tuple(f"{place}.png" for place in range(800)), facts=facts)


@pytest.mark.parametrize("baseline", [None, "alexnet", MODELS[1]])
def test_everything_found_in_changed_pictures_has_a_section_of_its_own(
    baseline: ModelRef | str | None,
) -> None:
    corruption = CorruptionStudy(MODELS, IMAGES, corruptions=["fog", "snow", "shot_noise"], baseline=baseline)
    perturbation = PerturbationStudy(MODELS, IMAGES, baseline=baseline)
    found = [*corruption.measure(lambda run: predictions(run, labelled=True)), *findings_of(perturbation, frames)]
    results = Results(tuple(found))
    keys = [section.key for section in draw_sections(Page(results))]
    assert keys[:2] == ["corruption", "perturbation"]
    assert "more" not in keys
    html = build_report(results)
    assert ("Corruption error (CE)" in html) == (baseline is not None)
    assert "nan" not in re.sub(r"<script.*?</script>|Provenance", "", html, flags=re.DOTALL)


def test_the_report_of_two_unequal_models_names_the_better_one() -> None:
    html = build_report(Results(findings(labelled=True)))
    assert "first is better than second on drawn" in html
    assert "second is better" not in html
