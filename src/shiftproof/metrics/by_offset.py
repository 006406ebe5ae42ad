"""How answers go wrong with the distance from the anchor: one frame at a time, where pm-k asks all of them at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.metrics.frame_sets import Correct, Groups, Offsets, check_correct, frame_sets


class OffsetErrors(NamedTuple):
    """How many of the frames at each offset are wrong, of how many."""

    offsets: NDArray[np.integer]  # (offsets,), those that occur, the earliest first
    wrong: NDArray[np.integer]  # (offsets,) or (models, offsets)
    total: NDArray[np.integer]  # (offsets,)

    @property
    def rate(self) -> NDArray[np.floating]:
        """Share wrong of the frames at each offset."""
        return np.asarray(self.wrong / self.total)


def conditional_robustness(correct: Correct, offsets: Offsets, groups: Groups, *, largest_k: int = 10) -> Tally:
    """Right and total of the frames exactly k away, before or after, whose anchor is right (Gu et al., 2019).

    For every k from 1 to `largest_k`, of one model or, (models, frames), of each; both numbers are the model's own.

    >>> correct = np.array([True, True, False, False, False])
    >>> offsets, groups = np.array([-1, 0, 1, 0, 1]), np.array([7, 7, 7, 8, 8])
    >>> conditional_robustness(correct, offsets, groups, largest_k=2)  # the anchor of group 8 is wrong
    Tally(right=array([1, 0]), total=array([2, 0]))
    """
    if largest_k < 1:
        raise BadInput(f"frames other than the anchor are at least 1 away, got largest_k {largest_k}")
    check_correct(correct, offsets)
    anchor_right = correct[..., frame_sets(offsets, groups).anchor_of_each_row()]
    places, distances = np.arange(1, largest_k + 1), np.abs(offsets)
    return Tally(_counts(correct & anchor_right, distances, places), _counts(anchor_right, distances, places))


def errors_by_offset(correct: Correct, offsets: Offsets) -> OffsetErrors:
    """How many of the frames at each offset are wrong, of one model or, (models, frames), of each.

    >>> errors = errors_by_offset(np.array([False, True, True, True]), np.array([-1, 0, -1, 0]))
    >>> errors.offsets, errors.rate
    (array([-1,  0]), array([0.5, 0. ]))
    """
    check_correct(correct, offsets)
    places, total = np.unique(offsets, return_counts=True)
    return OffsetErrors(places, _counts(~correct, offsets, places), total)


def _counts(flags: NDArray[np.bool_], of_rows: NDArray[np.integer], places: NDArray[np.integer]) -> NDArray[np.integer]:
    """How many flags are up among the rows at each place, (places,) or (models, places)."""
    return np.stack([flags[..., of_rows == place].sum(axis=-1) for place in places], axis=-1)
