"""pm-k mean average precision: what is left of a detector on the worst frame around each anchor (Shankar et al., 2021).

The worst frame is the one of least average precision over the classes it shows, of equals the nearest; boxes of classes it
does not show are no reason to choose it, but count in the mean average precision over the chosen frames. No code was
published and the paper leaves room, so other readings of a frame's precision have names. Boxes are matched once; every k
only chooses other frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.average_precision import Reading, image_average_precision
from shiftproof.metrics.detection import ranked_average_precision
from shiftproof.metrics.frame_sets import FrameSets, Groups, Offsets, check_k, frame_sets
from shiftproof.metrics.matching import Matches
from shiftproof.metrics.ranked_hits import Area, rank_by_class

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

    >>> from shiftproof.metrics.matching import match
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

    >>> from shiftproof.metrics.matching import match
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

    >>> from shiftproof.metrics.matching import match
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
