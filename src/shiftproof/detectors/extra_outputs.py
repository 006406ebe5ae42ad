"""Detectors that read a further output of the model, one it was trained to give for this."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.inputs import by_probabilities, logits_of
from shiftproof.detectors.parts import in_parts
from shiftproof.errors import NotKept
from shiftproof.types import AnomalyScores, Logits, Predictions

Direction: TypeAlias = Literal["counterclockwise", "clockwise"]

TURNS = 4
"""By 0, 90, 180 and 270 degrees."""

ONE_NUMBER, FOUR_LOGITS = "the one number of a confidence branch", "the four logits of a rotation head"


def confidence(predictions: Predictions) -> AnomalyScores:
    """Minus what a confidence branch says of the image (DeVries & Taylor, 2018): one number, probability or logit."""
    extra = _extra(predictions, ONE_NUMBER)
    if extra.shape[1] != 1:
        raise _another(ONE_NUMBER, extra)
    return np.asarray(-extra[:, 0], np.float64)


def rotation(predictions: Predictions, *, direction: Direction = "counterclockwise") -> AnomalyScores:
    """How little the image is recognised, and how little each of its turns is (Hendrycks et al., 2019).

    Minus KL(uniform || class probabilities of the upright image), plus the mean over the four turned images of minus the
    log-probability that a rotation head gives to the turn it is shown. The divergence is large where the model is sure of a
    class, hence the minus: both terms are higher for foreign images. In nats; the authors' are bits, which rank alike.

    `direction` is the one in which the head was taught to count turns; images are shown turned counterclockwise.
    """
    extra = _extra(predictions, f"{FOUR_LOGITS} for each of four turned images")
    if extra.shape[1] == TURNS:
        raise NotKept(
            f"it needs {FOUR_LOGITS} for each of four turned images, and only the upright ones were shown; "
            "predict again with --turned, or take rotation_upright"
        )
    if extra.shape[1] != TURNS * TURNS:
        raise _another(f"{FOUR_LOGITS} for each of four turned images", extra)
    shown = np.arange(TURNS)
    counted = shown if direction == "counterclockwise" else -shown % TURNS
    lost = _log_losses(extra.reshape(-1, TURNS, TURNS))
    return np.asarray(lost[:, shown, counted].mean(axis=1) - _divergence_from_uniform(predictions))


def rotation_upright(predictions: Predictions) -> AnomalyScores:
    """Minus the log-probability that a rotation head gives to "upright" for the image as it is: a part of `rotation`.

    One forward pass an image where `rotation` takes four; on its own it tells much less.
    """
    extra = _extra(predictions, FOUR_LOGITS)
    if extra.shape[1] not in (TURNS, TURNS * TURNS):
        raise _another(FOUR_LOGITS, extra)
    return np.asarray(_log_losses(extra[:, :TURNS])[:, 0])


def _log_losses(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Minus the logarithm of the softmax over the last axis."""
    above = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(above).sum(axis=-1, keepdims=True)) - above)


def _divergence_from_uniform(predictions: Predictions) -> AnomalyScores:
    """KL(uniform || class probabilities) of each image, in nats: 0 where all classes are as likely.

    Classes that the model cannot answer with have no share in the uniform distribution either.
    """
    if predictions.gives != "logits":
        return by_probabilities(predictions, lambda shares: -np.log(shares * shares.shape[1]).mean(axis=1))

    def diverging(rows: Logits) -> AnomalyScores:
        losses, possible = _log_losses(rows), np.isfinite(rows)
        classes = possible.sum(axis=1)
        return np.asarray(losses.sum(axis=1, where=possible) / classes - np.log(classes))

    return in_parts(diverging, logits_of(predictions))


def _extra(predictions: Predictions, what: str) -> NDArray[np.floating]:
    if predictions.extra is None:
        raise NotKept(f"it needs {what}, and no extra output of the model was named when it predicted")
    return predictions.extra


def _another(what: str, extra: NDArray[np.floating]) -> NotKept:
    return NotKept(f"it needs {what}, and the extra output has {extra.shape[1]} numbers an image")
