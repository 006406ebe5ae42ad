"""Boxes: their IoU, and which of them found an object, decided once for all images and thresholds by the rules of COCO.

Every metric of detection is made from the flags kept here, so another subset of images, another neighbourhood or another
bootstrap sample never matches boxes again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Boxes, Detections, Truths

Overlap: TypeAlias = float | Sequence[float] | Literal["coco", "ilsvrc"]
"""Minimum IoU of a true positive: one number, several, COCO's ten from 0.5 to 0.95, or the size-dependent one of
the ILSVRC kits, which asks less of boxes under about 24 pixels and counts the pixels of both corners in."""

Size: TypeAlias = str | tuple[float, float]
"""Objects of which area count: a name of `SIZES`, or the least and the largest area in pixels, both included."""

COCO_OVERLAPS = tuple(np.linspace(0.5, 0.95, 10).tolist())

SIZES: Mapping[str, tuple[float, float]] = {
    "all": (0.0, math.inf),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, math.inf),
}


def box_areas(boxes: Boxes) -> NDArray[np.floating]:
    """Pixels inside each box, (boxes,)."""
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def box_overlap(found: Boxes, true: Boxes, crowd: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Shared area over the area of both together, row by row, (boxes,); of a crowd, over the area of the box found.

    A box that lies inside a crowd overlaps it wholly, however large the crowd is.

    >>> found, true = np.array([[0.0, 0, 2, 2]] * 2), np.array([[1.0, 0, 4, 2]] * 2)
    >>> box_overlap(found, true, np.array([False, True]))  # 2 of 8, and 2 of 4
    array([0.25, 0.5 ])
    """
    width = np.minimum(found[:, 2], true[:, 2]) - np.maximum(found[:, 0], true[:, 0])
    height = np.minimum(found[:, 3], true[:, 3]) - np.maximum(found[:, 1], true[:, 1])
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    own = box_areas(found)
    whole = np.where(crowd, own, own + box_areas(true) - shared)
    return np.asarray(np.divide(shared, whole, out=np.zeros_like(shared), where=shared > 0))


def as_counted(boxes: Boxes, iou: Overlap) -> Boxes:
    """The boxes in the way that a threshold measures them: of the ILSVRC kits the last column and row of pixels are inside.

    >>> as_counted(np.array([[0.0, 0, 4, 2]]), "ilsvrc")  # 5 by 3 pixels
    array([[0., 0., 5., 3.]])
    """
    return boxes + np.array([0, 0, 1, 1]) if iou == "ilsvrc" else boxes


def least_overlaps(iou: Overlap, true: Boxes) -> NDArray[np.floating]:
    """The overlap that finds each box, as it is counted, at each threshold, (thresholds, boxes)."""
    if iou == "ilsvrc":
        width, height = true[:, 2] - true[:, 0], true[:, 3] - true[:, 1]
        return np.minimum(0.5, width * height / ((width + 10) * (height + 10)))[None]
    # at 1 a box in the very same place would fail by the last digit
    asked = np.minimum(overlap_numbers(iou), 1 - 1e-10)
    return np.repeat(asked[:, None], len(true), axis=1)


def overlap_numbers(iou: float | Sequence[float] | str) -> NDArray[np.floating]:
    """The IoU thresholds, (thresholds,); nan for the one that depends on the size of the object.

    >>> overlap_numbers(0.5), len(overlap_numbers("coco"))
    (array([0.5]), 10)
    """
    if isinstance(iou, str):
        named = {"coco": COCO_OVERLAPS, "ilsvrc": (math.nan,)}
        if iou not in named:
            raise BadInput(f"iou should be a number, several, 'coco' or 'ilsvrc', got {iou!r}")
        return np.array(named[iou])
    asked = np.atleast_1d(np.asarray(iou, dtype=float))
    if asked.ndim != 1 or not len(asked) or not ((asked > 0) & (asked <= 1)).all():
        raise BadInput(f"iou should lie above 0 and not above 1, such as 0.5, got {iou}")
    return asked


def area_bounds(size: Size) -> tuple[float, float]:
    """The least and the largest area of the objects that count."""
    if isinstance(size, str):
        if size not in SIZES:
            raise BadInput(f"size should be one of {', '.join(SIZES)} or two areas in pixels, got {size!r}")
        return SIZES[size]
    return size


def stable_order(groups: NDArray[np.integer]) -> NDArray[np.integer]:
    """Rows by group, a number from 0 up; those of the same group stay in their order.

    >>> stable_order(np.array([2, 0, 2, 0])).tolist()
    [1, 3, 0, 2]
    """
    return np.argsort(groups.astype(np.int64) * len(groups) + np.arange(len(groups)))


def descending_order(values: NDArray[np.floating]) -> NDArray[np.integer]:
    """Rows from the highest value to the lowest; equals stay in their order.

    >>> descending_order(np.array([0.5, 0.9, 0.5])).tolist()
    [1, 0, 2]
    """
    roughly = np.argsort(-values)
    level = np.empty(len(values), dtype=np.int64)
    level[roughly] = np.cumsum(changes(values[roughly]))
    return stable_order(level)


def changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether a value differs from the one before it; the first always does.

    >>> changes(np.array([4, 4, 2])).tolist()
    [True, False, True]
    """
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def rank_in_group(first: NDArray[np.bool_]) -> NDArray[np.integer]:
    """How many rows of the same group stand above each, where `first` marks the top row of each group.

    >>> rank_in_group(np.array([True, False, False, True])).tolist()
    [0, 1, 2, 0]
    """
    rows = np.arange(len(first))
    return np.asarray(rows - np.maximum.accumulate(np.where(first, rows, 0)))


Places = NDArray[np.integer]

_PAIRS_AT_ONCE = 1_000_000  # of a box and an object of the same image: about 150 MB


@dataclass(frozen=True)
class Matches:
    """Boxes by class and descending score, with what became of each at each threshold, and the objects there were to find.

    Of boxes of equal score that of the earlier image comes first. What is neither a hit nor left out is a false positive.
    """

    ids: tuple[str, ...]
    ious: NDArray[np.floating]  # (thresholds,); nan where it hangs on the size of the object
    row: Places  # (boxes,): where each stood in the detections
    image: Places  # (boxes,)
    classes: Places  # (boxes,); all 0 where classes are merged
    scores: NDArray[np.floating]  # (boxes,)
    hit: NDArray[np.bool_]  # (thresholds, boxes): lies on an object that counts and that no box of a higher score has taken
    left_out: NDArray[np.bool_]  # (thresholds, boxes): on a crowd or an object that does not count, or of another size
    object_image: Places  # (objects that count,)
    object_classes: Places  # (objects that count,)

    def among(self, images: NDArray[np.bool_]) -> Matches:
        """What there is in some of the images, (images,); the others stay in `ids` and are empty."""
        boxes, objects = images[self.image], images[self.object_image]
        return dataclasses.replace(
            self,
            row=self.row[boxes],
            image=self.image[boxes],
            classes=self.classes[boxes],
            scores=self.scores[boxes],
            hit=self.hit[:, boxes],
            left_out=self.left_out[:, boxes],
            object_image=self.object_image[objects],
            object_classes=self.object_classes[objects],
        )

    @property
    def classes_known(self) -> int:
        """One more than the highest class of any box or object."""
        return 1 + int(max(self.classes.max(initial=-1), self.object_classes.max(initial=-1)))


def match(
    detections: Detections,
    truths: Truths,
    *,
    iou: Overlap = 0.5,
    most: int = 100,
    size: Size = "all",
    class_blind: bool = False,
) -> Matches:
    """What became of each box: by descending score, each takes the free object of its class that it overlaps most.

    The rules are COCO's: an object is found once, a crowd any number of times; what is a crowd, ignored or of another `size`
    is taken only where nothing that counts is free, and leaves its box out; of each image and class the `most` best boxes
    count. The images are those of `truths`. Where `class_blind`, any object will do: that is localization.

    >>> square, no = np.array([[0.0, 0, 4, 4]]), np.array([False])
    >>> truths = Truths(("a",), np.array([0]), square, np.array([7]), no, no, np.array([16.0]))
    >>> boxes = np.array([[0.0, 0, 4, 3], [0, 0, 4, 4]])
    >>> found = match(Detections(("a",), np.array([0, 0]), boxes, np.array([0.9, 0.8]), np.array([7, 7])), truths)
    >>> found.hit.tolist()  # three quarters are enough, and a second box on the same object is one too many
    [[True, False]]
    """
    _check(detections, truths)
    images = _places_among(detections, truths)
    bounds = area_bounds(size)
    objects = _ordered_objects(truths, bounds, class_blind)
    row = _by_score(detections, images, class_blind)
    image, classes = images[row], np.zeros_like(row) if class_blind else detections.classes[row]
    cells = _cells(image, classes)
    order = stable_order(cells)
    order = order[rank_in_group(changes(cells[order])) < most]
    found = detections.boxes[row[order]].astype(float)
    areas = box_areas(found)
    boxes = _Boxes(image[order], classes[order], as_counted(found, iou))
    objects = objects._replace(boxes=as_counted(objects.boxes, iou))
    hit, spared = _take_in_turn(boxes, objects, least_overlaps(iou, objects.boxes))
    left_out = spared | ~hit & ((areas < bounds[0]) | (areas > bounds[1]))
    back = np.argsort(order)
    kept = order[back]
    return Matches(
        truths.ids,
        overlap_numbers(iou),
        row[kept],
        image[kept],
        classes[kept],
        detections.scores[row[kept]],
        hit[:, back],
        left_out[:, back],
        objects.image[objects.counts],
        objects.classes[objects.counts],
    )


class _Boxes(NamedTuple):
    """Boxes by image, class and descending score."""

    image: Places
    classes: Places
    boxes: NDArray[np.floating]


class _Objects(NamedTuple):
    """Objects by image and class, in the order they were given."""

    image: Places
    classes: Places
    boxes: NDArray[np.floating]
    crowd: NDArray[np.bool_]
    counts: NDArray[np.bool_]


class _Pairs(NamedTuple):
    """A box and an object that it overlaps enough at some threshold; by box, the object it would rather take first."""

    box: Places
    object: Places
    overlap: NDArray[np.floating]


def _by_score(detections: Detections, images: Places, class_blind: bool) -> Places:
    """Rows of the boxes by class and descending score; equal ones by image, then by their own class, then as given."""
    given = stable_order(_cells(images, detections.classes))
    row = given[descending_order(detections.scores[given])]
    return np.asarray(row if class_blind else row[stable_order(detections.classes[row])])


def _ordered_objects(truths: Truths, bounds: tuple[float, float], class_blind: bool) -> _Objects:
    row = stable_order(_cells(truths.image, truths.classes))
    areas = truths.areas[row]
    crowd = truths.crowd[row]
    counts = ~(crowd | truths.ignored[row] | (areas < bounds[0]) | (areas > bounds[1]))
    classes = np.zeros_like(truths.classes) if class_blind else truths.classes[row]
    return _Objects(truths.image[row], classes, truths.boxes[row].astype(float), crowd, counts)


def _take_in_turn(
    boxes: _Boxes, objects: _Objects, least: NDArray[np.floating]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which boxes take an object that counts, and which one that does not, (thresholds, boxes) each."""
    pairs = _preferred_first(_overlapping(boxes, objects, least.min(axis=0, initial=1)), objects)
    # the same question at every threshold at once: pairs, boxes and objects of each have numbers of their own
    threshold, pair = np.nonzero(pairs.overlap >= least[:, pairs.object])
    box = threshold * len(boxes.image) + pairs.box[pair]
    target = threshold * len(objects.image) + pairs.object[pair]
    crowd, counts = objects.crowd[pairs.object[pair]], objects.counts[pairs.object[pair]]
    hit, spared = np.zeros((2, len(least) * len(boxes.image)), dtype=bool)
    free = np.ones(least.size, dtype=bool)
    for turn in _turns(box, threshold, boxes, pairs.box[pair]):
        # boxes that have their turn together lie in different images or classes, so no two want the same object
        open_to_all = turn[free[target[turn]] | crowd[turn]]
        first = open_to_all[changes(box[open_to_all])]
        hit[box[first]] = counts[first]
        spared[box[first]] = ~counts[first]
        free[target[first]] = False
    return hit.reshape(len(least), -1), spared.reshape(len(least), -1)


def _overlapping(boxes: _Boxes, objects: _Objects, least: NDArray[np.floating]) -> _Pairs:
    """Pairs of the same image and class that overlap enough for the mildest threshold."""
    classes = 1 + max(boxes.classes.max(initial=0), objects.classes.max(initial=0))
    box_cells = _cells(boxes.image, boxes.classes, classes)
    object_cells = _cells(objects.image, objects.classes, classes)
    start = np.searchsorted(object_cells, box_cells, side="left")
    count = np.searchsorted(object_cells, box_cells, side="right") - start
    kept = []
    for part in _parts(count):
        box = np.repeat(np.arange(part.start, part.stop), count[part])
        place = np.repeat(start[part], count[part]) + rank_in_group(changes(box))
        overlap = box_overlap(boxes.boxes[box], objects.boxes[place], objects.crowd[place])
        enough = overlap >= least[place]
        kept.append(_Pairs(box[enough], place[enough], overlap[enough]))
    return _Pairs(*(np.concatenate(column) for column in zip(*kept, strict=True)))


def _preferred_first(pairs: _Pairs, objects: _Objects) -> _Pairs:
    """Objects that count before those that do not, then by overlap; of equals the last one given, as in pycocotools."""
    first = changes(pairs.box)
    # most boxes have no choice, and only the others need sorting
    several = np.flatnonzero(~first | ~np.append(first[1:], True))
    box, place, overlap = (column[several] for column in pairs)
    order = np.arange(len(first))
    order[several] = several[np.lexsort((-place, -overlap, ~objects.counts[place], box))]
    return _Pairs(pairs.box[order], pairs.object[order], pairs.overlap[order])


def _turns(box: Places, threshold: Places, boxes: _Boxes, place: Places) -> Iterator[Places]:
    """Pairs whose boxes choose at the same time: the best of each image and class, then the next best."""
    new_box = changes(box)
    new_group = changes(threshold) | changes(boxes.image[place]) | changes(boxes.classes[place])
    order_of_box = np.cumsum(new_box) - 1
    turn = rank_in_group(new_group[new_box])[order_of_box]
    in_turn = np.argsort(turn, kind="stable")
    yield from np.split(in_turn, np.flatnonzero(changes(turn[in_turn]))[1:])


def _cells(image: Places, classes: Places, known: int | None = None) -> Places:
    """Image and class in one number, in the order of images, then of classes."""
    known = 1 + int(classes.max(initial=0)) if known is None else known
    return np.asarray(image.astype(np.int64) * known + classes)


def _parts(count: Places) -> Iterator[slice]:
    """Boxes in stretches whose pairs fit in memory together; one at least, however few there are."""
    reached = np.cumsum(count) // _PAIRS_AT_ONCE
    edges = np.flatnonzero(np.diff(reached)) + 1
    for start, stop in zip([0, *edges], [*edges, len(count)], strict=True):
        yield slice(start, stop)


def _places_among(detections: Detections, truths: Truths) -> Places:
    """The image of each box as a place in the ids of the ground truth."""
    if detections.ids == truths.ids:
        return detections.image
    place = {name: number for number, name in enumerate(truths.ids)}
    unknown = [name for name in detections.ids if name not in place]
    if unknown:
        raise BadInput(f"{len(unknown)} images have detections but are not in the ground truth, such as {unknown[0]}")
    return np.asarray(np.array([place[name] for name in detections.ids], dtype=np.int64)[detections.image])


def _check(detections: Detections, truths: Truths) -> None:
    if np.isnan(detections.scores).any():
        raise BadInput("some boxes have a score that is not a number; leave them out before matching")
    if min(detections.classes.min(initial=0), truths.classes.min(initial=0)) < 0:
        raise BadInput("classes should be 0 or more; leave out boxes of classes that are not scored")
