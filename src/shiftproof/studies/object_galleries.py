"""Objects whose answer depends on how they are shown: each in its image, and beside that as large as the image allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from shiftproof.image_sets.crops import image_of
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames, sure_of
from shiftproof.studies.object_looks import WHOLE, ObjectLooks
from shiftproof.types import DrawnBox, Gallery, GalleryItem, Run

Boxes = Mapping[str, tuple[float, float, float, float]]
"""Where in its image each object lies, by its id."""

TITLES = {
    "right_only_enlarged": "Named right only when enlarged without their background",
    "right_only_in_image": "Named right only in their image, not enlarged without it",
}


def object_galleries(runs: Mapping[str, Run], objects: ObjectLooks, boxes: Boxes, *, shown: int) -> Iterator[Gallery]:
    """Objects right in one look and wrong in the other, the surest mistakes first."""
    if "enlarged" not in objects.predictions:
        return
    whole, enlarged = objects.correct[WHOLE], objects.correct["enlarged"]
    confidence = {look: evidence.confidence_or_nan(found) for look, found in objects.predictions.items()}
    chosen = {"right_only_enlarged": (enlarged & ~whole, WHOLE), "right_only_in_image": (whole & ~enlarged, "enlarged")}
    for name, (rows, mistaken_as) in chosen.items():
        places = np.flatnonzero(rows)
        places = places[np.argsort(-np.nan_to_num(confidence[mistaken_as][places]), kind="stable")][:shown]
        items = tuple(item for row in places.tolist() for item in _pair(row, runs, objects, confidence, boxes))
        if items:
            yield Gallery(name, runs[WHOLE].about(), runs[WHOLE].image_set, TITLES[name], items)


def _pair(
    row: int,
    runs: Mapping[str, Run],
    objects: ObjectLooks,
    confidence: Mapping[str, NDArray[np.floating]],
    boxes: Boxes,
) -> tuple[GalleryItem, GalleryItem]:
    cut = objects.predictions["enlarged"]
    names = ClassNames(cut.classes)
    said = {
        look: sure_of(names[int(found.top5.classes[row, 0])], confidence[look][row])
        for look, found in objects.predictions.items()
    }
    truth = names.of_labels(cut.labels[row].tolist())
    return (
        GalleryItem(
            image_of(cut.ids[row]), f"{truth}; in its image: {said[WHOLE]}", boxes=_drawn(row, objects, boxes, truth)
        ),
        GalleryItem(cut.ids[row], f"enlarged: {said['enlarged']}", image_set=runs["enlarged"].image_set),
    )


def _drawn(row: int, objects: ObjectLooks, boxes: Boxes, caption: str) -> tuple[DrawnBox, ...]:
    """The box of the object, where it and the size of its image are known."""
    box = boxes.get(objects.cut.ids[row])
    width, height = (objects.facts.get(side, (None,) * (row + 1))[row] for side in ("width", "height"))
    if box is None or not isinstance(width, int) or not isinstance(height, int):
        return ()
    left, top, right, bottom = box
    return (DrawnBox((left / width, top / height, right / width, bottom / height), "truth", caption),)
