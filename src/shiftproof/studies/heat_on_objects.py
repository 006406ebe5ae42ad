"""Heat maps and boxes brought together: both on one fine grid over what the model saw of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.stored_looks import LookedAt
from shiftproof.types import Boxes

GRID = 112
"""Rows and columns of the grid: a box is known to a hundredth of the input, far finer than any map."""


class LookedInto(NamedTuple):
    """One answer that was looked into; its first map is of the answer, its second of the truth where that is another."""

    row: int  # among the predictions
    look: LookedAt
    boxes: Boxes | None


def heat_and_inside(
    looks: Sequence[LookedAt], boxes: Sequence[Boxes], which: int
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """The map of one of the classes of each image, and which places lie in its boxes, both (images, GRID, GRID)."""
    heat = [enlarged(look.maps[which]) for look in looks]
    inside = [places_inside(some, look.window) for look, some in zip(looks, boxes, strict=True)]
    shape = (len(looks), GRID, GRID)
    return np.array(heat, float).reshape(shape), np.array(inside, bool).reshape(shape)


def enlarged(heat: NDArray[np.floating]) -> NDArray[np.floating]:
    """A map on the grid, linear between the middles of its cells."""
    picture = Pillow.fromarray(np.ascontiguousarray(heat, np.float32))
    return np.asarray(picture.resize((GRID, GRID), Pillow.Resampling.BILINEAR))


def places_inside(boxes: Boxes, window: tuple[float, float, float, float]) -> NDArray[np.bool_]:
    """Which places of the grid over a window of the image have their middle in one of the boxes, (GRID, GRID).

    >>> places_inside(np.array([[50, 0, 100, 25]]), (0, 0, 100, 50)).mean()
    np.float64(0.25)
    """
    left, top, right, bottom = window
    middles = (np.arange(GRID) + 0.5) / GRID
    across, down = left + middles * (right - left), top + middles * (bottom - top)
    inside = np.zeros((GRID, GRID), bool)
    for box in boxes:
        inside |= np.outer((box[1] <= down) & (down < box[3]), (box[0] <= across) & (across < box[2]))
    return inside
