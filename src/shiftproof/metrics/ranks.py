"""The place of each image in the order of foreignness, and how two detectors differ about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups
from shiftproof.metrics.jackknife import Shares, interval_of_shares
from shiftproof.metrics.score_counts import checked_scores
from shiftproof.types import AnomalyScores


def mid_ranks(scores: AnomalyScores) -> NDArray[np.floating]:
    """Place of each image from the least foreign, 1, to the most; equal scores share the mean of their places.

    >>> mid_ranks(np.array([0.3, 0.1, 0.3, 0.9]))
    array([2.5, 1. , 2.5, 4. ])
    """
    scores = checked_scores(scores, "image")
    return images_below(scores, scores) + 0.5


def rank_shift(first_scores: AnomalyScores, second_scores: AnomalyScores) -> NDArray[np.floating]:
    """How far the second detector moves each image up the order of foreignness of the first, as a share of all, (images,).

    Above 0 the second finds it more foreign. The shifts of all images add up to 0.

    >>> rank_shift(np.array([1, 2, 3, 4]), np.array([10, 40, 20, 20]))  # from place 2 to 4, from 4 to 2.5
    array([ 0.   ,  0.5  , -0.125, -0.375])
    """
    if np.shape(first_scores) != np.shape(second_scores):
        raise BadInput(f"two detectors score the same images, got {len(first_scores)} and {len(second_scores)}")
    return (mid_ranks(second_scores) - mid_ranks(first_scores)) / len(first_scores)


def rank_shift_interval(
    first_scores: AnomalyScores,
    second_scores: AnomalyScores,
    group: NDArray[np.bool_],
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean `rank_shift` of the images of a group; None of fewer than `LEAST_CLUSTERS` clusters in it.

    An image counts twice: by its own shift, and by the places it gives or takes to the others. Student's t by cluster,
    corrected for skew.

    >>> generator = np.random.default_rng(0)
    >>> first = generator.normal(size=200)
    >>> group = np.arange(200) < 50
    >>> second = first + 1.0 * group + generator.normal(size=200)
    >>> low, high = rank_shift_interval(first, second, group)
    >>> bool(low < rank_shift(first, second)[group].mean() < high)
    True
    """
    shift, group = rank_shift(first_scores, second_scores), np.asarray(group, dtype=bool)
    if group.shape != shift.shape or not group.any():
        raise BadInput(f"group should say of each of {len(shift)} images whether it belongs, and one at least should")
    seen, images = float(shift[group].mean()), len(shift)
    groups = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if len(np.unique(groups[group])) < LEAST_CLUSTERS:
        return None
    # the share of the group that each image has below it, by which it lowers their places
    members = [
        images_below(np.asarray(scores), np.asarray(scores)[group]) / group.sum() for scores in (first_scores, second_scores)
    ]
    lowered = members[0] - members[1]
    own = np.where(group, shift - seen, 0.0) / group.sum()
    changes = np.asarray(np.bincount(groups, own + (lowered - lowered.mean()) / images), dtype=float)
    shares = Shares(changes, sizes, np.arange(len(sizes)), float(images**2 / (sizes**2).sum()))
    return interval_of_shares(seen, [shares], level=level) or (seen, seen)


def images_below(scores: AnomalyScores, others: AnomalyScores) -> NDArray[np.floating]:
    """How many of the others lie below each score; equal ones count half.

    >>> images_below(np.array([0.5, 0.9]), np.array([0.5, 0.1]))
    array([1.5, 2. ])
    """
    ordered, order = np.sort(others), np.argsort(scores)
    # looked up in their own order they lie near one another: several times as fast
    below, not_above = (np.searchsorted(ordered, scores[order], side) for side in ("left", "right"))
    found = np.empty(len(order))
    found[order] = (below + not_above) / 2
    return found
