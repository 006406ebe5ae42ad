"""Drawn photos with coloured boxes in them, as a COCO file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image as Pillow

from toys import COLOURS

CLASSES = sorted(COLOURS)


class Shape(NamedTuple):
    """A rectangle of one colour, called by a class that need not be its own."""

    box: tuple[int, int, int, int]  # left, top, right, bottom
    painted: str
    called: str
    crowd: bool = False


def draw_boxed(
    folder: Path, photos: Mapping[str, tuple[str, Sequence[Shape]]], *, side: int = 100, sizes: bool = True
) -> Path:
    """Square photos by name, each with its background and shapes; the COCO file beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for number, (name, (background, shapes)) in enumerate(photos.items(), 1):
        pixels = np.empty((side, side, 3), np.uint8)
        pixels[:] = COLOURS[background]
        for shape in shapes:
            left, top, right, bottom = shape.box
            pixels[top:bottom, left:right] = COLOURS[shape.painted]
            box = [left, top, right - left, bottom - top]
            category = CLASSES.index(shape.called) + 1
            annotations.append({"image_id": number, "category_id": category, "bbox": box, "iscrowd": int(shape.crowd)})
        Pillow.fromarray(pixels).save(folder / name)
        images.append({"id": number, "file_name": name, **({"width": side, "height": side} if sizes else {})})
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES, 1)]
    path = folder / "boxes.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path
