"""Changes of one coordinate of hue, saturation and value, in closed form: no pixel is ever turned into that space.

With value V the largest channel and saturation S = (V - smallest) / V, another value scales all channels alike, and another
saturation scales their distances from V. Hue stays; a grey pixel has none, and published code takes it for red.

The kernels choose by conditional expressions on whole numbers, which compile to vector instructions; `min` and `max` of
floats mind NaN and do not.
"""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.compiled import compiled
from shiftproof.types import Image

# Added before results are cut to whole levels: more than the rounding error of float32, so that a whole number stays itself,
# and less than the published strengths can leave between a result and the next whole number.
GUARD = np.float32(2e-4)


def brightness(image: Image, rng: np.random.Generator, *, lift: float) -> Image:  # noqa: ARG001
    """Daylight: the value of every pixel rises by `lift` times the full range."""
    return brightened(image, lift)


def brightened(image: Image, lift: float) -> Image:
    """The image with the value of every pixel moved up, or down where `lift` is negative, within the range."""
    return _with_value(image, np.float32(255 * lift))


def saturate(image: Image, rng: np.random.Generator, *, gain: float, offset: float) -> Image:  # noqa: ARG001
    """Colours stronger or paler: saturation becomes `gain` times itself plus `offset`, within its range."""
    return _with_saturation(image, np.float32(gain), np.float32(offset))


@compiled
def _with_value(image: Image, lift: np.float32) -> Image:
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    darkest, brightest = np.float32(0), np.float32(255)
    for pixel in range(image.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(samples[first]), np.int32(samples[first + 1]), np.int32(samples[first + 2])
        value = red if red > green else green
        value = value if value > blue else blue
        moved = np.float32(value) + lift
        moved = moved if moved < brightest else brightest
        moved = moved if moved > darkest else darkest
        # black has no colour to scale, and becomes the grey of its new value
        factor = darkest if value == 0 else moved / np.float32(value)
        base = (moved if value == 0 else darkest) + GUARD
        result[first] = np.uint8(np.int32(np.float32(red) * factor + base))
        result[first + 1] = np.uint8(np.int32(np.float32(green) * factor + base))
        result[first + 2] = np.uint8(np.int32(np.float32(blue) * factor + base))
    return result.reshape(image.shape)


@compiled
def _with_saturation(image: Image, gain: np.float32, offset: np.float32) -> Image:
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    nothing = np.float32(0)
    for pixel in range(image.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(samples[first]), np.int32(samples[first + 1]), np.int32(samples[first + 2])
        value = red if red > green else green
        value = value if value > blue else blue
        smallest = red if red < green else green
        smallest = smallest if smallest < blue else blue
        grey = value == smallest
        most = np.float32(value) / np.float32(1 if grey else value - smallest)  # factor that makes saturation full
        factor = gain + offset * most
        factor = factor if factor < most else most
        factor = nothing if grey else factor
        reddened = np.float32(value) * offset if grey else nothing
        top = np.float32(value) + GUARD
        result[first] = np.uint8(np.int32(top - np.float32(value - red) * factor))
        result[first + 1] = np.uint8(np.int32(top - (np.float32(value - green) * factor + reddened)))
        result[first + 2] = np.uint8(np.int32(top - (np.float32(value - blue) * factor + reddened)))
    return result.reshape(image.shape)
