"""Errors of all cells from results of some (image, cell) pairs: unbiased, with honest intervals.

Pairs come in rounds of known chances; what an earlier round found may decide the chances of a later one. Each round alone
estimates every cell: the mean over all images of what is known and of what is guessed for the rest, plus the round's misses
of the guess, each divided by its chance (the difference estimator). The guess for an image is fitted to earlier rounds and,
of this round, to the images of other folds, which are drawn by themselves; so it never knows the answer it is compared with
and may be as bad as it likes: a bad guess widens the interval and biases nothing. Rounds are joined in proportion to the
precision that the guesses promise, so the misses form a martingale and their variances add (compare active inference;
Zrnic & Candès, 2024).

Two questions have two intervals. *Photos like these* (superpopulation inference): both the photos and the pairs are a
sample. The estimate is a mean over images of `by_image`, whose rows are each unbiased for an image's own errors. Drawn with
chances of their own, their variance is that of the images plus that of the draw: E s^2(z) / n = S^2 / n + V (two-phase
sampling; Särndal, Swensson & Wretman, 1992), so that whatever resamples images takes both into account. With everything run
`by_image` is the table of what is wrong, and the interval that of the full study.
*Exactly these photos* (finite-population inference): nothing is random but the draw, and with everything run the interval
has no width. It says what more passes could still change, which is what a wanted precision is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import label_rows
from shiftproof.metrics.intervals import clopper_pearson, normal_quantile
from shiftproof.types import Labels

Numbers = NDArray[np.floating]
Places = NDArray[np.integer]

Leads = NDArray[np.floating]
"""Score of the correct class minus the best other's, (images, cells): below 0 is wrong, nan was not run."""

# correlation of an image's surprises, beyond its clean lead, between cells that are equally hard: any two, more within a
# kind, more within a corruption; as seen in EfficientNet-Lite0 under ImageNet-C, and half or double tells nearly the same
_ANY, _KIND, _CORRUPTION = 0.31, 0.18, 0.39
# prior variances of what cells differ in: level and slope of a corruption, and a cell's own
_LEVEL, _SLOPE, _OWN = 0.5, 0.1, 0.05
_LOGITS = 1.7  # a logistic curve is nearly a normal one of this width
_LEAST_DOUBT = 0.05  # variance that no number of results removes
_STRANGE = 3.0  # surprises beyond this count as this
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


Fit = Callable[[Places, Places, Numbers], LikelyWrong]
"""`fit_likely_wrong` of one benchmark's features and layout: from images, cells and leads alone."""


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
    bins = (np.arange(columns.shape[1]) * len(layout) + cells[:, None]).ravel()  # of each column in each cell
    for _ in range(25):
        chance = _logistic(columns @ logits.common + logits.levels[cells])
        step = _newton(columns, cells, bins, logits, wrong - chance, chance * (1 - chance) + 1e-6, layout)
        largest = max(float(np.abs(part).max()) for part in step)
        share = min(1.0, 2 / max(largest, 1e-9))  # Newton's first steps may be too bold
        logits = Lines(*(value + share * part for value, part in zip(logits, step, strict=True)))
        if largest < 1e-4:
            break
    scale = max(float(leads.std()), 1e-9)
    expected = _newton(columns, cells, bins, start, leads / scale, np.ones(len(leads)), layout)  # least squares: one step
    off = (leads / scale - columns @ expected.common - expected.levels[cells]) ** 2
    pooled = float(off.mean()) + 1e-9
    spread = np.sqrt(
        (np.bincount(cells, off, len(layout)) + _POOLED * pooled) / (np.bincount(cells, minlength=len(layout)) + _POOLED)
    )
    return LikelyWrong(layout, logits, Lines(scale * expected.common, scale * expected.levels), scale * spread, scale)


def clean_features(leads: Numbers, peaks: Numbers | None = None, classes: Places | None = None) -> Numbers:
    """Features of each image by its clean prediction, (images, features): lead, its square, peak, the rest of its class.

    A peak is the first score minus the last one kept. Both may be of any scale. An image's own prediction is left out of its
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


def _newton(
    columns: Numbers, cells: Places, bins: Places, at: Lines, off: Numbers, weight: Numbers, layout: Layout
) -> Lines:
    """The step to the best lines, to second order, given how far off each result is and how much it counts."""
    width, count = columns.shape[1], len(layout)
    ridge = np.full(width, 0.1)
    ridge[:2] = 1e-3, 1e-2
    scaled = columns * weight[:, None]
    curvature = np.empty((width + count, width + count))
    curvature[:width, :width] = scaled.T @ columns
    curvature[width:, width:] = layout.precision
    curvature.reshape(-1)[:: width + count + 1] += np.concatenate([ridge, np.bincount(cells, weight, count)])
    across = np.bincount(bins, scaled.ravel(), width * count).reshape(width, count)
    curvature[:width, width:], curvature[width:, :width] = across, across.T
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
    """A number, and the interval that holds it."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class SampledCells:
    """The error of every cell, and what is needed for the interval of any weighted sum of them."""

    by_image: Numbers  # (images, cells): wrong or not, as the pairs that were run have it; unbiased for every image
    possible: tuple[Numbers, Numbers]  # (cells,) each: errors if all that was not run were right, or wrong
    images: Places  # (pairs,)
    cells: Places  # (pairs,)
    misses: Numbers  # (pairs,): each pair's share in the estimate of its cell
    promised: Numbers  # (pairs,): the variance of that share, as the guesses have it
    between: Numbers  # (pairs - 1,): what the squared difference of two neighbouring pairs' shares counts as variance

    @cached_property
    def values(self) -> Numbers:
        """The error of every cell, (cells,); may fall a little outside 0 to 1 where few pairs were run."""
        return np.asarray(self.by_image.mean(axis=0))

    def weighted(self, weights: Numbers, *, level: float = 0.95) -> Estimate:
        """The sum of weight times error over cells, with its interval for exactly these images: mCE, a CE, a mean, one cell.

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
        """Of the weighted sum for exactly these images: what neighbouring pairs' differences show.

        Of few pairs that is luck, so there the guesses' promise counts too.
        """
        return self._variance(self.misses * weights[self.cells], self.promised * weights[self.cells] ** 2)

    def variance_less(self, weights: Numbers, other: SampledCells, other_weights: Numbers) -> float:
        """The variance of a weighted sum less another model's, for exactly these images.

        Where both ran the same pairs, what they have in common cancels out pair by pair; else the draws have nothing to do
        with each other, and their variances add.
        """
        if not (np.array_equal(self.images, other.images) and np.array_equal(self.cells, other.cells)):
            return self.variance(weights) + other.variance(other_weights)
        misses = self.misses * weights[self.cells] - other.misses * other_weights[self.cells]
        promised = self.promised * weights[self.cells] ** 2 + other.promised * other_weights[self.cells] ** 2
        return self._variance(misses, promised)

    def _variance(self, misses: Numbers, promised: Numbers) -> float:
        found = float((self.between * np.diff(misses) ** 2).sum())
        if not promised.any():
            return found
        effective = float(promised.sum() ** 2 / (promised**2).sum())
        return (effective * found + _PROMISE * float(promised.sum())) / (effective + _PROMISE)

    def each(self, *, level: float = 0.95) -> list[Estimate]:
        """Every cell by itself, for exactly these images."""
        return [self.weighted(row, level=level) for row in np.eye(len(self.values))]

    def each_like_these(self, *, clusters: Places | None = None, level: float = 0.95) -> list[Estimate]:
        """Every cell by itself, for images like these: exact intervals of as many images as the evidence is worth.

        A cell that was run whole has Clopper and Pearson's. Of one that was run in part, the variance of the draw is added
        to that of as many images, and the interval is that of fewer images with the same variance together (Korn &
        Graubard, 1998); it is never narrower than with all of them. `clusters` (images,) number images that are one case:
        what they vary more than as many single ones is added too.
        """
        images = len(self.by_image)
        shares = [one.value for one in self.each()]
        spread = np.array([max(share * (1 - share), _LEAST_SPREAD) for share in shares])
        draw = np.array([self.variance(row) for row in np.eye(len(shares))])
        alike, factor = np.zeros(len(shares)), 1.0
        if clusters is not None:
            cases = len(np.unique(clusters))
            alike = np.maximum(clustered_variance(self.by_image, clusters) - clustered_variance(self.by_image), 0.0)
            factor = _student(images - 1, level) / _student(cases - 1, level)
        worth = factor**2 / (1 / images + (alike + draw) / spread)
        counts = cast(Places, worth * shares), cast(Places, worth)  # counts of images need not be whole here
        lows, highs = clopper_pearson(*counts, level=level)
        return [Estimate(*found) for found in zip(shares, lows.tolist(), highs.tolist(), strict=True)]


def clustered_variance(values: Numbers, clusters: Places | None = None) -> Numbers:
    """The variance of column means of values (images, columns) over images like these, (columns,).

    `clusters` (images,) number images that are one case, as frames of a clip are; None has each by itself.

    >>> clustered_variance(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([3, 3, 7, 7]))  # two cases: (1 / 2)^2 / (2 - 1)
    array([0.25])
    """
    images = len(values)
    groups = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    cases = int(groups.max()) + 1
    if cases < 2:
        return np.full(values.shape[1], np.inf)
    off = np.zeros((cases, values.shape[1]))
    np.add.at(off, groups, values - values.mean(axis=0))
    return np.asarray((off**2).sum(axis=0) / images**2 * (cases / (cases - 1)))


def _student(freedom: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1), (1 + level) / 2))


def sampled_cells(
    leads: Leads,
    rounds: Sequence[Round],
    folds: Places,
    features: Numbers,
    layout: Layout,
    weights: Numbers,
    *,
    fit: Fit | None = None,
) -> SampledCells:
    """The errors of all images from the pairs of these rounds.

    Other results in the table count only where they make a cell whole; its error is then simply known.
    `folds` are the images' groups that were drawn independently, (images,). `weights` (cells,) are those of the sum that
    matters most: rounds are joined to be best for it. `fit` may give fits that are known already.
    """
    fit = fit or partial(fit_likely_wrong, features=features, layout=layout)
    images = len(leads)
    wrong = np.asarray(leads < 0, dtype=float)
    known = np.zeros(leads.shape, dtype=bool)
    parts = []
    table, precision = np.zeros(leads.shape), 0.0
    for one in rounds:
        missing = int(np.isnan(leads[one.images, one.cells]).sum())
        if missing:
            raise BadInput(f"{missing} of {len(one)} pairs of a round have no result yet")
        guess = _guesses(leads, known, one, folds, features, fit)
        guessed, share = guess[one.images, one.cells], 1 / one.chance / images
        misses = (wrong[one.images, one.cells] - guessed) * share
        promised = (1 - one.chance) * np.maximum(guessed * (1 - guessed), _LEAST_SPREAD) * share**2
        part = _Part(one, misses, promised, float((promised * weights[one.cells] ** 2).sum()))
        parts.append(part)
        if part.variance > 0:
            found = np.where(known, wrong, guess)
            found[one.images, one.cells] += images * misses
            table += found / part.variance
            precision += 1 / part.variance
        known[one.images, one.cells] = True
    known |= ~np.isnan(leads).any(axis=0)
    # a round of variance 0 left nothing out, and then every cell is known whole
    by_image = np.where(known.all(axis=0), wrong, table / max(precision, 1e-300))
    least = np.where(known, wrong, 0.0).sum(axis=0) / images
    return _joined(parts, by_image, (least, least + (~known).sum(axis=0) / images), folds)


class _Part(NamedTuple):
    drawn: Round
    misses: Numbers  # (pairs,)
    promised: Numbers  # (pairs,)
    variance: float  # that is promised for the sum that matters most

    def between(self, folds: Places) -> Numbers:
        """Half the squared difference of neighbours is a variance: one term for each pair drawn, (pairs - 1,)."""
        fold = folds[self.drawn.images]
        neighbours = fold[1:] == fold[:-1]
        left = 1 - (self.drawn.chance[1:] + self.drawn.chance[:-1]) / 2
        return np.asarray(neighbours * left / 2 * (len(self.drawn) / max(int(neighbours.sum()), 1)))


def _guesses(
    leads: Leads,
    known: NDArray[np.bool_],
    one: Round,
    folds: Places,
    features: Numbers,
    fit: Fit,
) -> Numbers:
    """Chances of being wrong that know nothing of this round in the image's own fold, (images, cells)."""
    seen = np.where(known, leads, np.nan)
    before = np.nonzero(known)
    guess = np.empty(leads.shape)
    for fold in np.unique(folds):
        rows, others = folds == fold, folds[one.images] != fold
        images = np.concatenate([before[0], one.images[others]])
        cells = np.concatenate([before[1], one.cells[others]])
        fitted = fit(images, cells, leads[images, cells])
        guess[rows] = fitted.chance(features[rows], seen[rows])
    return guess


def _joined(parts: Sequence[_Part], by_image: Numbers, possible: tuple[Numbers, Numbers], folds: Places) -> SampledCells:
    variances = np.array([part.variance for part in parts])
    exact = variances == 0  # a round that left nothing out
    trust = exact / exact.sum() if exact.any() else 1 / variances / (1 / variances).sum()
    cells = np.concatenate([part.drawn.cells for part in parts])
    whole = possible[0] == possible[1]
    open_ = ~whole[cells]
    # a round's last pair and the next round's first are no neighbours
    between = [np.append(part.between(folds), 0.0) for part in parts]
    return SampledCells(
        by_image=by_image,
        possible=possible,
        images=np.concatenate([part.drawn.images for part in parts]),
        cells=cells,
        misses=open_ * np.concatenate([share * part.misses for share, part in zip(trust, parts, strict=True)]),
        promised=open_ * np.concatenate([share**2 * part.promised for share, part in zip(trust, parts, strict=True)]),
        between=np.concatenate(between)[:-1],
    )


def right_class_leads(labels: Labels, classes: NDArray[np.integer], scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Best score of a correct class minus the best of the others, (images,); below 0 exactly where the prediction is wrong.

    Labels are (images,) or (images, labels) with -1 for none; classes and scores are the best few of each image, best
    first, (images, best). Where all of these are right, or none, the last score stands for what is not among them.

    >>> right_class_leads(np.array([[7], [3], [5]]), np.array([[7, 3], [7, 3], [7, 3]]), np.array([[4.0, 1.5]] * 3))
    array([ 2.5, -2.5, -2.5])
    """
    rows = label_rows(labels)
    if classes.shape != scores.shape or len(rows) != len(classes):
        raise BadInput(f"labels, classes and scores do not fit: shapes {labels.shape}, {classes.shape}, {scores.shape}")
    right = np.asarray((classes[:, :, None] == rows[:, None, :]).any(axis=2))
    last = scores[:, -1]
    best_right = np.where(right.any(axis=1), np.where(right, scores, -np.inf).max(axis=1), last)
    best_other = np.where(right.all(axis=1), last, np.where(right, -np.inf, scores).max(axis=1))
    leads = (best_right - best_other).astype(float)
    # a tie goes to the class that comes first
    return np.asarray(np.where(right[:, 0], np.maximum(leads, 0.0), np.minimum(leads, -1e-9)))
