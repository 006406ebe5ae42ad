"""Saliency maps of misclassified and correct images, and how often the salient region misses the object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.datasets.image_list import spread_over
from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct, pointing_game_hit, saliency_on_object, salient_region_meets
from shiftproof.models.saliency import METHODS
from shiftproof.runs.saliency import ImageSaliency, SaliencyMaps, SaliencyRequest
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, sure_of
from shiftproof.studies.saliency import BY_CHANCE, PREDICTED, TRUE
from shiftproof.types import (
    Boxes,
    Dataset,
    DatasetRef,
    DrawnBox,
    DrawnHeat,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    LoadPredictions,
    Measurement,
    Note,
    Predictions,
    Run,
    Skipped,
)

GRID = 112
"""Rows and columns of the common grid of maps and boxes, far finer than any map."""
TITLES = {"misclassified": "Saliency maps of misclassified images", "correct": "Saliency maps of correct images"}


@runtime_checkable
class LoadsSaliency(Protocol):
    """Loads datasets and saliency maps."""

    def images(self, ref: DatasetRef) -> Dataset: ...

    def saliency(self, run: Run, predictions: Predictions, asked: SaliencyRequest, method: str | None) -> SaliencyMaps: ...


@dataclass(frozen=True)
class SaliencyStudy(CleanStudy):
    """Saliency maps of some misclassified and correct images, and how often they miss the object's boxes.

    At most `images` misclassified and as many correct images, evenly spread over the dataset; where any image has boxes,
    only images with boxes.
    """

    images: int = 50
    method: str | None = None  # one of `METHODS`; None: the best that the model allows
    region: float = 0.1  # share of the input that is its most salient region
    shown: int = 8

    keep: ClassVar[Keep] = "top5"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.images < 1 or not 0 < self.region <= 1:
            raise BadInput(
                f"expected at least one image and a salient region between 0 and 1 of the input, got {self.images} and "
                f"{self.region:g}"
            )

    def saliency_request(self, predictions: Predictions, images: Dataset) -> SaliencyRequest:
        """For every chosen image the predicted class; if misclassified also its first label."""
        return {
            predictions.ids[row]: _classes(predictions, row)
            for rows in self._chosen(predictions, images).values()
            for row in rows
        }

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in self.runs():
            predictions = load(run)
            reasons = [evidence.why_unread(predictions), evidence.why_unlabelled(predictions, "the saliency study")]
            if not isinstance(load, LoadsSaliency):
                reasons = reasons if any(reasons) else ["saliency maps are read from a store, and there is none here"]
            yield from evidence.skipped(run.dataset.name, *reasons)
            if any(reasons) or not isinstance(load, LoadsSaliency):
                continue
            images = load.images(run.dataset)
            if not _boxed(images):
                yield Skipped(f"{run.dataset.name}: no image has a box to compare saliency maps with")
            found = load.saliency(run, predictions, self.saliency_request(predictions, images), self.method)
            boxes = {sample.id: sample.boxes for sample in images.samples}
            method = METHODS[found.method]
            subject = evidence.Subject.of(run, predictions).also(told={"saliency map": method})
            for which, rows in self._chosen(predictions, images).items():
                explained = [Explained(row, found.of[(key := predictions.ids[row])], boxes[key]) for row in rows]
                yield from self._on_objects(explained, subject.also({"predictions": which}))
                shown = self.shown if which == "misclassified" else self.shown // 2
                yield from saliency_gallery(run, predictions, explained, which=which, method=method, shown=shown)

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured: no labels."""
        return known.unlabelled(self.runs()[0].dataset, "the saliency study")

    def _chosen(self, predictions: Predictions, images: Dataset) -> dict[str, Sequence[int]]:
        """Rows of misclassified and of correct images."""
        boxed = _boxed(images)
        fit = predictions.labelled & np.array([not boxed or key in boxed for key in predictions.ids], bool)
        rows = np.flatnonzero(fit)
        if not len(rows):
            return {}
        correct = is_correct(predictions.labels[rows], predictions.top5.classes[rows])
        chosen = {"misclassified": rows[~correct], "correct": rows[correct]}
        return {which: spread_over(some.tolist(), self.images) for which, some in chosen.items()}

    def _on_objects(self, explained: Sequence[Explained], subject: evidence.Subject) -> Iterator[Measurement]:
        """How often and how much the maps of each class miss the boxes."""
        with_boxes = [one for one in explained if one.boxes is not None and len(one.boxes)]
        maps = min((len(one.saliency.maps) for one in with_boxes), default=0)
        for which, name in enumerate((PREDICTED, TRUE)[:maps]):
            boxes = [one.boxes for one in with_boxes if one.boxes is not None]
            heat, inside = heat_and_inside([one.saliency for one in with_boxes], boxes, which)
            told = np.flatnonzero(inside.any(axis=(1, 2)) & heat.any(axis=(1, 2)))
            heat, inside, total = heat[told], inside[told], len(told)
            if not total:
                continue
            rows = np.array([with_boxes[place].row for place in told.tolist()], np.intp)
            stated = self._stated(total, len(with_boxes), float(inside.mean()))
            maps_of = subject.also({"map": name}, stated).take(rows)
            yield maps_of.share("pointing_game_miss_rate", ~pointing_game_hit(heat, inside))
            yield maps_of.share("salient_region_miss_rate", ~salient_region_meets(heat, inside, share=self.region))
            yield maps_of.mean("saliency_on_object", saliency_on_object(heat, inside), bounds=(0.0, 1.0))

    def _stated(self, told: int, images: int, inside: float) -> dict[str, str]:
        silent = images - told
        return {
            "images": f"at most {self.images} misclassified and as many correct, evenly spread",
            "salient region": f"the most salient {100 * self.region:g} % of the input",
            "object": "all boxes of the image",
            BY_CHANCE: f"{100 * inside:.0f} %",
            **({"left out": f"{silent} of {images}: no box within the input, or an empty map"} if silent else {}),
        }


def _boxed(images: Dataset) -> set[str]:
    """Ids of the images that have boxes."""
    return {sample.id for sample in images.samples if sample.boxes is not None and len(sample.boxes)}


def _classes(predictions: Predictions, row: int) -> list[int]:
    """The predicted class, and the first label where the prediction is none of the labels."""
    predicted = int(predictions.top5.classes[row, 0])
    labels = [int(label) for label in predictions.labels[row] if label >= 0]
    return [predicted] if predicted in labels else [predicted, labels[0]]


class Explained(NamedTuple):
    """An image with its maps: the first of the predicted class, the second of the true class where that differs."""

    row: int  # of the predictions
    saliency: ImageSaliency
    boxes: Boxes | None


def heat_and_inside(
    saliency: Sequence[ImageSaliency], boxes: Sequence[Boxes], which: int
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Map of one class of each image, and which cells lie in its boxes, both (images, GRID, GRID)."""
    heat = [upsampled(one.maps[which]) for one in saliency]
    inside = [cells_inside(some, one.window) for one, some in zip(saliency, boxes, strict=True)]
    shape = (len(saliency), GRID, GRID)
    return np.array(heat, float).reshape(shape), np.array(inside, bool).reshape(shape)


def upsampled(heat: NDArray[np.floating]) -> NDArray[np.floating]:
    """A map on the grid, interpolated bilinearly."""
    picture = Pillow.fromarray(np.ascontiguousarray(heat, np.float32))
    return np.asarray(picture.resize((GRID, GRID), Pillow.Resampling.BILINEAR))


def cells_inside(boxes: Boxes, window: tuple[float, float, float, float]) -> NDArray[np.bool_]:
    """Which cells of the grid over a window of the image have their centre in one of the boxes, (GRID, GRID).

    >>> cells_inside(np.array([[50, 0, 100, 25]]), (0, 0, 100, 50)).mean()
    np.float64(0.25)
    """
    left, top, right, bottom = window
    middles = (np.arange(GRID) + 0.5) / GRID
    across, down = left + middles * (right - left), top + middles * (bottom - top)
    inside = np.zeros((GRID, GRID), bool)
    for box in boxes:
        inside |= np.outer((box[1] <= down) & (down < box[3]), (box[0] <= across) & (across < box[2]))
    return inside


def saliency_gallery(
    run: Run, predictions: Predictions, explained: Sequence[Explained], *, which: str, method: str, shown: int
) -> Iterator[Gallery]:
    """Images whose most salient point is off the object first, then by confidence."""
    confidence, off = evidence.confidence_or_nan(predictions), {one.row for one in explained if _is_off(one)}
    ordered = sorted(explained, key=lambda one: (one.row not in off, -np.nan_to_num(confidence[one.row])))[:shown]
    items = [item for one in ordered for item in _items(one, predictions, confidence[one.row], off=one.row in off)]
    if items:
        about = {**run.about(), "predictions": which, "saliency_method": method}
        yield Gallery(f"saliency_{which}", about, run.dataset, TITLES[which], tuple(items))


def _items(one: Explained, predictions: Predictions, confidence: float, *, off: bool) -> Iterator[GalleryItem]:
    names, key, boxes = ClassNames(predictions.classes), predictions.ids[one.row], _drawn_boxes(one)
    predicted = names[int(predictions.top5.classes[one.row, 0])]
    truth = names.of_labels(predictions.labels[one.row])
    yield GalleryItem(key, f"labelled {truth}", boxes=boxes)
    of_predicted = f"for the predicted class, {sure_of(predicted, confidence)}{', off the object' if off else ''}"
    captions = [of_predicted, f"for the true class, {truth}"]
    for heat, caption in zip(one.saliency.maps, captions, strict=False):
        yield GalleryItem(key, caption, boxes=boxes, heat=_drawn_heat(heat, one))


def _is_off(one: Explained) -> bool:
    """Whether the most salient point for the predicted class lies outside every box."""
    if one.boxes is None or not len(one.boxes):
        return False
    return not pointing_game_hit(*heat_and_inside([one.saliency], [one.boxes], 0))[0]


def _drawn_heat(heat: NDArray[np.floating], one: Explained) -> DrawnHeat:
    """The map scaled to at most 1, to three digits."""
    scaled = heat / (heat.max() or 1)
    height, width = one.saliency.size
    left, top, right, bottom = one.saliency.window
    rows = tuple(tuple(round(float(value), 3) for value in row) for row in scaled)
    return DrawnHeat(rows, (left / width, top / height, right / width, bottom / height))


def _drawn_boxes(one: Explained) -> tuple[DrawnBox, ...]:
    height, width = one.saliency.size
    shares = np.zeros((0, 4)) if one.boxes is None else one.boxes / (width, height, width, height)
    return tuple(DrawnBox((left, top, right, bottom), "truth") for left, top, right, bottom in shares.tolist())
