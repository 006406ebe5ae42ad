"""A picture averaged over the cells of a coarse grid, bit for bit as Pillow's box filter does it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.compiled import compiled
from shiftproof.types import Image

BITS = np.int32(22)  # of the fixed-point weights that Pillow uses
HALF = np.int32(1 << 21)
NEXT, AFTER, PIXEL = np.uintp(1), np.uintp(2), np.uintp(3)  # steps between samples; unsigned places are not checked for < 0


class Cells(NamedTuple):
    """One side of a picture divided into cells: what each averages, and which of them is shown where."""

    starts: NDArray[np.uintp]  # (cells,)
    stops: NDArray[np.uintp]  # (cells,)
    weights: NDArray[np.int32]  # (cells,); one over the pixels of the cell, in fixed point
    shown: NDArray[np.uintp]  # (pixels,)


@lru_cache(256)
def cells(length: int, wanted: int) -> Cells:
    """A side divided into so many cells, at least one; neighbours share no pixel, and sizes differ by one at most.

    >>> grid = cells(7, 3)
    >>> print(grid.starts.tolist(), grid.stops.tolist(), grid.shown.tolist())
    [0, 2, 5] [2, 5, 7] [0, 0, 1, 1, 1, 2, 2]
    """
    wanted = max(wanted, 1)
    size = length / wanted
    # Pillow's own order of operations: where an edge falls on the middle of a pixel, rounding decides who gets it
    centres = (np.arange(wanted) + 0.5) * size
    starts, stops = ((centres + reach + 0.5).astype(np.int64) for reach in (-size / 2, size / 2))
    starts += (starts - centres + 0.5) * (1 / size) <= -0.5
    stops -= (stops - 1 - centres + 0.5) * (1 / size) > 0.5
    shown = ((np.arange(length) + 0.5) * (wanted / length)).astype(np.uintp)
    weights = (2.0**BITS / (stops - starts) + 0.5).astype(np.int32)
    return Cells(starts.astype(np.uintp), stops.astype(np.uintp), weights, shown)


@compiled
def averaged_over_cells(image: Image, rows: Cells, columns: Cells) -> Image:
    """The image with each cell filled by its mean, rounded twice: along rows first, then down columns."""
    height, width = image.shape[:2]
    lines, result = image.reshape(height, 3 * width), np.empty((height, 3 * width), np.uint8)
    y = 0
    for row in range(len(rows.starts)):
        sums = np.zeros(3 * len(columns.starts), np.int32)
        for line in range(rows.starts[row], rows.stops[row]):
            _add_means(lines[line], columns, sums)
        _make_means(sums, rows.weights[row])
        while y < height and rows.shown[y] == row:
            _show(sums, columns.shown, result[y])
            y += 1
    return result.reshape(height, width, 3)


@compiled
def _add_means(line: Image, columns: Cells, sums: NDArray[np.int32]) -> None:
    """Adds the mean of each cell's part of a line, rounded, to the sums down the cells."""
    for cell in range(len(columns.starts)):
        red, green, blue = np.int32(0), np.int32(0), np.int32(0)
        sample, stop = PIXEL * columns.starts[cell], PIXEL * columns.stops[cell]
        while sample < stop:
            red += np.int32(line[sample])
            green += np.int32(line[sample + NEXT])
            blue += np.int32(line[sample + AFTER])
            sample += PIXEL
        weight, place = columns.weights[cell], PIXEL * np.uintp(cell)
        sums[place] += (red * weight + HALF) >> BITS
        sums[place + NEXT] += (green * weight + HALF) >> BITS
        sums[place + AFTER] += (blue * weight + HALF) >> BITS


@compiled
def _make_means(sums: NDArray[np.int32], weight: np.int32) -> None:
    for place in range(len(sums)):
        sums[place] = (sums[place] * weight + HALF) >> BITS


@compiled
def _show(means: NDArray[np.int32], shown: NDArray[np.uintp], line: Image) -> None:
    for x in range(len(shown)):
        cell, sample = PIXEL * shown[x], PIXEL * np.uintp(x)
        line[sample] = np.uint8(means[cell])
        line[sample + NEXT] = np.uint8(means[cell + NEXT])
        line[sample + AFTER] = np.uint8(means[cell + AFTER])
