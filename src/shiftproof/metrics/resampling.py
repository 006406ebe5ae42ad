"""Confidence intervals by leaving clusters of images out in turn (jackknife), or by drawing them again (bootstrap).

Jackknife: a metric is recomputed without each cluster, or without each of some tens of blocks of clusters where there are
more: what it changes by is that cluster's share in it, and from these shares come its standard error, its skew and how many
cases it rests on. A few tens of evaluations do, where drawing again takes a thousand; and Student's t allows for the few.

Bootstrap: for numbers made of many means over the same images, which are drawn again jointly for all of them; images
that are one cluster, such as the frames of a clip, are drawn together: see `clusters` of `resampled_means`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, bca_interval, numbered, student_quantile, tail_of

Statistic: TypeAlias = Callable[[NDArray[np.bool_]], float]
"""The number, given which images are kept, (images,)."""

StatisticWithout: TypeAlias = Callable[[NDArray[np.intp]], float]
"""The number without some images, given their rows in rising order."""

StatisticsWithout: TypeAlias = Callable[[Sequence[NDArray[np.intp]]], NDArray[np.floating]]
"""Several numbers without some images, for each of several choices of these, (choices, numbers); rows as above."""

BLOCKS = 60
"""Evaluations of a statistic that an interval may cost."""

UNSEEN = 0.6
"""Cases, at one end or the other, that may be missing from those seen away from the nearer end: by simulated coverage."""


@dataclass(frozen=True)
class Shares:
    """What each block of clusters of one sample adds to a number's distance from the true value."""

    changes: NDArray[np.floating]  # (blocks,)
    sizes: NDArray[np.integer]  # images of each block
    blocks: NDArray[np.integer]  # their numbers, which two samples may share
    cases: float  # clusters of equal size that would weigh as much

    @property
    def images(self) -> int:
        return int(self.sizes.sum())

    @property
    def centred(self) -> NDArray[np.floating]:
        return np.asarray(self.changes - self.changes.mean())

    @property
    def variance(self) -> float:
        blocks = len(self.sizes)
        return float((self.centred**2).sum()) * blocks / (blocks - 1)

    @property
    def third(self) -> float:
        """Third moment of the number, of which its skew is made."""
        blocks = len(self.sizes)
        return float((self.centred**3).sum()) * blocks**2 / ((blocks - 1) * max(blocks - 2, 1))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the variance: blocks of equal size that would weigh as much, less one."""
        return max(float(self.images**2 / (self.sizes**2).sum()) - 1, 1.0)


def jackknife_interval(
    statistic: Statistic,
    clusters: Groups,
    *,
    second: NDArray[np.bool_] | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    blocks: int = BLOCKS,
) -> tuple[float, float] | None:
    """Interval of a number of images by leaving out clusters; None where too few clusters can tell it.

    Images marked `second` are a sample of their own, such as the out-of-distribution ones; a cluster may have images in
    both. The statistic is computed at most `blocks` times, and once of all images. A number that lies between two `bounds`
    has Wilson's interval, at as many independent cases as would tell as much; near an end, where few clusters make up all of
    its distance from it, its variance is raised (see `auroc_interval`). Others have Student's, corrected for skew (Hall,
    1992). None of fewer than `LEAST_CLUSTERS` clusters of either sample, where the number does not exist without some of
    them, and without bounds where leaving out changes nothing.

    >>> values = np.arange(40) % 4 / 4
    >>> low, high = jackknife_interval(lambda kept: float(values[kept].mean()), np.arange(40))
    >>> round(low, 2), round(high, 2)  # 0.375 +- 2.02 * 0.045
    (0.28, 0.47)
    """
    without = leaving_out(statistic, len(clusters))
    return interval_without(without, clusters, second=second, bounds=bounds, level=level, blocks=blocks)


def leaving_out(statistic: Statistic, images: int) -> StatisticWithout:
    """The same number, told which images are gone instead of which are kept."""
    kept = np.ones(images, bool)

    def without(gone: NDArray[np.intp]) -> float:
        kept[gone] = False
        number = statistic(kept)
        kept[gone] = True
        return number

    return without


def interval_without(
    without: StatisticWithout,
    clusters: Groups,
    *,
    second: NDArray[np.bool_] | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    blocks: int = BLOCKS,
) -> tuple[float, float] | None:
    """The same for a number that is told which images are left out, which are few beside those that are kept."""
    tail_of(level)
    found = shares_without(without, clusters, second=second, blocks=blocks)
    return None if found is None else interval_of_shares(*found, bounds=bounds, level=level)


def shares_without(
    without: StatisticWithout, clusters: Groups, *, second: NDArray[np.bool_] | None = None, blocks: int = BLOCKS
) -> tuple[float, list[Shares]] | None:
    """The number itself and what each block of clusters adds to it, of which its interval of any level is made."""

    def each_without(choices: Sequence[NDArray[np.intp]]) -> NDArray[np.floating]:
        return np.array([[without(gone)] for gone in choices])

    (found,) = _shares_of_each(each_without, clusters, second=second, blocks=blocks) or (None,)
    return found


def intervals_without(
    without: StatisticsWithout,
    clusters: Groups,
    *,
    second: NDArray[np.bool_] | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    blocks: int = BLOCKS,
) -> list[tuple[float, float] | None] | None:
    """As `interval_without`, of several numbers that are computed together; None where there are too few clusters."""
    tail_of(level)
    found = _shares_of_each(without, clusters, second=second, blocks=blocks)
    if found is None:
        return None
    return [None if one is None else interval_of_shares(*one, bounds=bounds, level=level) for one in found]


def _shares_of_each(
    without: StatisticsWithout, clusters: Groups, *, second: NDArray[np.bool_] | None, blocks: int
) -> list[tuple[float, list[Shares]] | None] | None:
    """Of each number as in `shares_without`."""
    groups = numbered(clusters)
    count = int(groups.max(initial=-1)) + 1
    samples = [np.ones(len(groups), bool)] if second is None else [~second, second]
    held = [np.bincount(groups[sample], minlength=count) > 0 for sample in samples]
    if any(int(one.sum()) < LEAST_CLUSTERS for one in held):
        return None
    shared = second is not None and bool((held[0] & held[1]).any())
    most = blocks // len(samples)
    (seen,) = without([np.empty(0, np.intp)])
    places = _blocks_of(count, most)[groups] if shared else None
    shares: list[list[Shares | None]] = []  # by sample, and in it by number
    for sample, one in zip(samples, held, strict=True):
        own = groups if second is None else (np.cumsum(one) - 1)[groups[sample]]
        which = _blocks_of(int(own.max()) + 1, most)[own] if places is None else places[sample]
        shares.append(_left_out(without, seen, sample, which, own))
    found: list[tuple[float, list[Shares]] | None] = []
    for number, all_of_it in zip(seen.tolist(), zip(*shares, strict=True), strict=True):
        there = [one for one in all_of_it if one is not None]
        is_known = np.isfinite(number) and len(there) == len(all_of_it)
        found.append((number, [_together(*there)] if shared else there) if is_known else None)
    return found


def cluster_mean_interval(
    values: NDArray[np.floating],
    *,
    clusters: Groups | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean of values; None where the images cannot tell it.

    That is of too few clusters, of values that have no end, and where nothing varies and no bounds are known. Student's t by
    cluster, corrected for skew (Hall, 1992), as of losses and distances that are mostly small and sometimes large. Of shares
    between two `bounds` it is as in `jackknife_interval`. No image is drawn again.

    >>> low, high = cluster_mean_interval(np.array([0.0, 1.0] * 50))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.98 * 0.05
    (0.4, 0.6)
    >>> losses = np.array([0.1] * 25 + [5.0])  # one image makes up most of the loss: a larger one may be missing
    >>> low, high = cluster_mean_interval(losses)
    >>> bool(high - losses.mean() > 2 * (losses.mean() - low))
    True
    """
    found = mean_shares(values, clusters)
    return None if found is None else interval_of_shares(found[0], [found[1]], bounds=bounds, level=level)


def mean_shares(values: NDArray[np.floating], clusters: Groups | None = None) -> tuple[float, Shares] | None:
    """The mean and what each cluster adds to it; None of too few clusters, and of values that have no end."""
    if values.ndim != 1 or not len(values):
        raise BadInput(f"values should be (images,) of at least one image, got shape {values.shape}")
    groups = np.arange(len(values)) if clusters is None else numbered(clusters)
    sizes = np.bincount(groups)
    if len(sizes) < LEAST_CLUSTERS:
        return None
    seen = float(values.mean(dtype=float))
    if not np.isfinite(seen):
        return None
    sums = np.bincount(groups, values - seen) / len(values)
    return seen, Shares(sums, sizes, np.arange(len(sizes)), float(sizes.sum() ** 2 / (sizes**2).sum()))


def cautious_interval(seen: float, shares: Shares, *, level: float = 0.95) -> tuple[float, float]:
    """Interval that errs on neither side more often than it says, where a few images make up most of the spread.

    Student's, with its correction for skew and without, whichever reaches further at either end. A variance that rests on
    few large shares is itself uncertain, so its degrees of freedom are those of as many images over their kurtosis less one
    (Box, 1953, has twice as many): by simulated errors at 50 to 5000 images. Of no spread it has no width.

    >>> even = mean_shares(np.array([0.0, 1.0] * 50))
    >>> low, high = cautious_interval(*even)
    >>> round(low, 1), round(high, 1)
    (0.4, 0.6)
    """
    squares = shares.centred**2
    if shares.variance <= 1e-24:
        return seen, seen
    heavy = len(squares) * float((squares**2).sum()) / float(squares.sum()) ** 2
    degrees = max(1.0, min(shares.degrees, len(squares) / max(heavy - 1, 1e-9)))
    error = float(np.sqrt(shares.variance))
    reach, skew = student_quantile(1 - tail_of(level), degrees), shares.third / error**3
    return seen - error * max(reach, _unskewed(reach, skew)), seen - error * min(-reach, _unskewed(-reach, skew))


def interval_of_shares(
    seen: float,
    shares: Sequence[Shares],
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of a number from what each block of clusters adds to it, in samples that have none in common."""
    tail = tail_of(level)
    if bounds is not None:
        return _within(seen, shares, bounds, tail)
    variances = [one.variance for one in shares]
    variance = sum(variances)
    if variance <= 1e-24:
        return None
    degrees = variance**2 / sum(part**2 / one.degrees for part, one in zip(variances, shares, strict=True))
    quantile, error = student_quantile(1 - tail, degrees), float(np.sqrt(variance))
    skew = sum(one.third for one in shares) / error**3
    return seen - error * _unskewed(quantile, skew), seen - error * _unskewed(-quantile, skew)


def _within(seen: float, shares: Sequence[Shares], bounds: tuple[float, float], tail: float) -> tuple[float, float]:
    """Wilson's interval of a number between two bounds, at as many cases as its variance is that of."""
    low, width = bounds[0], bounds[1] - bounds[0]
    share = min(max((seen - low) / width, 0.0), 1.0)
    spread = share * (1 - share)
    if spread < 1e-12:
        independent = min(one.cases for one in shares)
        quantile = student_quantile(1 - tail, max(independent - 1, 1.0))
    else:
        raised = [_raised(one, one.variance / width**2, share, width) for one in shares]
        independent = spread / max(sum(raised), 1e-12)
        squares = sum(part**2 / one.degrees for part, one in zip(raised, shares, strict=True))
        quantile = student_quantile(1 - tail, sum(raised) ** 2 / squares)
    weight = independent + quantile**2
    middle = (share * independent + quantile**2 / 2) / weight
    half = quantile * float(np.sqrt(spread * independent + quantile**2 / 4)) / weight
    return low + width * max(0.0, middle - half), low + width * min(1.0, middle + half)


def _raised(one: Shares, variance: float, share: float, width: float) -> float:
    """The variance of a share, raised by what may be missing from the few blocks that make up its distance from an end."""
    weights = one.sizes / one.images
    of_block = share + one.centred / width / weights  # what the number would be, of such blocks alone
    away = np.maximum(of_block if share < 0.5 else 1 - of_block, 0.0) * weights
    squares = float((away**2).sum())
    seen_away = float(away.sum()) ** 2 / squares if squares > 0 else 0.0
    # a case at one end or the other; between images that tell alike and clusters that tell as one
    outright = share * (1 - share) / float(np.sqrt(one.images * one.cases))
    missing = UNSEEN / (UNSEEN + seen_away)
    return max(variance, variance + missing * (outright - variance))


def _unskewed(deviation: float, skew: float) -> float:
    """The deviation, in standard errors, that is as rare for a number of this skew as the one given is without any."""
    if abs(skew) < 1e-6:
        return deviation
    return float(3 / skew * (np.cbrt(1 + skew * (deviation - skew / 6)) - 1))


@lru_cache(8)
def _blocks_of(clusters: int, most: int) -> NDArray[np.integer]:
    """The block each cluster is left out with, (clusters,): all alone where they are few, else dealt out evenly."""
    if clusters <= most:
        return np.arange(clusters)
    blocks = (np.arange(clusters) * most // clusters).astype(np.min_scalar_type(most))
    # dealt at random, since neighbours are often alike; the same every time
    np.random.default_rng(0).shuffle(blocks)
    blocks.flags.writeable = False  # the same for every number of as many clusters
    return blocks


def _left_out(
    without: StatisticsWithout,
    seen: NDArray[np.floating],
    sample: NDArray[np.bool_],
    blocks: NDArray[np.integer],
    clusters: Groups,
) -> list[Shares | None]:
    """Shares of the blocks of one sample in each number; None where it does not exist without one of them."""
    sizes = np.bincount(blocks)
    if sizes.max() == len(blocks):
        return [None] * len(seen)
    by_block = np.flatnonzero(sample)[np.argsort(blocks, kind="stable")]
    filled = np.flatnonzero(sizes)
    left = without([gone for gone in np.split(by_block, np.cumsum(sizes)[:-1]) if len(gone)])
    changes = (seen - left) * (1 - sizes[filled] / len(blocks))[:, None]
    of_cluster = np.bincount(clusters)
    cases = float(len(clusters) ** 2 / (of_cluster**2).sum())
    return [
        Shares(of_number, sizes[filled], filled, cases) if np.isfinite(of_number).all() else None
        for of_number in np.ascontiguousarray(changes.T)
    ]


def _together(first: Shares, second: Shares) -> Shares:
    """Shares of blocks that two samples have in common: what a block adds in both is one unit."""
    blocks, places = np.unique(np.append(first.blocks, second.blocks), return_inverse=True)
    changes = np.bincount(places, np.append(first.centred, second.centred)).astype(np.float64)
    sizes = np.bincount(places, np.append(first.sizes, second.sizes)).astype(np.int64)
    return Shares(changes, sizes, blocks, min(first.cases, second.cases))


Means = NDArray[np.floating]
"""Means of several columns over some images, (drawings, columns)."""

RESAMPLES = 1000
_BLOCKS = 200
_COUNTS_AT_ONCE = 1_000_000  # how often each image was drawn, in memory together: 4 to 8 MB


class Resampled(NamedTuple):
    """Means over the images themselves, over bootstrap samples, and with a part left out."""

    seen: Means  # (1, columns)
    drawn: Means  # (resamples, columns)
    left_out: Means  # (blocks, columns)


def resampled_means(
    values: NDArray[np.generic], *, clusters: Groups | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Resampled:
    """Column means of values (images, columns), as seen and over bootstrap samples of the rows.

    A row is drawn whole, so columns keep what they have in common; two tables of the same images in the same order are drawn
    alike for the same seed. Rows of one cluster are drawn together.

    >>> pairs = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> means = resampled_means(pairs)
    >>> bool(np.allclose(means.drawn.sum(axis=1), 1))  # each row adds up to one, so every drawing does
    True
    """
    if values.ndim != 2 or not len(values):
        raise BadInput(f"values should be (images, columns) of at least one image, got shape {values.shape}")
    # sums of up to 2^24 zeros and ones are exact in single precision
    exact = values.dtype == np.bool_ and len(values) < 2**24
    table: NDArray[np.floating] = values.astype(np.float32 if exact else np.float64)
    sizes = np.ones(len(table), table.dtype)
    if clusters is not None:
        table, sizes = _summed(table, clusters)
    cases = len(table)
    total = np.ones((1, cases), table.dtype) @ table
    drawn = [_divided(counts @ table, counts @ sizes) for counts in _drawn_counts(cases, resamples, seed, table.dtype)]
    edges = np.linspace(0, cases, min(cases, _BLOCKS) + 1).astype(int)
    inside, images = np.add.reduceat(table, edges[:-1], axis=0), np.add.reduceat(sizes, edges[:-1])
    # of one image nothing is left when it is left out
    kept = np.maximum(sizes.sum() - images, 1)
    again = np.concatenate(drawn) if drawn else np.empty((0, table.shape[1]))
    return Resampled(_divided(total, sizes.sum()[None]), again, _divided(total - inside, kept))


def _summed(table: NDArray[np.floating], clusters: Groups) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Sums of the rows of each cluster, (clusters, columns), and how many rows they are, (clusters,)."""
    _, groups, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    order = np.argsort(groups, kind="stable")
    starts = np.cumsum(sizes) - sizes
    return np.add.reduceat(table[order], starts, axis=0), sizes.astype(table.dtype)


def _divided(sums: NDArray[np.floating], images: NDArray[np.floating]) -> Means:
    return np.asarray(sums.astype(float) / images.astype(float)[:, None])


def interval_of(
    seen: NDArray[np.floating],
    drawn: NDArray[np.floating],
    left_out: NDArray[np.floating],
    *,
    level: float = 0.95,
    cases: int | None = None,
) -> tuple[float, float] | None:
    """BCa interval of one number made of resampled means; None where the images cannot tell it.

    For fewer than `LEAST_CLUSTERS` clusters, where the number does not exist in some drawing, and where it is the same
    in all of them: of images that are all alike, drawing again learns nothing about others. `cases` are the images or
    clusters that were drawn from, where they are more than the blocks that were left out.

    >>> means = resampled_means(np.array([[False], [True]] * 50))
    >>> low, high = interval_of(*(part[:, 0] for part in means))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.96 * 0.05
    (0.4, 0.6)
    """
    cases = len(left_out) if cases is None else cases
    if cases < LEAST_CLUSTERS or not (np.isfinite(drawn).all() and np.isfinite(left_out).all()) or np.ptp(drawn) == 0:
        return None
    return bca_interval(float(seen[0]), drawn, left_out, level=level, cases=cases)


def left_out_interval(
    seen: NDArray[np.floating],
    left_out: NDArray[np.floating],
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    cases: int | None = None,
) -> tuple[float, float] | None:
    """Interval of one number from its values with a part left out; see `jackknife_interval`. No drawing is needed.

    For ratios and shares, whose drawings have long tails. None for too few clusters, where the number does
    not exist without some of them and, without bounds, where it is the same without any of them.

    >>> means = resampled_means(np.array([[False], [True]] * 50), resamples=0)
    >>> low, high = left_out_interval(means.seen[:, 0], means.left_out[:, 0], bounds=(0, 1))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.98 * 0.05
    (0.4, 0.6)
    """
    count = len(left_out) if cases is None else cases
    if count < LEAST_CLUSTERS or not np.isfinite(left_out).all():
        return None
    blocks = len(left_out)
    changes = (float(seen[0]) - left_out) * (1 - 1 / blocks)
    shares = Shares(changes, np.ones(blocks, int), np.arange(blocks), float(count))
    return interval_of_shares(float(seen[0]), [shares], bounds=bounds, level=level)


def _drawn_counts(images: int, resamples: int, seed: int, dtype: np.dtype[np.floating]) -> Iterator[NDArray[np.floating]]:
    """How often each image is drawn, (drawings, images), in parts that fit in memory."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _COUNTS_AT_ONCE // images)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        places = generator.integers(images, size=(size, images))
        places += images * np.arange(size)[:, None]
        yield np.bincount(places.ravel(), minlength=size * images).reshape(size, images).astype(dtype)
