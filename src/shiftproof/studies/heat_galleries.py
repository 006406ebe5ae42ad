"""Answers to look into: the photo, and over it where the model looks for its answer and for the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import hot_point_inside
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames, sure_of
from shiftproof.studies.heat_on_objects import LookedInto, heat_and_inside
from shiftproof.types import DrawnBox, DrawnHeat, Gallery, GalleryItem, Predictions, Run

TITLES = {"wrong": "Where it looks when it is wrong", "right": "Where it looks when it is right"}


def heat_gallery(
    run: Run, predictions: Predictions, looked: Sequence[LookedInto], *, answers: str, method: str, shown: int
) -> Iterator[Gallery]:
    """The answers with their hottest point off the object first, then those that the model is surest of."""
    confidence, off = evidence.confidence_or_nan(predictions), {one.row for one in looked if _is_off(one)}
    ordered = sorted(looked, key=lambda one: (one.row not in off, -np.nan_to_num(confidence[one.row])))[:shown]
    items = [item for one in ordered for item in _items(one, predictions, confidence[one.row], off=one.row in off)]
    if items:
        about = {**run.about(), "answers": answers, "heat_map": method}
        yield Gallery(f"heat_maps_{answers}", about, run.image_set, TITLES[answers], tuple(items))


def _items(one: LookedInto, predictions: Predictions, confidence: float, *, off: bool) -> Iterator[GalleryItem]:
    names, key, boxes = ClassNames(predictions.classes), predictions.ids[one.row], _drawn_boxes(one)
    answer = sure_of(names[int(predictions.top5.classes[one.row, 0])], confidence)
    truth = names.of_labels(predictions.labels[one.row])
    yield GalleryItem(key, f"labelled {truth}", boxes=boxes)
    captions = [f"for its answer, {answer}" + (", off the object" if off else ""), f"for the truth, {truth}"]
    for heat, caption in zip(one.look.maps, captions, strict=False):
        yield GalleryItem(key, caption, boxes=boxes, heat=_drawn_heat(heat, one))


def _is_off(one: LookedInto) -> bool:
    """Whether the hottest point for the answer lies outside every box."""
    if one.boxes is None or not len(one.boxes):
        return False
    return not hot_point_inside(*heat_and_inside([one.look], [one.boxes], 0))[0]


def _drawn_heat(heat: NDArray[np.floating], one: LookedInto) -> DrawnHeat:
    """The map from 0 to its highest, to three digits: more cannot be seen."""
    scaled = heat / (heat.max() or 1)
    height, width = one.look.size
    left, top, right, bottom = one.look.window
    rows = tuple(tuple(round(float(value), 3) for value in row) for row in scaled)
    return DrawnHeat(rows, (left / width, top / height, right / width, bottom / height))


def _drawn_boxes(one: LookedInto) -> tuple[DrawnBox, ...]:
    height, width = one.look.size
    shares = np.zeros((0, 4)) if one.boxes is None else one.boxes / (width, height, width, height)
    return tuple(DrawnBox((left, top, right, bottom), "truth") for left, top, right, bottom in shares.tolist())
