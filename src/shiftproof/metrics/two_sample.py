"""Confidence intervals of AUROC, AUPR and FPR: jackknife or bootstrap over clusters of images, either side apart.

Scores are sorted once; a drawing is how often each score was drawn. Clusters, photos or clips, are numbers that both sides
share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import (
    LEAST_CLUSTERS,
    Groups,
    cluster_share_interval,
    cluster_sizes,
    effective_images,
    tail_of,
)
from shiftproof.metrics.resampling import intervals_without
from shiftproof.metrics.roc import (
    Area,
    Counts,
    Side,
    at_least,
    checked_scores,
    checked_share,
    counted_auroc,
    is_out,
    precision_areas,
    score_counts,
)
from shiftproof.types import OODScores

TwoSampleStatistic: TypeAlias = Callable[[Counts, Counts], NDArray[np.floating]]
"""A number from each drawing, given the images of either sample at each score, lowest first, (drawings, scores)."""

_COUNTS_AT_ONCE = 500_000  # counts of each sample in memory together: 4 MB

_IN_CACHE = 2**14
"""Counts that precisions are computed of together: a few arrays of them stay in the processor's cache."""


def two_sample_bootstrap(
    first: OODScores,
    second: OODScores,
    statistic: TwoSampleStatistic,
    *,
    first_clusters: Groups | None = None,
    second_clusters: Groups | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Interval of a statistic of two samples' scores, each sample resampled with replacement at its own size.

    Of images in clusters, whole clusters are drawn, those that both samples have for both at once.

    Plain percentiles: a correction by leaving images out fails for thresholds, which jump from image to image. The same
    seed gives the same bounds. None where drawing again tells nothing: of a single image, of fewer than `LEAST_CLUSTERS`
    clusters, or where all drawings agree.

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
    if first_clusters is None and second_clusters is None:
        drawings = _drawings(places, len(scores), resamples, seed)
    else:
        groups = _numbered(first_clusters, second_clusters, len(first), len(second))
        if min(len(cluster_sizes(each)) for each in groups) < LEAST_CLUSTERS:
            return None
        drawings = _cluster_drawings(places, groups, len(scores), resamples, seed)
    drawn = np.concatenate([statistic(*counts) for counts in drawings])
    if not np.isfinite(drawn).all() or np.ptp(drawn) == 0:
        return None
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_auroc_interval(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Interval of the AUROC by bootstrap of the images of either side; None where the sides do not overlap.

    >>> id_scores, ood_scores = np.arange(100), np.arange(100) + 30
    >>> low, high = bootstrap_auroc_interval(id_scores, ood_scores)
    >>> round(low, 1), round(high, 1)  # 0.755 +- 1.96 * 0.033
    (0.7, 0.8)
    """
    return two_sample_bootstrap(
        in_scores,
        out_scores,
        counted_auroc,
        first_clusters=in_clusters,
        second_clusters=out_clusters,
        resamples=resamples,
        level=level,
        seed=seed,
    )


def aupr_interval(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    positive: Side = "out",
    area: Area = "average-precision",
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of `aupr` by the jackknife over clusters of either side; None of fewer than `LEAST_CLUSTERS` on a side.

    It is about images like these at these numbers of ID and OOD ones: with others of either, precision is another.

    >>> from shiftproof.metrics.roc import aupr
    >>> id_scores, ood_scores = np.arange(100), np.arange(100) + 30
    >>> low, high = aupr_interval(id_scores, ood_scores)
    >>> low < aupr(id_scores, ood_scores) < high
    True
    """
    clusters = {"in_clusters": in_clusters, "out_clusters": out_clusters}
    return aupr_intervals(in_scores, out_scores, positives=(positive,), area=area, **clusters, level=level)[0]


def aupr_intervals(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    positives: Sequence[Side] = ("out", "in"),
    area: Area = "average-precision",
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    level: float = 0.95,
) -> list[tuple[float, float] | None]:
    """The same for several sides that are positive, of which scores are sorted and images left out once."""
    areas = [precision_areas(area, positive) for positive in positives]
    scores = score_counts(in_scores, out_scores).scores
    places = np.concatenate([np.searchsorted(scores, side) for side in (in_scores, out_scores)])
    is_ood = np.arange(len(places)) >= len(in_scores)
    groups = np.concatenate(_numbered(in_clusters, out_clusters, len(in_scores), len(out_scores)))
    every = [np.bincount(places[side], minlength=len(scores)) for side in (~is_ood, is_ood)]
    at_once = max(1, _IN_CACHE // len(scores))

    def without(choices: Sequence[NDArray[np.intp]]) -> NDArray[np.floating]:
        parts = (choices[start : start + at_once] for start in range(0, len(choices), at_once))
        return np.concatenate([areas_without(some) for some in parts])

    def areas_without(choices: Sequence[NDArray[np.intp]]) -> NDArray[np.floating]:
        rows = np.concatenate(choices)
        of_choice = np.repeat(np.arange(len(choices)), [len(gone) for gone in choices])
        kept = []
        for counts, gone in zip(every, (rows < len(in_scores), rows >= len(in_scores)), strict=True):
            if not gone.any():  # these images are all kept by every choice
                kept.append(counts[None])
                continue
            at = of_choice[gone] * len(scores) + places[rows[gone]]
            left = np.repeat(counts[None], len(choices), axis=0)
            np.subtract.at(left.reshape(-1), at, 1)
            kept.append(left)
        return np.stack([of_counts(*kept) for of_counts in areas], axis=1)

    found = intervals_without(without, groups, second=is_ood, bounds=(0.0, 1.0), level=level)
    return [None] * len(areas) if found is None else found


def fpr_interval(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    tpr: float = 0.95,
    positive: Side = "out",
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Interval of `fpr_at_tpr`: where the true threshold may lie among the scores that set it, and what it may then flag.

    Which share of the images seen lies below the true threshold has a beta distribution; below the lowest of them, scores
    are carried on as the lowest ones fall off. How many of the others reach a threshold is known as a share of them is. Of
    images in clusters both are as of so many independent images. It is never narrower than the exact interval of a share at
    the threshold that was seen, so that no false positive among few images does not count as none ever. Where a single image
    sets the threshold it is the whole range; None of fewer than `LEAST_CLUSTERS` clusters on a side.

    >>> low, high = fpr_interval(np.arange(100), np.arange(100) + 1000)
    >>> low, round(high, 3)  # 0 of 100
    (0.0, 0.036)
    """
    tail = tail_of(level)
    checked_share(tpr, "tpr")
    sides = [checked_scores(in_scores, "in-distribution"), checked_scores(out_scores, "out-of-distribution")]
    given = [in_clusters, out_clusters]
    if not is_out(positive):
        # seen from the other end, ID images set the threshold; whole numbers without a sign become floats first
        sides, given = [-1.0 * side for side in sides[::-1]], given[::-1]
    groups = [_clusters_beyond_images(each, len(side)) for each, side in zip(given, sides, strict=True)]
    mistaken, setting = np.sort(sides[0]), np.sort(sides[1])
    if len(setting) == 1:
        return 0.0, 1.0
    if any(each is not None and len(cluster_sizes(each)) < LEAST_CLUSTERS for each in groups):
        return None
    threshold = setting[len(setting) - at_least(tpr, len(setting))]
    flagged, missed = sides[0] >= threshold, sides[1] < threshold
    seen = float(flagged.mean())
    exact = cluster_share_interval(flagged, clusters=groups[0], level=level) or (0.0, 1.0)
    independent = [effective_images(*one, level=level) for one in zip((flagged, missed), groups, strict=True)]
    drawn = _drawn_fprs(mistaken, setting, independent, tpr, resamples, seed)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return min(exact[0], seen, float(low)), max(exact[1], seen, float(high))


def discarded_interval(
    kept_scores: OODScores,
    out_scores: OODScores,
    *,
    rejected: float = 0.75,
    kept_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Interval of `share_discarded`; see `fpr_interval`.

    >>> low, high = discarded_interval(np.arange(100), np.arange(100) + 1000)
    >>> low, round(high, 3)  # 0 of 100
    (0.0, 0.036)
    """
    return fpr_interval(
        kept_scores,
        out_scores,
        tpr=rejected,
        in_clusters=kept_clusters,
        out_clusters=out_clusters,
        resamples=resamples,
        level=level,
        seed=seed,
    )


def _drawn_fprs(
    mistaken: OODScores, setting: OODScores, independent: list[float], tpr: float, resamples: int, seed: int
) -> NDArray[np.floating]:
    """Shares of `mistaken` that may reach the true threshold among `setting`, both sorted, (drawings,)."""
    from scipy.special import expit, logit

    generator, count, tail = np.random.default_rng(seed), len(setting), 1 - tpr
    below = generator.beta(tail * independent[1] + 0.5, tpr * independent[1] + 0.5, size=resamples)
    # below all scores that were seen they are taken to fall off as the lowest do, by the mean of their steps
    lowest = min(max(2, int(np.ceil(np.sqrt(count) / 2))), count - 1)
    needed = max(int(below.max() * (count + 1)), lowest) + 2  # no threshold lies above
    levels = np.arange(1, min(needed, count) + 1) / (count + 1)
    reached = (len(mistaken) - np.searchsorted(mistaken, setting[: len(levels)]) + 0.5) / (len(mistaken) + 1)
    heights = np.asarray(logit(reached))
    drawn = np.interp(below, levels, heights)
    step = max(float((heights[:lowest] - heights[lowest]).mean()), 0.0)
    drawn += step * np.log(np.maximum(levels[0] / np.maximum(below, 1e-300), 1.0))
    shares = expit(drawn)
    known = np.clip([shares, 1 - shares], 1e-12, None) * (independent[0] + 1)  # the half image of Jeffreys is in the shares
    return np.asarray(generator.beta(*known))


def _numbered(first: Groups | None, second: Groups | None, images: int, others: int) -> list[Groups]:
    """Clusters of both samples in one numbering; images without any are clusters of their own."""
    if first is None and second is None:
        return [np.arange(images), images + np.arange(others)]
    given = [
        np.empty(0, int) if each is None else _checked_clusters(each, count)
        for each, count in ((first, images), (second, others))
    ]
    beyond = 1 + max(int(number.max(initial=-1)) for number in given)
    return [
        beyond + np.arange(images) if first is None else given[0],
        beyond + np.arange(others) if second is None else given[1],
    ]


def _clusters_beyond_images(clusters: Groups | None, images: int) -> Groups | None:
    """The clusters of a sample; None where every image is one of its own."""
    if clusters is None:
        return None
    checked = _checked_clusters(clusters, images)
    return None if len(cluster_sizes(checked)) == images else checked


def _checked_clusters(clusters: Groups, images: int) -> Groups:
    numbers = np.asarray(clusters)
    if numbers.shape != (images,):
        raise BadInput(f"every image needs a cluster: {images} images, clusters of shape {numbers.shape}")
    return numbers


def _cluster_drawings(
    places: list[NDArray[np.intp]], groups: list[Groups], scores: int, resamples: int, seed: int
) -> Iterator[list[Counts]]:
    """Images drawn at each score with clusters drawn whole, (drawings, scores) for either sample."""
    generator = np.random.default_rng(seed)
    numbers = [np.unique(each, return_inverse=True) for each in groups]
    if len(np.intersect1d(numbers[0][0], numbers[1][0])):
        union = np.unique(np.concatenate([number for number, _ in numbers]))
        of_image = [np.searchsorted(union, each) for each in groups]
    else:
        union, of_image = None, [inverse for _, inverse in numbers]
    for _ in range(resamples):
        if union is not None:
            drawn = [np.bincount(generator.integers(len(union), size=len(union)), minlength=len(union))] * 2
        else:
            drawn = [
                np.bincount(generator.integers(len(number), size=len(number)), minlength=len(number))
                for number, _ in numbers
            ]
        yield [
            np.bincount(place, times[of], minlength=scores)[None].astype(int)
            for place, times, of in zip(places, drawn, of_image, strict=True)
        ]


def _drawings(places: list[NDArray[np.intp]], scores: int, resamples: int, seed: int) -> Iterator[list[Counts]]:
    """Images drawn at each score, (drawings, scores) for either sample, in parts that fit in memory."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _COUNTS_AT_ONCE // scores)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        row_starts = scores * np.arange(size)[:, None]
        drawn = (side[generator.integers(len(side), size=(size, len(side)), dtype=np.int32)] + row_starts for side in places)
        yield [np.bincount(each.ravel(), minlength=size * scores).reshape(size, scores) for each in drawn]
