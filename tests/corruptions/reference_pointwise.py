"""Brightness, saturate, contrast, pixelate, JPEG as published, slow and plain: whole levels are cut, not rounded."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.corruptions.kernels.compiled import compiled
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


@compiled
def through_hsv_steps(samples: NDArray[np.uint8], lift: float, gain: float, offset: float) -> None:
    """Changes pixels, (3 x pixels,), in the published steps, one pixel after the other."""
    for pixel in range(samples.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(samples[first]), np.int32(samples[first + 1]), np.int32(samples[first + 2])
        largest = red if red > green else green
        largest = largest if largest > blue else blue
        smallest = red if red < green else green
        smallest = smallest if smallest < blue else blue
        middle = red + green + blue - largest - smallest
        grey = largest == smallest

        value: float = largest / 255.0
        least = smallest / 255.0
        spread = value - least
        saturation: float = spread / (1.0 if grey else value)
        beyond = (middle / 255.0 - least) / (1.0 if grey else spread)
        # hue in sixths of a turn from the largest channel, the last of several, towards the next one or back
        next_one = red if blue == largest else blue if green == largest else green
        one_before = green if blue == largest else red if green == largest else blue
        turn = (4.0 if blue == largest else 2.0 if green == largest else 0.0) + (
            -beyond if next_one < one_before else beyond
        )
        hue = turn / 6.0
        hue = hue + 1.0 if hue < 0.0 else hue

        value = value + lift
        value = value if value < 1.0 else 1.0
        value = value if value > 0.0 else 0.0
        saturation = saturation * gain + offset
        saturation = saturation if saturation < 1.0 else 1.0
        saturation = saturation if saturation > 0.0 else 0.0

        sixths = hue * 6.0
        sector = np.int32(sixths)
        share = sixths - np.float64(sector)
        share = share if sector & 1 else 1.0 - share
        top = np.int32(value * 255.0)
        bottom = np.int32(value * (1.0 - saturation) * 255.0)
        between = np.int32(value * (1.0 - share * saturation) * 255.0)
        not_red = bottom if grey else top
        samples[first] = np.uint8(top if red == largest else (bottom if red == smallest else between))
        samples[first + 1] = np.uint8(not_red if green == largest else (bottom if green == smallest else between))
        samples[first + 2] = np.uint8(not_red if blue == largest else (bottom if blue == smallest else between))
