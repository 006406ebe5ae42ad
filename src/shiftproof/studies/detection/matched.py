"""Detections matched with ground truth: average precision with its interval, conventions, and galleries of boxes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.boxes import Matches, Overlap, match
from shiftproof.metrics.detection import image_average_precision, resampled_precision
from shiftproof.metrics.resampling import Resampled, left_out_interval
from shiftproof.metrics.wording import counted
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, sure_of
from shiftproof.types import (
    Boxes,
    Caution,
    Clusters,
    DrawnBox,
    FoundObjects,
    Gallery,
    GalleryItem,
    LoadPredictions,
    LoadsFound,
    Measurement,
    Run,
    Truths,
)


@dataclass(frozen=True)
class Matched:
    """Detections and ground truth of a dataset, matched at one IoU threshold."""

    found: FoundObjects
    truths: Truths
    iou: Overlap
    counted: NDArray[np.intp]  # rows of the images that count

    @cached_property
    def matches(self) -> Matches:
        return self.at(self.iou)

    @cached_property
    def class_agnostic(self) -> Matches:
        """Matches whatever the class: localization."""
        return match(self.found.detections, self.truths, iou=self.iou, class_blind=True)

    @cached_property
    def by_class(self) -> Resampled:
        """Average precision of each class that has objects, over the images that count, with its jackknife."""
        return self.left_out(self.matches)

    @cached_property
    def clusters(self) -> Clusters:
        """Clusters of the images that count."""
        return self.found.clusters.take(self.counted)

    def left_out(self, matches: Matches) -> Resampled:
        """Average precision of each class from these matches, with its jackknife over clusters."""
        return resampled_precision(matches, self.counted, clusters=self.clusters.numbers, resamples=0)

    def at(self, iou: Overlap) -> Matches:
        """Matches at another IoU threshold."""
        return match(self.found.detections, self.truths, iou=iou)

    @cached_property
    def times(self) -> NDArray[np.intp]:
        """How often each image counts, (images,)."""
        return np.bincount(self.counted, minlength=len(self.found))

    @cached_property
    def among_counted(self) -> Matches:
        """Matches in the images that count."""
        return self.matches.among(self.times > 0)


def load_detections(load: LoadPredictions, run: Run) -> FoundObjects:
    """Detections of a run, beside the ground truth."""
    return cast(LoadsFound, load).found(run)


def truths_that_count(found: FoundObjects) -> Truths | None:
    """Ground truth with at least one object that is neither a crowd nor ignored, or None."""
    return _that_count(found.truths)


def _that_count(truths: Truths | None) -> Truths | None:
    return None if truths is None or (truths.crowd | truths.ignored).all() else truths


def why_no_truths(found: FoundObjects) -> str | None:
    """Why there is no average precision, or None."""
    return why_no_precision(found.truths) if len(found) else None


def why_no_precision(truths: Truths | None) -> str | None:
    """Why there is no average precision with this ground truth, or None."""
    if _that_count(truths) is not None:
        return None
    why = "the dataset has none" if truths is None else "every object is a crowd or ignored"
    remedy = "name an annotation file instead of the images (COCO, VOC, ILSVRC, ImageNet-VID or YOLO, see docs/datasets.md)"
    return f"average precision needs ground-truth boxes, and {why}; {remedy}"


def mismatched_sizes(run: Run, found: FoundObjects) -> Iterator[Caution]:
    """That images are not of the size that the annotations give, so that boxes may be misplaced."""
    if found.truths is None or not {"width", "height"} <= found.facts.keys():
        return
    said = list(zip(found.facts["width"], found.facts["height"], strict=True))
    sizes = [(width, height) for height, width in found.sizes.tolist()]
    # 0 stands for an unknown size
    others = [place for place, size in enumerate(sizes) if all(size) and None not in said[place] and size != said[place]]
    if not others:
        return
    first = others[0]
    (width, height), (told_width, told_height) = sizes[first], said[first]
    yield Caution(
        f"{run.dataset.name}: {len(others):,} of {len(found):,} images are not of the size in the annotations, such as "
        f"{found.detections.ids[first]} ({width} x {height}, not {told_width} x {told_height}): boxes may be misplaced"
    )


def convention_of(run: Run, found: FoundObjects) -> dict[str, str]:
    """Conventions of every number of a run: preprocessing, classes, images left out."""
    left = evidence.left_out(skipped_images=len(found.skipped_images), read=len(found), labelled=len(found))
    return {**run.convention(), **found.convention, **left}


def iou_name(iou: Overlap) -> str:
    """Name of an IoU threshold, or of several.

    >>> iou_name(0.5), iou_name("coco"), iou_name("ilsvrc")
    ('0.5', '0.5 to 0.95', 'ilsvrc')
    """
    if isinstance(iou, (float, int)):
        return f"{iou:g}"
    return {"coco": "0.5 to 0.95"}.get(iou, iou) if isinstance(iou, str) else ", ".join(f"{one:g}" for one in iou)


IOU_NAMES = {
    "0.5 to 0.95": "mean over COCO's ten thresholds, 0.5 to 0.95",
    "ilsvrc": "ilsvrc: 0.5, less for boxes under about 24 pixels",
}


def iou_told(iou: Overlap) -> dict[str, str]:
    """The IoU threshold as a convention."""
    return {"IoU threshold": IOU_NAMES.get(iou_name(iou), iou_name(iou))}


def measured(
    metric: str,
    column: Resampled,
    subject: evidence.Subject,
    *,
    images: int | None = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Measurement:
    """One column of resampled numbers as a measurement, with its jackknife interval cut at `bounds`.

    It rests on all images of the subject, unless fewer of them hold what it is of.
    """
    ends = precision_interval(column, subject.clusters, bounds=bounds)
    found = subject.resampled(metric, float(column.seen[0, 0]), "jackknife", ends)
    if images is None:
        return found
    return dataclasses.replace(found, images=images, clusters=min(images, subject.clusters.count))


def precision_interval(
    column: Resampled, clusters: Clusters, *, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> tuple[float, float] | None:
    """Jackknife interval of one number, by cluster."""
    return left_out_interval(column.seen[:, 0], column.left_out[:, 0], bounds=bounds, cases=clusters.count)


def column_of(resampled: Resampled, place: int) -> Resampled:
    """One column of several."""
    return Resampled(*(part[:, [place]] for part in resampled))


def difference(first: Resampled, second: Resampled) -> Resampled:
    """The first minus the second, resample by resample."""
    return Resampled(*(np.asarray(one - other) for one, other in zip(first, second, strict=True)))


BEST_SHOWN = 4
"""Images in the gallery of the highest average precision."""


def matched_galleries(run: Run, matched: Matched, *, shown: int, score_threshold: float) -> Iterator[Gallery]:
    """Images with the lowest average precision, of equals those with the most objects, and some with the highest."""
    precision = image_average_precision(matched.matches).round(12)
    objects = np.bincount(matched.matches.object_image, minlength=len(matched.found))
    known = matched.counted[np.isfinite(precision[matched.counted])]
    worst_first = known[np.lexsort((known, -objects[known], precision[known]))]
    best_first = known[np.lexsort((known, -objects[known], -precision[known]))]
    worst = worst_first[precision[worst_first] < 1][:shown]
    for name, title, rows in [
        ("worst_found", "Lowest average precision", worst),
        ("best_found", "Highest average precision", best_first[~np.isin(best_first, worst)][:BEST_SHOWN]),
    ]:
        items = tuple(matched_item(matched, row, score_threshold=score_threshold) for row in rows.tolist())
        if items:
            yield Gallery(name, run.about(), run.dataset, title, items)


def matched_item(
    matched: Matched, image: int, *, score_threshold: float, before: str = "", offset: int | None = None
) -> GalleryItem:
    """One image with its boxes: ground truth, true positives and false positives; `offset` is that of a frame."""
    before = before if offset is None else f"{offset:+d}: "
    objects, places = int((matched.matches.object_image == image).sum()), _drawn(matched.matches, image, score_threshold)
    right = int(matched.matches.hit[0, places].sum())
    false_positives = f", {counted(len(places) - right, 'false positive')}" if len(places) > right else ""
    found = matched.found.detections.classes[matched.matches.row[places[matched.matches.hit[0, places]]]]
    boxes = (*_truth_boxes(matched, image, found), *_predicted_boxes(matched, image, places))
    caption = f"{before}{right} of {objects} found{false_positives}"
    return GalleryItem(matched.found.detections.ids[image], caption, boxes=boxes, offset=offset)


def found_gallery(run: Run, found: FoundObjects, *, shown: int, score_threshold: float) -> Iterator[Gallery]:
    """The images with the most boxes, where there is no ground truth."""
    boxes = found.detections
    sure = boxes.scores >= score_threshold
    counts = np.bincount(boxes.image[sure], minlength=len(found))
    rows = np.argsort(-counts, kind="stable")[:shown]
    names = ClassNames(found.classes)
    items = []
    for row in rows[counts[rows] > 0].tolist():
        of_row = np.flatnonzero(sure & (boxes.image == row))
        order = of_row[np.argsort(-boxes.scores[of_row], kind="stable")]
        drawn = tuple(
            DrawnBox(box, "found", sure_of(names[int(boxes.classes[place])], boxes.scores[place]))
            for place, box in zip(order.tolist(), _shares(boxes.boxes[order], found.sizes[row]), strict=True)
        )
        items.append(GalleryItem(boxes.ids[row], "1 box" if len(drawn) == 1 else f"{len(drawn)} boxes", boxes=drawn))
    if items:
        yield Gallery("found_boxes", run.about(), run.dataset, "Detections", tuple(items))


def _truth_boxes(matched: Matched, image: int, found: NDArray[np.integer]) -> list[DrawnBox]:
    """Ground truth, without crowds and ignored objects.

    Objects of a class that are all `found` have no caption, since the boxes on them name it already.
    """
    truths, names = matched.truths, ClassNames(matched.found.classes)
    places = np.flatnonzero((truths.image == image) & ~truths.crowd & ~truths.ignored)
    boxes, kinds = _shares(truths.boxes[places], matched.found.sizes[image]), truths.classes[places].tolist()
    missed = {kind for kind in kinds if (found == kind).sum() < kinds.count(kind)}
    return [DrawnBox(box, "truth", names[kind] * (kind in missed)) for box, kind in zip(boxes, kinds, strict=True)]


def _predicted_boxes(matched: Matched, image: int, places: NDArray[np.intp]) -> list[DrawnBox]:
    boxes, names = matched.found.detections, ClassNames(matched.found.classes)
    rows, right = matched.matches.row[places], matched.matches.hit[0, places].tolist()
    captions = [sure_of(names[int(boxes.classes[row])], boxes.scores[row]) for row in rows.tolist()]
    drawn = zip(_shares(boxes.boxes[rows], matched.found.sizes[image]), right, captions, strict=True)
    return [DrawnBox(box, "right" if is_right else "wrong", caption) for box, is_right, caption in drawn]


def _drawn(matches: Matches, image: int, score_threshold: float) -> NDArray[np.intp]:
    """Boxes of one image that count and reach the score threshold; the highest score last, so that it is drawn on top."""
    sure = (matches.image == image) & (matches.scores >= score_threshold) & ~matches.left_out[0]
    places = np.flatnonzero(sure)
    return places[np.argsort(matches.scores[places], kind="stable")]


def _shares(boxes: Boxes, size: NDArray[np.integer]) -> list[tuple[float, float, float, float]]:
    """Sides of boxes as shares of an image of this height and width, clipped to it."""
    height, width = size.tolist()
    shares = np.clip(boxes / [width, height, width, height], 0, 1).round(4)
    return [(left, top, right, bottom) for left, top, right, bottom in shares.tolist()]
