"""How likely an image is to be answered wrongly in a cell, told from other images and from the same image's other cells.

A cell is a corruption at a severity. Two sources are joined: a logistic regression over cells and clean answers, shrunk so
that few results suffice; and for each image what its own results say, by a hidden score that kindred cells share (a
Gaussian process for answers right or wrong, by Laplace's approximation; Rasmussen & Williams, 2006, chapter 3).
Whoever uses these chances to estimate should not rely on their being true, only on their being made without the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Numbers = NDArray[np.floating]
Places = NDArray[np.integer]

# variances of the hidden score, in logits: shared by all cells of an image, by the cells of a kind, of a corruption, and by
# neighbouring severities; results hardly change when all of them are halved or doubled
_SHARED, _KIND, _CORRUPTION, _NEIGHBOUR = 3.0, 0.6, 2.0, 1.0
# prior variances of what cells differ in: level and slope of a corruption, and a cell's own
_LEVEL, _SLOPE, _OWN = 0.5, 0.1, 0.05
_ATTENUATION = np.pi / 8  # a logistic curve averaged over a normal score is nearly one flattened by this much variance
_IMAGES_AT_ONCE = 2000  # the matrices of so many images fit in memory together


@dataclass(frozen=True)
class Cells:
    """Which corruption and severity each cell is, and which corruptions are of a kind; all (cells,)."""

    corruption: Places
    severity: Places
    kind: Places

    def __post_init__(self) -> None:
        shapes = {np.shape(self.corruption), np.shape(self.severity), np.shape(self.kind)}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise BadInput("each cell needs one corruption, one severity and one kind")

    @classmethod
    def of_grid(cls, kinds: Places, severities: int) -> Cells:
        """Every corruption at every severity, corruption by corruption; `kinds` has one number for each corruption."""
        corruptions = len(kinds)
        corruption = np.repeat(np.arange(corruptions), severities)
        return cls(corruption, np.tile(np.arange(severities), corruptions), np.repeat(kinds, severities))

    def __len__(self) -> int:
        return len(self.corruption)

    @cached_property
    def slope(self) -> Numbers:
        """Severity, centred and scaled."""
        centred = self.severity - self.severity.mean()
        return np.asarray(centred / max(float(centred.std()), 1e-9))

    @cached_property
    def kinship(self) -> Numbers:
        """Covariance of an image's hidden score between cells, (cells, cells)."""
        steps = np.abs(self.severity[:, None] - self.severity)
        same = _same(self.corruption)
        return np.asarray(_SHARED + _KIND * _same(self.kind) + same * (_CORRUPTION + _NEIGHBOUR * 0.5**steps))

    @cached_property
    def precision(self) -> Numbers:
        """Inverse of the prior covariance of the cells' own levels, (cells, cells)."""
        lines = _same(self.corruption) * (_LEVEL + _SLOPE * np.outer(self.slope, self.slope))
        return np.linalg.inv(lines + _OWN * np.eye(len(self)))


@dataclass(frozen=True)
class LikelyWrong:
    """A fitted regression: chances of being wrong for any image with the same features."""

    cells: Cells
    common: Numbers  # intercept, severity, features, features times severity
    levels: Numbers  # (cells,)

    def chance(self, features: Numbers, seen: Numbers | None = None) -> Numbers:
        """The chance of being wrong, (images, cells).

        `seen` are results of these images, (images, cells): 1 wrong, 0 right, nan where not known.
        """
        slope, width = self.cells.slope, features.shape[1]
        level, rise = (self.common[place] + features @ self.common[2 + place * width :][:width] for place in (0, 1))
        logits = level[:, None] + rise[:, None] * slope + self.levels
        chance = _logistic(logits)
        if seen is None:
            return chance
        rows = np.flatnonzero(~np.isnan(seen).all(axis=1))
        for some in np.array_split(rows, -(-len(rows) // _IMAGES_AT_ONCE) or 1):
            if len(some):
                chance[some] = _after_seeing(logits[some], seen[some], self.cells.kinship)
        return chance


def fit_likely_wrong(images: Places, cells: Places, wrong: Numbers, features: Numbers, layout: Cells) -> LikelyWrong:
    """The regression fitted to results, one row for each: which image, which cell, wrong or not.

    Features are (all images, features), centred and scaled.
    """
    slope, own = layout.slope[cells], features[images]
    columns = np.column_stack([np.ones(len(wrong)), slope, own, own * slope[:, None]])
    width, count = columns.shape[1], len(layout)
    ridge = np.concatenate([[1e-3, 1e-2], np.full(width - 2, 0.1)])
    common, levels = np.zeros(width), np.zeros(count)
    curvature = np.zeros((width + count, width + count))
    for _ in range(25):
        chance = _logistic(columns @ common + levels[cells])
        spread, off = chance * (1 - chance) + 1e-6, wrong - chance
        scaled = columns * spread[:, None]
        curvature[:width, :width] = scaled.T @ columns + np.diag(ridge)
        mixed = np.stack([np.bincount(cells, column, count) for column in scaled.T])
        curvature[:width, width:], curvature[width:, :width] = mixed, mixed.T
        curvature[width:, width:] = layout.precision + np.diag(np.bincount(cells, spread, count))
        uphill = np.concatenate(
            [columns.T @ off - ridge * common, np.bincount(cells, off, count) - layout.precision @ levels]
        )
        step = np.linalg.solve(curvature, uphill)
        largest = float(np.abs(step).max())
        step *= min(1.0, 2 / max(largest, 1e-9))  # Newton's first steps may be too bold
        common, levels = common + step[:width], levels + step[width:]
        if largest < 1e-4:
            break
    return LikelyWrong(layout, common, levels)


def clean_features(right: NDArray[np.bool_], sureness: Numbers | None = None, classes: Places | None = None) -> Numbers:
    """What the clean answers tell of each image, (images, features): right or wrong, how sure, how good on its class.

    Sureness is only ranked, so that any score of the first class will do. An image's own answer is left out of its class's.
    """
    images = len(right)
    good = right - right.mean()
    columns = [good]
    if sureness is not None:
        ranks = (np.argsort(np.argsort(sureness, kind="stable"), kind="stable") + 0.5) / images
        scores = np.log(ranks / (1 - ranks)) / 1.8
        columns += [scores, good * scores]
    if classes is not None:
        _, groups = np.unique(classes, return_inverse=True)
        others = np.bincount(groups)[groups] - 1
        if others.max() > 0:
            columns.append(3 * (np.bincount(groups, good)[groups] - good) / (others + 3))
    return np.column_stack(columns)


def _after_seeing(logits: Numbers, seen: Numbers, kinship: Numbers) -> Numbers:
    """Chances given the images' own results, (images, cells); every image has at least one."""
    known = ~np.isnan(seen)
    most = int(known.sum(axis=1).max())
    places = np.argsort(~known, axis=1, kind="stable")[:, :most]  # the known ones first, then padding
    real = np.take_along_axis(known, places, axis=1)
    variance = np.diag(kinship)
    centre = logits * np.sqrt(1 + _ATTENUATION * variance)  # so that without results the chance is the regression's
    prior = np.take_along_axis(centre, places, axis=1)
    wrong = np.nan_to_num(np.take_along_axis(seen, places, axis=1))
    between = kinship[places[:, :, None], places[:, None, :]]
    score, pull = prior, np.zeros_like(prior)
    for _ in range(8):
        chance = _logistic(score)
        weight = np.where(real, chance * (1 - chance), 0.0)
        root = np.sqrt(weight)
        system = np.eye(most) + root[:, :, None] * between * root[:, None, :]
        target = weight * (score - prior) + np.where(real, wrong - chance, 0.0)
        moved = root * np.einsum("nij,nj->ni", between, target)
        pull = target - root * np.linalg.solve(system, moved[..., None])[..., 0]
        score = prior + np.einsum("nij,nj->ni", between, pull)
    towards = kinship[places].transpose(0, 2, 1)  # (images, cells, results)
    mean = centre + np.einsum("ncm,nm->nc", towards, pull)
    scaled = towards * root[:, None, :]
    told = np.einsum("ncm,nmc->nc", scaled, np.linalg.solve(system, scaled.transpose(0, 2, 1)))
    return _logistic(mean / np.sqrt(1 + _ATTENUATION * np.maximum(variance - told, 0)))


def _same(values: Places) -> NDArray[np.bool_]:
    return np.asarray(values[:, None] == values)


def _logistic(values: Numbers) -> Numbers:
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))
