"""How much of one box another covers, and how much is enough to say that it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Boxes

Overlap: TypeAlias = float | Sequence[float] | Literal["coco", "ilsvrc"]
"""The least overlap that counts as found: one number, several, COCO's ten from 0.5 to 0.95, or the size-dependent one of
the ILSVRC kits, which asks less of boxes under about 24 pixels and counts the pixels of both corners in."""

Size: TypeAlias = str | tuple[float, float]
"""Objects of which area count: a name of `SIZES`, or the least and the largest area in pixels, both included."""

COCO_OVERLAPS = tuple(np.linspace(0.5, 0.95, 10).tolist())

SIZES: Mapping[str, tuple[float, float]] = {
    "all": (0.0, math.inf),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, math.inf),
}


def box_areas(boxes: Boxes) -> NDArray[np.floating]:
    """Pixels inside each box, (boxes,)."""
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def box_overlap(found: Boxes, true: Boxes, crowd: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Shared area over the area of both together, row by row, (boxes,); of a crowd, over the area of the box found.

    A box that lies inside a crowd overlaps it wholly, however large the crowd is.

    >>> found, true = np.array([[0.0, 0, 2, 2]] * 2), np.array([[1.0, 0, 4, 2]] * 2)
    >>> box_overlap(found, true, np.array([False, True]))  # 2 of 8, and 2 of 4
    array([0.25, 0.5 ])
    """
    width = np.minimum(found[:, 2], true[:, 2]) - np.maximum(found[:, 0], true[:, 0])
    height = np.minimum(found[:, 3], true[:, 3]) - np.maximum(found[:, 1], true[:, 1])
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    own = box_areas(found)
    whole = np.where(crowd, own, own + box_areas(true) - shared)
    return np.asarray(np.divide(shared, whole, out=np.zeros_like(shared), where=shared > 0))


def as_counted(boxes: Boxes, iou: Overlap) -> Boxes:
    """The boxes in the way that a threshold measures them: of the ILSVRC kits the last column and row of pixels are inside.

    >>> as_counted(np.array([[0.0, 0, 4, 2]]), "ilsvrc")  # 5 by 3 pixels
    array([[0., 0., 5., 3.]])
    """
    return boxes + np.array([0, 0, 1, 1]) if iou == "ilsvrc" else boxes


def least_overlaps(iou: Overlap, true: Boxes) -> NDArray[np.floating]:
    """The overlap that finds each box, as it is counted, at each threshold, (thresholds, boxes)."""
    if iou == "ilsvrc":
        width, height = true[:, 2] - true[:, 0], true[:, 3] - true[:, 1]
        return np.minimum(0.5, width * height / ((width + 10) * (height + 10)))[None]
    # at 1 a box in the very same place would fail by the last digit
    asked = np.minimum(overlap_numbers(iou), 1 - 1e-10)
    return np.repeat(asked[:, None], len(true), axis=1)


def overlap_numbers(iou: float | Sequence[float] | str) -> NDArray[np.floating]:
    """The thresholds asked for, (thresholds,); nan for the one that hangs on the size of the object.

    >>> overlap_numbers(0.5), len(overlap_numbers("coco"))
    (array([0.5]), 10)
    """
    if isinstance(iou, str):
        named = {"coco": COCO_OVERLAPS, "ilsvrc": (math.nan,)}
        if iou not in named:
            raise BadInput(f"iou should be a number, several, 'coco' or 'ilsvrc', got {iou!r}")
        return np.array(named[iou])
    asked = np.atleast_1d(np.asarray(iou, dtype=float))
    if asked.ndim != 1 or not len(asked) or not ((asked > 0) & (asked <= 1)).all():
        raise BadInput(f"iou should lie above 0 and not above 1, such as 0.5, got {iou}")
    return asked


def area_bounds(size: Size) -> tuple[float, float]:
    """The least and the largest area of the objects that count."""
    if isinstance(size, str):
        if size not in SIZES:
            raise BadInput(f"size should be one of {', '.join(SIZES)} or two areas in pixels, got {size!r}")
        return SIZES[size]
    return size
