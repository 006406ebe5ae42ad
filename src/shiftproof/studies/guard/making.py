"""What a guard is made of: thresholds, a temperature and prediction sets, each judged on images it was not chosen on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics import is_correct
from shiftproof.metrics.calibration import rms_calibration_error
from shiftproof.metrics.conformal import covered, least_probability, prediction_sets
from shiftproof.metrics.intervals import cluster_share_interval
from shiftproof.metrics.likelihood import fit_temperature, split_half
from shiftproof.ood import ReadyDetector
from shiftproof.ood.graph import TINY
from shiftproof.studies.guard.guard import Calibration, Coverage, Guard, Point, calibrated
from shiftproof.studies.ood.scores import Judged
from shiftproof.studies.threshold.expected import Share, expected_of
from shiftproof.studies.threshold.study import HELD_OUT, WHERE_PICKED, OperatingPointStudy, ThresholdChoice
from shiftproof.types import Head, Measurement, Outputs, Predictions, Skipped

OTHERS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""False-positive rates of the further thresholds that a guard holds."""

ROUNDING = 1e-6
"""How far a threshold lies below the score that it was chosen at, relative to scores above 1."""

LEAST_IMAGES = 20
"""Labelled images that either half needs before a temperature and prediction sets are judged on the other."""


def points_of(study: OperatingPointStudy, judged: Judged) -> tuple[list[Point], list[str]]:
    """The chosen threshold first, then others to choose from, and what is to be known of them; BadInput where none is."""
    costs = {name: getattr(study.choice, name) for name in ("false_alarm_cost", "miss_cost", "ood_share")}
    others = [*(ThresholdChoice(false_alarms=one, **costs) for one in OTHERS), ThresholdChoice(cheapest=True, **costs)]
    choices = {str(choice): choice for choice in (study.choice, *others)}
    sides = study.sides(judged)
    scores = np.unique(np.concatenate([sides.negatives.scores, sides.positives.scores]))
    points: list[Point] = []
    notes: dict[str, None] = {}
    for name, choice in choices.items():
        found = list(dataclasses.replace(study, choice=choice).findings(judged))
        notes |= dict.fromkeys(one.reason for one in found if isinstance(one, Skipped))
        measured = [one for one in found if isinstance(one, Measurement)]
        if not measured:
            raise BadInput(f"no threshold could be chosen: {'; '.join(notes)}")
        held_out = any(one.about.get("judged") == HELD_OUT for one in measured)
        expected = expected_of(measured, HELD_OUT if held_out else WHERE_PICKED)
        points.append(Point(name, between_scores(measured[0].value, scores), expected))
    return points, list(notes)


def between_scores(threshold: float, scores: NDArray[np.floating]) -> float:
    """A threshold that is itself a score, moved down by as much as rounding elsewhere could lower that score.

    It stays above the next lower score, and so near that its FPR is the one it was chosen for.

    >>> between_scores(3.0, np.array([1.0, 3.0, 4.0])), between_scores(1.0, np.array([1.0, 3.0]))
    (2.999997, 1.0)
    """
    lower = scores[scores < threshold]
    if not len(lower) or not np.isfinite(threshold):
        return float(threshold)
    below = float(lower[-1])
    moved = max((below + threshold) / 2, threshold - ROUNDING * max(1.0, abs(threshold)))
    return float(moved if moved > below else threshold)


def calibration_of(predictions: Predictions) -> Calibration:
    """The temperature of all labelled images, and what it does to calibration errors of one half, fitted to the other."""
    known = _labelled(predictions)
    correct = is_correct(known.labels, known.top5.classes)
    before, after = np.empty(len(known)), np.empty(len(known))
    for fitted, rest in _halves(known):
        temperature = temperature_of(known.take(fitted))
        before[rest] = _confidence(known.take(rest), 1.0)
        after[rest] = _confidence(known.take(rest), temperature)
    errors = [rms_calibration_error(confidence, correct) for confidence in (before, after)]
    return Calibration(temperature_of(known), len(known), *errors)


def temperature_of(predictions: Predictions) -> float:
    logits = predictions.need_logits()
    if predictions.gives == "probabilities":
        logits = np.log(np.maximum(logits.astype(np.float64), TINY))
    return fit_temperature(predictions.labels, logits)


def sets_of(predictions: Predictions, temperature: float, promised: float) -> float:
    """The least probability of classes in prediction sets with this coverage."""
    known = _labelled(predictions)
    return least_probability(known.labels, _probabilities(known, temperature), coverage=promised)


def coverages_of(predictions: Predictions, shifted: Mapping[str, Predictions], name: str, promised: float) -> list[Coverage]:
    """Measured coverage, of these images and of shifted ones: sets made with one half, clean, judged on the other."""
    clean = _labelled(predictions)
    found = []
    for title, images in {name: predictions, **shifted}.items():
        if not images.labelled.any():
            continue
        known = _labelled(images)
        correct = is_correct(known.labels, known.top5.classes)
        inside, sizes = np.zeros(len(known), bool), np.zeros(len(known))
        for (made_with, _), (_, rest) in zip(_halves(clean), _halves(known), strict=True):
            half = clean.take(made_with)
            temperature = temperature_of(half)
            least = least_probability(half.labels, _probabilities(half, temperature), coverage=promised)
            judged = known.take(rest)
            probabilities = _probabilities(judged, temperature)
            inside[rest] = covered(judged.labels, probabilities, least)
            sizes[rest] = prediction_sets(probabilities, least).sum(axis=1)
        low, high = cluster_share_interval(inside, clusters=known.clusters.numbers) or (None, None)
        share = Share(float(inside.mean()), low, high, len(known))
        found.append(Coverage(title, share, float(sizes.mean()), float(correct.mean())))
    return found


def needed_of(detector: ReadyDetector, predictions: Predictions) -> tuple[bool, Head | None]:
    """Whether a detector reads features, and the last layer where it needs that; NotKept where it reads something else."""
    if not len(predictions):
        raise BadInput("there are no images to make a guard with")
    one = dataclasses.replace(predictions.take(np.array([0])), extra=None)

    def works(images: Predictions) -> bool:
        try:
            detector(images)
        except NotKept:
            return False
        return True

    if not works(one):
        raise NotKept(
            f"{detector.name} reads a further output of the model, and a guard is given logits and features alone; "
            "see shiftproof list ood for other detectors"
        )
    head = None if works(dataclasses.replace(one, head=None)) else predictions.head
    return not works(dataclasses.replace(one, features=None)), head


def _labelled(predictions: Predictions) -> Predictions:
    known = predictions.take(predictions.labelled)
    if min((len(rows) for rows, _ in _halves(known)), default=0) < LEAST_IMAGES:
        raise BadInput(
            "a temperature and prediction sets are fitted to one half of the labelled images and judged on the other: "
            f"either needs {LEAST_IMAGES}, and there are {len(known)} in all"
        )
    return known


def _halves(predictions: Predictions) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows of one half and of the other, then the other way round; a cluster is in one half, under every shift the same."""
    first = split_half(predictions.clusters.keys)
    for half in (first, ~first):
        yield np.flatnonzero(half), np.flatnonzero(~half)


def _probabilities(predictions: Predictions, temperature: float) -> NDArray[np.floating]:
    return calibrated(predictions.need_logits(), predictions.gives, temperature)


def _confidence(predictions: Predictions, temperature: float) -> NDArray[np.floating]:
    return np.asarray(_probabilities(predictions, temperature).max(axis=1))


def largest_difference(guard: Guard, given: Outputs, by_graph: Mapping[str, NDArray[Any]]) -> float:
    """Between Python and the ONNX file: of scores relative to their size where that is above 1, and of probabilities."""
    found = guard.check(given.scores, given.features)
    gaps = [
        np.abs(found.ood_score - by_graph["ood_score"]) / np.maximum(1, np.abs(found.ood_score)),
        np.abs(found.calibrated_probability - by_graph["calibrated_probability"]),
        found.accept != by_graph["accept"],
    ]
    return float(np.max([np.max(gap) for gap in gaps]))  # NaN where any is, which Python's max would pass over
