"""Turning, scaling and shearing about the middle, as torchvision and Pillow did it when the sequences were published."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.canvas import Canvas
from shiftproof.corruptions.compiled import compiled
from shiftproof.types import Image

Affine: TypeAlias = NDArray[np.float64]
"""Where in the image a pixel of the result comes from, (2, 3): it times (x, y, 1)."""


def about_middle(image: Image, *, angle: float = 0.0, scale: float = 1.0, shear: float = 0.0) -> Affine:
    """The way back from an image turned clockwise, scaled and sheared; angles in degrees.

    Two slips of that time are kept. The middle lies half a pixel too far right and down, and a shear is a turn of the
    vertical axis alone, which also makes the image a little lower.
    """
    turn, slant = math.radians(angle), math.radians(angle) + math.radians(shear)
    x, y = image.shape[1] * 0.5 + 0.5, image.shape[0] * 0.5 + 0.5
    # the published order of operations: where a sample falls on a whole level or a border, the last bit decides
    shrunk = 1.0 / scale / (math.cos(slant) * math.cos(turn) + math.sin(slant) * math.sin(turn))
    across, down = shrunk * math.cos(slant), shrunk * math.sin(slant)
    rising, falling = shrunk * -math.sin(turn), shrunk * math.cos(turn)
    return np.array(
        [[across, down, across * -x + down * -y + x], [rising, falling, rising * -x + falling * -y + y]], np.float64
    )


def warped(canvas: Canvas, affine: Affine) -> Image:
    """The window of the image under an affine map: bilinear, cut to bytes, black where the image ends."""
    frame = np.empty((canvas.height, canvas.width, 3), np.uint8)
    _warp(canvas.image, affine, canvas.top, canvas.left, frame)
    return frame


@compiled
def _warp(image: Image, affine: Affine, top: int, left: int, frame: Image) -> None:
    height, width = image.shape[:2]
    for row in range(frame.shape[0]):
        for column in range(frame.shape[1]):
            # double precision and this order of adding: what is cut to bytes is then what Pillow cuts
            right, down = left + column + 0.5, top + row + 0.5
            x = affine[0, 0] * right + affine[0, 1] * down + affine[0, 2]
            y = affine[1, 0] * right + affine[1, 1] * down + affine[1, 2]
            if not (0 <= x < width and 0 <= y < height):
                frame[row, column, :] = 0
                continue
            x -= 0.5
            y -= 0.5
            x_before, y_before = math.floor(x), math.floor(y)
            x_share, y_share = x - x_before, y - y_before
            x_first, x_second = max(x_before, 0), min(x_before + 1, width - 1)
            y_first, y_second = max(y_before, 0), min(y_before + 1, height - 1)
            for channel in range(3):
                before = np.float64(image[y_first, x_first, channel])
                upper = before + (np.float64(image[y_first, x_second, channel]) - before) * x_share
                before = np.float64(image[y_second, x_first, channel])
                lower = before + (np.float64(image[y_second, x_second, channel]) - before) * x_share
                frame[row, column, channel] = np.uint8(np.int32(upper + (lower - upper) * y_share))
