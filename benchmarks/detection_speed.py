"""Mean average precision of 23,100 frames with 115,000 objects and 150,000 boxes of 30 classes, beside the public tools.

    python benchmarks/detection_speed.py

Aims: at least 30 times as fast per image as pycocotools, which sees a tenth of the images; no slower than hotcoco; the AP of
every frame and the pm-k mAP for k = 0 to 10 in under 2 s of CPU. hotcoco and faster-coco-eval run where they are installed.
Only evaluation is timed: loading and indexing are excluded for all.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Contestant, cpu_race, save
from shiftproof.metrics import (
    average_precision_interval,
    image_average_precision,
    match,
    mean_average_precision,
    pm_k_average_precision_sweep,
)
from shiftproof.types import Detections, Truths

ANCHORS, FRAMES, OBJECTS, BOXES, CLASSES = 1_100, 21, 115_000, 150_000, 30
OFFSETS = np.tile(np.arange(FRAMES) - FRAMES // 2, ANCHORS)
GROUPS = np.repeat(np.arange(ANCHORS), FRAMES)
TOOLS = {
    "pycocotools": ("pycocotools.coco:COCO", "pycocotools.cocoeval:COCOeval"),
    "faster-coco-eval": ("faster_coco_eval:COCO", "faster_coco_eval:COCOeval_faster"),
    "hotcoco": ("hotcoco:COCO", "hotcoco:COCOeval"),
}


def made_up() -> tuple[Detections, Truths]:
    """Objects of about five in an image, four fifths of the boxes near one and mostly of its class."""
    generator = np.random.default_rng(0)
    ids = tuple(f"{image:06}" for image in range(ANCHORS * FRAMES))
    objects = _some_boxes(generator, OBJECTS)
    classes, image = generator.integers(CLASSES, size=OBJECTS), generator.integers(len(ids), size=OBJECTS)
    none = np.zeros(OBJECTS, dtype=bool)
    areas = (objects[:, 2] - objects[:, 0]) * (objects[:, 3] - objects[:, 1])
    near = generator.integers(OBJECTS, size=BOXES)
    stray = generator.random(BOXES) < 0.2
    moved = objects[near] + generator.normal(scale=6, size=(BOXES, 4))
    boxes = np.where(stray[:, None], _some_boxes(generator, BOXES), moved)
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    other = stray | (generator.random(BOXES) < 0.1)
    named = np.where(other, generator.integers(CLASSES, size=BOXES), classes[near])
    place = np.where(stray, generator.integers(len(ids), size=BOXES), image[near])
    return Detections(ids, place, boxes, generator.random(BOXES), named), Truths(
        ids, image, objects, classes, none, none, areas
    )


def part_of(scene: tuple[Detections, Truths], images: int) -> tuple[Detections, Truths]:
    """The first so many images."""
    found, truths = scene
    boxes, objects = found.image < images, truths.image < images
    return (
        Detections(found.ids[:images], found.image[boxes], found.boxes[boxes], found.scores[boxes], found.classes[boxes]),
        Truths(
            truths.ids[:images],
            truths.image[objects],
            truths.boxes[objects],
            truths.classes[objects],
            truths.crowd[objects],
            truths.ignored[objects],
            truths.areas[objects],
        ),
    )


def evaluation_by(tool: str, detections: Detections, truths: Truths) -> Callable[[], float]:
    """A public tool's mAP at 0.5, its files read and indexed beforehand."""
    coco, evaluator = (_attribute(name) for name in TOOLS[tool])
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        truth_file, result_file = Path(folder) / "truths.json", Path(folder) / "results.json"
        truth_file.write_text(json.dumps(_coco_dataset(truths)))
        result_file.write_text(json.dumps(_coco_results(detections)))
        indexed = coco(str(truth_file))
        results = indexed.loadRes(str(result_file))

    def evaluate() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = evaluator(indexed, results, "bbox")
            evaluation.params.iouThrs = [0.5]
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
            evaluation.params.maxDets = [100]
            evaluation.evaluate()
            evaluation.accumulate()
        precision = np.asarray(evaluation.eval["precision"])
        return float(precision[precision > -1].mean())

    return evaluate


def every_k(detections: Detections, truths: Truths) -> NDArray[np.floating]:
    """The AP of every frame and the pm-k mAP for k = 0 to 10, from boxes to numbers."""
    matches = match(detections, truths)
    image_average_precision(matches)
    return pm_k_average_precision_sweep(matches, OFFSETS, GROUPS)


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    scene = made_up()
    images = len(scene[1].ids)
    contestants = {"shiftproof": Contestant(partial(mean_average_precision, *scene), images)}
    for tool, fraction in {"pycocotools": 10, "faster-coco-eval": 1, "hotcoco": 1}.items():
        seen = part_of(scene, images // fraction)
        try:
            evaluate = evaluation_by(tool, *seen)
        except ImportError:
            print(f"{tool} is not installed")
            continue
        assert abs(evaluate() - mean_average_precision(*seen)) < 1e-9, tool
        contestants[tool] = Contestant(evaluate, images // fraction)
    figures: dict[str, object] = {"CPU per image beside ours": cpu_race(contestants, "image")}
    matches = match(*scene)
    works: dict[str, Callable[[], object]] = {
        "matching, AP of every frame, pm-k mAP for k = 0 to 10": partial(every_k, *scene),
        "mAP at COCO's ten thresholds": partial(mean_average_precision, *scene, iou="coco"),
        "interval by leaving images out": partial(average_precision_interval, matches),
    }
    for name, work in works.items():
        figures[name] = seconds = min(cpu_seconds(work) for _ in range(3))
        print(f"{name}: {seconds:.2f} s of CPU")
    save("detection_speed", figures)


def _attribute(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _some_boxes(generator: np.random.Generator, boxes: int) -> NDArray[np.floating]:
    corner = generator.uniform(0, 400, size=(boxes, 2))
    return np.hstack([corner, corner + generator.uniform(20, 240, size=(boxes, 2))])


def _coco_dataset(truths: Truths) -> dict[str, Any]:
    return {
        "info": {},
        "images": [{"id": place + 1, "width": 640, "height": 640} for place in range(len(truths.ids))],
        "categories": [{"id": number + 1, "name": str(number)} for number in range(CLASSES)],
        "annotations": [
            {"id": row + 1, "image_id": image + 1, "category_id": number + 1, "bbox": box, "area": area, "iscrowd": 0}
            for row, (image, number, box, area) in enumerate(
                zip(
                    truths.image.tolist(),
                    truths.classes.tolist(),
                    _left_top_width_height(truths.boxes),
                    truths.areas.tolist(),
                    strict=True,
                )
            )
        ],
    }


def _coco_results(detections: Detections) -> list[dict[str, Any]]:
    columns = (detections.image.tolist(), detections.classes.tolist(), detections.scores.tolist())
    return [
        {"image_id": image + 1, "category_id": number + 1, "bbox": box, "score": score}
        for image, number, score, box in zip(*columns, _left_top_width_height(detections.boxes), strict=True)
    ]


def _left_top_width_height(boxes: NDArray[np.floating]) -> list[list[float]]:
    corners: list[list[float]] = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]).tolist()
    return corners


if __name__ == "__main__":
    main()
