"""Errors under corruption beside a baseline's: CE, mCE and their relative kin (Hendrycks & Dietterich, 2019)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shiftproof.errors import BadInput

Errors = NDArray[np.floating]
"""Share of images wrong, (corruptions, severities); a baseline's may be means over severities, (corruptions,)."""


def corruption_error(errors: ArrayLike, baseline_errors: ArrayLike) -> NDArray[np.floating]:
    """Error over all severities of each corruption as a multiple of the baseline's, (corruptions,).

    1 is as bad as the baseline, 0 perfect. Errors are shares, (corruptions, severities); the baseline's may be given as
    means over the same severities, (corruptions,).

    >>> corruption_error([[0.1, 0.3], [0.2, 0.6]], [[0.3, 0.5], [0.4, 0.4]])  # 0.4 / 0.8 and 0.8 / 0.8
    array([0.5, 1. ])
    >>> corruption_error([[0.1, 0.3], [0.2, 0.6]], [0.4, 0.4])
    array([0.5, 1. ])
    """
    own, baseline = _means(errors, baseline_errors)
    return _divided(own, baseline, "makes no mistakes under")


def mean_corruption_error(errors: ArrayLike, baseline_errors: ArrayLike) -> float:
    """Mean of the corruption errors, each divided by the baseline's before the mean is taken (mCE).

    1 is as bad as the baseline, 0 perfect. Published tables print it times 100.

    >>> mean_corruption_error([[0.1, 0.3], [0.2, 0.6]], [[0.3, 0.5], [0.4, 0.4]])
    0.75
    """
    return float(corruption_error(errors, baseline_errors).mean())


def relative_corruption_error(
    errors: ArrayLike, clean_error: float, baseline_errors: ArrayLike, baseline_clean_error: float
) -> NDArray[np.floating]:
    """Error that each corruption adds to the clean one, as a multiple of what it adds to the baseline's, (corruptions,).

    1 is to lose as much as the baseline, 0 to lose nothing; a model that is good on clean images alone scores high.

    >>> relative_corruption_error([[0.1, 0.3], [0.2, 0.7]], 0.1, [[0.3, 0.5], [0.4, 0.6]], 0.2).round(3)
    array([0.5  , 1.167])
    """
    own, baseline = _means(errors, baseline_errors)
    return _divided(own - clean_error, baseline - baseline_clean_error, "loses nothing under")


def relative_mean_corruption_error(
    errors: ArrayLike, clean_error: float, baseline_errors: ArrayLike, baseline_clean_error: float
) -> float:
    """Mean of the relative corruption errors (relative mCE).

    1 is to lose as much as the baseline, 0 to lose nothing.

    >>> round(relative_mean_corruption_error([[0.1, 0.3], [0.2, 0.7]], 0.1, [[0.3, 0.5], [0.4, 0.6]], 0.2), 3)
    0.833
    """
    return float(relative_corruption_error(errors, clean_error, baseline_errors, baseline_clean_error).mean())


def _means(errors: ArrayLike, baseline_errors: ArrayLike) -> tuple[Errors, Errors]:
    """The mean error of each corruption, of both."""
    own, baseline = np.asarray(errors, dtype=float), np.asarray(baseline_errors, dtype=float)
    if own.ndim != 2 or 0 in own.shape:
        raise BadInput(f"errors should be (corruptions, severities), got shape {own.shape}")
    if baseline.shape not in (own.shape, own.shape[:1]):
        raise BadInput(
            f"baseline errors should be of shape {own.shape} like the errors, or {own.shape[:1]} as means over severities, "
            f"got {baseline.shape}"
        )
    return own.mean(axis=1), baseline.mean(axis=1) if baseline.ndim == 2 else baseline


def _divided(own: Errors, baseline: Errors, what: str) -> Errors:
    zero = np.flatnonzero(baseline == 0)
    if len(zero):
        places = ", ".join(str(place) for place in zero)
        raise BadInput(f"the baseline {what} corruption {places} (counted from 0), so nothing can be divided by it")
    return np.asarray(own / baseline)
