"""Images with boxes drawn on them: those on which a detector does worst and best, and what it finds where nobody knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.average_precision import image_average_precision
from shiftproof.metrics.matching import Matches
from shiftproof.studies.class_names import ClassNames, sure_of
from shiftproof.studies.found_boxes import Judged
from shiftproof.types import Boxes, DrawnBox, FoundObjects, Gallery, GalleryItem, Run

BEST_SHOWN = 4
"""Images in the gallery of the best."""


def judged_galleries(run: Run, judged: Judged, *, shown: int, least_score: float) -> Iterator[Gallery]:
    """The images with the least average precision, of equals with the most objects, and some with the highest."""
    precision = image_average_precision(judged.matches).round(12)
    objects = np.bincount(judged.matches.object_image, minlength=len(judged.found))
    known = judged.counted[np.isfinite(precision[judged.counted])]
    worst_first = known[np.lexsort((known, -objects[known], precision[known]))]
    best_first = known[np.lexsort((known, -objects[known], -precision[known]))]
    worst = worst_first[precision[worst_first] < 1][:shown]
    for name, title, rows in [
        ("worst_found", "Where it finds least", worst),
        ("best_found", "Where it finds most", best_first[~np.isin(best_first, worst)][:BEST_SHOWN]),
    ]:
        items = tuple(judged_item(judged, row, least_score=least_score) for row in rows.tolist())
        if items:
            yield Gallery(name, run.about(), run.image_set, title, items)


def judged_item(judged: Judged, image: int, *, least_score: float, before: str = "") -> GalleryItem:
    """One image with its boxes, and how many of them are right."""
    objects, places = int((judged.matches.object_image == image).sum()), _drawn(judged.matches, image, least_score)
    right = int(judged.matches.hit[0, places].sum())
    wrong = f", {len(places) - right} wrong" if len(places) > right else ""
    found = judged.found.detections.classes[judged.matches.row[places[judged.matches.hit[0, places]]]]
    boxes = (*_real_boxes(judged, image, found), *_judged_boxes(judged, image, places))
    return GalleryItem(judged.found.detections.ids[image], f"{before}{right} of {objects} found{wrong}", boxes=boxes)


def found_gallery(run: Run, found: FoundObjects, *, shown: int, least_score: float) -> Iterator[Gallery]:
    """The images with the most boxes, where nobody says which of them are right."""
    boxes = found.detections
    sure = boxes.scores >= least_score
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
        yield Gallery("found_boxes", run.about(), run.image_set, "What it finds", tuple(items))


def _real_boxes(judged: Judged, image: int, found: NDArray[np.integer]) -> list[DrawnBox]:
    """What is really there; crowds and what is ignored are not drawn.

    Objects of a class that are all among the classes `found` have no caption, since the boxes on them say it already.
    """
    truths, names = judged.truths, ClassNames(judged.found.classes)
    places = np.flatnonzero((truths.image == image) & ~truths.crowd & ~truths.ignored)
    boxes, kinds = _shares(truths.boxes[places], judged.found.sizes[image]), truths.classes[places].tolist()
    missed = {kind for kind in kinds if (found == kind).sum() < kinds.count(kind)}
    return [DrawnBox(box, "truth", names[kind] * (kind in missed)) for box, kind in zip(boxes, kinds, strict=True)]


def _judged_boxes(judged: Judged, image: int, places: NDArray[np.intp]) -> list[DrawnBox]:
    boxes, names = judged.found.detections, ClassNames(judged.found.classes)
    rows, right = judged.matches.row[places], judged.matches.hit[0, places].tolist()
    captions = [sure_of(names[int(boxes.classes[row])], boxes.scores[row]) for row in rows.tolist()]
    drawn = zip(_shares(boxes.boxes[rows], judged.found.sizes[image]), right, captions, strict=True)
    return [DrawnBox(box, "right" if is_right else "wrong", caption) for box, is_right, caption in drawn]


def _drawn(matches: Matches, image: int, least_score: float) -> NDArray[np.intp]:
    """Boxes of one image that count and are sure enough to be drawn, the surest last, so that it is drawn on top."""
    sure = (matches.image == image) & (matches.scores >= least_score) & ~matches.left_out[0]
    places = np.flatnonzero(sure)
    return places[np.argsort(matches.scores[places], kind="stable")]


def _shares(boxes: Boxes, size: NDArray[np.integer]) -> list[tuple[float, float, float, float]]:
    """The sides of boxes as shares of an image of this height and width, cut at its edges."""
    height, width = size.tolist()
    shares = np.clip(boxes / [width, height, width, height], 0, 1).round(4)
    return [(left, top, right, bottom) for left, top, right, bottom in shares.tolist()]
