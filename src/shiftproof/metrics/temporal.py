"""pm-k: share of frames answered right on every frame around them too (Shankar et al., 2021).

By default the anchor counts among its frames, as in the authors' code: accuracy can then only fall as k grows, and an anchor
without neighbours counts by itself. ``include_anchor=False`` is Eq. 1 of the paper, which asks the neighbours alone; an
anchor without neighbours at most k away then has no say. At k = 0 either is the accuracy on the anchors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.metrics.frame_sets import Correct, FrameSets, Groups, Offsets, check_correct, check_k, frame_sets


class AnchorAnswers(NamedTuple):
    """The anchors that have a say, in the order of their groups, and whether each is right on all its frames."""

    anchors: NDArray[np.intp]  # their rows, (anchors,)
    right: NDArray[np.bool_]  # (anchors,) or (models, anchors)


def pm_k_accuracy(correct: Correct, offsets: Offsets, groups: Groups, *, k: int, include_anchor: bool = True) -> float:
    """Share of anchor frames right on every frame at most `k` away.

    1 is perfect; nan if no anchor has a say. One row a frame: whether it is right, its offset from the anchor (0 for the
    anchor) and the group it belongs to.

    >>> correct = np.array([True, True, False, True, True])
    >>> offsets, groups = np.array([-1, 0, 1, 0, 2]), np.array([7, 7, 7, 8, 8])
    >>> [pm_k_accuracy(correct, offsets, groups, k=k) for k in (0, 1)]
    [1.0, 0.5]
    >>> pm_k_accuracy(correct, offsets, groups, k=1, include_anchor=False)  # group 8 has no neighbour 1 away
    0.0
    """
    if correct.ndim != 1:
        raise BadInput(f"correct should be (frames,), got shape {correct.shape}; pm_k_sweep takes several models")
    right = pm_k_correct(correct, offsets, groups, k=k, include_anchor=include_anchor).right
    return float(right.mean()) if len(right) else float("nan")


def pm_k_correct(
    correct: Correct, offsets: Offsets, groups: Groups, *, k: int, include_anchor: bool = True
) -> AnchorAnswers:
    """Which anchors are right on every frame at most `k` away.

    What is known of the rows, such as labels or frame types, is known of the anchors by their rows.

    >>> correct, offsets = np.array([True, True, False, True]), np.array([-1, 0, 1, 0])
    >>> answers = pm_k_correct(correct, offsets, np.array(["cat", "cat", "cat", "dog"]), k=1)
    >>> answers.anchors, answers.right
    (array([1, 3]), array([False,  True]))
    """
    check_k(k)
    sets = frame_sets(offsets, groups)
    right, has_say = _nearest(correct, offsets, sets, include_anchor).at(k)
    return AnchorAnswers(sets.anchors[has_say], right[..., has_say])


def pm_k_sweep(
    correct: Correct, offsets: Offsets, groups: Groups, *, largest_k: int = 10, include_anchor: bool = True
) -> Tally:
    """Right and total of the anchors for every k from 0 to `largest_k`, of one model or, (models, frames), of each.

    `clopper_pearson` of right and total has the intervals.

    >>> correct = np.array([[True, True, False], [True, True, True]])
    >>> sweep = pm_k_sweep(correct, np.array([0, 1, 2]), np.array([7, 7, 7]), largest_k=2)
    >>> sweep.accuracy
    array([[1., 1., 0.],
           [1., 1., 1.]])
    """
    check_k(largest_k)
    nearest = _nearest(correct, offsets, frame_sets(offsets, groups), include_anchor)
    answers = [nearest.at(k) for k in range(largest_k + 1)]
    right = np.stack([(right & has_say).sum(axis=-1) for right, has_say in answers], axis=-1)
    return Tally(right, np.array([has_say.sum() for _, has_say in answers]))


@dataclass(frozen=True)
class _Nearest:
    """How far from each anchor the first mistake is: all that any k needs to know."""

    anchor_right: NDArray[np.bool_]  # (anchors,) or (models, anchors)
    mistake: NDArray[np.integer]  # of the same shape
    frame: NDArray[np.integer]  # (anchors,): the nearest frame that counts at all

    def at(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which anchors are right, and which have a say."""
        if k == 0:
            return self.anchor_right, np.ones(len(self.frame), bool)
        return self.mistake > k, self.frame <= k


def _nearest(correct: Correct, offsets: Offsets, sets: FrameSets, include_anchor: bool) -> _Nearest:
    check_correct(correct, offsets)
    counts = (offsets != 0) | include_anchor
    return _Nearest(correct[..., sets.anchors], sets.nearest(~correct & counts), sets.nearest(counts))
