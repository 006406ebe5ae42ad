"""One object out of an image: cropped, alone on a neutral background, or enlarged on it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image as Pillow

from shiftproof.errors import UnreadableImage
from shiftproof.types import Image

Look = Literal["crop", "alone", "enlarged"]
"""How an object is shown.

``crop`` is the part of the image inside its box. ``alone`` is the whole image with everything outside the box made
neutral: the background is gone and the object as large as it was. ``enlarged`` is the same with the object as large as
the image allows, so that the two differ in nothing but its size.
"""

NEUTRAL = (124, 116, 104)
"""The mean colour of ImageNet, which most models' normalisation turns into zeros."""


class Cut(NamedTuple):
    """What is done with a box; the padding on each side is a share of the box's width and height."""

    look: Look
    padding: float
    square: bool

    def __str__(self) -> str:
        return f"{self.look}, padding {self.padding:g}{', square' if self.square else ''}"


class Window(NamedTuple):
    """Whole pixels, which may reach beyond an image."""

    left: int
    top: int
    right: int
    bottom: int


def cut_out(image: Image, box: tuple[float, float, float, float], cut: Cut) -> Image:
    """The object in the box as the cut shows it; UnreadableImage where no pixel of it is in the image."""
    height, width = image.shape[:2]
    inside = _inside(window_around(box, cut.padding), width, height)
    if inside.right <= inside.left or inside.bottom <= inside.top:
        raise UnreadableImage(f"the box {list(box)} lies outside the image of {width} x {height} pixels")
    found = image[inside.top : inside.bottom, inside.left : inside.right]
    match cut.look:
        case "alone":
            return _on_neutral(found, inside.left, inside.top, width, height)
        case "enlarged":
            found = _enlarged(found, width, height)
            return _on_neutral(found, (width - found.shape[1]) // 2, (height - found.shape[0]) // 2, width, height)
        case _:
            return _squared(image, inside) if cut.square else found.copy()


def window_around(box: tuple[float, float, float, float], padding: float) -> Window:
    """The pixels that a box touches, with its padding.

    >>> window_around((10, 20, 30, 60), 0.1)
    Window(left=8, top=16, right=32, bottom=64)
    """
    left, top, right, bottom = box
    across, down = padding * (right - left), padding * (bottom - top)
    # a box that ends on a pixel's edge does not touch the next one, whatever rounding adds to it
    low = (math.floor(side + 1e-6) for side in (left - across, top - down))
    high = (math.ceil(side - 1e-6) for side in (right + across, bottom + down))
    return Window(*low, *high)


def _inside(window: Window, width: int, height: int) -> Window:
    return Window(max(window.left, 0), max(window.top, 0), min(window.right, width), min(window.bottom, height))


def _squared(image: Image, window: Window) -> Image:
    """The square around the middle of a window; neutral beyond the image."""
    wide, high = window.right - window.left, window.bottom - window.top
    side = max(wide, high)
    left, top = window.left - (side - wide) // 2, window.top - (side - high) // 2
    inside = _inside(Window(left, top, left + side, top + side), image.shape[1], image.shape[0])
    found = image[inside.top : inside.bottom, inside.left : inside.right]
    return _on_neutral(found, inside.left - left, inside.top - top, side, side)


def _on_neutral(found: Image, left: int, top: int, width: int, height: int) -> Image:
    canvas = np.empty((height, width, 3), np.uint8)
    canvas[:] = NEUTRAL
    canvas[top : top + found.shape[0], left : left + found.shape[1]] = found
    return canvas


def _enlarged(found: Image, width: int, height: int) -> Image:
    """The same picture as large as fits into this width and height."""
    factor = min(width / found.shape[1], height / found.shape[0])
    size = max(round(found.shape[1] * factor), 1), max(round(found.shape[0] * factor), 1)
    return np.asarray(Pillow.fromarray(found).resize(size, Pillow.Resampling.BICUBIC))
