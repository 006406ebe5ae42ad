"""Intervals of metrics of separation by drawing images again, inside and outside ones apart.

Scores are sorted once; a drawing is how often each score was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.intervals import clopper_pearson, tail_of
from shiftproof.metrics.score_counts import Counts, at_least, counted_auroc, score_counts
from shiftproof.metrics.separation import Side, fpr_at_tpr
from shiftproof.types import AnomalyScores

TwoSampleStatistic: TypeAlias = Callable[[Counts, Counts], NDArray[np.floating]]
"""A number from each drawing, given the images of either sample at each score, lowest first, (drawings, scores)."""

_COUNTS_AT_ONCE = 500_000  # counts of each sample in memory together: 4 MB


def two_sample_bootstrap(
    first: AnomalyScores,
    second: AnomalyScores,
    statistic: TwoSampleStatistic,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Interval of a statistic of two samples' scores, each sample drawn again with replacement at its own size.

    Plain percentiles: a correction by leaving images out fails for thresholds, which jump from image to image. The same
    seed gives the same bounds. None where drawing again tells nothing: of a single image, or where all drawings agree.

    >>> def share_of_ones(first, second):  # scores are 0 and 1
    ...     return second[:, 1] / second.sum(axis=1)
    >>> low, high = two_sample_bootstrap(np.zeros(100), np.array([0, 1] * 50), share_of_ones)
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.96 * 0.05
    (0.4, 0.6)
    """
    tail = tail_of(level)
    if min(len(first), len(second)) == 1:
        return None
    scores = score_counts(first, second).scores
    places = [np.searchsorted(scores, side) for side in (first, second)]
    drawn = np.concatenate([statistic(*counts) for counts in _drawings(places, len(scores), resamples, seed)])
    if np.ptp(drawn) == 0:
        return None
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_auroc_interval(
    in_scores: AnomalyScores, out_scores: AnomalyScores, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[float, float] | None:
    """Interval of the AUROC by drawing the images of either side again; None where the sides do not overlap.

    >>> inside, outside = np.arange(100), np.arange(100) + 30
    >>> low, high = bootstrap_auroc_interval(inside, outside)
    >>> round(low, 1), round(high, 1)  # 0.755 +- 1.96 * 0.033
    (0.7, 0.8)
    """
    return two_sample_bootstrap(in_scores, out_scores, counted_auroc, resamples=resamples, level=level, seed=seed)


def fpr_interval(
    in_scores: AnomalyScores,
    out_scores: AnomalyScores,
    *,
    tpr: float = 0.95,
    positive: Side = "out",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval of `fpr_at_tpr`, by drawing the images of either side again.

    It is never narrower than the exact interval of a share at the threshold that was seen, so that no false alarm among
    few images is not taken for none ever. Where a single image sets the threshold it is the whole range.

    >>> low, high = fpr_interval(np.arange(100), np.arange(100) + 1000)
    >>> low, round(high, 3)  # 0 of 100
    (0.0, 0.036)
    """
    seen = fpr_at_tpr(in_scores, out_scores, tpr=tpr, positive=positive)
    mistaken, setting = (in_scores, out_scores) if positive == "out" else (out_scores, in_scores)
    if len(setting) == 1:
        return 0.0, 1.0
    exact = clopper_pearson(round(seen * len(mistaken)), len(mistaken), level=level)
    # seen from the other end, inside images set the threshold; whole numbers without a sign become floats first
    tail, sign = tail_of(level), 1.0 if positive == "out" else -1.0
    drawn = _drawn_fprs(sign * mistaken, sign * setting, tpr, resamples, seed)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return min(exact[0], float(low)), max(exact[1], float(high))


def discarded_interval(
    kept_scores: AnomalyScores,
    out_scores: AnomalyScores,
    *,
    rejected: float = 0.75,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval of `share_discarded`, by drawing the images of either side again; see `fpr_interval`.

    >>> low, high = discarded_interval(np.arange(100), np.arange(100) + 1000)
    >>> low, round(high, 3)  # 0 of 100
    (0.0, 0.036)
    """
    return fpr_interval(kept_scores, out_scores, tpr=rejected, resamples=resamples, level=level, seed=seed)


def _drawn_fprs(
    mistaken: AnomalyScores, setting: AnomalyScores, tpr: float, resamples: int, seed: int
) -> NDArray[np.floating]:
    """Share of `mistaken` at or above the threshold that finds enough of `setting`, both drawn again, (drawings,).

    No image needs to be drawn. The one that sets the threshold is of a certain rank among as many drawn uniformly, whose
    place has a beta distribution; how many of the others then reach it is binomial.
    """
    generator = np.random.default_rng(seed)
    count = len(setting)
    rank = count - at_least(tpr, count) + 1
    place = (generator.beta(rank, count - rank + 1, size=resamples) * count).astype(int)
    thresholds = np.sort(setting)[np.minimum(place, count - 1)]
    reached = 1 - np.searchsorted(np.sort(mistaken), thresholds) / len(mistaken)
    return np.asarray(generator.binomial(len(mistaken), reached) / len(mistaken))


def _drawings(places: list[NDArray[np.intp]], scores: int, resamples: int, seed: int) -> Iterator[list[Counts]]:
    """Images drawn at each score, (drawings, scores) for either sample, in parts that fit in memory."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _COUNTS_AT_ONCE // scores)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        row_starts = scores * np.arange(size)[:, None]
        drawn = (side[generator.integers(len(side), size=(size, len(side)), dtype=np.int32)] + row_starts for side in places)
        yield [np.bincount(each.ravel(), minlength=size * scores).reshape(size, scores) for each in drawn]
