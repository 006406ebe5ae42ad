"""Errors of all cells from results of some (image, cell) pairs, for the full set: unbiased, with honest intervals.

Pairs come in rounds of known chances; what an earlier round found may decide the chances of a later one. Each round alone
estimates every cell: the mean over all images of what is known and of what is guessed for the rest, plus the round's misses
of the guess, each divided by its chance (the difference estimator). The guess for an image is fitted to earlier rounds and,
of this round, to the images of other folds, which are drawn by themselves; so it never knows the answer it is compared with
and may be as bad as it likes: a bad guess widens the interval and biases nothing.

Rounds are joined in proportion to the precision that the guesses promise, so the misses form a martingale and their
variances add (compare active inference; Zrnic & Candès, 2024). The images are those of the full set and nothing else is
random but the draw: with everything run the answer is exact and the interval has no width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import normal_quantile
from shiftproof.metrics.likely_wrong import Layout, Leads, Numbers, Places, fit_likely_wrong

_PROMISE = 10  # pairs that the guesses' own variance counts for beside what was found
_LEAST_SPREAD = 0.02  # a variance of 0 is never promised: the guess may be sure and mistaken


@dataclass(frozen=True)
class Round:
    """Pairs drawn together, in the order of the list they were drawn from; all (pairs,)."""

    images: Places
    cells: Places
    chance: Numbers  # of each pair, to be drawn in this round

    def __len__(self) -> int:
        return len(self.images)


class Estimate(NamedTuple):
    """A number of the full set, and the interval that holds it."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class SampledCells:
    """The error of every cell, and what is needed for the interval of any weighted sum of them."""

    values: Numbers  # (cells,); may fall a little outside 0 to 1 where few pairs were run
    possible: tuple[Numbers, Numbers]  # (cells,) each: errors if all that was not run were right, or wrong
    cells: Places  # (pairs,)
    misses: Numbers  # (pairs,): each pair's share in the estimate of its cell
    promised: Numbers  # (pairs,): the variance of that share, as the guesses have it
    between: Numbers  # (pairs - 1,): what the squared difference of two neighbouring pairs' shares counts as variance

    def weighted(self, weights: Numbers, *, level: float = 0.95) -> Estimate:
        """The sum of weight times error over cells, with its interval: mCE, a CE, a mean error, one cell.

        The interval is cut where the results already known leave no room.
        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise BadInput(f"weights should be one for each of {len(self.values)} cells, got shape {weights.shape}")
        half = normal_quantile((1 + level) / 2) * float(np.sqrt(self.variance(weights)))
        ends = np.stack(self.possible) * weights
        least, most = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
        value = float(self.values @ weights)
        low, middle, high = (min(max(end, least), most) for end in (value - half, value, value + half))
        return Estimate(middle, low, high)

    def variance(self, weights: Numbers) -> float:
        """Of the weighted sum: what neighbouring pairs' differences show.

        Of few pairs that is luck, so there the guesses' promise counts too.
        """
        found = float((self.between * np.diff(self.misses * weights[self.cells]) ** 2).sum())
        promised = self.promised * weights[self.cells] ** 2
        if not promised.any():
            return found
        effective = float(promised.sum() ** 2 / (promised**2).sum())
        return (effective * found + _PROMISE * float(promised.sum())) / (effective + _PROMISE)

    def each(self, *, level: float = 0.95) -> list[Estimate]:
        """Every cell by itself."""
        return [self.weighted(row, level=level) for row in np.eye(len(self.values))]


def sampled_cells(
    leads: Leads, rounds: Sequence[Round], folds: Places, features: Numbers, layout: Layout, weights: Numbers
) -> SampledCells:
    """The errors of the full set from the pairs of these rounds.

    Other results in the table count only where they make a cell whole; its error is then simply known.
    `folds` are the images' groups that were drawn independently, (images,). `weights` (cells,) are those of the sum that
    matters most: rounds are joined to be best for it.
    """
    images, cells = leads.shape
    wrong = np.asarray(leads < 0, dtype=float)
    known = np.zeros(leads.shape, dtype=bool)
    parts = []
    for one in rounds:
        missing = int(np.isnan(leads[one.images, one.cells]).sum())
        if missing:
            raise BadInput(f"{missing} of {len(one)} pairs of a round have no result yet")
        guess = _guesses(leads, known, one, folds, features, layout)
        guessed, share = guess[one.images, one.cells], 1 / one.chance / images
        misses = (wrong[one.images, one.cells] - guessed) * share
        values = np.where(known, wrong, guess).sum(axis=0) / images + np.bincount(one.cells, misses, cells)
        promised = (1 - one.chance) * np.maximum(guessed * (1 - guessed), _LEAST_SPREAD) * share**2
        parts.append(_Part(values, one, misses, promised))
        known[one.images, one.cells] = True
    known |= ~np.isnan(leads).any(axis=0)
    least = np.where(known, wrong, 0.0).sum(axis=0) / images
    return _joined(parts, (least, least + (~known).sum(axis=0) / images), folds, weights)


class _Part(NamedTuple):
    values: Numbers  # (cells,)
    drawn: Round
    misses: Numbers  # (pairs,)
    promised: Numbers  # (pairs,)

    def between(self, folds: Places) -> Numbers:
        """Half the squared difference of neighbours is a variance: one term for each pair drawn, (pairs - 1,)."""
        fold = folds[self.drawn.images]
        neighbours = fold[1:] == fold[:-1]
        left = 1 - (self.drawn.chance[1:] + self.drawn.chance[:-1]) / 2
        return np.asarray(neighbours * left / 2 * (len(self.drawn) / max(int(neighbours.sum()), 1)))


def mean_ratio(own: SampledCells, baseline: SampledCells, corruption: Places, *, level: float = 0.95) -> Estimate:
    """Mean over corruptions of own error over the baseline's, both estimated: mCE where the baseline is sampled too.

    `corruption` (cells,) numbers each cell's corruption. The two samples should be drawn with different seeds.
    """
    groups = np.unique(corruption, return_inverse=True)[1]
    errors, divisors = (np.bincount(groups, cells.values) for cells in (own, baseline))
    if (divisors <= 0).any():
        raise BadInput("the baseline makes no mistakes under a corruption, so nothing can be divided by them")
    corruptions = len(errors)
    # to first order a change of the baseline's error moves the ratio by minus ratio over error
    by_own, by_baseline = 1 / divisors / corruptions, errors / divisors**2 / corruptions
    variance = own.variance(by_own[groups]) + baseline.variance(by_baseline[groups])
    value, half = float((errors / divisors).mean()), normal_quantile((1 + level) / 2) * float(np.sqrt(variance))
    return Estimate(value, value - half, value + half)


def _guesses(
    leads: Leads, known: NDArray[np.bool_], one: Round, folds: Places, features: Numbers, layout: Layout
) -> Numbers:
    """Chances of being wrong that know nothing of this round in the image's own fold, (images, cells)."""
    seen = np.where(known, leads, np.nan)
    before = np.nonzero(known)
    guess = np.empty(leads.shape)
    for fold in np.unique(folds):
        rows, others = folds == fold, folds[one.images] != fold
        images = np.concatenate([before[0], one.images[others]])
        cells = np.concatenate([before[1], one.cells[others]])
        fitted = fit_likely_wrong(images, cells, leads[images, cells], features, layout)
        guess[rows] = fitted.chance(features[rows], seen[rows])
    return guess


def _joined(parts: Sequence[_Part], possible: tuple[Numbers, Numbers], folds: Places, weights: Numbers) -> SampledCells:
    variances = np.array([(part.promised * weights[part.drawn.cells] ** 2).sum() for part in parts])
    exact = variances == 0  # a round that left nothing out
    trust = exact / exact.sum() if exact.any() else 1 / variances / (1 / variances).sum()
    cells = np.concatenate([part.drawn.cells for part in parts])
    whole = possible[0] == possible[1]
    open_ = ~whole[cells]
    # a round's last pair and the next round's first are no neighbours
    between = [np.append(part.between(folds), 0.0) for part in parts]
    return SampledCells(
        values=np.where(whole, possible[0], trust @ np.stack([part.values for part in parts])),
        possible=possible,
        cells=cells,
        misses=open_ * np.concatenate([share * part.misses for share, part in zip(trust, parts, strict=True)]),
        promised=open_ * np.concatenate([share**2 * part.promised for share, part in zip(trust, parts, strict=True)]),
        between=np.concatenate(between)[:-1],
    )
