"""How surprised a model is by the truth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import label_rows
from shiftproof.types import Gives, Labels, Logits

_ROWS_AT_ONCE = 1024  # 8 MB of a thousand classes


def negative_log_likelihood(labels: Labels, logits: Logits, gives: Gives) -> float:
    """Mean surprise at the truth: minus the logarithm of the probability of the right class, in natural units.

    0 is perfect; infinite where a right class has no probability at all. Of several right labels the most probable is taken
    as the truth.

    >>> surprise = negative_log_likelihood(np.array([0, 1]), np.log([[1.0, 3.0], [1.0, 3.0]]), "logits")
    >>> round(surprise, 4)  # (log 4 + log 4/3) / 2
    0.837
    """
    return float(negative_log_likelihoods(labels, logits, gives).mean())


def negative_log_likelihoods(labels: Labels, logits: Logits, gives: Gives) -> NDArray[np.floating]:
    """The surprise at each image's right class, (images,).

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
    """The score of each image's right label, of several the highest, (images,).

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
    return np.asarray(np.log(np.exp(logits - peaks).sum(axis=1)) + peaks[:, 0])


def row_blocks(logits: Logits) -> Iterator[Logits]:
    """The rows, few enough at a time that what is made of them fits in memory."""
    yield from (logits[start : start + _ROWS_AT_ONCE] for start in range(0, len(logits), _ROWS_AT_ONCE))
