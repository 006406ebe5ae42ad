"""What detectors take from predictions, each with a sentence for where it cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.ood.shared import MOST_BYTES, SharedPredictions
from shiftproof.types import Features, Head, Logits, OODScores, Predictions, Training

ROWS_AT_ONCE = 1024
"""A thousand classes of as many rows are 8 MB in double precision."""


def parts_of(rows: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Consecutive slices that cover so many rows.

    >>> list(parts_of(1500))
    [slice(0, 1024, None), slice(1024, 1500, None)]
    """
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


def in_parts(score: Callable[..., OODScores], *arrays: NDArray[np.generic], at_once: int = ROWS_AT_ONCE) -> OODScores:
    """The value of a function on all rows of these arrays, part by part.

    >>> in_parts(lambda rows: rows.sum(axis=1), np.ones((3000, 2))).shape
    (3000,)
    """
    parts = [score(*(array[part] for array in arrays)) for part in parts_of(len(arrays[0]), at_once)]
    return np.concatenate(parts) if parts else np.empty(0)


def logits_of(predictions: Predictions) -> NDArray[np.floating]:
    """The logits, (images, classes); NotKept where the model gives something else."""
    if predictions.gives != "logits":
        raise NotKept(f"it needs logits, and the model gives {predictions.gives}")
    return predictions.need_logits()


def probabilities_of(predictions: Predictions) -> NDArray[np.floating]:
    """Probabilities of all classes in double precision, (images, classes), so that high confidences still differ."""
    return to_probabilities(_convertible(predictions).astype(np.float64), predictions.gives)


def by_probabilities(predictions: Predictions, score: Callable[[NDArray[np.floating]], OODScores]) -> OODScores:
    """The value of a function on the probabilities of all classes, which are never in memory for all images at once."""

    def probabilities(rows: Logits) -> NDArray[np.floating]:
        return to_probabilities(rows.astype(np.float64), predictions.gives)

    parts = [score(some) for _, some in _made_parts(predictions, _convertible(predictions), probabilities_of, probabilities)]
    return np.concatenate(parts) if parts else np.empty(0)


def by_sorted_features(predictions: Predictions, score: Callable[[Features, Features], OODScores]) -> OODScores:
    """The value of a function on the features and on those of each image sorted, rising."""

    def rising(some: Features) -> Features:
        return np.sort(some.astype(np.float32, copy=False), axis=1)

    # several detectors ask for one percentile or another; to sort once is faster than to partition at each
    made = _made_parts(predictions, predictions.need_features(), by_sorted_features, rising)
    parts = [score(some.astype(np.float32, copy=False), in_order) for some, in_order in made]
    return np.concatenate(parts) if parts else np.empty(0)


def _made_parts(
    predictions: Predictions, rows: NDArray[np.floating], key: Hashable, make: Callable[[Features], Features]
) -> Iterator[tuple[NDArray[np.floating], NDArray[np.floating]]]:
    """The rows part by part, each with what is made of it; of `SharedPredictions` that is kept for whoever asks next."""
    parts = [rows[part] for part in parts_of(len(rows))]
    if not isinstance(predictions, SharedPredictions) or rows.size * 8 > MOST_BYTES:
        yield from ((some, make(some)) for some in parts)
        return
    if key not in predictions.known:
        predictions.known[key] = [make(some) for some in parts]
    yield from zip(parts, predictions.known[key], strict=True)


def head_of(training: Training) -> Head:
    """The last linear layer of the model that was trained, or NotKept."""
    if training.head is None:
        raise NotKept("the model's last linear layer could not be read, or class groups are merged")
    return training.head


def _convertible(predictions: Predictions) -> Logits:
    if predictions.gives == "scores":
        raise NotKept("it needs logits or probabilities, and the model gives scores")
    return predictions.need_logits()
