"""Brightness, saturate, contrast, pixelate, JPEG as published, slow and plain: whole levels are cut, not rounded."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.types import Image


def brightness(image: Image, lift: float) -> NDArray[np.float64]:
    """Samples from 0 to 255, before they are cut."""
    return _through_hsv(image, lambda hue, saturation, value: (hue, saturation, min(max(value + lift, 0), 1)))


def saturate(image: Image, gain: float, offset: float) -> NDArray[np.float64]:
    """Samples from 0 to 255, before they are cut."""
    return _through_hsv(image, lambda hue, saturation, value: (hue, min(max(saturation * gain + offset, 0), 1), value))


def contrast(image: Image, gain: float) -> NDArray[np.float64]:
    """Samples from 0 to 255, before they are cut."""
    samples = image / 255.0
    means = np.mean(samples, axis=(0, 1), keepdims=True)
    changed: NDArray[np.float64] = np.clip((samples - means) * gain + means, 0, 1) * 255
    return changed


def pixelate(image: Image, share: float) -> Image:
    """The two Pillow calls, the first in two steps: newer versions go down columns first where a picture is tall."""
    height, width = image.shape[:2]
    rows, columns = max(int(height * share), 1), max(int(width * share), 1)
    narrow = Pillow.fromarray(image).resize((columns, height), Pillow.Resampling.BOX)
    small = narrow.resize((columns, rows), Pillow.Resampling.BOX)
    return np.asarray(small.resize((width, height), Pillow.Resampling.BOX))


def jpeg(image: Image, quality: int, *, optimize: bool = False) -> Image:
    file = io.BytesIO()
    Pillow.fromarray(image).save(file, "JPEG", quality=quality, optimize=optimize)
    return np.asarray(Pillow.open(file).convert("RGB"))


def _through_hsv(image: Image, change: Callable[[float, float, float], tuple[float, float, float]]) -> NDArray[np.float64]:
    colours, where = np.unique(image.reshape(-1, 3), axis=0, return_inverse=True)
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*(colour / 255.0)))) for colour in colours]
    return (np.clip(changed, 0, 1) * 255)[where].reshape(image.shape)
