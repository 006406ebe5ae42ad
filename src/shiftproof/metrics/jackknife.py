"""Intervals of any number of images that come in clusters, by leaving clusters out in turn.

The number is computed anew without each cluster, or without each of some tens of blocks of clusters where there are more:
what it changes by is that cluster's share in it, and from these shares come its standard error, its skew and how many cases
it rests on. A few tens of evaluations do, where drawing again takes a thousand; and Student's t allows for the few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, student_quantile, tail_of

Statistic: TypeAlias = Callable[[NDArray[np.bool_]], float]
"""The number, given which images are kept, (images,)."""

BLOCKS = 60
"""Evaluations of a statistic that an interval may cost."""

UNSEEN = 0.6
"""Cases, at one end or the other, that may be missing from those seen away from the nearer end: by simulated coverage."""


@dataclass(frozen=True)
class Shares:
    """What each block of clusters of one sample adds to a number's distance from the truth."""

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
    tail_of(level)
    number, groups = np.unique(clusters, return_inverse=True)
    samples = [np.ones(len(groups), bool)] if second is None else [~second, second]
    held = [np.bincount(groups[sample], minlength=len(number)) > 0 for sample in samples]
    if any(int(one.sum()) < LEAST_CLUSTERS for one in held):
        return None
    shared = second is not None and bool((held[0] & held[1]).any())
    most = blocks // len(samples)
    seen = statistic(np.ones(len(groups), bool))
    if not np.isfinite(seen):
        return None
    places = _blocks_of(len(number), most)[groups] if shared else None
    shares = []
    for sample, one in zip(samples, held, strict=True):
        own = (np.cumsum(one) - 1)[groups[sample]]
        which = _blocks_of(int(own.max()) + 1, most)[own] if places is None else places[sample]
        found = _left_out(statistic, seen, sample, which, own)
        if found is None:
            return None
        shares.append(found)
    return interval_of_shares(seen, [_together(*shares)] if shared else shares, bounds=bounds, level=level)


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
    if values.ndim != 1 or not len(values):
        raise BadInput(f"values should be (images,) of at least one image, got shape {values.shape}")
    groups = np.arange(len(values)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if len(sizes) < LEAST_CLUSTERS:
        return None
    seen = float(values.mean(dtype=float))
    if not np.isfinite(seen):
        return None
    sums = np.bincount(groups, values - seen) / len(values)
    shares = Shares(sums, sizes, np.arange(len(sizes)), float(sizes.sum() ** 2 / (sizes**2).sum()))
    return interval_of_shares(seen, [shares], bounds=bounds, level=level)


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


def _blocks_of(clusters: int, most: int) -> NDArray[np.integer]:
    """The block each cluster is left out with, (clusters,): all alone where they are few, else dealt out evenly."""
    if clusters <= most:
        return np.arange(clusters)
    # dealt at random, since neighbours are often alike; the same every time
    return np.random.default_rng(0).permutation(clusters) * most // clusters


def _left_out(
    statistic: Statistic, seen: float, sample: NDArray[np.bool_], blocks: NDArray[np.integer], clusters: Groups
) -> Shares | None:
    """Shares of the blocks of one sample; None where the number does not exist without one of them."""
    sizes = np.bincount(blocks)
    changes = np.zeros(len(sizes))
    by_block = np.flatnonzero(sample)[np.argsort(blocks, kind="stable")]
    ends = np.cumsum(sizes)
    kept = np.ones(len(sample), bool)
    for block in np.flatnonzero(sizes):
        if sizes[block] == len(blocks):
            return None
        rows = by_block[ends[block] - sizes[block] : ends[block]]
        kept[rows] = False
        without = statistic(kept)
        kept[rows] = True
        if not np.isfinite(without):
            return None
        changes[block] = (seen - without) * (1 - sizes[block] / len(blocks))
    of_cluster = np.bincount(clusters)
    filled = np.flatnonzero(sizes)
    return Shares(changes[filled], sizes[filled], filled, float(len(clusters) ** 2 / (of_cluster**2).sum()))


def _together(first: Shares, second: Shares) -> Shares:
    """Shares of blocks that two samples have in common: what a block adds in both is one case."""
    blocks, places = np.unique(np.append(first.blocks, second.blocks), return_inverse=True)
    changes = np.bincount(places, np.append(first.centred, second.centred)).astype(np.float64)
    sizes = np.bincount(places, np.append(first.sizes, second.sizes)).astype(np.int64)
    return Shares(changes, sizes, blocks, min(first.cases, second.cases))
