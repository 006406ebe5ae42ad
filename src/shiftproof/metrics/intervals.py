"""Confidence intervals: exact for shares, by resampling for the rest, and simultaneous ones of several differences.

Images that come from one photo, clip or patient are one cluster: they tell less than as many from different ones.
Everything here takes `clusters`, a number for each image, and then draws, counts or sums clusters instead of images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Counts: TypeAlias = NDArray[np.integer]
Bounds: TypeAlias = NDArray[np.floating]
Statistic: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""A number from each row of values, (resamples, images) to (resamples,)."""

Groups: TypeAlias = NDArray[np.integer]
"""Which cluster each image belongs to, (images,); images of one number are one cluster."""

LEAST_CLUSTERS = 5
"""Minimum number of clusters for a confidence interval: one clip is one cluster, however many frames it has."""

_MADE_UP = 0.3
"""Images of a made-up cluster, in clusters of mean size: of 0.2, 0.25 and 0.3 it covered best at 5 to 1000 clusters."""

_VALUES_AT_ONCE = 1_000_000  # resampled values in memory together: 8 MB


@overload
def clopper_pearson(right: int, total: int, *, level: float = 0.95) -> tuple[float, float]: ...
@overload
def clopper_pearson(right: Counts, total: Counts, *, level: float = 0.95) -> tuple[Bounds, Bounds]: ...
def clopper_pearson(
    right: int | Counts, total: int | Counts, *, level: float = 0.95
) -> tuple[float, float] | tuple[Bounds, Bounds]:
    """Exact interval of a share (Clopper & Pearson, 1934): covers the true value at least `level` of the time, often more.

    Arrays of counts give arrays of bounds. Of no images it is the whole range.

    >>> low, high = clopper_pearson(0, 10)  # high solves (1 - share)^10 = 0.025
    >>> round(low, 4), round(high, 4)
    (0.0, 0.3085)
    """
    # scipy.special alone: scipy.stats would take 300 ms longer to import
    from scipy.special import betaincinv

    tail = tail_of(level)
    if isinstance(right, int) and isinstance(total, int) and 0 <= right <= total:
        return _exact_interval(right, total, tail)  # a tenth of the time that arrays take
    good, count = _checked_counts(right, total)
    with np.errstate(all="ignore"):  # the ends, where the function has no answer, are replaced
        low = np.where(good == 0, 0.0, betaincinv(good, count - good + 1, tail))
        high = np.where(good == count, 1.0, betaincinv(good + 1, count - good, 1 - tail))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


@overload
def wilson(right: int, total: int, *, level: float = 0.95) -> tuple[float, float]: ...
@overload
def wilson(right: Counts, total: Counts, *, level: float = 0.95) -> tuple[Bounds, Bounds]: ...
def wilson(right: int | Counts, total: int | Counts, *, level: float = 0.95) -> tuple[float, float] | tuple[Bounds, Bounds]:
    """Score interval of a share (Wilson, 1927): narrower than the exact one, right `level` of the time on average.

    >>> low, high = wilson(0, 10)  # high is z^2 / (10 + z^2) with z = 1.96
    >>> round(low, 4), round(high, 4)
    (0.0, 0.2775)
    """
    good, count = _checked_counts(right, total)
    quantile = normal_quantile(1 - tail_of(level))
    share = np.divide(good, count, out=np.full(good.shape, 0.5), where=count > 0)
    weight = count + quantile**2
    centre = (share * count + quantile**2 / 2) / weight
    half = quantile * np.sqrt(share * (1 - share) * count + quantile**2 / 4) / weight
    low = np.where(good == 0, 0.0, centre - half)
    high = np.where(good == count, 1.0, centre + half)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def cluster_share_interval(
    right: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of a share of images that come in clusters; None of fewer than `LEAST_CLUSTERS` clusters.

    Clopper and Pearson's at the number of independent images that would tell as much, allowing for how few clusters that
    number is known from (Korn & Graubard, 1998). Where every image is a cluster of its own, it is theirs; where all
    predictions are alike, each cluster counts as one image at most.

    >>> alone = np.arange(40) % 2 == 0
    >>> cluster_share_interval(alone) == clopper_pearson(20, 40)
    True
    >>> low, high = cluster_share_interval(np.repeat(alone, 10), clusters=np.repeat(np.arange(40), 10))  # copies
    >>> bool(np.allclose((low, high), clopper_pearson(20, 40), atol=0.01))
    True
    """
    images = len(right)
    if clusters is None or len(sizes := cluster_sizes(clusters)) == images:
        return clopper_pearson(int(right.sum()), images, level=level)
    if len(sizes) < LEAST_CLUSTERS:
        return None
    independent = effective_images(right, clusters, level=level)
    return _exact_interval(float(right.mean()) * independent, independent, tail_of(level))


def effective_images(right: NDArray[np.bool_], clusters: Groups | None, *, level: float = 0.95) -> float:
    """Independent images that would tell a share as well as these: their number over the design effect.

    It allows for how few clusters the design effect is known from (Korn & Graubard, 1998), and is never more than the images
    there are. Of predictions that are all alike nothing tells how far clusters differ, so each may be one image at most.
    """
    images = len(right)
    if clusters is None:
        return float(images)
    count = len(cluster_sizes(clusters))
    found = cluster_spread(right.astype(float), clusters, lowest=0.0)
    rarer = student_quantile(1 - tail_of(level), images - 1) / student_quantile(1 - tail_of(level), count - 1)
    design_effect = found.variance * found.images / (found.mean * (1 - found.mean))
    most = images if 0 < right.sum() < images else count
    return float(min(most, images / design_effect * rarer**2))


class ClusterSpread(NamedTuple):
    """Mean over images in clusters and its variance, two made-up clusters among the others."""

    mean: float
    variance: float  # of the mean
    images: float


def cluster_spread(values: NDArray[np.floating], clusters: Groups, *, lowest: float) -> ClusterSpread:
    """Mean of values between `lowest` and 1, and its variance by cluster.

    The variance is that of leaving out one cluster at a time, which stays right where they differ in size. Two clusters are
    made up, one all at 1 and one all at the lowest value: as Bonett and Price's two images do, they keep few clusters that
    happen to agree from looking sure.
    """
    places = numbered(clusters)
    totals, sizes = np.bincount(places, values), np.bincount(places).astype(float)
    made_up = max(1.0, _MADE_UP * float(sizes.mean()))
    totals, sizes = np.append(totals, [made_up, lowest * made_up]), np.append(sizes, [made_up, made_up])
    images, count = float(sizes.sum()), len(sizes)
    mean = float(totals.sum()) / images
    moved = (totals - mean * sizes) / (images - sizes)  # by the mean, without each cluster
    return ClusterSpread(mean, float((moved**2).sum()) * (count - 1) / count, images)


def cluster_sizes(clusters: Groups) -> Counts:
    """How many images each cluster has, (clusters,).

    >>> cluster_sizes(np.array([3, 3, 9]))
    array([2, 1])
    """
    return np.bincount(numbered(clusters))


def numbered(clusters: Groups) -> Groups:
    """The same clusters as numbers from 0 on without a gap, in their order, (images,).

    >>> numbered(np.array([9, 3, 9]))
    array([1, 0, 1])
    """
    if not len(clusters) or clusters.dtype.kind != "i" or clusters.min() < 0 or clusters.max() > 2 * len(clusters):
        return np.unique(clusters, return_inverse=True)[1]
    # numbers that are few enough to count are put in order without a sort
    taken = np.bincount(clusters) > 0
    return clusters if taken.all() else (np.cumsum(taken) - 1)[clusters]


def _exact_interval(right: float, images: float, tail: float) -> tuple[float, float]:
    """Clopper and Pearson's interval, carried over to numbers of images that are not whole."""
    from scipy.special import betaincinv

    low = 0.0 if right <= 0 else float(betaincinv(right, images - right + 1, tail))
    high = 1.0 if right >= images else float(betaincinv(right + 1, images - right, 1 - tail))
    return low, high


def row_means(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean of each row: the statistic of most of our numbers."""
    return np.asarray(values.mean(axis=1))


def bootstrap_interval(
    values: NDArray[np.floating],
    *,
    statistic: Statistic = row_means,
    level: float = 0.95,
    resamples: int = 1000,
    bias_corrected: bool = True,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval of a statistic of the images' values, by drawing images again with replacement.

    Corrected for bias and skew (BCa; Efron, 1987), or plain percentiles. The acceleration leaves out blocks of images where
    there are more than 200. The same seed gives the same bounds; of fewer than two images the bounds are nan.

    >>> low, high = bootstrap_interval(np.array([0.0, 1.0] * 50))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.96 * 0.05
    (0.4, 0.6)
    """
    tail = tail_of(level)
    if len(values) < 2:
        return float("nan"), float("nan")
    drawn = _resampled(values, statistic, resamples, seed)
    if bias_corrected:
        return bca_interval(float(statistic(values[None])[0]), drawn, _left_out(values, statistic), level=level)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def bca_interval(
    seen: float,
    drawn: NDArray[np.floating],
    left_out: NDArray[np.floating],
    *,
    level: float = 0.95,
    cases: int | None = None,
) -> tuple[float, float]:
    """Interval corrected for bias and skew (BCa; Efron, 1987) of a number that was drawn again, (resamples,).

    `left_out` has the number without each image, or without each of many blocks of them. Given how many `cases` were drawn
    from, it is widened by what drawing again forgets: that a spread seen in few is itself uncertain and too small
    (Hesterberg, 2015).
    """
    tail = tail_of(level) if cases is None else _expanded_tail(tail_of(level), cases)
    low, high = np.quantile(drawn, _corrected_tails(np.array([tail, 1 - tail]), drawn, seen, left_out))
    return float(low), float(high)


def _expanded_tail(tail: float, cases: int) -> float:
    """The tail to cut off so that a resampled interval is as wide as Student's, with the unbiased spread."""
    from scipy.special import ndtr

    return float(ndtr(-np.sqrt(cases / (cases - 1)) * student_quantile(1 - tail, cases - 1)))


def normal_quantile(probability: float) -> float:
    """The value a standard normal number stays below with this probability.

    >>> round(normal_quantile(0.975), 2)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(probability))


def student_quantile(probability: float, degrees: float) -> float:
    """The value Student's t stays below with this probability.

    >>> round(student_quantile(0.975, 25), 2)
    2.06
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def _resampled(values: NDArray[np.floating], statistic: Statistic, resamples: int, seed: int) -> NDArray[np.floating]:
    generator = np.random.default_rng(seed)
    at_once = max(1, _VALUES_AT_ONCE // len(values))
    sizes = [min(at_once, resamples - done) for done in range(0, resamples, at_once)]
    images = np.int32(len(values))
    draws = (generator.integers(images, size=(size, len(values)), dtype=np.int32) for size in sizes)
    return np.concatenate([statistic(values[drawn]) for drawn in draws])


def _left_out(values: NDArray[np.floating], statistic: Statistic) -> NDArray[np.floating]:
    blocks = np.array_split(np.arange(len(values)), min(len(values), 200))
    return np.array([statistic(np.delete(values, block)[None])[0] for block in blocks])


def _corrected_tails(
    tails: NDArray[np.floating], drawn: NDArray[np.floating], seen: float, left_out: NDArray[np.floating]
) -> NDArray[np.floating]:
    from scipy.special import ndtr, ndtri

    # sums in another order differ in their last digit, which must not decide what is a tie
    tied = np.isclose(drawn, seen, rtol=1e-9, atol=1e-12)
    below = ((drawn < seen) & ~tied).mean() + tied.mean() / 2
    # never quite 0 or 1: a statistic outside all its resamples still needs a finite correction
    bias = ndtri(np.clip(below, 0.5 / len(drawn), 1 - 0.5 / len(drawn)))
    spread = left_out.mean() - left_out
    scale = (spread**2).sum() ** 1.5
    skew = (spread**3).sum() / (6 * scale) if scale > 0 else 0.0
    moved = bias + ndtri(tails)
    return np.asarray(ndtr(bias + moved / (1 - skew * moved)))


def tail_of(level: float) -> float:
    """The chance that an interval of this level lies wholly to one side of the true value."""
    if not 0 < level < 1:
        raise BadInput(f"level should lie between 0 and 1, such as 0.95, got {level}")
    return (1 - level) / 2


def _checked_counts(right: int | Counts, total: int | Counts) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    good, count = np.broadcast_arrays(np.asarray(right, dtype=float), np.asarray(total, dtype=float))
    if (good < 0).any() or (good > count).any():
        raise BadInput(f"right should lie between 0 and total, got {right} of {total}")
    return good, count


DRAWS = 20_000
_AT_ONCE = 200_000  # normal numbers in memory together: 1.6 MB


class SimultaneousDifference(NamedTuple):
    """One of several differences, told so that all of them hold together."""

    difference: float
    interval: tuple[float, float]  # leaves out 0 exactly where p is below one minus its level
    p: float  # the chance that any of the differences were so many standard errors from 0, if all were 0


def simultaneous_differences(
    estimates: NDArray[np.floating],
    covariance: NDArray[np.floating],
    *,
    level: float = 0.95,
    degrees_of_freedom: float | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[SimultaneousDifference]:
    """Intervals that all hold at once `level` of the time, with p-values from the same draws (single-step max-T).

    The largest deviation among all estimates, in standard errors, is drawn as often as `draws` from their joint
    distribution: normal, or Student's t with `degrees_of_freedom` (Hothorn, Bretz & Westfall, 2008). Intervals reach as many
    standard errors as it stays below `level` of the time; a p-value is the share of draws, the one seen among them, in which
    it is at least as large. What varies together costs less than by Bonferroni's or Holm's correction. An estimate without a
    variance has an interval of no width, and p is 1 where it is 0, else as small as draws allow. The same seed gives the
    same numbers.

    >>> found = simultaneous_differences(np.array([0.3, 0.02]), np.diag([0.01, 0.01]))
    >>> [round(bound, 2) for bound in found[0].interval]  # 0.3 -+ 2.24 standard errors, for two questions
    [0.08, 0.52]
    >>> found[0].p < 0.05 < found[1].p
    True
    """
    tail_of(level)
    if estimates.ndim != 1 or covariance.shape != (len(estimates), len(estimates)):
        raise BadInput(
            f"covariance should be (estimates, estimates), got {covariance.shape} for estimates of {estimates.shape}"
        )
    if degrees_of_freedom is not None and degrees_of_freedom <= 0:
        raise BadInput(f"degrees of freedom should lie above 0, got {degrees_of_freedom}")
    if draws < 1 / (1 - level):
        raise BadInput(f"{draws} draws are too few to tell what happens less than once in {1 / (1 - level):.0f} times")
    if not len(estimates):
        return []
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = errors > 0
    deviations = np.divide(np.abs(estimates), errors, out=np.where(estimates == 0, 0.0, np.inf), where=known)
    largest = np.sort(_largest_deviations(covariance[np.ix_(known, known)], degrees_of_freedom, draws, seed))
    at_least = draws - np.searchsorted(largest, deviations, side="left")
    # the smallest deviation that is so rare among the draws: an interval that reaches just as far still holds 0
    rare = int(np.ceil(round((1 - level) * (draws + 1), 6))) - 2
    reach = errors * largest[min(draws - 1 - rare, draws - 1)]
    lows, highs = estimates - reach, estimates + reach
    return [
        SimultaneousDifference(float(value), (float(low), float(high)), (float(count) + 1) / (draws + 1))
        for value, low, high, count in zip(estimates, lows, highs, at_least, strict=True)
    ]


def _largest_deviations(
    covariance: NDArray[np.floating], degrees: float | None, draws: int, seed: int
) -> NDArray[np.floating]:
    """The largest of the estimates' deviations from the true values in standard errors, (draws,)."""
    generator, count = np.random.default_rng(seed), len(covariance)
    if not count:
        return np.zeros(draws)
    errors = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(errors, errors))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    at_once = max(1, _AT_ONCE // count)
    sizes = [min(at_once, draws - done) for done in range(0, draws, at_once)]
    drawn = (generator.standard_normal((size, count)) @ root.T for size in sizes)
    # estimate by estimate: the largest of a few in each of many rows takes as long as to draw them
    largest = np.concatenate([np.abs(np.ascontiguousarray(some.T)).max(axis=0) for some in drawn])
    if degrees is not None:  # a common denominator, as of one estimate of variance
        largest /= np.sqrt(generator.chisquare(degrees, size=draws) / degrees)
    return np.asarray(largest)
