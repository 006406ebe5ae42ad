"""Hits in the order of sureness, in any groups of boxes, and the area under the curve of precision over recall they make.

Made once, a ranking serves any drawing of images: that is what makes every k and every interval cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.matching import Matches
from shiftproof.metrics.sorted_groups import changes, rank_in_group

Area: TypeAlias = Literal["coco", "voc"]
"""Which mean of precision: at COCO's 101 recalls from 0 to 1, or over every recall, as Pascal VOC has it from 2010."""

Times = NDArray[np.generic]
"""How often each image counts, (images,): 0 or 1 for a subset, more for images drawn again."""

Places = NDArray[np.integer]

RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Ranking:
    """Boxes in groups, the surest first in each, and the hits among them; made once for any drawing of images.

    A cell is one group at one threshold.
    """

    images: int
    groups: Places  # (groups,): those with something to find, in order
    object_image: Places  # (objects,)
    object_group: Places  # (objects,): place in `groups`
    image: Places  # (boxes,)
    in_play: NDArray[np.bool_]  # (thresholds, boxes): hits and false alarms
    threshold: Places  # (hits,)
    box: Places  # (hits,)
    group_start: Places  # (hits,): the surest box of the hit's group
    cell: Places  # (hits,)


class Steps(NamedTuple):
    """What each hit adds to its curve, (hits,)."""

    recall: NDArray[np.floating]
    recall_before: NDArray[np.floating]  # of the hit before it; 0 for the first
    precision: NDArray[np.floating]  # the best at this recall or any higher


def rank_by_class(matches: Matches) -> Ranking:
    """A curve for each class."""
    return rank(matches, matches.classes, matches.object_classes)


def rank(matches: Matches, box_groups: Places, object_groups: Places) -> Ranking:
    """A curve for each group that has something to find, whatever the groups are."""
    # a class comes surest first already
    order = np.arange(len(box_groups)) if box_groups is matches.classes else np.lexsort((-matches.scores, box_groups))
    groups, object_group = np.unique(object_groups, return_inverse=True)
    sorted_groups = box_groups[order]
    threshold, box = np.nonzero(matches.hit[:, order])
    group = np.searchsorted(groups, sorted_groups[box])
    start = np.arange(len(order)) - rank_in_group(changes(sorted_groups))
    return Ranking(
        len(matches.ids),
        groups,
        matches.object_image,
        object_group,
        matches.image[order],
        ~matches.left_out[:, order],
        threshold,
        box,
        start[box],
        threshold * len(groups) + group,
    )


def areas_of(ranking: Ranking, *, area: Area = "coco", times: Times | None = None) -> NDArray[np.floating]:
    """Average precision of each group, (thresholds, groups); nan where the images that count leave nothing to find."""
    if area not in get_args(Area):
        raise BadInput(f"area should be 'coco' or 'voc', got {area!r}")
    steps, to_find = steps_of(ranking, times)
    share = steps.recall - steps.recall_before if area == "voc" else recalls_won(steps) / len(RECALLS)
    thresholds, groups = len(ranking.in_play), len(ranking.groups)
    sums = np.bincount(ranking.cell, share * steps.precision, thresholds * groups).reshape(thresholds, groups)
    return np.where(to_find > 0, sums, np.nan)


def steps_of(ranking: Ranking, times: Times | None) -> tuple[Steps, NDArray[np.integer]]:
    """What each hit adds, and how many objects each group has, (groups,), in the images that count."""
    if times is not None and times.shape != (ranking.images,):
        raise BadInput(f"times should say how often each of {ranking.images} images counts, got shape {times.shape}")
    weight = np.ones(ranking.images, np.int64) if times is None else times.astype(np.int64)
    to_find = np.zeros(len(ranking.groups), np.int64)
    np.add.at(to_find, ranking.object_group, weight[ranking.object_image])
    seen = np.zeros((len(ranking.in_play), len(ranking.image) + 1), np.int64)
    np.cumsum(ranking.in_play * weight[ranking.image], axis=1, out=seen[:, 1:])
    seen_in_group = seen[ranking.threshold, ranking.box + 1] - seen[ranking.threshold, ranking.group_start]
    own = weight[ranking.image[ranking.box]]
    before = np.cumsum(own) - own
    first = changes(ranking.cell)
    before -= np.maximum.accumulate(np.where(first, before, 0))
    # an image that does not count adds no recall and has no precision; nothing is divided by 0 for it
    precision = (before + own) / np.maximum(seen_in_group, 1)
    total = np.maximum(np.tile(to_find, len(ranking.in_play))[ranking.cell], 1)
    return Steps((before + own) / total, before / total, _highest_from_here(precision, ranking.cell)), to_find


def _highest_from_here(values: NDArray[np.floating], cell: Places) -> NDArray[np.floating]:
    """The highest value of each row and all rows of its cell below it."""
    highest, reach = values, 1
    while reach < len(cell) and (same := cell[reach:] == cell[:-reach]).any():
        # each row knows the highest of the next `reach` rows, so asking the one at that distance doubles what it knows
        further = np.where(same, np.maximum(highest[:-reach], highest[reach:]), highest[:-reach])
        highest = np.concatenate([further, highest[-reach:]])
        reach *= 2
    return highest


def recalls_before(steps: Steps) -> Places:
    """How many of COCO's recalls earlier hits have reached; the first hit has even recall 0 before it."""
    return np.where(steps.recall_before > 0, np.searchsorted(RECALLS, steps.recall_before, side="right"), 0)


def recalls_won(steps: Steps) -> Places:
    """How many of COCO's recalls each hit is the first to reach."""
    reached = np.where(steps.recall > 0, np.searchsorted(RECALLS, steps.recall, side="right"), 0)
    return np.asarray(reached - recalls_before(steps))
