"""Boxes as they lie in the files of a run: those of all its images one after the other, and how many each image has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PER_IMAGE = ("image_sizes", "box_counts")
"""Height and width of each image, (images, 2), zeros where they are not known; and its boxes counted, (images,)."""

PER_BOX = ("boxes", "box_scores", "box_classes")
"""Corners, (boxes, 4), scores and classes, (boxes,), in the order of the images."""


def gathered_boxes(
    places: Mapping[Path, Sequence[tuple[int, int]]], images: int, read: Callable[[Path, str], NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The boxes of images that lie scattered over files, in the order in which the images are wanted.

    `places` are pairs for each file: the place where an image is wanted, and its row in the file.
    """
    sizes, counts = np.zeros((images, 2), np.int32), np.zeros(images, np.int32)
    pairs = {path: tuple(np.array(side) for side in zip(*some, strict=True)) for path, some in places.items()}
    stored_counts = {path: read(path, "box_counts") for path in pairs}
    for path, (wanted, rows) in pairs.items():
        sizes[wanted], counts[wanted] = read(path, "image_sizes")[rows], stored_counts[path][rows]
    total = int(counts.sum())
    shapes = ((total, 4), (total,), (total,))
    kinds = (np.float32, np.float32, np.int32)
    arrays: dict[str, NDArray[Any]] = {
        name: np.empty(shape, kind) for name, shape, kind in zip(PER_BOX, shapes, kinds, strict=True)
    }
    for path, (wanted, rows) in pairs.items():
        target = rows_of_images(counts, wanted)
        source = rows_of_images(stored_counts[path], rows)
        for name in PER_BOX:
            arrays[name][target] = read(path, name)[source]
    return {"image_sizes": sizes, "box_counts": counts, **arrays}


def rows_of_images(counts: NDArray[np.integer], images: NDArray[np.integer]) -> NDArray[np.integer]:
    """The rows of all boxes of some images, where each image has so many boxes one after the other.

    >>> rows_of_images(np.array([2, 0, 3]), np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    ends = np.cumsum(counts)
    starts, chosen = (ends - counts)[images], counts[images]
    within = np.arange(chosen.sum()) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return np.asarray(np.repeat(starts, chosen) + within)
