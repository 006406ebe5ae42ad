"""pm-k: predictions that are correct on every frame around an anchor too, and pm-k mAP of boxes (Shankar et al., 2021).

By default the anchor counts among its frames, as in the authors' code: accuracy can then only fall as k grows, and an anchor
without neighbours counts by itself. ``include_anchor=False`` is Eq. 1 of the paper, which asks the neighbours alone; an
anchor without neighbours at most k away then has no say. At k = 0 either is the accuracy on the anchors.

pm-k mAP is what is left of an object detector on the worst frame around each anchor: the one of least average precision
over the classes it shows, of ties the nearest; boxes of classes it does not show are no reason to choose it, but count in
the mean average precision over the chosen frames. No code was published and the paper leaves room, so other readings of a
frame's precision have names. Boxes are matched once; every k only chooses other frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.metrics.boxes import Matches
from shiftproof.metrics.detection import (
    Area,
    Reading,
    image_average_precision,
    rank_by_class,
    ranked_average_precision,
)

Correct = NDArray[np.bool_]
"""Whether each frame is classified correctly, (frames,), or by each of several models, (models, frames)."""

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


class AnchorAnswers(NamedTuple):
    """The anchors that have a say, in the order of their groups, and whether each is correct on all its frames."""

    anchors: NDArray[np.intp]  # their rows, (anchors,)
    right: NDArray[np.bool_]  # (anchors,) or (models, anchors)


def pm_k_accuracy(correct: Correct, offsets: Offsets, groups: Groups, *, k: int, include_anchor: bool = True) -> float:
    """Share of anchor frames correct on every frame at most `k` away.

    1 is perfect; nan if there is no anchor. One row a frame: whether it is correct, its offset from the anchor (0 for the
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
    """Which anchors are correct on every frame at most `k` away.

    What is known of the rows, such as labels or frame types, is known of the anchors by their rows.

    >>> correct, offsets = np.array([True, True, False, True]), np.array([-1, 0, 1, 0])
    >>> answers = pm_k_correct(correct, offsets, np.array(["cat", "cat", "cat", "dog"]), k=1)
    >>> answers.anchors, answers.right
    (array([1, 3]), array([False,  True]))
    """
    check_k(k)
    return pm_k_correct_at((k,), correct, offsets, groups, include_anchor=include_anchor)[0]


def pm_k_correct_at(
    every_k: Iterable[int], correct: Correct, offsets: Offsets, groups: Groups, *, include_anchor: bool = True
) -> list[AnchorAnswers]:
    """The same for several k: the frames are put in order once."""
    return pm_k_correct_in(frame_sets(offsets, groups), every_k, correct, offsets, include_anchor=include_anchor)


def pm_k_correct_in(
    sets: FrameSets, every_k: Iterable[int], correct: Correct, offsets: Offsets, *, include_anchor: bool = True
) -> list[AnchorAnswers]:
    """The same for frames that are in their sets already."""
    nearest = _nearest(correct, offsets, sets, include_anchor)
    found = [nearest.at(k) for k in every_k]
    return [AnchorAnswers(sets.anchors[has_say], right[..., has_say]) for right, has_say in found]


def pm_k_sweep(
    correct: Correct, offsets: Offsets, groups: Groups, *, largest_k: int = 10, include_anchor: bool = True
) -> Tally:
    """Correct and total of the anchors for every k from 0 to `largest_k`, of one model or, (models, frames), of each.

    `clopper_pearson` of correct and total has the intervals.

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
    """Distance of the first misclassified frame from each anchor: all that any k needs."""

    anchor_right: NDArray[np.bool_]  # (anchors,) or (models, anchors)
    mistake: NDArray[np.integer]  # of the same shape
    frame: NDArray[np.integer]  # (anchors,): the nearest frame that counts at all

    def at(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which anchors are correct, and which have a say."""
        if k == 0:
            return self.anchor_right, np.ones(len(self.frame), bool)
        return self.mistake > k, self.frame <= k


def _nearest(correct: Correct, offsets: Offsets, sets: FrameSets, include_anchor: bool) -> _Nearest:
    check_correct(correct, offsets)
    counts = (offsets != 0) | include_anchor
    return _Nearest(correct[..., sets.anchors], sets.nearest(~correct & counts), sets.nearest(counts))


class OffsetErrors(NamedTuple):
    """How many of the frames at each offset are misclassified, of how many."""

    offsets: NDArray[np.integer]  # (offsets,), those that occur, the earliest first
    wrong: NDArray[np.integer]  # (offsets,) or (models, offsets)
    total: NDArray[np.integer]  # (offsets,)

    @property
    def rate(self) -> NDArray[np.floating]:
        """Error on the frames at each offset."""
        return np.asarray(self.wrong / self.total)


def conditional_robustness(correct: Correct, offsets: Offsets, groups: Groups, *, largest_k: int = 10) -> Tally:
    """Correct and total of the frames exactly k away, before or after, whose anchor is correct (Gu et al., 2019).

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
    """How many of the frames at each offset are misclassified, by one model or, (models, frames), of each.

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


def hardest_frames(
    correct: Correct, offsets: Offsets, groups: Groups, *, k: int, include_anchor: bool = True
) -> NDArray[np.intp]:
    """Of each anchor the row of the frame at most `k` away that most models misclassify, (anchors,), in the order of groups.

    Of equals the nearest wins, then the earlier one. With ``include_anchor=False`` only an anchor without neighbours stands
    for itself. `correct` is (models, frames), and ``correct[:, rows].mean(axis=1)`` the accuracy on these frames; models
    that helped to choose them look worse on them than others.

    >>> correct = np.array([[True, True, False, True], [False, True, False, True], [False, True, True, True]])
    >>> hardest_frames(correct, np.array([1, 0, -1, 0]), np.array([7, 7, 7, 8]), k=1)  # two models fail on either neighbour
    array([2, 3])
    """
    check_correct(correct, offsets)
    check_k(k)
    if correct.ndim != 2:
        raise BadInput(f"correct should be (models, frames), got shape {correct.shape}")
    sets = frame_sets(offsets, groups)
    wrong = (~correct).sum(axis=0)[sets.rows]
    too_far, only_if_alone = sets.distances > k, (sets.distances == 0) & (not include_anchor)
    # rows are nearest first already, and the sort keeps equals in their order
    hardest_first = np.lexsort((-wrong, only_if_alone, too_far, sets.places))
    return sets.rows[hardest_first[sets.starts]]


class Spread(NamedTuple):
    """What share of some values is at most so large: a staircase with a step at each value that occurs."""

    values: NDArray[np.floating]  # (values,), rising
    shares: NDArray[np.floating]  # (values,), rising to 1

    def at(self, value: float) -> float:
        """Share of the values that are at most this one."""
        below = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[below - 1]) if below else 0.0


def l_infinity_distance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.floating]:
    """Largest change of any pixel and colour between the frames of each pair, (pairs,); 1 is from black to white.

    Frames are (pairs, height, width, colours), or one frame as the first of every pair.

    >>> anchor = np.zeros((1, 2, 2, 3), np.uint8)
    >>> neighbours = np.stack([anchor[0], anchor[0] + 51])
    >>> l_infinity_distance(anchor, neighbours)
    array([0. , 0.2])
    """
    if first.dtype != np.uint8 or second.dtype != np.uint8:
        raise BadInput(f"frames should be of type uint8, 0 to 255, got {first.dtype} and {second.dtype}")
    if second.ndim != 4 or first.shape[1:] != second.shape[1:] or len(first) not in (1, len(second)):
        raise BadInput(
            f"frames should be (pairs, height, width, colours) alike, got shapes {first.shape} and {second.shape}"
        )
    # the larger minus the smaller: a plain difference of bytes would wrap around
    changes = np.maximum(first, second) - np.minimum(first, second)
    return np.asarray(changes.max(axis=(1, 2, 3)) / 255)


def empirical_cdf(values: NDArray[np.floating]) -> Spread:
    """Share of the values that are at most each value that occurs.

    >>> spread = empirical_cdf(np.array([0.2, 0.1, 0.2, 0.4]))
    >>> spread.values, spread.shares, spread.at(0.3)
    (array([0.1, 0.2, 0.4]), array([0.25, 0.75, 1.  ]), 0.75)
    """
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise BadInput(f"a distribution needs numbers in a row, at least one, got shape {values.shape}")
    distinct, counts = np.unique(values, return_counts=True)
    return Spread(distinct, np.cumsum(counts) / len(values))


_NOTHING_TO_FIND = 2.0  # above any average precision: such a frame is the worst only where the others are like it


def pm_k_average_precision(
    matches: Matches,
    offsets: Offsets,
    groups: Groups,
    *,
    k: int,
    reading: Reading = "present",
    area: Area = "coco",
    include_anchor: bool = True,
    images: NDArray[np.integer] | None = None,
) -> float:
    """Mean average precision over the worst frame at most `k` away from each anchor.

    1 is perfect; at k = 0 it is that of the anchors. One row a frame: its offset from the anchor, 0 for the anchor, and the
    group it belongs to. Row i is image i of the matches unless `images` has places.

    >>> from shiftproof.metrics.boxes import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 3), np.zeros(3, dtype=bool)
    >>> truths = Truths(("a", "b", "c"), np.arange(3), squares, np.zeros(3, int), none, none, np.full(3, 16.0))
    >>> found = Detections(("a", "b", "c"), np.array([0, 1]), squares[:2], np.ones(2), np.zeros(2, int))
    >>> offsets, groups = np.array([-1, 0, 2]), np.zeros(3, int)
    >>> [pm_k_average_precision(match(found, truths), offsets, groups, k=k) for k in (0, 1, 2)]  # nothing is found in c
    [1.0, 1.0, 0.0]
    """
    rows = worst_frames(
        matches, offsets, groups, k=k, reading=reading, area=area, include_anchor=include_anchor, images=images
    )
    return ranked_average_precision(rank_by_class(matches), area=area, times=_times(rows, matches, images))


def pm_k_average_precision_sweep(
    matches: Matches,
    offsets: Offsets,
    groups: Groups,
    *,
    largest_k: int = 10,
    reading: Reading = "present",
    area: Area = "coco",
    include_anchor: bool = True,
    images: NDArray[np.integer] | None = None,
) -> NDArray[np.floating]:
    """Mean average precision over the worst frames for every k from 0 to `largest_k`, (ks,).

    >>> from shiftproof.metrics.boxes import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 3), np.zeros(3, dtype=bool)
    >>> truths = Truths(("a", "b", "c"), np.arange(3), squares, np.zeros(3, int), none, none, np.full(3, 16.0))
    >>> found = Detections(("a", "b", "c"), np.array([0, 1]), squares[:2], np.ones(2), np.zeros(2, int))
    >>> pm_k_average_precision_sweep(match(found, truths), np.array([-1, 0, 2]), np.zeros(3, int), largest_k=2)
    array([1., 1., 0.])
    """
    ranking = rank_by_class(matches)
    chosen = worst_frames_sweep(
        matches,
        offsets,
        groups,
        largest_k=largest_k,
        reading=reading,
        area=area,
        include_anchor=include_anchor,
        images=images,
    )
    return np.array([ranked_average_precision(ranking, area=area, times=_times(rows, matches, images)) for rows in chosen])


def worst_frames(
    matches: Matches,
    offsets: Offsets,
    groups: Groups,
    *,
    k: int,
    reading: Reading = "present",
    area: Area = "coco",
    include_anchor: bool = True,
    images: NDArray[np.integer] | None = None,
) -> NDArray[np.integer]:
    """The row of the worst frame at most `k` away from each anchor, (anchors,), in the order of the groups.

    Of equals the nearest, then the earlier. An anchor without a frame to choose has no say.

    >>> from shiftproof.metrics.boxes import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 3), np.zeros(3, dtype=bool)
    >>> truths = Truths(("a", "b", "c"), np.arange(3), squares, np.zeros(3, int), none, none, np.full(3, 16.0))
    >>> found = Detections(("a", "b", "c"), np.array([1]), squares[:1], np.ones(1), np.zeros(1, int))
    >>> worst_frames(match(found, truths), np.array([-2, 0, 1]), np.zeros(3, int), k=2)  # a is as bad as c but further away
    array([2])
    """
    check_k(k)
    precision = _frame_precision(matches, offsets, reading, area, images)
    return _worst_rows(frame_sets(offsets, groups), precision, k, include_anchor)


def worst_frames_sweep(
    matches: Matches,
    offsets: Offsets,
    groups: Groups,
    *,
    largest_k: int = 10,
    reading: Reading = "present",
    area: Area = "coco",
    include_anchor: bool = True,
    images: NDArray[np.integer] | None = None,
) -> list[NDArray[np.integer]]:
    """The rows of the worst frames as `worst_frames` gives them, for every k from 0 to `largest_k`."""
    check_k(largest_k)
    sets, precision = frame_sets(offsets, groups), _frame_precision(matches, offsets, reading, area, images)
    return [_worst_rows(sets, precision, k, include_anchor) for k in range(largest_k + 1)]


def _frame_precision(
    matches: Matches, offsets: Offsets, reading: Reading, area: Area, images: NDArray[np.integer] | None
) -> NDArray[np.floating]:
    """Average precision of each row, (frames,)."""
    if images is None and len(offsets) != len(matches.ids):
        raise BadInput(f"{len(matches.ids)} images but {len(offsets)} offsets; say in `images` which image each row is")
    precision = image_average_precision(matches, reading=reading, area=area)
    each = precision if images is None else precision[images]
    # the last digit hangs on the order of sums and must not decide between equals
    return np.where(np.isnan(each), _NOTHING_TO_FIND, each.round(12))


def _worst_rows(sets: FrameSets, precision: NDArray[np.floating], k: int, include_anchor: bool) -> NDArray[np.integer]:
    may_choose = (sets.distances <= k) & ((sets.distances > 0) | include_anchor | (k == 0))
    in_reach = np.where(may_choose, precision[sets.rows], np.inf)
    least = np.minimum.reduceat(in_reach, sets.starts)
    is_least = in_reach == least[sets.places]
    first = np.minimum.reduceat(np.where(is_least, np.arange(len(is_least)), len(is_least)), sets.starts)
    return np.asarray(sets.rows[first[np.isfinite(least)]])


def _times(rows: NDArray[np.integer], matches: Matches, images: NDArray[np.integer] | None) -> NDArray[np.integer]:
    """How often each image was chosen, (images,)."""
    return np.bincount(rows if images is None else images[rows], minlength=len(matches.ids))
