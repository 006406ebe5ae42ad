"""Detectors that read class scores alone. They need no fitting and serve any model; higher is more out-of-distribution."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.likelihood import log_totals
from shiftproof.ood.entry import OODDetector
from shiftproof.ood.graph import SMALL, Graph, Tensor
from shiftproof.ood.inputs import by_probabilities, in_parts, logits_of
from shiftproof.types import Features, Logits, OODScores, Predictions


def msp(predictions: Predictions) -> OODScores:
    """Minus the maximum softmax probability (Hendrycks & Gimpel, 2017)."""
    return by_probabilities(predictions, lambda probabilities: -probabilities.max(axis=1))


MSP = OODDetector("MSP", msp, graph=lambda graph: -graph.probabilities().max())


def max_logit(predictions: Predictions) -> OODScores:
    """Minus the maximum logit (Hendrycks et al., 2022)."""
    return np.asarray(-logits_of(predictions).max(axis=1), np.float64)


MAX_LOGIT = OODDetector("Max-Logit", max_logit, graph=lambda graph: -graph.logits.max())


def energy(predictions: Predictions, *, temperature: float = 1.0) -> OODScores:
    """Free energy of the logits: minus the temperature times log-sum-exp of logits over temperature (Liu et al., 2020)."""
    return in_parts(lambda logits: free_energy(logits, temperature=temperature), logits_of(predictions))


ENERGY = OODDetector("Energy", energy, graph=lambda graph, *, temperature: graph.logits.free_energy(temperature))


def entropy(predictions: Predictions) -> OODScores:
    """Entropy of the softmax probabilities, in nats."""
    return by_probabilities(predictions, _entropy)


ENTROPY = OODDetector("Entropy", entropy, graph=lambda graph: -graph.probabilities().negative_entropy())


def margin(predictions: Predictions) -> OODScores:
    """Minus the margin between the two highest probabilities; 0 is a tie, -1 certainty."""
    return by_probabilities(predictions, _margin)


def _margin_graph(graph: Graph) -> Tensor:
    best = graph.probabilities().top(2).values
    return best.column(1) - best.column(0)


MARGIN = OODDetector("Margin", margin, graph=_margin_graph)


def odin(predictions: Predictions, *, temperature: float = 1000.0) -> OODScores:
    """Minus the maximum softmax probability at a high temperature: ODIN with eps = 0 (Liang et al., 2018).

    Its step towards the predicted class needs the live network, so it is the business of the model's adapter.
    """
    return in_parts(lambda logits: -softened(logits, temperature).max(axis=1), logits_of(predictions))


ODIN = OODDetector("ODIN", odin, graph=lambda graph, *, temperature: -graph.probabilities(temperature).max())


def gen(predictions: Predictions, *, gamma: float = 0.1, largest: int | None = 100) -> OODScores:
    """Generalised entropy of the `largest` most probable classes: the sum of p^gamma (1 - p)^gamma (Liu et al., 2023).

    `largest` is the authors' M; None, or more than there are classes, takes them all.
    """
    if gamma <= 0 or (largest is not None and largest < 1):
        raise BadInput(f"gen needs gamma above 0 and at least one class, got gamma {gamma} and largest {largest}")

    def generalised(probabilities: NDArray[np.floating]) -> OODScores:
        most = probabilities.shape[1]
        taken = np.partition(probabilities, -largest, axis=1)[:, -largest:] if largest and largest < most else probabilities
        # rounding may lift a certain class a little above 1
        return np.asarray(((taken * np.maximum(1 - taken, 0)) ** gamma).sum(axis=1))

    return by_probabilities(predictions, generalised)


def _gen_graph(graph: Graph, *, gamma: float, largest: int | None) -> Tensor:
    probabilities = graph.probabilities()
    taken = probabilities.top(largest).values if largest and largest < graph.classes else probabilities
    return (taken * (1 - taken).at_least(0)).power(gamma).sum()


GEN = OODDetector("GEN", gen, presets={"pytorch-ood": {"largest": None}}, graph=_gen_graph)


def free_energy(logits: Logits, *, temperature: float = 1.0) -> OODScores:
    """Free energy of each row, (images,), in double precision.

    >>> free_energy(np.log([[1.0, 3.0]])).round(4)  # minus the logarithm of 4
    array([-1.3863])
    """
    _check_temperature(temperature)
    return -temperature * log_totals(logits if temperature == 1 else logits.astype(np.float64) / temperature)


def softened(logits: Logits, temperature: float) -> NDArray[np.floating]:
    """Softmax probabilities at a temperature, in double precision, (images, classes)."""
    _check_temperature(temperature)
    return to_probabilities(logits.astype(np.float64) / temperature, "logits")


def _entropy(probabilities: NDArray[np.floating]) -> OODScores:
    # a class of probability 0 adds nothing, though its logarithm is minus infinity
    logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return np.asarray(-(probabilities * logarithms).sum(axis=1))


def _margin(probabilities: NDArray[np.floating]) -> OODScores:
    if probabilities.shape[1] < 2:
        raise NotKept("it compares the two highest probabilities, and there is only one class")
    second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
    return np.asarray(second - first)


def _check_temperature(temperature: float) -> None:
    if temperature <= 0:
        raise BadInput(f"a temperature is above 0, got {temperature}")


def max_cosine(predictions: Predictions) -> OODScores:
    """Minus the cosine between the features and the weights of the class nearest in direction (Zhang & Xiang, 2023).

    A logit is this cosine times the lengths of both, plus the bias, which is left out here. Features of length 0 have no
    direction and count as at right angles to every class.
    """
    features = predictions.need_features()
    weights = predictions.need_head().weights.astype(np.float32)
    directions = weights / _lengths(weights)

    def scored(some: Features) -> OODScores:
        vectors = some.astype(np.float32)
        return np.asarray(-(vectors / _lengths(vectors) @ directions.T).max(axis=1))

    return in_parts(scored, features)


def _max_cosine_graph(graph: Graph) -> Tensor:
    weights = graph.need_head().weights.astype(np.float32)
    lengths = (graph.features * graph.features).sum(keep=True).sqrt()
    # features of length 0 stay all zero, whatever they are divided by
    return -((graph.features / lengths.at_least(SMALL)) @ (weights / _lengths(weights)).T).max()


MAX_COSINE = OODDetector("Max-Cosine", max_cosine, graph=_max_cosine_graph)


def gradnorm(predictions: Predictions, *, temperature: float = 1.0) -> OODScores:
    """Minus the sum of absolute gradients, on the last layer's weights, of the divergence from uniform (Huang et al., 2021).

    The divergence is KL(uniform || softmax). No gradient is taken: it is the outer product of (p - 1/classes) / temperature
    and the features, so its norm is the product of theirs. The authors' own number is `classes` times as large.
    """
    predictions.need_head()  # without one linear layer behind the logits there is no such gradient

    def scored(logits: Logits, features: Features) -> OODScores:
        surprise = np.abs(softened(logits, temperature) - 1 / logits.shape[1]).sum(axis=1)
        return np.asarray(-surprise * np.abs(features).sum(axis=1, dtype=np.float64) / temperature)

    return in_parts(scored, logits_of(predictions), predictions.need_features())


def _gradnorm_graph(graph: Graph, *, temperature: float) -> Tensor:
    surprise = (graph.probabilities(temperature) - 1 / graph.classes).abs().sum()
    return -surprise * graph.features.double().abs().sum() / temperature


GRADNORM = OODDetector("GradNorm", gradnorm, graph=_gradnorm_graph)


def _lengths(rows: Features) -> Features:
    # a length of 0 becomes 1: the row stays all zero instead of becoming not a number
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1)


Direction: TypeAlias = Literal["counterclockwise", "clockwise"]

ROTATIONS = 4
"""By 0, 90, 180 and 270 degrees."""

ONE_NUMBER, FOUR_LOGITS = "the one output of a confidence branch", "the four logits of a rotation head"


def confidence(predictions: Predictions) -> OODScores:
    """Minus the output of a learned confidence branch (DeVries & Taylor, 2018): one number, probability or logit."""
    extra = _extra(predictions, ONE_NUMBER)
    if extra.shape[1] != 1:
        raise _another(ONE_NUMBER, extra)
    return np.asarray(-extra[:, 0], np.float64)


CONFIDENCE = OODDetector("Confidence branch", confidence)


def rotation(predictions: Predictions, *, direction: Direction = "counterclockwise") -> OODScores:
    """Rotation prediction: KL from uniform plus rotation-head log-likelihood, both negated (Hendrycks et al., 2019).

    Minus KL(uniform || class probabilities of the upright image), plus the mean over the four rotated images of minus the
    log-probability that a rotation head gives to the rotation it is shown. The divergence is large where the model is
    confident, hence the minus: both terms are higher for OOD images. In nats; the authors' are bits, which rank alike.

    `direction` is the one in which the head was trained to count rotations; images are shown rotated counterclockwise.
    """
    extra = _extra(predictions, f"{FOUR_LOGITS} for each of four rotated images")
    if extra.shape[1] == ROTATIONS:
        raise NotKept(
            f"it needs {FOUR_LOGITS} for each of four rotated images, and was run on the upright images only; "
            "predict again with --rotated, or take rotation_upright"
        )
    if extra.shape[1] != ROTATIONS * ROTATIONS:
        raise _another(f"{FOUR_LOGITS} for each of four rotated images", extra)
    shown = np.arange(ROTATIONS)
    counted = shown if direction == "counterclockwise" else -shown % ROTATIONS
    lost = _log_losses(extra.reshape(-1, ROTATIONS, ROTATIONS))
    return np.asarray(lost[:, shown, counted].mean(axis=1) - _divergence_from_uniform(predictions))


ROTATION = OODDetector("Rotation", rotation)


def rotation_upright(predictions: Predictions) -> OODScores:
    """Minus the log-probability that a rotation head gives to "upright" for the image as it is: a part of `rotation`.

    One forward pass an image where `rotation` takes four; on its own it tells much less.
    """
    extra = _extra(predictions, FOUR_LOGITS)
    if extra.shape[1] not in (ROTATIONS, ROTATIONS * ROTATIONS):
        raise _another(FOUR_LOGITS, extra)
    return np.asarray(_log_losses(extra[:, :ROTATIONS])[:, 0])


ROTATION_UPRIGHT = OODDetector("Rotation, upright", rotation_upright)


def _log_losses(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Minus the logarithm of the softmax over the last axis."""
    above = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(above).sum(axis=-1, keepdims=True)) - above)


def _divergence_from_uniform(predictions: Predictions) -> OODScores:
    """KL(uniform || class probabilities) of each image, in nats: 0 where all classes are as likely.

    Classes that the model cannot predict have no share in the uniform distribution either.
    """
    if predictions.gives != "logits":
        return by_probabilities(predictions, lambda shares: -np.log(shares * shares.shape[1]).mean(axis=1))

    def diverging(rows: Logits) -> OODScores:
        losses, possible = _log_losses(rows), np.isfinite(rows)
        classes = possible.sum(axis=1)
        return np.asarray(losses.sum(axis=1, where=possible) / classes - np.log(classes))

    return in_parts(diverging, logits_of(predictions))


def _extra(predictions: Predictions, what: str) -> NDArray[np.floating]:
    if predictions.extra is None:
        raise NotKept(f"it needs {what} (--extra-output), and these predictions have no extra output")
    return predictions.extra


def _another(what: str, extra: NDArray[np.floating]) -> NotKept:
    return NotKept(f"it needs {what}, and the extra output has {extra.shape[1]} numbers an image")
