"""How likely an image is to be answered wrongly in a cell, told from other images and from the same image's other cells.

A cell is a corruption at a severity. What is told is the lead: how far the right class's score is ahead of the best other's,
negative where the answer is wrong. A logistic regression over cells and clean leads, shrunk so that few results suffice,
gives the chance; an image's own leads move it by how far they are from what was expected of them, since kindred cells go
up and down together (kriging). Whoever estimates with these chances should not rely on their being true, only on their
being made without the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Numbers = NDArray[np.floating]
Places = NDArray[np.integer]

Leads = NDArray[np.floating]
"""Score of the right class minus the best other's, (images, cells): below 0 is wrong, nan was not run."""

# correlation of an image's surprises, beyond its clean lead, between cells that are equally hard: any two, more within a
# kind, more within a corruption; as seen in EfficientNet-Lite0 under ImageNet-C, and half or double tells nearly the same
_ANY, _KIND, _CORRUPTION = 0.31, 0.18, 0.39
# prior variances of what cells differ in: level and slope of a corruption, and a cell's own
_LEVEL, _SLOPE, _OWN = 0.5, 0.1, 0.05
_LOGITS = 1.7  # a logistic curve is nearly a normal one of this width
_LEAST_DOUBT = 0.05  # variance that no number of results removes
_STRANGE = 3.0  # surprises beyond this are taken for this
_POOLED = 20  # results of other cells that count when the spread of a cell is estimated
_IMAGES_AT_ONCE = 2000  # the matrices of so many images fit in memory together


@dataclass(frozen=True)
class Layout:
    """Which corruption and severity each cell is, and which corruptions are of a kind; all (cells,)."""

    corruption: Places
    severity: Places
    kind: Places

    def __post_init__(self) -> None:
        shapes = {np.shape(self.corruption), np.shape(self.severity), np.shape(self.kind)}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise BadInput("each cell needs one corruption, one severity and one kind")

    @classmethod
    def of_grid(cls, kinds: Places, severities: int) -> Layout:
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
        """Correlation of an image's surprises between cells that are equally hard, (cells, cells)."""
        return np.asarray(_ANY + _KIND * _same(self.kind) + _CORRUPTION * _same(self.corruption))

    @cached_property
    def precision(self) -> Numbers:
        """Inverse of the prior covariance of the cells' own levels, (cells, cells)."""
        lines = _same(self.corruption) * (_LEVEL + _SLOPE * np.outer(self.slope, self.slope))
        return np.linalg.inv(lines + _OWN * np.eye(len(self)))


class Lines(NamedTuple):
    """A value for every image and cell, linear in severity and in the image's features."""

    common: Numbers  # intercept, severity, features, features times severity
    levels: Numbers  # (cells,)

    def at(self, features: Numbers, layout: Layout) -> Numbers:
        """(images, cells)."""
        width = features.shape[1]
        level, rise = (self.common[place] + features @ self.common[2 + place * width :][:width] for place in (0, 1))
        return np.asarray(level[:, None] + rise[:, None] * layout.slope + self.levels)


@dataclass(frozen=True)
class LikelyWrong:
    """A fitted regression: chances of being wrong for any image with the same features."""

    layout: Layout
    logits: Lines  # of being wrong
    leads: Lines  # that are expected
    spread: Numbers  # (cells,): standard deviation of leads about them
    scale: float  # standard deviation of all leads

    @property
    def kinship(self) -> Numbers:
        """Correlation of an image's surprises between cells, (cells, cells): hard cells tell little of mild ones."""
        hardness = self.leads.at(np.zeros((1, (len(self.leads.common) - 2) // 2)), self.layout)[0] / self.scale
        kinship = self.layout.kinship * np.exp(-np.abs(hardness[:, None] - hardness))
        np.fill_diagonal(kinship, 1.0)
        return np.asarray(kinship)

    def chance(self, features: Numbers, seen: Leads | None = None) -> Numbers:
        """The chance of being wrong, (images, cells); `seen` are leads of these images that are known, nan elsewhere."""
        logits = self.logits.at(features, self.layout)
        if seen is None:
            return _logistic(logits)
        rows = np.flatnonzero(~np.isnan(seen).all(axis=1))
        for some in np.array_split(rows, -(-len(rows) // _IMAGES_AT_ONCE) or 1):
            if len(some):
                expected = self.leads.at(features[some], self.layout)
                surprise = np.clip((expected - seen[some]) / self.spread, -_STRANGE, _STRANGE)
                mean, variance = _told(surprise, self.kinship)
                logits[some] = (logits[some] + _LOGITS * mean) / np.sqrt(np.maximum(variance, _LEAST_DOUBT))
        return _logistic(logits)


def fit_likely_wrong(images: Places, cells: Places, leads: Numbers, features: Numbers, layout: Layout) -> LikelyWrong:
    """The regression fitted to results, one row for each: which image, which cell, which lead.

    Features are (all images, features), centred and scaled.
    """
    slope, own = layout.slope[cells], features[images]
    columns = np.column_stack([np.ones(len(leads)), slope, own, own * slope[:, None]])
    start = Lines(np.zeros(columns.shape[1]), np.zeros(len(layout)))
    if not len(leads):
        return LikelyWrong(layout, start, start, np.ones(len(layout)), 1.0)
    logits, wrong = start, (leads < 0).astype(float)
    for _ in range(25):
        chance = _logistic(columns @ logits.common + logits.levels[cells])
        step = _newton(columns, cells, logits, wrong - chance, chance * (1 - chance) + 1e-6, layout)
        largest = max(float(np.abs(part).max()) for part in step)
        share = min(1.0, 2 / max(largest, 1e-9))  # Newton's first steps may be too bold
        logits = Lines(*(value + share * part for value, part in zip(logits, step, strict=True)))
        if largest < 1e-4:
            break
    scale = max(float(leads.std()), 1e-9)
    expected = _newton(columns, cells, start, leads / scale, np.ones(len(leads)), layout)  # least squares take one step
    off = (leads / scale - columns @ expected.common - expected.levels[cells]) ** 2
    pooled = float(off.mean()) + 1e-9
    spread = np.sqrt(
        (np.bincount(cells, off, len(layout)) + _POOLED * pooled) / (np.bincount(cells, minlength=len(layout)) + _POOLED)
    )
    return LikelyWrong(layout, logits, Lines(scale * expected.common, scale * expected.levels), scale * spread, scale)


def clean_features(leads: Numbers, peaks: Numbers | None = None, classes: Places | None = None) -> Numbers:
    """What the clean answers tell of each image, (images, features): its lead, the square, its peak, the rest of its class.

    A peak is the first score minus the last one kept. Both may be of any scale. An image's own answer is left out of its
    class's.
    """
    centred = _centred(leads)
    columns = [centred, centred**2 - (centred**2).mean()]
    if peaks is not None:
        columns.append(_centred(peaks))
    if classes is not None:
        good = (leads >= 0) - (leads >= 0).mean()
        groups = np.unique(classes, return_inverse=True)[1]
        others = np.bincount(groups)[groups] - 1
        if others.max() > 0:
            columns.append(3 * (np.bincount(groups, good)[groups] - good) / (others + 3))
    return np.column_stack(columns)


def _newton(columns: Numbers, cells: Places, at: Lines, off: Numbers, weight: Numbers, layout: Layout) -> Lines:
    """The step to the best lines, to second order, given how far off each result is and how much it counts."""
    width, count = columns.shape[1], len(layout)
    ridge = np.concatenate([[1e-3, 1e-2], np.full(width - 2, 0.1)])
    scaled = columns * weight[:, None]
    curvature = np.empty((width + count, width + count))
    curvature[:width, :width] = scaled.T @ columns + np.diag(ridge)
    curvature[:width, width:] = np.stack([np.bincount(cells, column, count) for column in scaled.T])
    curvature[width:, :width] = curvature[:width, width:].T
    curvature[width:, width:] = layout.precision + np.diag(np.bincount(cells, weight, count))
    common, levels = columns.T @ off - ridge * at.common, np.bincount(cells, off, count) - layout.precision @ at.levels
    step = np.linalg.solve(curvature, np.concatenate([common, levels]))
    return Lines(step[:width], step[width:])


def _told(surprise: Numbers, kinship: Numbers) -> tuple[Numbers, Numbers]:
    """Mean and variance of every cell's surprise given those that are known, (images, cells) each."""
    known = ~np.isnan(surprise)
    most = int(known.sum(axis=1).max())
    places = np.argsort(~known, axis=1, kind="stable")[:, :most]  # the known ones first, then padding
    real = np.take_along_axis(known, places, axis=1)
    values = np.nan_to_num(np.take_along_axis(surprise, places, axis=1))
    both = real[:, :, None] & real[:, None, :]
    between = np.where(both, kinship[places[:, :, None], places[:, None, :]], np.eye(most))
    towards = kinship[places] * real[:, :, None]  # (images, results, cells)
    weights = np.linalg.solve(between, towards)
    return np.einsum("nmc,nm->nc", weights, values), 1 - np.einsum("nmc,nmc->nc", weights, towards)


def _centred(values: Numbers) -> Numbers:
    return np.asarray(np.clip((values - values.mean()) / max(float(values.std()), 1e-9), -_STRANGE, _STRANGE))


def _same(values: Places) -> NDArray[np.bool_]:
    return np.asarray(values[:, None] == values)


def _logistic(values: Numbers) -> Numbers:
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))
