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
from shiftproof.metrics.likely_wrong import Cells, LikelyWrong, Numbers, Places, fit_likely_wrong

Table = Numbers
"""Results, (images, cells): 1 wrong, 0 right, nan where not run."""


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
    misses: Numbers  # (terms, 2 pairs): two neighbouring pairs' shares in the estimate
    cells: Places  # (terms, 2 pairs): their cells
    shares: Numbers  # (terms,): what a term's squared difference counts
    possible: tuple[Numbers, Numbers]  # (cells,) each: errors if all that was not run were right, or wrong

    def weighted(self, weights: Numbers, *, level: float = 0.95) -> Estimate:
        """The sum of weight times error over cells, with its interval: mCE, a CE, a mean error, one cell.

        The interval is cut where the results already known leave no room.
        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise BadInput(f"weights should be one for each of {len(self.values)} cells, got shape {weights.shape}")
        shares = self.misses * weights[self.cells]
        spread = float(np.sqrt((self.shares * (shares[:, 0] - shares[:, 1]) ** 2).sum()))
        half = normal_quantile((1 + level) / 2) * spread
        ends = np.stack(self.possible) * weights
        least, most = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
        value = float(self.values @ weights)
        low, middle, high = (min(max(end, least), most) for end in (value - half, value, value + half))
        return Estimate(middle, low, high)

    def each(self, *, level: float = 0.95) -> list[Estimate]:
        """Every cell by itself."""
        return [self.weighted(row, level=level) for row in np.eye(len(self.values))]


def sampled_cells(
    wrong: Table, rounds: Sequence[Round], folds: Places, features: Numbers, layout: Cells, weights: Numbers
) -> SampledCells:
    """The errors of the full set from the pairs of these rounds.

    Other results in the table count only where they make a cell whole; its error is then simply known.
    `folds` are the images' groups that were drawn independently, (images,). `weights` (cells,) are those of the sum that
    matters most: rounds are joined to be best for it.
    """
    images, cells = wrong.shape
    known = np.zeros(wrong.shape, dtype=bool)
    parts = []
    for one in rounds:
        truth = wrong[one.images, one.cells]
        if np.isnan(truth).any():
            raise BadInput(f"{int(np.isnan(truth).sum())} of {len(one)} pairs of a round have no result yet")
        guess = _guesses(wrong, known, one, folds, features, layout)
        miss = (truth - guess[one.images, one.cells]) / one.chance / images
        values = np.where(known, wrong, guess).sum(axis=0) / images + np.bincount(one.cells, miss, cells)
        guessed = np.clip(guess[one.images, one.cells], 0.02, 0.98)
        promised = (1 - one.chance) * guessed * (1 - guessed) * (weights[one.cells] / one.chance / images) ** 2
        parts.append(_Part(values, one, miss, float(promised.sum())))
        known[one.images, one.cells] = True
    known |= ~np.isnan(wrong).any(axis=0)
    wrong_known = np.where(known, wrong, 0.0).sum(axis=0) / images
    return _joined(parts, folds, (wrong_known, wrong_known + (~known).sum(axis=0) / images))


class _Part(NamedTuple):
    values: Numbers  # (cells,)
    drawn: Round
    misses: Numbers  # (pairs,)
    variance: float  # promised by the guesses


def _guesses(wrong: Table, known: NDArray[np.bool_], one: Round, folds: Places, features: Numbers, layout: Cells) -> Numbers:
    """Chances of being wrong that know nothing of this round in the image's own fold, (images, cells)."""
    seen = np.where(known, wrong, np.nan)
    before = np.nonzero(known)
    guess = np.empty(wrong.shape)
    for fold in np.unique(folds):
        rows, others = folds == fold, folds[one.images] != fold
        images = np.concatenate([before[0], one.images[others]])
        cells = np.concatenate([before[1], one.cells[others]])
        fitted: LikelyWrong = fit_likely_wrong(images, cells, wrong[images, cells], features, layout)
        guess[rows] = fitted.chance(features[rows], seen[rows])
    return guess


def _joined(parts: Sequence[_Part], folds: Places, possible: tuple[Numbers, Numbers]) -> SampledCells:
    promised = np.array([part.variance for part in parts])
    exact = promised == 0  # a round that left nothing out
    trust = exact / exact.sum() if exact.any() else 1 / promised / (1 / promised).sum()
    misses, cells, shares = [], [], []
    for part, weight in zip(parts, trust, strict=True):
        drawn = part.drawn
        fold = folds[drawn.images]
        pairs = np.flatnonzero(fold[1:] == fold[:-1])
        pairs = np.stack([pairs, pairs + 1], axis=1)
        left = 1 - drawn.chance[pairs].mean(axis=1)
        # half the squared difference of neighbours is a variance; one term for each pair drawn
        shares.append(weight**2 * left / 2 * len(drawn) / max(len(pairs), 1))
        misses.append(part.misses[pairs])
        cells.append(drawn.cells[pairs])
    values = (trust[:, None] * np.stack([part.values for part in parts])).sum(axis=0)
    whole = possible[0] == possible[1]
    places = np.concatenate(cells)
    return SampledCells(
        np.where(whole, possible[0], values),
        np.where(whole[places], 0.0, np.concatenate(misses)),
        places,
        np.concatenate(shares),
        possible,
    )
