"""Weibull distributions by maximum likelihood, for many samples at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_STEPS = 50  # five to seven are enough in practice
_CLOSE_ENOUGH = 1e-12


class Weibull(NamedTuple):
    """Distributions of positive numbers: the share above x is exp(-(x / scale)^shape)."""

    shape: NDArray[np.floating]  # (samples,)
    scale: NDArray[np.floating]  # (samples,)


def fit_weibull(values: NDArray[np.floating]) -> Weibull:
    """The most likely distribution of each row of positive numbers, (samples, values) padded with nan.

    The best scale for a shape is known, so a root in one variable is left, found by Newton's method in the logarithm of the
    shape. Equal numbers have no best shape: the more peaked, the likelier; their shape is infinite. A row without numbers
    has nan for both.

    >>> drawn = np.random.default_rng(0).weibull(3, size=(1, 100_000)) * 7
    >>> fitted = fit_weibull(drawn)
    >>> fitted.shape.round(1), fitted.scale.round(1)
    (array([3.]), array([7.]))
    """
    counted = ~np.isnan(values)
    count = counted.sum(axis=1)
    peak = np.where(counted, values, -np.inf).max(axis=1, initial=-np.inf)
    # of logarithms of nearly equal numbers the last digits matter, and a plain logarithm would lose them
    logs = np.log1p(np.where(counted, values - peak[:, None], 0) / np.where(count, peak, 1)[:, None])
    varied = logs.min(axis=1, initial=0) < 0
    shape = np.where(count, np.inf, np.nan)
    shape[varied] = _likeliest_shape(logs[varied], counted[varied])
    with np.errstate(invalid="ignore"):
        weights = np.where(counted & varied[:, None], np.exp(shape[:, None] * logs), counted)
        scale = np.where(count, peak, np.nan) * (weights.sum(axis=1) / np.maximum(count, 1)) ** (1 / shape)
    return Weibull(shape, scale)


def _likeliest_shape(logs: NDArray[np.floating], counted: NDArray[np.bool_]) -> NDArray[np.floating]:
    count = counted.sum(axis=1)
    mean = logs.sum(axis=1) / count
    spread = np.sqrt((np.where(counted, logs - mean[:, None], 0) ** 2).sum(axis=1) / count)
    shape = np.pi / np.sqrt(6) / spread  # where the spread of the logarithms would be that of the distribution
    for _ in range(_STEPS):
        weights = np.where(counted, np.exp(shape[:, None] * logs), 0)
        total = weights.sum(axis=1)
        first = (weights * logs).sum(axis=1) / total
        second = (weights * (logs - first[:, None]) ** 2).sum(axis=1) / total
        step = (first - mean - 1 / shape) / (shape * second + 1 / shape)
        shape = shape * np.exp(-np.clip(step, -1, 1))  # at most e times as large or as small, so that it stays positive
        if (np.abs(step) < _CLOSE_ENOUGH).all():
            break
    return np.asarray(shape)
