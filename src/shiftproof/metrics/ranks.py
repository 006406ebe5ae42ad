"""The place of each image in the order of foreignness, and how two detectors differ about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
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


def images_below(scores: AnomalyScores, others: AnomalyScores) -> NDArray[np.floating]:
    """How many of the others lie below each score; equal ones count half.

    >>> images_below(np.array([0.5, 0.9]), np.array([0.5, 0.1]))
    array([1.5, 2. ])
    """
    ordered = np.sort(others)
    below, not_above = (np.searchsorted(ordered, scores, side) for side in ("left", "right"))
    return np.asarray((below + not_above) / 2)
