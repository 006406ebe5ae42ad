"""Heat maps drawn over photos: a grey copy of the photo, coloured where a model looks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.types import DrawnHeat, Image

COLOURS = ((38, 22, 92), (122, 28, 109), (201, 58, 77), (245, 130, 45), (253, 225, 110))
"""From cold to hot at even distances; lightness only rises, so that the order shows without colour too."""

LUMINANCE = (0.2126, 0.7152, 0.0722)
LEAST, MOST = 0.25, 0.8
"""How much of the photo the colour hides where it is coldest and hottest."""

UNSEEN = 0.4
"""Brightness of what the model does not see of the photo."""


def with_heat(image: Image, heat: DrawnHeat) -> Image:
    """The image under its heat; what lies outside the heat's window is darkened."""
    grey = np.repeat((image @ np.array(LUMINANCE))[:, :, None], 3, axis=2)
    drawn = UNSEEN * grey
    (top, bottom), (left, right) = (
        (round(start * side), round(end * side))
        for side, start, end in zip(image.shape[:2], heat.window[1::-1], heat.window[:1:-1], strict=True)
    )
    warmth = _enlarged(heat, max(1, bottom - top), max(1, right - left))
    above, before = max(0, -top), max(0, -left)  # a letterbox shows more than the image
    seen = (slice(max(0, top), max(0, bottom)), slice(max(0, left), max(0, right)))
    inside = drawn[seen]
    warmth = warmth[above : above + inside.shape[0], before : before + inside.shape[1], None]
    hidden = LEAST + (MOST - LEAST) * warmth
    drawn[seen] = (1 - hidden) * grey[seen] + hidden * colours_of(warmth[..., 0])
    return drawn.round().astype(np.uint8)


def colours_of(warmth: NDArray[np.floating]) -> NDArray[np.floating]:
    """The colour of each number from 0 to 1, (..., 3).

    >>> colours_of(np.array([0.0, 0.125, 1.0])).tolist()
    [[38.0, 22.0, 92.0], [80.0, 25.0, 100.5], [253.0, 225.0, 110.0]]
    """
    places = np.linspace(0, 1, len(COLOURS))
    return np.stack([np.interp(warmth, places, channel) for channel in zip(*COLOURS, strict=True)], axis=-1)


def _enlarged(heat: DrawnHeat, height: int, width: int) -> NDArray[np.floating]:
    rows = Pillow.fromarray(np.array(heat.rows, np.float32))
    return np.asarray(rows.resize((width, height), Pillow.Resampling.BICUBIC)).clip(0, 1)
