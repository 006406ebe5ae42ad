"""Is a model worse than another by more than a margin? One-sided tests at a bound, and the intervals that agree with them.

A test at a bound is asked both ways: how surely the value lies above it, and how surely below. A value is an accuracy, a
difference of two on the same images, or any number with a confidence interval of every level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import PairedCounts, paired_counts
from shiftproof.metrics.intervals import Groups, clopper_pearson, cluster_sizes, numbered, tail_of

Ends: TypeAlias = tuple[float, float] | None
"""Both ends of an interval, or None of too few clusters."""

NUISANCE_RISK = 0.001
"""Chance that the share of differing images lies outside the range searched for the worst; part of every p-value."""

NUISANCE_STEPS = 24
"""Shares of differing images, within that range, at which the chance of a result is computed."""

FAR = 6.5
"""Standard deviations beyond which numbers of differing images are left out: a chance of 1e-10."""

PRECISION = 1e-5
"""Of the limits of a difference: a thousandth of a point."""

UNSEEN_CLUSTERS = 5
"""Clusters without variation within them that are added to those with differing images, for the design effect."""


class OneSided(NamedTuple):
    """Two one-sided p-values at one bound."""

    above: float  # of the hypothesis that the value is at most the bound: small where it is surely above
    below: float  # of the hypothesis that it is at least the bound: small where it is surely below


UNKNOWN = OneSided(1.0, 1.0)


class Judged(Protocol):
    """A number that can be tested at any bound, and has an interval of any level that agrees with its tests."""

    def p(self, bound: float) -> OneSided: ...

    def interval(self, level: float) -> Ends: ...


@dataclass(frozen=True)
class ByInterval:
    """Tests of a number by its interval: a bound is rejected at the level at which the interval leaves it out."""

    ends: Callable[[float], Ends]  # by level

    def interval(self, level: float) -> Ends:
        return self.ends(level)

    def p(self, bound: float) -> OneSided:
        """Both p-values at a bound; 1 of too few clusters.

        >>> sample = ByInterval(lambda level: clopper_pearson(18, 20, level=level))
        >>> round(sample.p(0.7).above, 4)  # the chance of 18 of 20 and more at 0.7
        0.0355
        """
        if self.ends(0.9) is None:
            return UNKNOWN
        return OneSided(self._least_tail(lambda ends: ends[0] > bound), self._least_tail(lambda ends: ends[1] < bound))

    def _least_tail(self, excludes: Callable[[tuple[float, float]], bool]) -> float:
        """The smallest tail whose interval excludes the bound on this side; 1 where the narrowest does not."""

        def rejects(tail: float) -> bool:
            ends = self.ends(1 - 2 * tail)
            return ends is not None and excludes(ends)

        low, high = -30.0, float(np.log(0.499))
        if not rejects(float(np.exp(high))):
            return 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (low, middle) if rejects(float(np.exp(middle))) else (middle, high)
        return float(np.exp(high))


@dataclass(frozen=True)
class PairedShares:
    """Tests of the accuracy of a new model minus that of an old one on the same images.

    Exact and unconditional: ordered by the score statistic of paired shares (Tango, 1998), the chance of a result at least
    as extreme comes from the trinomial distribution, at the worst share of differing images within its own confidence
    interval (Berger & Boos, 1994). By the normal distribution, 268 images on which both models agree would pass at a margin
    of one point; where one image in a hundred is lost, that many agree in 6.8 % of all cases.

    Where images come in clusters, counts are those of as many independent images as would tell as much, rounded so that
    neither side gains.
    """

    least: PairedCounts  # rounded against the new model
    most: PairedCounts  # rounded in its favour

    @classmethod
    def of(
        cls, new_correct: NDArray[np.bool_], old_correct: NDArray[np.bool_], *, clusters: Groups | None = None
    ) -> PairedShares:
        """Tests of two models, row by row on the same images."""
        counts = paired_counts(new_correct, old_correct)
        if clusters is None or len(cluster_sizes(clusters)) == counts.images:
            return cls(counts, counts)
        images = max(1, int(effective_pairs(new_correct, old_correct, clusters)))
        shrink = images / counts.images
        return cls(_rounded(counts, images, shrink, up=False), _rounded(counts, images, shrink, up=True))

    def p(self, bound: float) -> OneSided:
        """Both p-values at a bound, such as -0.01 for a margin of one point.

        >>> agreed = PairedCounts(350, 0, 0, 50)
        >>> round(PairedShares(agreed, agreed).p(-0.01).above, 3)  # 0.99^400 is .018; .019 where more differ; .001 for that
        0.02
        """
        low, high = self.least, self.most
        return OneSided(
            tail_above(low.only_first, low.only_second, low.images, bound),
            tail_above(high.only_second, high.only_first, high.images, -bound),
        )

    def interval(self, level: float) -> tuple[float, float]:
        """The differences that are rejected on neither side, each at half of what `level` leaves."""
        low, high = self.least, self.most
        tail = tail_of(level)
        return (
            _limit(low.only_first, low.only_second, low.images, tail),
            -_limit(high.only_second, high.only_first, high.images, tail),
        )


def effective_pairs(new_correct: NDArray[np.bool_], old_correct: NDArray[np.bool_], clusters: Groups) -> float:
    """Independent images that would tell a difference as well as these in clusters: their number over the design effect.

    Few clusters with differing images tell little of how far those of a cluster differ together, so as many as
    `UNSEEN_CLUSTERS` in which all do are counted with them.
    """
    change = new_correct.astype(float) - old_correct
    groups = numbered(clusters)
    images, sizes = len(change), np.bincount(groups).astype(float)
    differing = int((np.bincount(groups, np.abs(change)) > 0).sum())
    as_one = float((sizes**2).sum()) / images  # the design effect where images of a cluster are always alike
    single = float(((change - change.mean()) ** 2).sum())
    by_cluster = float(((np.bincount(groups, change) - change.mean() * sizes) ** 2).sum()) * len(sizes) / (len(sizes) - 1)
    seen = by_cluster / single if single > 0 else as_one
    weight = UNSEEN_CLUSTERS / (UNSEEN_CLUSTERS + differing)
    return images / max(1.0, weight * as_one + (1 - weight) * seen)


def _rounded(counts: PairedCounts, images: int, shrink: float, *, up: bool) -> PairedCounts:
    """The counts of fewer images, whole numbers; `up` is in favour of the first model."""
    gained, lost = counts.only_first * shrink, counts.only_second * shrink
    only_first = math.ceil(gained - 1e-9) if up else math.floor(gained + 1e-9)
    only_second = min(math.floor(lost + 1e-9) if up else math.ceil(lost - 1e-9), images - only_first)
    both = min(math.floor(counts.both * shrink), images - only_first - only_second)
    return PairedCounts(both, only_first, only_second, images - only_first - only_second - both)


def tail_above(only_new: int, only_old: int, images: int, bound: float) -> float:
    """P-value of the hypothesis that the accuracy of the new model minus that of the old one is at most the bound."""
    if not -1 < bound < 1:
        return 0.0 if bound <= -1 else 1.0
    low, high = clopper_pearson(only_new + only_old, images, level=1 - NUISANCE_RISK)
    low = max(low, abs(bound))  # so many images differ at least where the difference is at the bound
    if high < low:
        return NUISANCE_RISK if bound < 0 else 1.0
    shares = np.linspace(np.sqrt(low), np.sqrt(high), NUISANCE_STEPS) ** 2
    spread = FAR * np.sqrt(images * shares * (1 - shares)) + FAR
    fewest, most = int((images * shares - spread).min()), int((images * shares + spread).max())
    differing = np.arange(max(0, fewest), min(images, most) + 1)
    seen = float(score(np.array(only_new), np.array(only_old), images, bound))
    needed = _least_new(differing, images, bound, seen)
    worst = max(_chance(needed, differing, images, bound, share) for share in shares.tolist())
    return min(1.0, worst + NUISANCE_RISK)


def _chance(needed: NDArray[np.integer], differing: NDArray[np.integer], images: int, bound: float, share: float) -> float:
    """The chance that as many as `needed`, by how many differ, are the new model's, where this share of images differs."""
    from scipy.special import betainc, gammaln, xlog1py, xlogy

    near = np.abs(differing - images * share) <= FAR * np.sqrt(images * share * (1 - share)) + FAR
    count, least = differing[near].astype(float), needed[near].astype(float)
    log_ways = gammaln(images + 1) - gammaln(count + 1) - gammaln(images - count + 1)
    of_count = np.exp(log_ways + xlogy(count, share) + xlog1py(images - count, -share))
    new = min(max((share + bound) / (2 * share), 0.0), 1.0) if share > 0 else 0.5  # of the differing ones, at the bound
    tails = np.where(least <= 0, 1.0, 0.0)
    inside = (least > 0) & (least <= count)
    tails[inside] = betainc(least[inside], count[inside] - least[inside] + 1, new)
    return float((of_count * tails).sum())


def _least_new(differing: NDArray[np.integer], images: int, bound: float, seen: float) -> NDArray[np.integer]:
    """By how many images differ, how many of them must be the new model's for a score of at least `seen`."""
    low, high = np.zeros(len(differing), np.int64), differing + 1  # one more than there are: none will do
    reached = seen - 1e-9 * max(1.0, abs(seen))
    while (open_ := low < high).any():
        middle = (low + high) // 2
        enough = score(middle, np.maximum(differing - middle, 0), images, bound) >= reached
        high, low = np.where(open_ & enough, middle, high), np.where(open_ & ~enough, middle + 1, low)
    return low


def score(only_new: NDArray[np.integer], only_old: NDArray[np.integer], images: int, bound: float) -> NDArray[np.floating]:
    """Tango's score: the difference less the bound, in standard errors as they are where the bound holds.

    >>> float(score(np.array(10), np.array(0), 100, 0.0).round(3))  # McNemar's, 10 / sqrt(10)
    3.162
    """
    if bound > 0:
        return -score(only_old, only_new, images, -bound)
    new, old = np.asarray(only_new, float), np.asarray(only_old, float)
    if (new < 0).any() or (old < 0).any():
        raise BadInput("counts of images cannot be negative")
    drop = -bound
    linear = (new + old) * (1 - drop) - 2 * drop * (images - old)
    # the share that only the new model has right, most likely where the bound holds
    share = (linear + np.sqrt(linear**2 + 8 * images * new * drop * (1 - drop))) / (4 * images)
    variance = images * (2 * np.maximum(share, 0.0) + drop * (1 - drop))
    moved = new - old + images * drop
    return np.asarray(np.divide(moved, np.sqrt(variance), out=np.zeros(moved.shape), where=variance > 0))


def _limit(only_new: int, only_old: int, images: int, tail: float) -> float:
    """The lower confidence limit of the difference: the bound at which its p-value is `tail`."""
    from scipy.special import ndtri

    aim = -float(ndtri(tail))

    def deviation(bound: float) -> float:
        """Standard normal deviation that is as rare as the result at the bound; falls with it."""
        return -float(ndtri(min(max(tail_above(only_new, only_old, images, bound), 1e-12), 1 - 1e-12)))

    low, high = -1.0, (only_new - only_old) / images
    at_low, at_high = 8.0, min(deviation(high), aim)
    guess = _score_limit(only_new, only_old, images, aim)
    for turn in range(40):
        if high - low < PRECISION:
            break
        found = deviation(guess)
        if found > aim:
            low, at_low = guess, found
        else:
            high, at_high = guess, found
        # the deviation is nearly linear in the bound; every third step halves instead, so that it always ends
        slope = (aim - at_low) / (at_high - at_low) if at_high < at_low else 0.5
        width = high - low
        guess = low + width * (0.5 if turn % 3 == 2 else min(max(slope, 1e-3), 1 - 1e-3))
    return low


def _score_limit(only_new: int, only_old: int, images: int, aim: float) -> float:
    """Tango's limit, by halving."""
    low, high = -1 + 1e-9, (only_new - only_old) / images
    for _ in range(40):
        middle = (low + high) / 2
        above = float(score(np.array(only_new), np.array(only_old), images, middle)) > aim
        low, high = (middle, high) if above else (low, middle)
    return low
