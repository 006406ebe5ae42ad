"""Changes of one coordinate of hue, saturation and value, to the bit as the published datasets were made; and contrast.

They took every pixel through that space and back in double precision and cut the result to bytes. Where the answer is a
whole level, which byte it becomes hangs on the last bit of each step, so the kernel takes the same steps in the same order.
Hue stays; a grey pixel has none, and published code takes it for red.
"""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.types import Image

# x / 255 without a division: x times the first is exact, so that the sum of both products is rounded once, as a quotient is
LEVEL, REST = float.fromhex("0x1.0101010101p-8"), float.fromhex("0x1.010101010101p-56")

GUARD = 1e-9  # before results are cut to whole levels: rounding must not push a whole number below itself


def brightened(image: Image, lift: float) -> Image:
    """The image with the value of every pixel moved up, or down where `lift` is negative, within the range."""
    return _through_hsv(image, float(lift), 1.0, 0.0)


def saturated(image: Image, gain: float, offset: float) -> Image:
    """The image with the saturation of every pixel `gain` times itself plus `offset`, within its range."""
    return _through_hsv(image, 0.0, float(gain), float(offset))


@compiled
def _through_hsv(image: Image, lift: float, gain: float, offset: float) -> Image:
    # conditional expressions, not min and max, which mind NaN: these compile to vector instructions
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    for pixel in range(image.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(samples[first]), np.int32(samples[first + 1]), np.int32(samples[first + 2])
        largest = red if red > green else green
        largest = largest if largest > blue else blue
        smallest = red if red < green else green
        smallest = smallest if smallest < blue else blue
        middle = red + green + blue - largest - smallest
        grey = largest == smallest

        value: float = largest * LEVEL + largest * REST
        least = smallest * LEVEL + smallest * REST
        spread = value - least
        saturation: float = spread / (1.0 if grey else value)
        beyond = (middle * LEVEL + middle * REST - least) / (1.0 if grey else spread)
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
        result[first] = np.uint8(top if red == largest else (bottom if red == smallest else between))
        result[first + 1] = np.uint8(not_red if green == largest else (bottom if green == smallest else between))
        result[first + 2] = np.uint8(not_red if blue == largest else (bottom if blue == smallest else between))
    return result.reshape(image.shape)


@compiled
def about_mean(image: Image, gain: float) -> Image:
    """The image with every sample's distance from the mean of its channel shrunk to `gain` of it."""
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    pixels = image.size // 3
    reds, greens, blues = 0, 0, 0
    for pixel in range(pixels):
        reds += samples[3 * pixel]
        greens += samples[3 * pixel + 1]
        blues += samples[3 * pixel + 2]
    rest = (1 - gain) / pixels
    for pixel in range(pixels):
        result[3 * pixel] = np.uint8(np.int32(samples[3 * pixel] * gain + (reds * rest + GUARD)))
        result[3 * pixel + 1] = np.uint8(np.int32(samples[3 * pixel + 1] * gain + (greens * rest + GUARD)))
        result[3 * pixel + 2] = np.uint8(np.int32(samples[3 * pixel + 2] * gain + (blues * rest + GUARD)))
    return result.reshape(image.shape)
