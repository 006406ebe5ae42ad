"""Confidence bounds of a number at other levels than that of its interval, and p-values that agree with them.

A verdict on hundreds of numbers at once needs bounds far out in the tails. They are carried there from the interval that a
number has: a share as an exact (Clopper-Pearson) bound of as many independent images as its interval speaks of, anything
else as Student's t with a degree of freedom fewer than there are clusters.
"""

from __future__ import annotations

from typing import Literal

from shiftproof.metrics.intervals import student_quantile, tail_of
from shiftproof.metrics.table import metric_info
from shiftproof.types import Measurement

End = Literal["low", "high"]
LEAST_P = 1e-12
"""Smaller ones are not told apart."""
_STEPS = 60
_FEWEST, _MOST = 0.5, 1e9
"""Between these lies every effective number of images."""


def bound(found: Measurement, end: End, tail: float) -> float | None:
    """The one-sided bound that the true value is beyond with a chance of `tail` at most; None without an interval.

    >>> from shiftproof.types import Interval
    >>> none_of_ten = Measurement("top1_accuracy", 0.0, {}, 10, {}, Interval(0.0, 0.30849710781876083))
    >>> round(bound(none_of_ten, "high", 0.001), 4)  # 1 - 0.001^(1/10)
    0.4988
    """
    if found.interval is None:
        return None
    usual, known = tail_of(found.interval.level), found.interval.low if end == "low" else found.interval.high
    if metric_info(found.metric).unit == "share" and 0 <= known <= 1 and 0 <= found.value <= 1:
        return _share_bound(found, end, known, usual, tail)
    degrees = max(1, _clusters(found) - 1)
    wider = student_quantile(1 - tail, degrees) / student_quantile(1 - usual, degrees)
    return found.value + (known - found.value) * wider


def one_sided_p(found: Measurement, end: End, limit: float) -> float:
    """The smallest tail whose bound still leaves the limit out; 1 where it is above a quarter.

    >>> from shiftproof.types import Interval
    >>> none_of_ten = Measurement("top1_accuracy", 0.0, {}, 10, {}, Interval(0.0, 0.30849710781876083))
    >>> round(one_sided_p(none_of_ten, "high", 0.5), 6)  # (1 - 0.5)^10
    0.000977
    """
    few, many = LEAST_P, 0.25
    if not _leaves_out(found, end, limit, many):
        return 1.0
    if _leaves_out(found, end, limit, few):
        return few
    for _ in range(_STEPS):
        middle = (few * many) ** 0.5
        few, many = (few, middle) if _leaves_out(found, end, limit, middle) else (middle, many)
    return many


def _leaves_out(found: Measurement, end: End, limit: float, tail: float) -> bool:
    at = bound(found, end, tail)
    return at is not None and (at > limit if end == "low" else at < limit)


def _clusters(found: Measurement) -> int:
    return found.images if found.clusters is None else found.clusters


def _share_bound(found: Measurement, end: End, known: float, usual: float, tail: float) -> float:
    """The bound of a share, which is `known` for the usual tail; its upper bound is the lower one of the rest."""
    share, at = (found.value, known) if end == "low" else (1 - found.value, 1 - known)
    if share <= 0 or at <= 0:
        return 0.0 if end == "low" else 1.0
    images = _effective_images(share, at, usual) * _rarer(found, tail) / _rarer(found, usual)
    reached = _lower_bound(share, images, tail)
    return reached if end == "low" else 1 - reached


def _lower_bound(share: float, images: float, tail: float) -> float:
    from scipy.special import betaincinv

    right = share * images
    return float(betaincinv(right, images - right + 1, tail))


def _effective_images(share: float, at: float, tail: float) -> float:
    """How many independent images would give a share this lower bound."""
    few, many = _FEWEST, _MOST
    for _ in range(_STEPS):
        middle = (few * many) ** 0.5
        few, many = (middle, many) if _lower_bound(share, middle, tail) < at else (few, middle)
    return float((few * many) ** 0.5)


def _rarer(found: Measurement, tail: float) -> float:
    """What few clusters take from the effective number of images (Korn & Graubard, 1998); it grows far out in the tails."""
    clusters = _clusters(found)
    if not 1 < clusters < found.images:
        return 1.0
    return (student_quantile(1 - tail, found.images - 1) / student_quantile(1 - tail, clusters - 1)) ** 2
