"""Windows slid over an image at several sizes and shapes, for where no detector says what may be an object."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Boxes, Image, fingerprint_of

STEP = 0.5
"""The longest way from one window to the next, as a share of its side."""

MARGIN = 1
"""Pixels between the windows and the edge of the image."""


@dataclass(frozen=True)
class Grid:
    """Which windows: their sizes, as shares of the image's shorter side, and their widths over their heights.

    The size is that of the square; other shapes have its area.
    """

    scales: tuple[float, ...] = (0.35, 0.5, 0.7)
    aspects: tuple[float, ...] = (0.5, 1.0, 2.0)

    name = "grid"

    def __post_init__(self) -> None:
        if not all(0 < scale < 1 for scale in self.scales) or not all(aspect > 0 for aspect in self.aspects):
            raise BadInput("windows have sizes between 0 and 1, shares of the image's shorter side, and aspects above 0")

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.scales, self.aspects, STEP, MARGIN)

    def __call__(self, images: Sequence[Image]) -> list[Boxes]:
        return [self.windows(*image.shape[:2]) for image in images]

    def windows(self, height: int, width: int) -> Boxes:
        """Windows over an image of this size, those nearest its middle first; shapes that do not fit are left out.

        >>> Grid(scales=(0.5,), aspects=(1.0,)).windows(100, 100)[:2].tolist()  # in the middle, then above it
        [[25.0, 25.0, 75.0, 75.0], [25.0, 1.0, 75.0, 51.0]]
        """
        windows = [
            (left, top, left + wide, top + high)
            for scale, aspect in itertools.product(self.scales, self.aspects)
            for wide, high in [_shape(scale * min(height, width), aspect)]
            for top, left in itertools.product(_starts(height, high), _starts(width, wide))
        ]
        boxes = np.array(windows, dtype=np.float64).reshape(-1, 4)
        return boxes[np.argsort(_from_middle(boxes, height, width).round(6), kind="stable")]


def _shape(side: float, aspect: float) -> tuple[float, float]:
    return side * math.sqrt(aspect), side / math.sqrt(aspect)


def _starts(length: int, side: float) -> list[float]:
    """Where windows begin along one axis: evenly spread from margin to margin, none where they do not fit."""
    room = length - 2 * MARGIN - side
    if room < 0:
        return []
    steps = 2 * math.ceil(room / (2 * STEP * side))  # an even number, so that one lies in the middle
    return [MARGIN + room * place / steps for place in range(steps + 1)] if steps else [float(MARGIN)]


def _from_middle(boxes: Boxes, height: int, width: int) -> NDArray[np.floating]:
    """How far the middle of each window lies from that of the image, in shares of its sides, (boxes,)."""
    across = (boxes[:, 0] + boxes[:, 2]) / (2 * width) - 0.5
    down = (boxes[:, 1] + boxes[:, 3]) / (2 * height) - 0.5
    return np.asarray(np.hypot(across, down))
