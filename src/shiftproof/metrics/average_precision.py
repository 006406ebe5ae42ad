"""Precision averaged over recall, of classes, of single images or of any drawing of images, from boxes matched once."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.matching import Matches
from shiftproof.metrics.ranked_hits import (
    RECALLS,
    Area,
    Times,
    areas_of,
    rank,
    rank_by_class,
    recalls_before,
    recalls_won,
    steps_of,
)
from shiftproof.metrics.sorted_groups import changes, rank_in_group

Reading: TypeAlias = Literal["present", "present or predicted", "pooled"]
"""Which classes the AP of one image is about: the mean of those it shows, the mean of those it shows or has boxes of (the
latter count 0), or all boxes in one ranking."""

Places = NDArray[np.integer]


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
    if reading not in get_args(Reading):
        raise BadInput(f"reading should be one of {', '.join(get_args(Reading))}, got {reading!r}")
    classes, images = matches.classes_known, len(matches.ids)
    if reading == "pooled":
        ranking = rank(matches, matches.image, matches.object_image)
        shown = ranking.groups
    else:
        ranking = rank(matches, _cells(matches), matches.object_image.astype(np.int64) * classes + matches.object_classes)
        shown = ranking.groups // max(classes, 1)
    sums = np.array([np.bincount(shown, row, images) for row in areas_of(ranking, area=area)])
    counts = np.tile(np.bincount(shown, minlength=images), (len(sums), 1))
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
    first, count = recalls_before(steps), recalls_won(steps)
    filled = np.zeros(cells * len(RECALLS))
    owner = np.repeat(np.arange(len(count)), count)
    filled[(ranking.cell * len(RECALLS) + first)[owner] + rank_in_group(changes(owner))] = steps.precision[owner]
    curves = np.full((len(matches.ious), matches.classes_known, len(RECALLS)), np.nan)
    shaped = filled.reshape(len(matches.ious), len(ranking.groups), len(RECALLS))
    curves[:, ranking.groups] = np.where(to_find[:, None] > 0, shaped, np.nan)
    return curves


def _divided(sums: NDArray[np.floating], counts: NDArray[np.number]) -> NDArray[np.floating]:
    """Nan where there is nothing to divide by."""
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _cells(matches: Matches) -> Places:
    """Image and class of each box in one number."""
    return np.asarray(matches.image.astype(np.int64) * matches.classes_known + matches.classes)


def _false_classes(matches: Matches, shown: Places) -> Places:
    """How many classes of each image have a box that counts and no object, (thresholds, images)."""
    cells, classes, images = _cells(matches), max(matches.classes_known, 1), len(matches.ids)
    false = [np.setdiff1d(cells[~left_out], shown) for left_out in matches.left_out]
    return np.array([np.bincount(absent // classes, minlength=images) for absent in false])
