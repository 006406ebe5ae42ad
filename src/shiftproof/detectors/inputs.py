"""What detectors take from predictions, each with a sentence for where it cannot be had."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.types import Predictions


def logits_of(predictions: Predictions) -> NDArray[np.floating]:
    """The logits, (images, classes); NotKept where the model gives something else."""
    if predictions.gives != "logits":
        raise NotKept(f"it needs logits, and the model gives {predictions.gives}")
    return predictions.need_logits()


def probabilities_of(predictions: Predictions) -> NDArray[np.floating]:
    """Probabilities of all classes in double precision, (images, classes), so that sure answers still differ."""
    if predictions.gives == "scores":
        raise NotKept("it needs logits or probabilities, and the model gives scores")
    return to_probabilities(predictions.need_logits().astype(np.float64), predictions.gives)
