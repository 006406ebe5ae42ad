"""Images with objects and boxes around them, drawn at random, and what pycocotools makes of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from shiftproof.types import Boxes, Detections, Truths

CLASSES = 6
COCO_SIZES = {"all": [0, 1e10], "small": [0, 32**2], "medium": [32**2, 96**2], "large": [96**2, 1e10]}


def random_scene(seed: int, *, images: int = 12, objects: int = 60, boxes: int = 120) -> tuple[Detections, Truths]:
    """Boxes on a coarse grid of places, sizes and scores, so that overlaps and scores tie; some are crowds or ignored.

    The last class has boxes but no objects, the one before it objects but no boxes; the last two images have no objects and
    the last no boxes either.
    """
    generator = np.random.default_rng(seed)
    ids = tuple(f"image {place:03}" for place in range(images))
    true = _grid_boxes(generator, objects)
    classes = generator.integers(CLASSES - 1, size=objects)
    crowd, ignored = generator.random((2, objects)) < 0.1
    truths = Truths(ids, generator.integers(images - 2, size=objects), true, classes, crowd, ignored, _areas(true))
    # two in three boxes lie near an object, the others anywhere
    near = generator.integers(objects, size=boxes)
    moved = true[near] + generator.integers(-1, 2, size=(boxes, 4)) * 4
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 4)
    stray = generator.random(boxes) < 1 / 3
    found = np.where(stray[:, None], _grid_boxes(generator, boxes), moved)
    named = np.where(stray | (classes[near] == CLASSES - 2), generator.integers(CLASSES - 2, size=boxes), classes[near])
    named = np.where(generator.random(boxes) < 0.05, CLASSES - 1, named)
    place = np.where(stray, generator.integers(images - 1, size=boxes), truths.image[near])
    return Detections(ids, place, found, generator.integers(1, 12, size=boxes) / 12, named), truths


def coco_evaluation(
    detections: Detections,
    truths: Truths,
    *,
    ious: Sequence[float] = (0.5,),
    size: str | Sequence[float] = "all",
    most: int = 100,
    class_blind: bool = False,
    images: Sequence[int] | None = None,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Precision (thresholds, recalls, classes) and recall (thresholds, classes) by pycocotools; -1 for absent classes."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(_coco_truths(truths), _coco_results(detections, truths), "bbox")
        evaluation.params.iouThrs = np.array(ious)
        evaluation.params.areaRng = [COCO_SIZES[size] if isinstance(size, str) else list(size)]
        evaluation.params.areaRngLbl = ["asked"]
        evaluation.params.maxDets = [most]
        evaluation.params.useCats = int(not class_blind)
        if images is not None:
            evaluation.params.imgIds = [place + 1 for place in images]
        evaluation.evaluate()
        evaluation.accumulate()
    return evaluation.eval["precision"][..., 0, 0], evaluation.eval["recall"][..., 0, 0]


def coco_mean(precision: NDArray[np.floating]) -> float:
    """Mean of what is not -1, nan where everything is."""
    known = precision[precision > -1]
    return float(known.mean()) if known.size else float("nan")


def _coco_truths(truths: Truths) -> COCO:
    coco = COCO()
    # pycocotools takes its ignore flags from crowds alone; an area beyond all ranges has the same effect
    areas = np.where(truths.ignored, 1e12, truths.areas)
    coco.dataset = {
        "images": [{"id": place + 1} for place in range(len(truths.ids))],
        "categories": _categories(truths),
        "annotations": [
            {
                "id": row + 1,
                "image_id": int(truths.image[row]) + 1,
                "category_id": int(truths.classes[row]),
                "bbox": _left_top_width_height(truths.boxes[row]),
                "area": float(areas[row]),
                "iscrowd": int(truths.crowd[row]),
            }
            for row in range(len(truths.boxes))
        ],
    }
    coco.createIndex()
    return coco


def _coco_results(detections: Detections, truths: Truths) -> COCO:
    coco = COCO()
    coco.dataset = {
        "images": [{"id": place + 1} for place in range(len(truths.ids))],
        "categories": _categories(truths),
        "annotations": [
            {
                "id": row + 1,
                "image_id": truths.ids.index(detections.ids[detections.image[row]]) + 1,
                "category_id": int(detections.classes[row]),
                "bbox": _left_top_width_height(detections.boxes[row]),
                "area": float(_areas(detections.boxes[row : row + 1])[0]),
                "score": float(detections.scores[row]),
                "iscrowd": 0,
            }
            for row in range(len(detections.boxes))
        ],
    }
    coco.createIndex()
    return coco


def _categories(truths: Truths) -> list[dict[str, int]]:
    """Those of random scenes, and more where objects are of more."""
    return [{"id": number} for number in range(max(CLASSES, 1 + int(truths.classes.max(initial=0))))]


def _left_top_width_height(box: NDArray[np.floating]) -> list[float]:
    left, top, right, bottom = box.tolist()
    return [left, top, right - left, bottom - top]


def _grid_boxes(generator: np.random.Generator, boxes: int) -> Boxes:
    corner = generator.integers(12, size=(boxes, 2)) * 8.0
    return np.hstack([corner, corner + generator.choice([8, 16, 32, 64, 128], size=(boxes, 2))])


def _areas(boxes: Boxes) -> NDArray[np.floating]:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
