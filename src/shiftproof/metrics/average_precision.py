"""Precision averaged over recall, of classes, of single images or of any drawing of images, from boxes matched once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.matching import Matches
from shiftproof.metrics.sorted_groups import changes, rank_in_group

Area: TypeAlias = Literal["coco", "voc"]
"""Which mean of precision: at COCO's 101 recalls from 0 to 1, or over every recall, as Pascal VOC has it from 2010."""

Reading: TypeAlias = Literal["present", "present or predicted", "pooled"]
"""Which classes the AP of one image is about: the mean of those it shows, the mean of those it shows or has boxes of (the
latter count 0), or all boxes in one ranking."""

Times = NDArray[np.generic]
"""How often each image counts, (images,): 0 or 1 for a subset, more for images drawn again."""

Places = NDArray[np.integer]

RECALLS = np.linspace(0, 1, 101)


def average_precision(matches: Matches, *, area: Area = "coco", times: Times | None = None) -> NDArray[np.floating]:
    """Mean over recall of the best precision still to be had at that recall, (thresholds, classes).

    1 is perfect, nan for classes with nothing to find. `times` says how often each image counts.

    >>> from shiftproof.metrics.matching import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a",), np.zeros(2, int), squares, np.zeros(2, int), none, none, np.full(2, 16.0))
    >>> found = Detections(("a",), np.zeros(2, int), squares + [[0], [9]], np.array([0.9, 0.8]), np.zeros(2, int))
    >>> average_precision(match(found, truths), area="voc")  # one of two objects, with precision 1 until then
    array([[0.5]])
    >>> average_precision(match(found, truths))[0].round(4)  # 51 of the 101 recalls are not above a half
    array([0.505])
    """
    ranking = rank_by_class(matches)
    areas = np.full((len(matches.ious), matches.classes_known), np.nan)
    areas[:, ranking.groups] = areas_of(ranking, area=area, times=times)
    return areas


def average_recall(matches: Matches, *, times: Times | None = None) -> NDArray[np.floating]:
    """Share of the objects of each class that are found at all, (thresholds, classes); nan for classes with none.

    1 is perfect. Averaged over COCO's thresholds and over classes it is COCO's average recall.

    >>> from shiftproof.metrics.matching import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a",), np.zeros(2, int), squares, np.zeros(2, int), none, none, np.full(2, 16.0))
    >>> average_recall(match(Detections(("a",), np.zeros(1, int), squares[:1], np.ones(1), np.zeros(1, int)), truths))
    array([[0.5]])
    """
    classes = matches.classes_known
    weight = np.ones(len(matches.ids)) if times is None else times.astype(float)
    to_find = np.bincount(matches.object_classes, weight[matches.object_image], classes)
    found = [np.bincount(matches.classes[hit], weight[matches.image[hit]], classes) for hit in matches.hit]
    return _divided(np.array(found), np.tile(to_find, (len(found), 1)))


def image_average_precision(matches: Matches, *, reading: Reading = "present", area: Area = "coco") -> NDArray[np.floating]:
    """Average precision of each image alone, over the thresholds and the classes it shows, (images,).

    1 is perfect, nan for images to which the reading gives no class.

    >>> from shiftproof.metrics.matching import match
    >>> from shiftproof.types import Detections, Truths
    >>> square, none = np.array([[0.0, 0, 4, 4]]), np.zeros(1, dtype=bool)
    >>> truths = Truths(("a", "empty"), np.zeros(1, int), square, np.array([0]), none, none, np.full(1, 16.0))
    >>> found = Detections(("a",), np.zeros(2, int), square[[0, 0]], np.array([0.5, 0.9]), np.array([0, 1]))
    >>> matches = match(found, truths)  # the object, and before it a false alarm of another class
    >>> image_average_precision(matches)
    array([ 1., nan])
    >>> image_average_precision(matches, reading="present or predicted"), image_average_precision(matches, reading="pooled")
    (array([0.5, nan]), array([0.5, nan]))
    """
    classes, images = matches.classes_known, len(matches.ids)
    if reading == "pooled":
        ranking = rank(matches, matches.image, matches.object_image)
        shown, asked = ranking.groups, np.bincount(ranking.groups, minlength=images)
    else:
        ranking = rank(matches, _cells(matches), matches.object_image * classes + matches.object_classes)
        shown = ranking.groups // max(classes, 1)
        asked = np.bincount(shown, minlength=images)
    areas = areas_of(ranking, area=area)
    sums = np.array([np.bincount(shown, row, images) for row in areas])
    counts = np.tile(asked, (len(sums), 1))
    if reading == "present or predicted":
        counts += _false_classes(matches, ranking.groups)
    return np.asarray(_divided(sums, counts).mean(axis=0))


def precision_at_recall(matches: Matches, *, times: Times | None = None) -> NDArray[np.floating]:
    """The best precision still to be had at each of COCO's 101 recalls, (thresholds, classes, recalls): the curve to draw.

    0 where a recall is never reached, nan for classes with nothing to find.

    >>> from shiftproof.metrics.matching import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a",), np.zeros(2, int), squares, np.zeros(2, int), none, none, np.full(2, 16.0))
    >>> found = Detections(("a",), np.zeros(1, int), squares[:1], np.ones(1), np.zeros(1, int))
    >>> precision_at_recall(match(found, truths))[0, 0, [0, 50, 51]]
    array([1., 1., 0.])
    """
    ranking = rank_by_class(matches)
    steps, to_find = steps_of(ranking, times)
    cells = len(matches.ious) * len(ranking.groups)
    first, count = _recalls_before(steps), _recalls_won(steps)
    filled = np.zeros(cells * len(RECALLS))
    owner = np.repeat(np.arange(len(count)), count)
    filled[(ranking.cell * len(RECALLS) + first)[owner] + rank_in_group(changes(owner))] = steps.precision[owner]
    curves = np.full((len(matches.ious), matches.classes_known, len(RECALLS)), np.nan)
    shaped = filled.reshape(len(matches.ious), len(ranking.groups), len(RECALLS))
    curves[:, ranking.groups] = np.where(to_find[:, None] > 0, shaped, np.nan)
    return curves


@dataclass(frozen=True)
class Ranking:
    """Boxes in groups, the surest first in each, and the hits among them; made once for any drawing of images.

    A cell is one group at one threshold.
    """

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
    steps, to_find = steps_of(ranking, times)
    share = steps.recall - steps.recall_before if area == "voc" else _recalls_won(steps) / len(RECALLS)
    thresholds, groups = len(ranking.in_play), len(ranking.groups)
    sums = np.bincount(ranking.cell, share * steps.precision, thresholds * groups).reshape(thresholds, groups)
    return np.where(to_find > 0, sums, np.nan)


def steps_of(ranking: Ranking, times: Times | None) -> tuple[Steps, NDArray[np.integer]]:
    """What each hit adds, and how many objects each group has, (groups,), in the images that count."""
    weight = np.ones(int(max(ranking.image.max(initial=-1), ranking.object_image.max(initial=-1))) + 1, np.int64)
    weight = weight if times is None else times.astype(np.int64)
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


def _recalls_before(steps: Steps) -> Places:
    """How many of COCO's recalls earlier hits have reached; the first hit has even recall 0 before it."""
    return np.where(steps.recall_before > 0, np.searchsorted(RECALLS, steps.recall_before, side="right"), 0)


def _recalls_won(steps: Steps) -> Places:
    """How many of COCO's recalls each hit is the first to reach."""
    reached = np.where(steps.recall > 0, np.searchsorted(RECALLS, steps.recall, side="right"), 0)
    return np.asarray(reached - _recalls_before(steps))


def _divided(sums: NDArray[np.floating], counts: NDArray[np.number]) -> NDArray[np.floating]:
    """Nan where there is nothing to divide by."""
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _cells(matches: Matches) -> Places:
    """Image and class of each box in one number."""
    return np.asarray(matches.image * matches.classes_known + matches.classes)


def _false_classes(matches: Matches, shown: Places) -> Places:
    """How many classes of each image have a box that counts and no object, (thresholds, images)."""
    cells, classes, images = _cells(matches), max(matches.classes_known, 1), len(matches.ids)
    false = [np.setdiff1d(cells[~left_out], shown) for left_out in matches.left_out]
    return np.array([np.bincount(absent // classes, minlength=images) for absent in false])
