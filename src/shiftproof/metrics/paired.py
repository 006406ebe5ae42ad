"""Two models on the same images: which was right where, whether the difference is more than chance, and how large it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import (
    LEAST_CLUSTERS,
    Groups,
    cluster_sizes,
    cluster_spread,
    normal_quantile,
    student_quantile,
)


class PairedCounts(NamedTuple):
    """Images by who was right on them."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def images(self) -> int:
        return sum(self)

    @property
    def difference(self) -> float:
        """Accuracy of the first minus accuracy of the second."""
        return (self.only_first - self.only_second) / self.images


class PairedDifference(NamedTuple):
    """Accuracy of a first model minus that of a second on the same images."""

    difference: float
    interval: tuple[float, float] | None  # None of too few clusters
    p: float | None  # the chance of a difference at least this large if both were equally good


def paired_counts(first_correct: NDArray[np.bool_], second_correct: NDArray[np.bool_]) -> PairedCounts:
    """How many of the images both, only one or neither got right; row by row the same images.

    >>> paired_counts(np.array([True, True, False]), np.array([True, False, False]))
    PairedCounts(both=1, only_first=1, only_second=0, neither=1)
    """
    if first_correct.shape != second_correct.shape or not len(first_correct):
        raise BadInput(
            f"two models are compared on the same images, at least one, got {len(first_correct)} and {len(second_correct)}"
        )
    both, first = int((first_correct & second_correct).sum()), int(first_correct.sum())
    second = int(second_correct.sum())
    return PairedCounts(both, first - both, second - both, len(first_correct) - first - second + both)


def mcnemar_p(only_first: int, only_second: int, *, mid_p: bool = False) -> float:
    """Chance of a split at least this uneven of the images only one model got right, if both were equally good.

    Exact (McNemar, 1947, by the binomial distribution): it errs too seldom rather than too often. `mid_p` counts the split
    itself by half, which is sharper and close to its level on average (Fagerland et al., 2013). 1 where they never differ.

    >>> mcnemar_p(5, 0)  # 2 / 2^5
    0.0625
    >>> mcnemar_p(5, 0, mid_p=True)
    0.03125
    """
    from scipy.special import bdtr, betaln

    fewer, images = min(only_first, only_second), only_first + only_second
    if fewer < 0:
        raise BadInput(f"counts of images cannot be negative, got {only_first} and {only_second}")
    if images == 0:
        return 1.0
    this_split = float(np.exp(-betaln(fewer + 1, images - fewer + 1) - images * np.log(2.0)) / (images + 1))
    if only_first == only_second:
        return 1 - this_split / 2 if mid_p else 1.0
    exact = min(1.0, 2 * float(bdtr(fewer, images, 0.5)))
    return exact - this_split if mid_p else exact


def difference_interval(counts: PairedCounts, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the difference of two accuracies on the same images (Bonett & Price, 2012).

    A Wald interval after one image is added to each way of differing: close to its level also for few images, and never of
    no width.

    >>> low, high = difference_interval(PairedCounts(60, 20, 10, 10))
    >>> round(low, 3), round(high, 3)  # 10 / 102 +- 1.96 sqrt((32 / 102 - (10 / 102)^2) / 102)
    (-0.009, 0.205)
    """
    differing = (counts.only_first + counts.only_second) / counts.images
    middle, error = _adjusted(differing, counts.difference, counts.images)
    half = normal_quantile((1 + level) / 2) * error
    return max(-1.0, middle - half), min(1.0, middle + half)


def paired_difference(
    first_correct: NDArray[np.bool_],
    second_correct: NDArray[np.bool_],
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """Difference of two accuracies on the same images, with its interval and p-value.

    Both are Bonett and Price's; of images in clusters Student's t with the variance by cluster (see `cluster_spread`). They
    agree, as McNemar's exact p-value would not: the interval leaves 0 out exactly where p is below one minus `level`. Of
    fewer than `LEAST_CLUSTERS` clusters there is neither.

    >>> first, second = np.arange(100) % 10 < 8, np.arange(100) % 10 < 7
    >>> found = paired_difference(first, second)
    >>> round(found.difference, 2), found.p < 0.01 < found.interval[0]
    (0.1, True)
    >>> copies = paired_difference(np.repeat(first, 9), np.repeat(second, 9), clusters=np.repeat(np.arange(100), 9))
    >>> bool(np.allclose(copies.interval, found.interval, atol=0.01))
    True
    """
    counts = paired_counts(first_correct, second_correct)
    if clusters is None or len(sizes := cluster_sizes(clusters)) == counts.images:
        differing = (counts.only_first + counts.only_second) / counts.images
        middle, error = _adjusted(differing, counts.difference, counts.images)
        return PairedDifference(
            counts.difference, difference_interval(counts, level=level), _two_sided_p(middle / error, np.inf)
        )
    if len(sizes) < LEAST_CLUSTERS:
        return PairedDifference(counts.difference, None, None)
    found = cluster_spread(first_correct.astype(float) - second_correct, clusters, lowest=-1.0)
    error, degrees = float(np.sqrt(found.variance)), len(sizes) - 1
    half = student_quantile((1 + level) / 2, degrees) * error
    bounds = max(-1.0, found.mean - half), min(1.0, found.mean + half)
    return PairedDifference(counts.difference, bounds, _two_sided_p(found.mean / error, degrees))


def _adjusted(differing: float, difference: float, images: float) -> tuple[float, float]:
    """Bonett and Price's centre and standard error: one image is added to each way of differing."""
    middle = difference * images / (images + 2)
    return middle, float(np.sqrt(((differing * images + 2) / (images + 2) - middle**2) / (images + 2)))


def _two_sided_p(deviation: float, degrees: float) -> float:
    from scipy.special import ndtr, stdtr

    return 2 * float(ndtr(-abs(deviation)) if np.isinf(degrees) else stdtr(degrees, -abs(deviation)))


def holm(p_values: NDArray[np.floating]) -> NDArray[np.floating]:
    """P-values corrected for asking several questions at once (Holm, 1979), in the order given.

    Below 0.05 after correction: the chance of even one false alarm among all questions is at most 0.05.

    >>> holm(np.array([0.04, 0.01, 0.03]))  # 0.01 * 3, 0.03 * 2, and 0.04 no smaller than that
    array([0.06, 0.03, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
