"""Negative log-likelihood and temperature scaling."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import label_rows
from shiftproof.metrics.intervals import normal_quantile
from shiftproof.types import Gives, Labels, Logits

ROWS_AT_ONCE = 128
"""Rows of scores that are worked on at a time: of a thousand classes they stay in the cache of a processor."""


def negative_log_likelihood(labels: Labels, logits: Logits, gives: Gives) -> float:
    """Mean negative log-probability of the true class, in nats.

    0 is perfect; infinite where a correct class has no probability at all. Of several correct labels the most probable is
    taken as the true one.

    >>> surprise = negative_log_likelihood(np.array([0, 1]), np.log([[1.0, 3.0], [1.0, 3.0]]), "logits")
    >>> round(surprise, 4)  # (log 4 + log 4/3) / 2
    0.837
    """
    return float(negative_log_likelihoods(labels, logits, gives).mean())


def negative_log_likelihoods(labels: Labels, logits: Logits, gives: Gives) -> NDArray[np.floating]:
    """The negative log-probability of each image's true class, (images,).

    >>> negative_log_likelihoods(np.array([0, 1]), np.array([[0.5, 0.5], [1.0, 0.0]]), "probabilities").round(4)
    array([0.6931,    inf])
    """
    if gives == "scores":
        raise BadInput("a model that gives scores has no probabilities; a likelihood needs logits or probabilities")
    right = best_right(labels, logits).astype(float)
    if gives == "probabilities":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(right))
    totals = np.concatenate([log_totals(block) for block in row_blocks(logits)])
    return np.asarray(totals - right)


def best_right(labels: Labels, scores: Logits) -> NDArray[np.floating]:
    """The score of each image's correct label, of several the highest, (images,).

    >>> best_right(np.array([[0, 2], [1, -1]]), np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 9.0]]))
    array([2., 3.])
    """
    rows = label_rows(labels)
    given = np.take_along_axis(scores, np.maximum(rows, 0), axis=1)
    return np.asarray(np.where(rows >= 0, given, -np.inf).max(axis=1))


def log_totals(logits: Logits) -> NDArray[np.floating]:
    """Log-sum-exp of each row, (images,).

    >>> log_totals(np.log([[1.0, 3.0]])).round(4)  # log 4
    array([1.3863])
    """
    peaks = logits.max(axis=1, keepdims=True).astype(float)
    apart = logits - peaks
    return np.asarray(np.log(np.exp(apart, out=apart).sum(axis=1)) + peaks[:, 0])


def row_blocks(logits: Logits) -> Iterator[Logits]:
    """The rows, few enough at a time that what is made of them fits in memory."""
    yield from (logits[start : start + ROWS_AT_ONCE] for start in range(0, len(logits), ROWS_AT_ONCE))


LEAST, MOST = 0.01, 100.0
"""The temperatures tried. All correct would have one of 0, no better than chance an infinite one."""

_NEVER = -1e9
"""What stands for a logit of minus infinity: its probability is 0 at every temperature, and 0 times it is 0."""


def fit_temperature(labels: Labels, logits: Logits) -> float:
    """The temperature at which the true classes are likeliest, from 0.01 to 100 (Guo et al., 2017).

    Above 1 the model is overconfident. An end of the range says that no temperature fits: the lower where all is right,
    the upper where the logits tell nothing. Images whose correct class cannot win do not count.

    >>> sure = np.log([[4.0, 1.0]] * 4)  # says 80 % four times, and is correct twice in four: nothing is known
    >>> fit_temperature(np.array([0, 0, 1, 1]), sure)
    100.0
    >>> round(fit_temperature(np.array([0, 0, 0, 1]), sure), 4)  # 75 % is 3 to 1: log 4 / log 3
    1.2619
    """
    right, scores = _fittable(labels, logits)
    low, high = 1 / MOST, 1 / LEAST
    if _pulls(right, scores, low)[0].sum() >= 0:
        return MOST
    if _pulls(right, scores, high)[0].sum() <= 0:
        return LEAST
    # the loss is convex in 1 / temperature: Newton's steps, halving the range where one would leave it
    sharpness = 1.0
    for _ in range(100):
        slopes, curvatures = _pulls(right, scores, sharpness)
        low, high = (low, sharpness) if slopes.sum() > 0 else (sharpness, high)
        step = -float(slopes.sum() / max(curvatures.sum(), np.finfo(float).tiny))
        following = sharpness + step if low < sharpness + step < high else float(np.sqrt(low * high))
        if abs(following - sharpness) <= 1e-12 * sharpness:
            break
        sharpness = following
    return 1 / sharpness


def temperature_interval(
    labels: Labels, logits: Logits, temperature: float, *, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of a fitted temperature for large samples, which trusts no model (Huber, 1967); None at an end of the range.

    >>> labels, logits = np.array([0, 0, 0, 1] * 100), np.log([[4.0, 1.0]] * 400)
    >>> low, high = temperature_interval(labels, logits, fit_temperature(labels, logits))
    >>> round(low, 2), round(high, 2)  # log 4 over the log-odds of 300 of 400, 1.0986 +- 1.96 / sqrt(75)
    (1.05, 1.59)
    """
    if not LEAST < temperature < MOST:
        return None
    slopes, curvatures = _pulls(*_fittable(labels, logits), 1 / temperature)
    reach = normal_quantile((1 + level) / 2) * float(np.sqrt((slopes**2).sum()) / curvatures.sum())
    return 1 / (1 / temperature + reach), (1 / (1 / temperature - reach) if reach * temperature < 1 else MOST)


def split_half(ids: Sequence[str], *, seed: int = 0) -> NDArray[np.bool_]:
    """Which images are in the first half, (images,), each decided by its id alone.

    An image stays in its half whatever else is in the set and in whatever order; the halves are therefore only about equal.

    >>> bool(split_half(["a.png", "b.png"])[1] == split_half(["b.png"])[0])
    True
    """
    return np.array([_coin(f"{seed}\0{image}") for image in ids], dtype=bool)


def _coin(text: str) -> int:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=1).digest()[0] & 1


def _fittable(labels: Labels, logits: Logits) -> tuple[NDArray[np.floating], Logits]:
    """The logit of each image's correct class, and all of them, of the images where both are finite."""
    right = best_right(labels, logits)
    usable = np.isfinite(right) & np.isfinite(logits.max(axis=1))
    if not usable.any():
        raise BadInput("no image has a correct class that could win, so no temperature can be fitted")
    return right[usable].astype(float), logits if usable.all() else logits[usable]


def _pulls(
    right: NDArray[np.floating], logits: Logits, sharpness: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Slope and curvature of each image's negative log-likelihood as the logits are multiplied by `sharpness`."""
    means, variances = [], []
    for block in row_blocks(logits):
        peaks = block.max(axis=1, keepdims=True).astype(float)
        below = np.maximum(block - peaks, _NEVER)
        weights = np.exp(sharpness * below)
        totals = weights.sum(axis=1)
        mean = np.einsum("ij,ij->i", weights, below) / totals
        variances.append(np.einsum("ij,ij,ij->i", weights, below, below) / totals - mean**2)
        means.append(mean + peaks[:, 0])
    return np.concatenate(means) - right, np.concatenate(variances)
