"""Precision averaged over recall, of classes, of single images or of any drawing of images, from boxes matched once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.boxes import Matches, Overlap, Size, changes, match, rank_in_group
from shiftproof.metrics.intervals import Groups
from shiftproof.metrics.resampling import RESAMPLES, Resampled, left_out_interval
from shiftproof.types import Detections, Truths

Area: TypeAlias = Literal["coco", "voc"]
"""Which mean of precision: at COCO's 101 recalls from 0 to 1, or over every recall, as Pascal VOC has it from 2010."""

Times = NDArray[np.generic]
"""How often each image counts, (images,): 0 or 1 for a subset, more for images drawn again."""


RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Ranking:
    """Boxes in groups, by descending score in each, and the hits among them; made once for any drawing of images.

    A cell is one group at one threshold.
    """

    images: int
    groups: Places  # (groups,): those with something to find, in order
    object_image: Places  # (objects,)
    object_group: Places  # (objects,): place in `groups`
    image: Places  # (boxes,)
    in_play: NDArray[np.bool_]  # (thresholds, boxes): true and false positives
    threshold: Places  # (hits,)
    box: Places  # (hits,)
    group_start: Places  # (hits,): the first box of the hit's group
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
    # a class comes by descending score already
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


Reading: TypeAlias = Literal["present", "present or predicted", "pooled"]
"""Which classes the AP of one image is about: the mean of those it shows, the mean of those it shows or has boxes of (the
latter count 0), or all boxes in one ranking."""

Places = NDArray[np.integer]


def average_precision(matches: Matches, *, area: Area = "coco", times: Times | None = None) -> NDArray[np.floating]:
    """Mean over recall of the best precision still to be had at that recall, (thresholds, classes).

    1 is perfect, nan for classes with nothing to find. `times` says how often each image counts.

    >>> from shiftproof.metrics.boxes import match
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

    >>> from shiftproof.metrics.boxes import match
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

    >>> from shiftproof.metrics.boxes import match
    >>> from shiftproof.types import Detections, Truths
    >>> square, none = np.array([[0.0, 0, 4, 4]]), np.zeros(1, dtype=bool)
    >>> truths = Truths(("a", "empty"), np.zeros(1, int), square, np.array([0]), none, none, np.full(1, 16.0))
    >>> found = Detections(("a",), np.zeros(2, int), square[[0, 0]], np.array([0.5, 0.9]), np.array([0, 1]))
    >>> matches = match(found, truths)  # the object, and before it a false positive of another class
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

    >>> from shiftproof.metrics.boxes import match
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


_BLOCKS = 200


def resampled_precision(
    matches: Matches,
    images: NDArray[np.integer] | None = None,
    *,
    clusters: Groups | None = None,
    area: Area = "coco",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Resampled:
    """Average precision over all thresholds of each class that has something to find: as seen, and with images drawn again.

    The columns are classes, nan in drawings that leave nothing of them to find. What is drawn are the rows of `images`,
    places of images in the matches that may repeat; all of them once unless given. Rows of one of the `clusters`, a number
    for each row, are drawn together. As many rows are drawn alike for the
    same seed, so two models, conditions or choices of frames can be compared drawing by drawing.

    >>> from shiftproof.metrics.boxes import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 2), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a", "b"), np.arange(2), squares, np.zeros(2, int), none, none, np.full(2, 16.0))
    >>> found = Detections(("a", "b"), np.array([0]), squares[:1], np.ones(1), np.zeros(1, int))
    >>> again = resampled_precision(match(found, truths), area="voc", resamples=100)
    >>> again.seen, again.left_out.tolist()  # a alone is found
    (array([[0.5]]), [[0.0], [1.0]])
    >>> sorted(set(again.drawn[:, 0].tolist()))
    [0.0, 0.5, 1.0]
    """
    every = np.arange(len(matches.ids))
    pot = every if images is None else images
    ranking = rank_by_class(matches.among(np.isin(every, pot)))

    def areas(rows: NDArray[np.integer]) -> NDArray[np.floating]:
        times = np.bincount(rows, minlength=len(every))
        # the last digit hangs on the order of sums, and drawings that are alike should be equal
        return np.asarray(areas_of(ranking, area=area, times=times).mean(axis=0).round(12))

    generator = np.random.default_rng(seed)
    group_of = np.arange(len(pot)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    order = np.argsort(group_of, kind="stable")
    members = np.split(pot[order], np.flatnonzero(np.diff(group_of[order])) + 1) if len(pot) else []
    cases = len(members)

    def drawing() -> NDArray[np.integer]:
        chosen = generator.integers(cases, size=cases)
        return pot[chosen] if clusters is None else np.concatenate([members[case] for case in chosen.tolist()])

    drawn = [areas(drawing()) for _ in range(resamples if cases else 0)]
    block = (group_of * min(cases, _BLOCKS)) // max(cases, 1)
    left_out = [areas(pot[block != number]) for number in range(int(block.max()) + 1 if cases else 0)]
    classes = len(ranking.groups)
    return Resampled(
        areas(pot)[None],
        np.reshape(drawn, (len(drawn), classes)),
        np.reshape(left_out, (len(left_out), classes)),
    )


def over_classes(resampled: Resampled) -> Resampled:
    """The mean over the classes that each drawing has something of, one column: mean average precision."""
    return Resampled(*(_mean_known(part) for part in resampled))


def _mean_known(areas: NDArray[np.floating]) -> NDArray[np.floating]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a drawing with nothing to find has no mean
        return np.asarray(np.nanmean(areas, axis=1, keepdims=True))


def mean_average_precision(
    detections: Detections,
    truths: Truths,
    *,
    iou: Overlap = 0.5,
    area: Area = "coco",
    size: Size = "all",
    most: int = 100,
    class_blind: bool = False,
) -> float:
    """Average precision, averaged over the classes that have something to find and over thresholds (mAP); nan if none has.

    1 is perfect. ``iou="coco"`` is the mean over 0.5, 0.55 to 0.95; ``class_blind`` is class-agnostic: localization.

    >>> squares, none = np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a",), np.zeros(2, int), squares, np.array([0, 1]), none, none, np.full(2, 16.0))
    >>> found = Detections(("a",), np.zeros(2, int), squares, np.array([0.9, 0.8]), np.array([0, 0]))
    >>> mean_average_precision(found, truths)  # class 0 found before its false positive, class 1 not at all
    0.5
    >>> mean_average_precision(found, truths, class_blind=True)
    1.0
    """
    return matched_average_precision(
        match(detections, truths, iou=iou, most=most, size=size, class_blind=class_blind), area=area
    )


def matched_average_precision(matches: Matches, *, area: Area = "coco", times: Times | None = None) -> float:
    """Mean average precision of boxes already matched, over the images that count; nan where they leave nothing to find.

    >>> square, none = np.array([[0.0, 0, 4, 4]]), np.zeros(1, dtype=bool)
    >>> truths = Truths(("a", "b"), np.array([0]), square, np.array([0]), none, none, np.full(1, 16.0))
    >>> found = Detections(("a", "b"), np.array([0, 1]), square[[0, 0]], np.array([0.8, 0.9]), np.array([0, 0]))
    >>> matched_average_precision(match(found, truths))  # after a false positive in the other image
    0.5
    >>> matched_average_precision(match(found, truths), times=np.array([1, 0]))
    1.0
    """
    return ranked_average_precision(rank_by_class(matches), area=area, times=times)


def ranked_average_precision(ranking: Ranking, *, area: Area = "coco", times: Times | None = None) -> float:
    """Mean average precision over the groups of a ranking that have something to find."""
    areas = areas_of(ranking, area=area, times=times)
    known = areas[~np.isnan(areas)]
    return float(known.mean()) if len(known) else float("nan")


def average_precision_interval(
    matches: Matches,
    *,
    area: Area = "coco",
    times: Times | None = None,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean average precision by leaving out images, each with all its boxes, or clusters of them.

    An image that counts twice is one case all the same. None of fewer than `LEAST_CLUSTERS` cases, and where nothing is to
    be found without some of them.

    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 100), np.zeros(100, dtype=bool)
    >>> ids = tuple(str(place) for place in range(100))
    >>> truths = Truths(ids, np.arange(100), squares, np.zeros(100, int), none, none, np.full(100, 16.0))
    >>> found = Detections(ids, np.arange(0, 100, 2), squares[::2], np.ones(50), np.zeros(50, int))
    >>> low, high = average_precision_interval(match(found, truths), area="voc")
    >>> round(low, 1), round(high, 1)  # half of 100 objects are found: 0.5 +- 1.98 * 0.05
    (0.4, 0.6)
    """
    every = np.arange(len(matches.ids))
    pot = every if times is None else np.repeat(every, times.astype(np.int64))
    groups = (every if clusters is None else clusters)[pot]
    found = over_classes(resampled_precision(matches, pot, clusters=groups, area=area, resamples=0))
    cases = len(np.unique(groups))
    return left_out_interval(found.seen[:, 0], found.left_out[:, 0], bounds=(0.0, 1.0), level=level, cases=cases)
