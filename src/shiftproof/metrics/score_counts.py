"""How many inside and outside images have each anomaly score: one sort, from which every metric of separation follows."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import AnomalyScores

Counts: TypeAlias = NDArray[np.integer]
"""Images of one side at each score, lowest score first, (scores,); or of many drawings at once, (drawings, scores)."""


class ScoreCounts(NamedTuple):
    """Each score that occurs, lowest first, and the images that have it."""

    scores: AnomalyScores
    inside: Counts
    outside: Counts


def score_counts(in_scores: AnomalyScores, out_scores: AnomalyScores) -> ScoreCounts:
    """Images of either side at each score, lowest first; equal scores are one entry, whatever their precision.

    >>> counts = score_counts(np.array([0.1, 0.5, 0.5]), np.array([0.9, 0.5]))
    >>> counts.scores.tolist(), counts.inside.tolist(), counts.outside.tolist()
    ([0.1, 0.5, 0.9], [1, 2, 0], [0, 1, 1])
    """
    sides = [checked_scores(in_scores, "inside"), checked_scores(out_scores, "outside")]
    runs = np.concatenate([np.sort(side) for side in sides])
    # a stable sort merges two ascending runs in one pass: several times as fast as an argsort, and no bit of a score is lost
    order = np.argsort(runs, kind="stable")
    merged = runs[order]
    last = np.flatnonzero(np.append(merged[1:] != merged[:-1], True))
    outside = np.diff(np.cumsum(order >= len(sides[0]))[last], prepend=0)
    return ScoreCounts(merged[last], np.diff(last, prepend=-1) - outside, outside)


def checked_scores(scores: AnomalyScores, side: str) -> AnomalyScores:
    """The scores of one side, refused where they cannot be put in order; infinities can."""
    scores = np.asarray(scores)
    if scores.ndim != 1 or not len(scores):
        raise BadInput(f"{side} scores should be (images,) of at least one image, got shape {scores.shape}")
    if scores.dtype.kind not in "biuf":
        raise BadInput(f"{side} scores should be numbers, got {scores.dtype}")
    strange = int(np.isnan(scores).sum())
    if strange:
        raise BadInput(f"{strange} of {len(scores)} {side} scores are nan; what cannot be scored should be left out first")
    return scores


def checked_share(share: float, name: str) -> float:
    """A share of images that is more than none."""
    if not 0 < share <= 1:
        raise BadInput(f"{name} should lie above 0 and be at most 1, such as 0.95, got {share}")
    return share


def at_least(share: float, images: int) -> int:
    """The fewest images that are at least this share of all.

    >>> at_least(0.07, 100), 0.07 * 100  # rounding up the product would ask for one more
    (7, 7.000000000000001)
    """
    guess = int(share * images)
    return next(count for count in range(max(guess - 1, 0), images + 1) if count / images >= share)


def counted_auroc(inside: Counts, outside: Counts) -> NDArray[np.floating]:
    """AUROC from the images at each score, one number a drawing."""
    below = np.cumsum(inside, axis=-1) - inside
    half_wins = (outside * (2 * below + inside)).sum(axis=-1)
    return np.asarray(half_wins / (2 * inside.sum(axis=-1) * outside.sum(axis=-1)))


def counted_average_precision(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Average precision from the images at each score, positive ones to be found at the high end, one number a drawing."""
    precisions = _precisions(negative, positive)
    return np.asarray((positive * precisions).sum(axis=-1) / positive.sum(axis=-1))


def counted_precision_area(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Area of the trapezoids under precision against recall, from precision 1 at recall 0, one number a drawing."""
    precisions = _precisions(negative, positive)
    stricter = np.append(precisions[..., 1:], np.ones_like(precisions[..., :1]), axis=-1)
    return np.asarray((positive * (precisions + stricter)).sum(axis=-1) / (2 * positive.sum(axis=-1)))


def counted_fpr(negative: Counts, positive: Counts, *, tpr: float) -> NDArray[np.floating]:
    """Share of the negative images at or above the highest score that finds at least `tpr` of the positive ones."""
    images = int(positive.sum(axis=-1).max())  # the same in every drawing
    below = np.cumsum(positive, axis=-1) - positive
    place = (below <= images - at_least(tpr, images)).sum(axis=-1, keepdims=True) - 1
    flagged = np.take_along_axis(at_or_above(negative), place, axis=-1)[..., 0]
    return np.asarray(flagged / negative.sum(axis=-1))


def at_or_above(counts: Counts) -> Counts:
    """Images that have each score or a higher one.

    >>> at_or_above(np.array([5, 0, 2]))
    array([7, 2, 2])
    """
    return np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]


def _precisions(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Share of positive images among those at or above each score; 1 where there are none, as at the start of the curve."""
    found = at_or_above(positive)
    flagged = found + at_or_above(negative)
    return np.asarray(np.divide(found, flagged, out=np.ones(flagged.shape), where=flagged > 0))
