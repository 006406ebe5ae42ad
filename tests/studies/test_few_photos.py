"""Intervals of 26 photos, as the studies tell them, hold the truth of what the photos were drawn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from scipy.stats import norm

from shiftproof.studies.calibration import study as calibration
from shiftproof.studies.calibration.study import CalibrationStudy
from shiftproof.studies.corruption import numbers as corruption
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.ood import goals
from shiftproof.studies.ood.scores import Choices
from shiftproof.studies.ood.study import OODStudy
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.types import Classes, DatasetRef, Measurement, ModelRef, Run
from studies.contracts import findings_of

PHOTOS, ROUNDS = 26, 400
MODEL, BASE, SET = ModelRef("model", "1"), ModelRef("base", "2"), DatasetRef("photos", "3")


def the(findings: Iterable[object], metric: str) -> Measurement | None:
    """The first number of this name, if there is any; a study that is still measuring need not go on."""
    return next((one for one in findings if isinstance(one, Measurement) and one.metric == metric), None)


def shares(draw: Callable[[np.random.Generator], Measurement | None], truth: float) -> tuple[float, float]:
    """Of some hundred sets of photos, how many have an interval, and how many of these hold the truth."""
    generator = np.random.default_rng(26)
    intervals = [found.ends for _ in range(ROUNDS) if (found := draw(generator)) and found.ends]
    return len(intervals) / ROUNDS, float(np.mean([low <= truth <= high for low, high in intervals]))


def pass_over(patch: pytest.MonkeyPatch, module: object, *intervals: str) -> None:
    """Leaves out intervals of other numbers, which a study works out before: nothing of what is asked for hangs on them."""
    for name in intervals:
        patch.setattr(module, name, lambda *_given, **_named: None)


GAPS = "rms_calibration_interval", "expected_calibration_interval", "debiased_calibration_interval"


def sure_and_right(generator: np.random.Generator, photos: int) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Confidence, and answers that are right as often as it says."""
    sure = expit(2 + 2.5 * generator.normal(size=photos))
    return sure, generator.random(photos) < sure


def test_overconfidence(predictions_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_over(monkeypatch, calibration, *GAPS)

    def draw(generator: np.random.Generator) -> Measurement | None:
        sure, right = sure_and_right(generator, PHOTOS)
        answers = predictions_of(np.zeros(PHOTOS, int), np.where(right, 0, 1), sure)
        return the(CalibrationStudy([MODEL], SET).measure(lambda _: answers), "overconfidence")

    told, held = shares(draw, 0.0)
    assert told == 1
    assert held >= 0.93


def test_likelihood(predictions_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two classes the right one has a chance whose log-odds are normal; no answer hangs on chance."""
    pass_over(monkeypatch, calibration, *GAPS, "overconfidence_interval")

    def draw(generator: np.random.Generator) -> Measurement | None:
        chance = expit(2 + 2.5 * generator.normal(size=PHOTOS))
        named, sure = np.where(chance > 0.5, 0, 1), np.maximum(chance, 1 - chance)
        answers = predictions_of(np.zeros(PHOTOS, int), named, sure, with_logits=True, classes=Classes(("cat", "dog")))
        return the(CalibrationStudy([MODEL], SET, thorough=True).measure(lambda _: answers), "negative_log_likelihood")

    truth = np.logaddexp(0, -(2 + 2.5 * np.random.default_rng(1).normal(size=1_000_000))).mean()
    told, held = shares(draw, float(truth))
    assert told == 1
    assert held >= 0.93


def test_calibration_errors_have_an_interval_that_need_not_hold_what_chance_adds(predictions_of: Any) -> None:
    sure, right = sure_and_right(np.random.default_rng(2), PHOTOS)
    answers = predictions_of(np.zeros(PHOTOS, int), np.where(right, 0, 1), sure)
    findings = findings_of(CalibrationStudy([MODEL], SET), lambda _: answers)
    for metric in ("rms_calibration_error", "expected_calibration_error"):
        found = the(findings, metric)
        assert found is not None
        assert found.ends is not None, metric
        assert "biased upwards" in found.how_sure


def test_flip_probability(predictions_of: Any) -> None:
    steps = 15
    facts = {
        "perturbation": ["tilt"] * PHOTOS * (steps + 1),
        "level": [1] * PHOTOS * (steps + 1),
        "sequence": np.repeat([f"{photo}.png" for photo in range(PHOTOS)], steps + 1).tolist(),
        "frame": list(range(steps + 1)) * PHOTOS,
    }

    def draw(generator: np.random.Generator) -> Measurement | None:
        flips = generator.random((PHOTOS, steps)) < expit(-3 + 1.5 * generator.normal(size=(PHOTOS, 1)))
        answers = np.cumsum(np.column_stack([np.zeros(PHOTOS, int), flips]), axis=1) % 2
        shown = predictions_of([-1] * answers.size, answers.ravel(), ids=list(map(str, range(answers.size))), facts=facts)
        return the(PerturbationStudy([MODEL], SET).measure(lambda _: shown), "flip_probability")

    truth = expit(-3 + 1.5 * np.random.default_rng(1).normal(size=1_000_000)).mean()
    told, held = shares(draw, float(truth))
    assert told == 1
    assert held >= 0.93


def test_false_alarms_where_95_of_100_are_found(predictions_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """26 novel photos set the threshold, 200 ordinary ones are flagged by it; the scores of either are normal."""
    pass_over(monkeypatch, Choices, "auroc")
    monkeypatch.setattr(goals, "aupr_intervals", lambda *_given, **_named: (None, None))
    novel = DatasetRef("novel", "4")
    study = OODStudy([MODEL], SET, ood_datasets={"novel": novel}, detectors=["msp"])

    def draw(generator: np.random.Generator) -> Measurement | None:
        sure = {SET: expit(3 + generator.normal(size=200)), novel: expit(1 + generator.normal(size=PHOTOS))}

        def load(run: Run) -> Any:
            count = len(sure[run.dataset])
            answers = predictions_of(np.zeros(count, int), np.zeros(count, int), sure[run.dataset], with_logits=True)
            return dataclasses.replace(answers, labels=np.full((count, 1), -1)) if run.dataset == novel else answers

        return the(study.measure(load), "fpr_at_tpr")

    # 95 of 100 novel photos lie 1.64 or less above their mean, which is two below that of the others
    told, held = shares(draw, float(norm.cdf(norm.ppf(0.95) - 2)))
    assert told == 1
    assert held >= 0.93


def test_relative_mce(predictions_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a measured baseline; where 26 photos leave open whether it loses anything, nothing can be told."""
    numbers = corruption._numbers
    monkeypatch.setattr(corruption, "_each_cell", lambda *_given: ())
    monkeypatch.setattr(
        corruption,
        "_numbers",
        lambda *given: (one for one in numbers(*given) if one.metric == "relative_mean_corruption_error"),
    )
    hard = {"fog": -0.6, "snow": -0.2, "contrast": 0.2}
    limits = {MODEL: {"clean": -1.3} | {name: one - 0.3 for name, one in hard.items()}, BASE: {"clean": -1.1} | hard}
    study = CorruptionStudy([MODEL], SET, corruptions=tuple(hard), severities=(1,), baseline=BASE)

    def draw(generator: np.random.Generator) -> Measurement | None:
        easy = 0.7 * generator.normal(size=PHOTOS)
        wrong = {
            (model, name): easy + 0.7 * generator.normal(size=PHOTOS) < limit
            for model, named in limits.items()
            for name, limit in named.items()
        }

        def load(run: Run) -> Any:
            return predictions_of(np.zeros(PHOTOS, int), wrong[run.model, run.condition.name].astype(int))

        return the(study.measure(load), "relative_mean_corruption_error")

    error = {model: {name: ndtr(limit / np.sqrt(0.98)) for name, limit in named.items()} for model, named in limits.items()}
    lost = {model: np.array([named[name] - named["clean"] for name in hard]) for model, named in error.items()}
    told, held = shares(draw, float((lost[MODEL] / lost[BASE]).mean()))
    assert told > 0.65
    assert held >= 0.93
