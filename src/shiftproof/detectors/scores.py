"""Detectors that read class scores alone. They learn nothing and serve any model; higher is more foreign."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.inputs import by_probabilities, logits_of
from shiftproof.detectors.parts import in_parts
from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.likelihood import log_totals
from shiftproof.types import AnomalyScores, Logits, Predictions


def msp(predictions: Predictions) -> AnomalyScores:
    """How little the first class gets: minus the maximum softmax probability (Hendrycks & Gimpel, 2017)."""
    return by_probabilities(predictions, lambda probabilities: -probabilities.max(axis=1))


def max_logit(predictions: Predictions) -> AnomalyScores:
    """Minus the highest logit, which the other classes cannot dilute (Hendrycks et al., 2022)."""
    return np.asarray(-logits_of(predictions).max(axis=1), np.float64)


def energy(predictions: Predictions, *, temperature: float = 1.0) -> AnomalyScores:
    """Free energy of the logits: minus the temperature times log-sum-exp of logits over temperature (Liu et al., 2020)."""
    return in_parts(lambda logits: free_energy(logits, temperature=temperature), logits_of(predictions))


def entropy(predictions: Predictions) -> AnomalyScores:
    """Entropy of the class probabilities, in nats: how widely the model spreads its bet."""
    return by_probabilities(predictions, _entropy)


def margin(predictions: Predictions) -> AnomalyScores:
    """Minus the lead, in probability, of the first class over the second; 0 is a tie, -1 certainty."""
    return by_probabilities(predictions, _margin)


def odin(predictions: Predictions, *, temperature: float = 1000.0) -> AnomalyScores:
    """Minus the maximum softmax probability at a high temperature: ODIN with eps = 0 (Liang et al., 2018).

    Its step towards the predicted class needs the live network, so it is the business of the model's adapter.
    """
    return in_parts(lambda logits: -softened(logits, temperature).max(axis=1), logits_of(predictions))


def gen(predictions: Predictions, *, gamma: float = 0.1, largest: int | None = 100) -> AnomalyScores:
    """Generalised entropy of the `largest` most probable classes: the sum of p^gamma (1 - p)^gamma (Liu et al., 2023).

    `largest` is the authors' M; None, or more than there are classes, takes them all.
    """
    if gamma <= 0 or (largest is not None and largest < 1):
        raise BadInput(f"gen needs gamma above 0 and at least one class, got gamma {gamma} and largest {largest}")

    def generalised(probabilities: NDArray[np.floating]) -> AnomalyScores:
        most = probabilities.shape[1]
        taken = np.partition(probabilities, -largest, axis=1)[:, -largest:] if largest and largest < most else probabilities
        # rounding may lift a certain class a little above 1
        return np.asarray(((taken * np.maximum(1 - taken, 0)) ** gamma).sum(axis=1))

    return by_probabilities(predictions, generalised)


def free_energy(logits: Logits, *, temperature: float = 1.0) -> AnomalyScores:
    """Free energy of each row, (images,), in double precision.

    >>> free_energy(np.log([[1.0, 3.0]])).round(4)  # minus the logarithm of 4
    array([-1.3863])
    """
    _check_temperature(temperature)
    return -temperature * log_totals(logits.astype(np.float64) / temperature)


def softened(logits: Logits, temperature: float) -> NDArray[np.floating]:
    """Softmax probabilities at a temperature, in double precision, (images, classes)."""
    _check_temperature(temperature)
    return to_probabilities(logits.astype(np.float64) / temperature, "logits")


def _entropy(probabilities: NDArray[np.floating]) -> AnomalyScores:
    # a class of probability 0 adds nothing, though its logarithm is minus infinity
    logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return np.asarray(-(probabilities * logarithms).sum(axis=1))


def _margin(probabilities: NDArray[np.floating]) -> AnomalyScores:
    if probabilities.shape[1] < 2:
        raise NotKept("it compares the first class with the second, and there is only one")
    second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
    return np.asarray(second - first)


def _check_temperature(temperature: float) -> None:
    if temperature <= 0:
        raise BadInput(f"a temperature is above 0, got {temperature}")
