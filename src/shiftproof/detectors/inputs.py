"""What detectors take from predictions, each with a sentence for where it cannot be had."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.parts import in_parts
from shiftproof.errors import NotKept
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.types import AnomalyScores, Head, Logits, Predictions, Training


def logits_of(predictions: Predictions) -> NDArray[np.floating]:
    """The logits, (images, classes); NotKept where the model gives something else."""
    if predictions.gives != "logits":
        raise NotKept(f"it needs logits, and the model gives {predictions.gives}")
    return predictions.need_logits()


def probabilities_of(predictions: Predictions) -> NDArray[np.floating]:
    """Probabilities of all classes in double precision, (images, classes), so that sure answers still differ."""
    return to_probabilities(_convertible(predictions).astype(np.float64), predictions.gives)


def by_probabilities(predictions: Predictions, score: Callable[[NDArray[np.floating]], AnomalyScores]) -> AnomalyScores:
    """What a function says of the probabilities of all classes, which are never in memory for all images at once."""

    def scored(rows: Logits) -> AnomalyScores:
        return score(to_probabilities(rows.astype(np.float64), predictions.gives))

    return in_parts(scored, _convertible(predictions))


def head_of(training: Training) -> Head:
    """The last linear layer of the model that was trained, or NotKept."""
    if training.head is None:
        raise NotKept("the model's last linear layer could not be read, or its classes are merged")
    return training.head


def _convertible(predictions: Predictions) -> Logits:
    if predictions.gives == "scores":
        raise NotKept("it needs logits or probabilities, and the model gives scores")
    return predictions.need_logits()
