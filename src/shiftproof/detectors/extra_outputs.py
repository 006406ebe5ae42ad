"""Detectors that read a further output of the model, one it was trained to give for this."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.types import AnomalyScores, Predictions


def confidence(predictions: Predictions) -> AnomalyScores:
    """Minus what a confidence branch says of the image (DeVries & Taylor, 2018): one number, probability or logit."""
    return np.asarray(-_extra(predictions, 1, "the one number of a confidence branch")[:, 0], np.float64)


def rotation(predictions: Predictions) -> AnomalyScores:
    """Minus the log-probability that a rotation head gives to "upright" for the image as it is (Hendrycks et al., 2019).

    Its four logits are for turns by 0, 90, 180 and 270 degrees, in this order.
    """
    logits = _extra(predictions, 4, "the four logits of a rotation head").astype(np.float64)
    above = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(above).sum(axis=1)) - above[:, 0])


def _extra(predictions: Predictions, width: int, what: str) -> NDArray[np.floating]:
    if predictions.extra is None:
        raise NotKept(f"it needs {what}, and no extra output of the model was named when it predicted")
    if predictions.extra.shape[1] != width:
        raise NotKept(f"it needs {what}, and the extra output has {predictions.extra.shape[1]} numbers an image")
    return predictions.extra
