"""Detectors that change the features first, and take the free energy of the logits that the model's head then gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.parts import in_parts
from shiftproof.detectors.quantiles import quantile_of
from shiftproof.detectors.scores import free_energy
from shiftproof.errors import BadInput
from shiftproof.types import AnomalyScores, Fact, Features, Head, Predictions, Training


def ash_b(predictions: Predictions, *, percentile: float = 65.0) -> AnomalyScores:
    """Free energy once an image's largest features alone share the sum of all equally (ASH-B; Djurisic et al., 2023).

    The largest are those above `percentile` % of its features; the others become 0.
    """

    def shaped(features: Features) -> Features:
        kept = largest(features, percentile)
        return np.where(kept, features.sum(axis=1, keepdims=True) / kept.sum(axis=1, keepdims=True), 0)

    return _energy_after(shaped, predictions)


def ash_s(predictions: Predictions, *, percentile: float = 90.0) -> AnomalyScores:
    """Free energy once an image's largest features alone are left, and grown (ASH-S; Djurisic et al., 2023).

    The largest are those above `percentile` % of its features; they grow by e to the power of the sum of all over their own.
    """

    def shaped(features: Features) -> Features:
        kept = largest(features, percentile)
        return np.where(kept, features, 0) * _growth(features, kept)

    return _energy_after(shaped, predictions)


def ash_p(predictions: Predictions, *, percentile: float = 65.0) -> AnomalyScores:
    """Free energy once the lowest `percentile` % of an image's features are zeroed (ASH-P; Djurisic et al., 2023)."""
    return _energy_after(lambda features: np.where(largest(features, percentile), features, 0), predictions)


def scale(predictions: Predictions, *, percentile: float = 85.0) -> AnomalyScores:
    """Free energy once all features of an image are grown, none pruned (SCALE; Xu et al., 2024).

    They grow by e to the power of their sum over the sum of the largest, those above `percentile` % of them.
    """
    return _energy_after(lambda features: features * _growth(features, largest(features, percentile)), predictions)


@dataclass(frozen=True)
class React:
    """The height at which features are cut off."""

    clip: float

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Free energy of the logits that the cut features give."""
        return _energy_after(lambda features: np.minimum(features, np.float32(self.clip)), predictions)

    def found(self) -> dict[str, Fact]:
        return {"clip": self.clip}


def fit_react(training: Training, *, percentile: float = 90.0, clip: float | None = None) -> React:
    """Features cut off at a percentile of those of the training images, all taken together (ReAct; Sun et al., 2021).

    A number given as `clip` is used as it is.
    """
    if clip is not None:
        return React(float(clip))
    return React(quantile_of(lambda: (block.need_features() for block in training.blocks()), percentile / 100))


def largest(features: Features, percentile: float) -> NDArray[np.bool_]:
    """Which features of each image are above `percentile` % of its own; of equal ones those that come first.

    The count is the same for every image: features - round(features * percentile / 100).

    >>> largest(np.array([[3.0, 1.0, 1.0, 0.0]]), 50)
    array([[ True,  True, False, False]])
    """
    width = features.shape[1]
    kept = width - round(width * percentile / 100)
    if not 0 <= percentile <= 100 or kept < 1:
        raise BadInput(f"percentile should be 0 or more and leave at least one of {width} features, got {percentile}")
    least = np.partition(features, width - kept, axis=1)[:, [width - kept]]
    above, level = features > least, features == least
    room = kept - above.sum(axis=1, keepdims=True)
    return np.asarray(above | (level & (level.cumsum(axis=1) <= room)))


def energy_of(features: Features, head: Head) -> AnomalyScores:
    """Free energy of the logits that a linear layer gives."""
    return free_energy(features.astype(np.float32) @ head.weights.T.astype(np.float32) + head.bias)


def _energy_after(shaped: Callable[[Features], Features], predictions: Predictions) -> AnomalyScores:
    head = predictions.need_head()
    return in_parts(lambda some: energy_of(shaped(some.astype(np.float32)), head), predictions.need_features())


def _growth(features: Features, kept: NDArray[np.bool_]) -> Features:
    """By what features grow: e to the power of the sum of all over the sum of those kept, (images, 1)."""
    total = features.sum(axis=1, keepdims=True, dtype=np.float64)
    rest = np.where(kept, features, 0).sum(axis=1, keepdims=True, dtype=np.float64)
    ratio = np.divide(total, rest, out=np.ones_like(total), where=rest != 0)
    # features that are never negative cannot exceed this; others, whose sum may nearly vanish, are kept finite by it
    most = kept.shape[1] / kept.sum(axis=1, keepdims=True)
    return np.asarray(np.exp(np.minimum(ratio, most)), np.float32)
