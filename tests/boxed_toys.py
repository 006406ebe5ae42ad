"""Drawn scenes of coloured rectangles, and a detector that finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from shiftproof.models import ImagePreprocessing
from shiftproof.types import Classes, Companion, Found, Image, Inputs, ModelRef, Seen
from toys import COLOURS

NAMES = tuple(COLOURS)
AS_STORED = ImagePreprocessing(
    size=None, rule="none", value_range="0..255", mean=(0,), std=(1,), layout="nhwc", dtype="uint8"
)


@dataclass
class ColourDetector:
    """Finds one box around all pixels of each colour that it knows; the larger the box, the surer it is."""

    names: Sequence[str] = NAMES
    asked: list[tuple[int, int]] = field(default_factory=list)  # sizes it was told, in the order it was told them
    seen: Seen = field(default_factory=Seen)
    preprocessing: ImagePreprocessing = AS_STORED
    notes: tuple[str, ...] = ()
    companion: Companion | None = None
    default_batch_size: int = 32
    concurrent_batches: int = 1

    @property
    def ref(self) -> ModelRef:
        return ModelRef("colours", "colours-" + "-".join(self.names))

    @property
    def classes(self) -> Classes:
        return Classes(tuple(self.names))

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> list[Found]:
        self.asked += sizes
        return [self._found(np.asarray(image, np.uint8)) for image in inputs]

    def _found(self, image: Image) -> Found:
        boxes = {}
        for place, name in enumerate(self.names):
            rows, columns = np.nonzero((np.abs(image.astype(int) - COLOURS[name]) < 30).all(axis=2))
            if len(rows):
                boxes[place] = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        corners = np.array(list(boxes.values()), float).reshape(-1, 4)
        scores = (corners[:, 2] - corners[:, 0]) / image.shape[1]
        order = np.argsort(-scores)
        return Found(corners[order], scores[order], np.array(list(boxes), int)[order])


Scene = Mapping[str, tuple[int, int, int, int]]

SCENES: Mapping[str, Scene] = {
    "a.png": {"red": (2, 3, 12, 9), "blue": (20, 4, 28, 20)},
    "b.png": {"green": (5, 5, 25, 15)},
    "c.png": {},
    "d.png": {"red": (0, 0, 8, 8), "green": (10, 10, 18, 18), "blue": (20, 0, 30, 6)},
}
"""Left, top, right and bottom of the rectangle of each colour."""


def draw_scenes(folder: Path, scenes: Mapping[str, Scene] = SCENES, *, heights: Sequence[int] = (24, 32)) -> Path:
    """Pictures of the scenes in a folder, of heights in turn, and the COCO file that tells their rectangles."""
    folder.mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for number, (name, rectangles) in enumerate(scenes.items()):
        pixels = np.zeros((heights[number % len(heights)], 32, 3), np.uint8)
        images.append({"id": number, "file_name": name, "height": len(pixels), "width": 32})
        for colour, (left, top, right, bottom) in rectangles.items():
            pixels[top:bottom, left:right] = COLOURS[colour]
            box = [left, top, right - left, bottom - top]
            annotations.append({"image_id": number, "category_id": NAMES.index(colour) + 1, "bbox": box})
        Pillow.fromarray(pixels).save(folder / name)
    categories = [{"id": place + 1, "name": name} for place, name in enumerate(NAMES)]
    path = folder / "boxes.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path
