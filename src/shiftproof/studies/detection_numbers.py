"""Numbers of one detector on one boxed set, from boxes matched once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.average_precision import average_recall, precision_at_recall
from shiftproof.metrics.box_overlap import SIZES, Overlap
from shiftproof.metrics.matching import match
from shiftproof.metrics.ranked_hits import RECALLS
from shiftproof.metrics.resampled_precision import over_classes
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.found_boxes import Judged, column_of, measured, overlap_name, overlap_told
from shiftproof.types import About, Curve, FoundObjects, Measurement


def counts(judged: Judged, about: About, told: Mapping[str, str]) -> Iterator[Measurement]:
    """How much there is to find and was found, and how much does not count."""
    truths, images = judged.truths, len(judged.counted)
    spared = (truths.crowd | truths.ignored) & (judged.times[truths.image] > 0)
    boxes = judged.times[judged.found.detections.image] > 0
    yield Measurement("objects_to_find", len(judged.among_counted.object_image), about, images, told)
    yield Measurement("objects_left_out", int(spared.sum()), about, images, told)
    yield Measurement("boxes_found", int(boxes.sum()), about, images, told)


def at_overlap(judged: Judged, iou: Overlap, about: About, told: Mapping[str, str]) -> Iterator[Measurement]:
    """Mean average precision and average recall at an overlap."""
    key, convention = {**about, "iou": overlap_name(iou)}, {**told, **overlap_told(iou)}
    matches = judged.matches if iou == judged.iou else judged.at(iou)
    again = judged.by_class if iou == judged.iou else judged.left_out(matches)
    yield measured("mean_average_precision", over_classes(again), key, len(judged.counted), convention, judged.clusters)
    recall = float(np.nanmean(average_recall(matches, times=judged.times)))
    told = {**convention, "interval": "none: that of the average precision beside it tells as much"}
    yield Measurement("mean_average_recall", recall, key, len(judged.counted), told)


def by_size(judged: Judged, about: About, told: Mapping[str, str]) -> Iterator[Measurement]:
    """Mean average precision of small, medium and large objects, where there are any."""
    for size in [size for size in SIZES if size != "all"]:
        matches = match(judged.found.detections, judged.truths, iou=judged.iou, size=size)
        if (judged.times[matches.object_image] > 0).any():
            again = over_classes(judged.left_out(matches))
            yield measured(
                "size_average_precision", again, {**about, "size": size}, len(judged.counted), told, judged.clusters
            )


def localization(judged: Judged, about: About, told: Mapping[str, str]) -> Measurement:
    """Average precision of all boxes in one order, whatever class they name."""
    again = over_classes(judged.left_out(judged.blind))
    return measured("localization_precision", again, about, len(judged.counted), told, judged.clusters)


def by_class(judged: Judged, about: About, told: Mapping[str, str]) -> Iterator[Measurement]:
    """Average precision of each class that has something to find, and how many objects that is."""
    names, counted = ClassNames(judged.found.classes), judged.among_counted
    for place, kind in enumerate(np.unique(counted.object_classes).tolist()):
        images = counted.object_image[counted.object_classes == kind]
        key, shown_in = {**about, "class": names[kind]}, len(np.unique(images))
        yield measured("class_average_precision", column_of(judged.by_class, place), key, shown_in, told, judged.clusters)
        yield Measurement("class_objects", len(images), key, shown_in, told)


def recall_curves(judged: Judged, about: About, told: Mapping[str, str], *, drawn_classes: int) -> Iterator[Curve]:
    """Precision over recall: the mean over all classes, then the classes with the most objects."""
    names, counted = ClassNames(judged.found.classes), judged.among_counted
    precision = precision_at_recall(judged.matches, times=judged.times).mean(axis=0)
    objects = np.bincount(counted.object_classes, minlength=len(precision))
    yield _recall_curve(np.nanmean(precision[objects > 0], axis=0), about, len(judged.counted), told)
    most = np.argsort(-objects, kind="stable")[:drawn_classes]
    for kind in most[objects[most] > 0].tolist() if (objects > 0).sum() > 1 else []:
        shown_in = len(np.unique(counted.object_image[counted.object_classes == kind]))
        yield _recall_curve(precision[kind], {**about, "class": names[kind]}, shown_in, told)


def boxes_by_class(
    found: FoundObjects, about: About, convention: Mapping[str, str], *, least_score: float
) -> Iterator[Measurement]:
    """How many boxes of each class were found in images of which nobody says what is there."""
    boxes, names = found.detections, ClassNames(found.classes)
    yield Measurement("boxes_found", len(boxes.scores), about, len(found), convention)
    told = {**convention, "boxes": f"those of a score of {least_score:g} or more"}
    sure = boxes.scores >= least_score
    for kind in np.unique(boxes.classes[sure]).tolist():
        chosen = sure & (boxes.classes == kind)
        key, images = {**about, "class": names[kind]}, len(np.unique(boxes.image[chosen]))
        yield Measurement("class_boxes", int(chosen.sum()), key, images, told)


def _recall_curve(precision: NDArray[np.floating], about: About, images: int, convention: Mapping[str, str]) -> Curve:
    return Curve(
        "precision_recall",
        about,
        "recall",
        "precision",
        x=tuple(RECALLS.tolist()),
        y=tuple(precision.tolist()),
        images=images,
        convention=convention,
        counts=(images,) * len(RECALLS),
    )
