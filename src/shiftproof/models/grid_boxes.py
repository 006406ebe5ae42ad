"""What dense networks say of every cell of their grids, as boxes in pixels of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.candidates import Candidates
from shiftproof.models.preparation import Layout
from shiftproof.types import Boxes, Inputs

RawOutputs: TypeAlias = Mapping[str, NDArray[np.generic]]
"""A network's outputs by name, in their order."""

STRIDES = (8, 16, 32)
"""Pixels of the input that a cell of each grid is wide."""

LARGEST_LOG = 20
"""No side is e^20 cells long."""


class Asked(NamedTuple):
    """The batch that was asked: how many inputs, and their size."""

    images: int
    height: int
    width: int


def asked_of(inputs: Inputs, layout: Layout) -> Asked:
    """What these inputs are, in their own order of axes."""
    return Asked(len(inputs), *(inputs.shape[1:3] if layout == "nhwc" else inputs.shape[2:4]))


def yolox(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """YOLOX as exported: (images, cells, 5 + classes), middles and logarithms of sides in cells, objectness, classes."""
    rows = _array(outputs, axes=3)
    cells = _cells(asked)
    if rows.shape[1] != len(cells):
        raise BadInput(f"yolox should give {len(cells)} boxes of {asked.height}x{asked.width} inputs, got {rows.shape[1]}")
    if rows[..., 2:4].max(initial=0) > LARGEST_LOG:
        raise BadInput("the boxes look like pixels, not like cells of a grid; say yolox-decoded")
    places, stride = cells[:, :2], cells[:, 2:]
    boxes = corners((rows[..., :2] + places) * stride, np.exp(rows[..., 2:4]) * stride)
    return _each(boxes, rows[..., 4:5] * rows[..., 5:])


def yolov5(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:  # noqa: ARG001 a layout
    """YOLOv5 to v7, YOLOX decoded in its export: (images, boxes, 5 + classes), middle, sides, objectness, classes."""
    rows = _array(outputs, axes=3)
    return _each(corners(rows[..., :2], rows[..., 2:4]), rows[..., 4:5] * rows[..., 5:])


def yolov8(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:  # noqa: ARG001 a layout
    """YOLOv8, v9 and v11: (images, 4 + classes, boxes), middle and sides in pixels, classes."""
    rows = _array(outputs, axes=3).transpose(0, 2, 1)
    return _each(corners(rows[..., :2], rows[..., 2:4]), rows[..., 4:])


def fastestdet(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """FastestDet: (images, 5 + classes, rows, columns), objectness, offset of the middle, sides, classes."""
    maps = _array(outputs, axes=4)
    images, numbers, rows, columns = maps.shape
    across, down = np.meshgrid(np.arange(columns), np.arange(rows))
    maps = maps.reshape(images, numbers, -1).transpose(0, 2, 1)
    size = np.array([asked.width, asked.height])
    places = np.stack([across.ravel(), down.ravel()], axis=1)
    middles = (places + np.tanh(maps[..., 1:3])) / [columns, rows] * size
    boxes = corners(middles, size / (1 + np.exp(-maps[..., 3:5])))
    return _each(boxes, maps[..., :1] ** 0.6 * maps[..., 5:] ** 0.4)


def _array(outputs: RawOutputs, *, axes: int) -> NDArray[np.floating]:
    """The first output with so many axes."""
    fitting = [array for array in outputs.values() if array.ndim == axes]
    if not fitting:
        shapes = ", ".join(str(array.shape) for array in outputs.values())
        raise BadInput(f"no output has {axes} axes, as this layout of boxes wants; there are {shapes}")
    return np.asarray(fitting[0], np.float32)


def _cells(asked: Asked) -> NDArray[np.floating]:
    """Column, row and stride of every cell, row by row, the finest grid first."""
    grids = []
    for stride in STRIDES:
        rows, columns = np.mgrid[0 : asked.height // stride, 0 : asked.width // stride]
        grids.append(np.stack([columns.ravel(), rows.ravel(), np.full(rows.size, stride)], axis=1))
    return np.concatenate(grids).astype(float)


def cell_count(size: tuple[int, int]) -> int:
    """How many cells the three grids of an input of this height and width have.

    >>> cell_count((416, 416))
    3549
    """
    return sum((size[0] // stride) * (size[1] // stride) for stride in STRIDES)


def corners(middles: NDArray[np.floating], sides: NDArray[np.floating]) -> Boxes:
    return np.concatenate([middles - sides / 2, middles + sides / 2], axis=-1)


def _each(boxes: Boxes, scores: NDArray[np.floating]) -> Sequence[Candidates]:
    """One image after the other."""
    return [Candidates(*image) for image in zip(boxes, scores, strict=True)]
