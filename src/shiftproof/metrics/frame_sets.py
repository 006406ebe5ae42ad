"""Frames around anchors, one row a frame: which rows belong together, and how far from its anchor each one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Correct = NDArray[np.bool_]
"""Whether each frame is answered right, (frames,), or by each of several models, (models, frames)."""

Offsets = NDArray[np.integer]
"""How many frames after its anchor each frame comes, (frames,); below 0 before it, 0 for the anchor itself."""

Groups = NDArray[Any]
"""Which set each frame belongs to, (frames,): numbers or names."""

NONE_SO_FAR = np.iinfo(np.int32).max
"""The distance where there is no frame to measure it to."""


@dataclass(frozen=True)
class FrameSets:
    """The rows of each set side by side: its anchor, then its neighbours, the nearest first, of equally near the earlier."""

    rows: NDArray[np.intp]  # (frames,)
    starts: NDArray[np.intp]  # (anchors,): where each set begins in `rows`; sets are in the order of their groups
    distances: NDArray[np.integer]  # (frames,), in the order of `rows`

    @property
    def anchors(self) -> NDArray[np.intp]:
        """The row of each anchor, (anchors,)."""
        return self.rows[self.starts]

    @property
    def places(self) -> NDArray[np.intp]:
        """Which of the sets each frame is in, (frames,), in the order of `rows`."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.rows)))

    def anchor_of_each_row(self) -> NDArray[np.intp]:
        """The row of the anchor that each frame belongs to, (frames,)."""
        anchors = np.empty_like(self.rows)
        anchors[self.rows] = self.anchors[self.places]
        return anchors

    def nearest(self, chosen: NDArray[np.bool_]) -> NDArray[np.integer]:
        """How far from each anchor the nearest of the chosen frames is, (anchors,) or (models, anchors)."""
        distances = np.where(chosen[..., self.rows], self.distances, NONE_SO_FAR)
        return np.asarray(np.minimum.reduceat(distances, self.starts, axis=-1))


def frame_sets(offsets: Offsets, groups: Groups) -> FrameSets:
    """The sets that rows fall into by their groups; every set has one anchor, and no frame twice.

    >>> sets = frame_sets(np.array([1, 0, -1, 0]), np.array(["b", "b", "b", "a"]))
    >>> sets.rows, sets.anchors
    (array([3, 1, 2, 0]), array([3, 1]))
    """
    if offsets.ndim != 1 or offsets.shape != groups.shape or not len(offsets):
        raise BadInput(f"offsets and groups should be (frames,) alike, got shapes {offsets.shape} and {groups.shape}")
    names, members = np.unique(groups, return_inverse=True)
    rows = np.lexsort((offsets, np.abs(offsets), members))
    in_order, sets = offsets[rows], members[rows]
    starts = np.flatnonzero(np.diff(sets, prepend=-1))
    _check(names, sets, in_order, starts)
    return FrameSets(rows, starts, np.abs(in_order).astype(np.int32))


def check_correct(correct: Correct, offsets: Offsets) -> None:
    if correct.ndim not in (1, 2) or correct.shape[-1:] != offsets.shape:
        raise BadInput(f"correct should be ({len(offsets)} frames,) or (models, frames), got shape {correct.shape}")
    if correct.dtype != np.bool_:
        raise BadInput(f"correct should say True or False of each frame, got numbers of type {correct.dtype}")


def check_k(k: int) -> None:
    if k < 0:
        raise BadInput(f"k counts frames before and after the anchor and should be at least 0, got {k}")


def _check(names: Groups, sets: NDArray[np.intp], offsets: Offsets, starts: NDArray[np.intp]) -> None:
    without = np.flatnonzero(offsets[starts])
    if len(without):
        raise BadInput(f"group {names[without[0]]} has no anchor, a frame of offset 0; leave its frames out")
    twice = np.flatnonzero((np.diff(sets) == 0) & (np.diff(offsets) == 0))
    if len(twice):
        raise BadInput(f"group {names[sets[twice[0]]]} has offset {offsets[twice[0]]} twice; each frame should come once")
