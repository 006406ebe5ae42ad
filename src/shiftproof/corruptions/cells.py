"""A picture averaged over the cells of a coarse grid, bit for bit as Pillow's box filter does it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.compiled import compiled
from shiftproof.types import Image

BITS = 22  # of the fixed-point weights that Pillow uses


class Cells(NamedTuple):
    """One side of a picture divided into cells: what each averages, and which of them is shown where."""

    starts: NDArray[np.int64]  # (cells,)
    stops: NDArray[np.int64]  # (cells,)
    weights: NDArray[np.int32]  # (cells,); one over the pixels of the cell, in fixed point
    shown: NDArray[np.int64]  # (pixels,)


@lru_cache(256)
def cells(length: int, wanted: int) -> Cells:
    """A side divided into so many cells, at least one; neighbours share no pixel, and sizes differ by one at most.

    >>> grid = cells(7, 3)
    >>> grid.starts, grid.stops, grid.shown
    (array([0, 2, 5]), array([2, 5, 7]), array([0, 0, 1, 1, 1, 2, 2]))
    """
    wanted = max(wanted, 1)
    size = length / wanted
    # Pillow's own order of operations: where an edge falls on the middle of a pixel, rounding decides who gets it
    centres = (np.arange(wanted) + 0.5) * size
    starts, stops = ((centres + reach + 0.5).astype(np.int64) for reach in (-size / 2, size / 2))
    starts += (starts - centres + 0.5) * (1 / size) <= -0.5
    stops -= (stops - 1 - centres + 0.5) * (1 / size) > 0.5
    shown = ((np.arange(length) + 0.5) * (wanted / length)).astype(np.int64)
    return Cells(starts, stops, (2**BITS / (stops - starts) + 0.5).astype(np.int32), shown)


@compiled
def averaged_over_cells(image: Image, rows: Cells, columns: Cells) -> Image:
    """The image with each cell filled by its mean, rounded twice: along rows first, then down columns."""
    height, width = image.shape[:2]
    result = np.empty((height, 3 * width), np.uint8)
    sums = np.empty(3 * len(columns.starts), np.int32)
    line = np.empty(3 * width, np.uint8)
    half = np.int32(1 << (BITS - 1))
    shown = 0
    for row in range(len(rows.starts)):
        sums[:] = 0
        for y in range(rows.starts[row], rows.stops[row]):
            _add_means(image[y].reshape(-1), columns, sums)
        for place in range(len(sums)):
            sums[place] = (sums[place] * rows.weights[row] + half) >> BITS
        for x in range(width):
            cell = 3 * columns.shown[x]
            line[3 * x] = sums[cell]
            line[3 * x + 1] = sums[cell + 1]
            line[3 * x + 2] = sums[cell + 2]
        while shown < height and rows.shown[shown] == row:
            result[shown] = line
            shown += 1
    return result.reshape(height, width, 3)


@compiled
def _add_means(samples: Image, columns: Cells, sums: NDArray[np.int32]) -> None:
    half = np.int32(1 << (BITS - 1))
    for cell in range(len(columns.starts)):
        red, green, blue = np.int32(0), np.int32(0), np.int32(0)
        for x in range(columns.starts[cell], columns.stops[cell]):
            red += samples[3 * x]
            green += samples[3 * x + 1]
            blue += samples[3 * x + 2]
        sums[3 * cell] += (red * columns.weights[cell] + half) >> BITS
        sums[3 * cell + 1] += (green * columns.weights[cell] + half) >> BITS
        sums[3 * cell + 2] += (blue * columns.weights[cell] + half) >> BITS
