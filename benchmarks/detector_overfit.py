"""Proof that an object detector learns: Faster R-CNN from random weights overfits eight photos.

    SHIFTPROOF_TEST_DATA=data python benchmarks/detector_overfit.py [figures.json]
                                          MODEL=torchvision:fasterrcnn_mobilenet_v3_large_fpn EPOCHS=100 SIDE=128

Ground truth are the confident boxes of YOLOX-Nano in twelve photos of the ILSVRC sample. Four are the validation split;
the others are trained on, and measured again from the folder that comes out, by the study of object detection: mAP at an IoU
of 0.5 should be 0.9 at least. From scratch, eight photos tell nothing about new ones, so the validation split is not judged.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

import shiftproof as sp
from harness import save

DATA = Path(os.environ["SHIFTPROOF_TEST_DATA"])
MODEL = os.environ.get("MODEL", "torchvision:fasterrcnn_mobilenet_v3_large_fpn")
EPOCHS, SIDE, REGIONS = (
    int(os.environ.get(name, usual)) for name, usual in (("EPOCHS", "100"), ("SIDE", "128"), ("REGIONS", "32"))
)
RATE = float(os.environ.get("RATE", "0.0002"))
CLASSES = ("dog", "bird", "person", "bear")
PHOTOS, CONFIDENT, DOUBTFUL, SMALLEST = 12, 0.6, 0.3, 0.05


def boxes_in(photo: Path, detector: Any) -> tuple[tuple[int, int], list[tuple[str, list[float]]]] | None:
    """Size and boxes of a photo in which all is clear: one to three large objects, none in doubt."""
    image = np.asarray(Pillow.open(photo).convert("RGB"))
    height, width = image.shape[:2]
    (found,) = detector.detect(detector.preprocessing.from_image(image)[None], [(height, width)])
    sure = found.scores >= CONFIDENT
    names = [detector.classes.names[place] for place in found.classes[sure]]
    boxes = found.boxes[sure]
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) / (height * width)
    clear = 1 <= len(boxes) <= 3 and ((found.scores > DOUBTFUL) == sure).all() and areas.min(initial=1) > SMALLEST
    return ((width, height), list(zip(names, boxes.tolist(), strict=True))) if clear and set(names) <= {*CLASSES} else None


def chosen_photos() -> dict[Path, tuple[tuple[int, int], list[tuple[str, list[float]]]]]:
    """Twelve photos, those with several objects first, then of each class in turn."""
    (path,) = (DATA / "models").glob("*yolox*.onnx")
    detector = sp.load_detector(str(path), layout="yolox")
    photos = sorted((DATA / "ilsvrc-sample-1000").glob("*.jpg"))[::3]
    clear = {photo: told for photo in photos if (told := boxes_in(photo, detector)) is not None}
    several = [photo for photo, (_, boxes) in clear.items() if len(boxes) > 1][: PHOTOS // 2]
    by_class = [[one for one, (_, boxes) in clear.items() if boxes[0][0] == name and one not in several] for name in CLASSES]
    turns = [photo for turn in zip(*(photos[:PHOTOS] for photos in by_class), strict=False) for photo in turn]
    return {photo: clear[photo] for photo in [*several, *turns][:PHOTOS]}


def coco_file(folder: Path, photos: dict[Path, Any], name: str) -> Path:
    """The photos beside a COCO file of their boxes."""
    images, annotations = [], []
    for number, (photo, ((width, height), boxes)) in enumerate(photos.items()):
        shutil.copy(photo, folder / photo.name)
        images.append({"id": number, "file_name": photo.name, "width": width, "height": height})
        for called, (left, top, right, bottom) in boxes:
            box = [left, top, right - left, bottom - top]
            annotations.append({"image_id": number, "category_id": CLASSES.index(called) + 1, "bbox": box, "iscrowd": 0})
    categories = [{"id": place, "name": called} for place, called in enumerate(CLASSES, 1)]
    path = folder / name
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        photos = chosen_photos()
        started = time.process_time()
        trained = sp.train(
            MODEL,
            coco_file(folder, photos, "boxes.json"),
            folder / "better",
            options=sp.TrainOptions(
                level="network",
                recipe=f"boxes?flip=0,regions={REGIONS}",
                epochs=EPOCHS,
                batch_size=4,
                image_size=SIDE,
                optimizer="adamw",
                learning_rate=RATE,
            ),
            store=folder / "runs",
            tell=lambda text: print(text, flush=True),
        )
        seconds = time.process_time() - started
        held = set(trained.record.split["validation"])
        learned = coco_file(
            folder, {photo: told for photo, told in photos.items() if photo.name not in held}, "learned.json"
        )
        measured: dict[str, float] = {}
        for model in (str(folder / "better"), f"boxes:{folder / 'better'}"):
            studies = ["detection"] if model == str(folder / "better") else ["accuracy"]
            results = sp.run(model, learned, studies=studies, store=folder / "runs")
            measured |= {
                one.metric: one.value
                for one in results.measurements
                if one.metric == "top1_accuracy" or (one.metric == "mean_average_precision" and one.about["iou"] == "0.5")
            }
        figures = {
            "model": MODEL,
            "photos": trained.record.split["training"],
            "objects": sum(len(boxes) for photo, (_, boxes) in photos.items() if photo.name not in held),
            "side": SIDE,
            "epochs": EPOCHS,
            "cpu_seconds": round(seconds),
            "first_loss": trained.record.curves[0]["loss"],
            "last_loss": trained.record.curves[-1]["loss"],
            **measured,
        }
        print(json.dumps(figures, indent=1))
        save("detector_overfit", figures)


if __name__ == "__main__":
    main()
