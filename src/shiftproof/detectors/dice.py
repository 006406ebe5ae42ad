"""DICE: the head keeps only the weights that matter for training images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.activations import energy_of
from shiftproof.detectors.inputs import head_of
from shiftproof.detectors.parts import in_parts
from shiftproof.errors import BadInput, NotKept
from shiftproof.types import AnomalyScores, Head, Predictions, Training


@dataclass(frozen=True)
class Dice:
    """A sparse last linear layer."""

    head: Head

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Free energy of the logits that the sparse layer gives."""
        return in_parts(lambda features: energy_of(features, self.head), predictions.need_features())


def fit_dice(training: Training, *, percentile: float = 70.0) -> Dice:
    """The head without the `percentile` % of its weights that contribute least (DICE; Sun & Li, 2022).

    The contribution of a weight is itself times the mean training feature; all classes' weights are ranked together. 70 is
    what the authors run on ImageNet; on CIFAR they run 90.
    """
    if not 0 <= percentile <= 100:
        raise BadInput(f"percentile should lie between 0 and 100, got {percentile}")
    head = head_of(training)
    contributions = head.weights * _mean_features(training)
    kept = contributions > np.percentile(contributions, percentile)
    return Dice(Head(np.where(kept, head.weights, 0), head.bias))


def _mean_features(training: Training) -> NDArray[np.floating]:
    totals = [block.need_features().sum(axis=0, dtype=np.float64) for block in training.blocks()]
    if not totals:
        raise NotKept("there are no training images to learn from")
    return np.asarray(sum(totals) / len(training))
