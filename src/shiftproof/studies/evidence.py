"""From stored predictions to measurements: which rows count, what stands beside each number, and why one cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    aurra,
    aurra_bounds,
    aurra_interval,
    bootstrap_interval,
    clopper_pearson,
    top_confidence,
)
from shiftproof.types import About, FoundObjects, Measurement, Predictions, Run

EXACT = {"interval": "95 %, Clopper-Pearson"}
RESAMPLED = {"interval": "95 %, bootstrap over images"}
PAIRED = {"interval": "95 %, Bonett-Price"}


def convention_of(run: Run, predictions: Predictions) -> dict[str, str]:
    """What stands beside every number of a run: how pixels came to the model, which classes and images counted."""
    read, labelled = len(predictions), int(predictions.labelled.sum())
    left = left_out(set_aside=len(predictions.set_aside), read=read, labelled=labelled)
    return {**run.convention(), **predictions.convention, **left}


def left_out(*, set_aside: int, read: int, labelled: int) -> dict[str, str]:
    """How many images a number goes without, in words; nothing where it has them all.

    >>> left_out(set_aside=3, read=997, labelled=900)
    {'set aside': '3 of 1000', 'without label': '97 of 997, left out of what needs labels'}
    """
    aside = {"set aside": f"{set_aside} of {set_aside + read}"} if set_aside else {}
    partly = {"without label": f"{read - labelled} of {read}, left out of what needs labels"} if 0 < labelled < read else {}
    return {**aside, **partly}


def labelled_only(predictions: Predictions) -> Predictions:
    """The rows that have a label."""
    return predictions if predictions.labelled.all() else predictions.take(predictions.labelled)


def nothing_read(run: Run, predictions: Predictions | FoundObjects) -> str | None:
    """Why there is nothing to measure at all, or None."""
    if len(predictions):
        return None
    aside = len(predictions.set_aside)
    why = f"all {aside} images were set aside" if aside else "it has no images"
    return f"{run.image_set.name}: nothing to measure, {why}"


def nothing_labelled(run: Run, predictions: Predictions, what: str) -> str | None:
    """Why what needs labels is left out, or None."""
    if not len(predictions) or predictions.labelled.any():
        return None
    return f"{run.image_set.name}: {what} needs labels, and no image has one"


def no_confidence(run: Run, predictions: Predictions) -> str | None:
    """Why nothing can be said of the model's confidence, or None."""
    try:
        confidence = top_confidence(predictions.top5, predictions.gives)
    except BadInput as reason:
        return f"{run.model.name}: {reason}"
    if len(confidence) and not np.isfinite(confidence).any():
        return f"{run.model.name}: its scores are infinite or not numbers, so it has no confidence"
    return None


def confidence_or_nan(predictions: Predictions) -> NDArray[np.floating]:
    """Confidence in each first class, nan where the model does not tell."""
    try:
        return top_confidence(predictions.top5, predictions.gives)
    except BadInput:  # `no_confidence` passes the reason on
        return np.full(len(predictions), np.nan)


def share(metric: str, right: int, total: int, about: About, convention: Mapping[str, str]) -> Measurement:
    """A share of images with its exact interval."""
    interval = clopper_pearson(right, total)
    return Measurement(metric, right / total, about, total, {**convention, **EXACT}, interval)


def mean(metric: str, values: NDArray[np.floating], about: About, convention: Mapping[str, str]) -> Measurement:
    """A mean over images with its interval, where two images or more allow one."""
    if len(values) < 2:
        return Measurement(metric, float(values.mean()), about, len(values), dict(convention))
    interval = bootstrap_interval(values)
    return Measurement(metric, float(values.mean()), about, len(values), {**convention, **RESAMPLED}, interval)


def mean_accuracy_answered(
    metric: str,
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
) -> Measurement:
    """AURRA with its interval, and how far the order of equally sure answers could move it."""
    interval = aurra_interval(confidence, correct)
    low, high = (f"{100 * bound:.2f} %" for bound in aurra_bounds(confidence, correct))
    ties = {"ties": f"mean over their orders; between {low} and {high}"} if low != high else {}
    told = {**convention, **ties, **(RESAMPLED if interval else {})}
    return Measurement(metric, aurra(confidence, correct), about, len(correct), told, interval)


def alike_but_for(key: str, found: Iterable[Measurement]) -> list[tuple[About, list[Measurement]]]:
    """The measurements in groups that are about the same but for one thing, each with what its group has in common."""
    groups: dict[tuple[tuple[str, str | int], ...], list[Measurement]] = {}
    for one in found:
        groups.setdefault(tuple(item for item in one.about.items() if item[0] != key), []).append(one)
    return [(dict(common), some) for common, some in groups.items()]
