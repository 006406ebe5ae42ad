"""Changes of one coordinate of hue, saturation and value, to the bit as the published datasets were made; and contrast.

They took every pixel through that space and back in double precision and cut the result to bytes. Where the answer is a
whole level, which byte it becomes hangs on the last bit of each step; there the same steps are taken in the same order.
Elsewhere a closed form in single precision finds the byte sooner: another value scales all channels of a pixel alike, and
another saturation their distances from the largest. Hue stays; a grey pixel has none, and published code takes it for red.

The kernels choose by conditional expressions, which compile to vector instructions; `min` and `max` mind NaN and do not.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.types import Image

Samples: TypeAlias = NDArray[np.uint8]
"""Pixels one after the other, (3 x pixels,)."""

Places: TypeAlias = NDArray[np.uint64]
"""Where pixels begin among samples; without a sign, so that kernels do not look for indices below 0."""

# x / 255 without a division: x times the first is exact, so that the sum of both products is rounded once, as a quotient is
LEVEL, REST = float.fromhex("0x1.0101010101p-8"), float.fromhex("0x1.010101010101p-56")

GUARD = 1e-9  # before results are cut to whole levels: rounding must not push a whole number below itself

PIXELS_AT_ONCE = 512  # closed form and steps work on the same few kilobytes
# Single precision errs by less than the first, which is added before a result is cut. So what then lies less than twice as
# much above a whole number is in doubt, and all else is cut to the right level.
MARGIN, IN_DOUBT = np.float32(2e-4), np.float32(4e-4)


def brightened(image: Image, lift: float) -> Image:
    """The image with the value of every pixel moved up, or down where `lift` is negative, within the range."""
    return _with_value(image, float(lift))


def saturated(image: Image, gain: float, offset: float) -> Image:
    """The image with the saturation of every pixel `gain` times itself plus `offset`, within its range."""
    if offset == 0 and gain == int(gain):  # all levels are whole, and in doubt
        result = image.copy()
        through_hsv_steps(result.reshape(-1), 0.0, float(gain), 0.0)
        return result
    return _with_saturation(image, float(gain), float(offset))


@compiled
def _with_value(image: Image, lift: float) -> Image:
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    doubtful, held = np.empty(PIXELS_AT_ONCE, np.uint8), np.empty(3 * PIXELS_AT_ONCE, np.uint8)
    places = np.empty(PIXELS_AT_ONCE + 1, np.uint64)
    moved, values = _moved_levels(lift), np.empty(PIXELS_AT_ONCE, np.uint8)
    for start in range(0, image.size, 3 * PIXELS_AT_ONCE):
        before, after = samples[start : start + 3 * PIXELS_AT_ONCE], result[start : start + 3 * PIXELS_AT_ONCE]
        _move_values(before, moved, values)
        _scale(before, values, np.float32(255 * lift), after, doubtful)
        _settle(before, doubtful, lift, 1.0, 0.0, places, held, after)
    return result.reshape(image.shape)


@compiled
def _with_saturation(image: Image, gain: float, offset: float) -> Image:
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    doubtful, held = np.empty(PIXELS_AT_ONCE, np.uint8), np.empty(3 * PIXELS_AT_ONCE, np.uint8)
    places = np.empty(PIXELS_AT_ONCE + 1, np.uint64)
    for start in range(0, image.size, 3 * PIXELS_AT_ONCE):
        before, after = samples[start : start + 3 * PIXELS_AT_ONCE], result[start : start + 3 * PIXELS_AT_ONCE]
        _spread(before, np.float32(gain), np.float32(offset), after, doubtful)
        _settle(before, doubtful, 0.0, gain, offset, places, held, after)
    return result.reshape(image.shape)


@compiled
def _scale(before: Samples, values: Samples, lift: np.float32, after: Samples, doubtful: Samples) -> None:
    """Writes pixels of other values, and which of them are in doubt."""
    darkest, brightest, one = np.float32(0), np.float32(255), np.float32(1)
    for pixel in range(before.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(before[first]), np.int32(before[first + 1]), np.int32(before[first + 2])
        value = red if red > green else green
        value = value if value > blue else blue
        moved = np.float32(value) + lift
        moved = moved if moved > darkest else darkest
        moved = moved if moved < brightest else brightest
        factor = moved / (np.float32(value) if value > 0 else one)
        new_red, new_green, new_blue = (
            np.float32(red) * factor + MARGIN,
            np.float32(green) * factor + MARGIN,
            np.float32(blue) * factor + MARGIN,
        )
        red_level, green_level, blue_level = np.int32(new_red), np.int32(new_green), np.int32(new_blue)
        top = np.int32(values[pixel])
        after[first] = np.uint8(top if red == value else red_level)
        after[first + 1] = np.uint8(top if green == value else green_level)
        after[first + 2] = np.uint8(top if blue == value else blue_level)
        red_above = one if red == value else new_red - np.float32(red_level)
        green_above = one if green == value else new_green - np.float32(green_level)
        blue_above = one if blue == value else new_blue - np.float32(blue_level)
        least = red_above if red_above < green_above else green_above
        least = least if least < blue_above else blue_above
        doubtful[pixel] = np.uint8(least < IN_DOUBT)


@compiled
def _moved_levels(lift: float) -> Samples:
    """The level that each value moves to, (256,)."""
    greys = np.repeat(np.arange(256).astype(np.uint8), 3)
    through_hsv_steps(greys, lift, 1.0, 0.0)
    return greys[::3].copy()


@compiled
def _move_values(before: Samples, moved: Samples, values: Samples) -> None:
    """Writes the level that each pixel's value moves to."""
    for pixel in range(before.size // 3):
        red, green, blue = before[3 * pixel], before[3 * pixel + 1], before[3 * pixel + 2]
        value = red if red > green else green
        values[pixel] = value if value > blue else blue
    for place in range(np.uint64(before.size // 3)):  # apart from the others, for it cannot be vectorised
        values[place] = moved[np.uint64(values[place])]


@compiled
def _spread(before: Samples, gain: np.float32, offset: np.float32, after: Samples, doubtful: Samples) -> None:
    """Writes pixels of another saturation, and which of them are in doubt."""
    nothing, one = np.float32(0), np.float32(1)
    for pixel in range(before.size // 3):
        first = 3 * pixel
        red, green, blue = np.int32(before[first]), np.int32(before[first + 1]), np.int32(before[first + 2])
        value = red if red > green else green
        value = value if value > blue else blue
        smallest = red if red < green else green
        smallest = smallest if smallest < blue else blue
        grey = value == smallest
        top = np.float32(value)
        most = top / np.float32(1 if grey else np.int32(value - smallest))  # factor that makes saturation full
        factor = gain + offset * most
        factor = factor if factor > nothing else nothing
        factor = factor if factor < most else most
        # the largest channel stays, and at full saturation the smallest is 0
        sure = smallest if factor == most else value
        factor = nothing if grey else factor
        reddened = top * offset if grey else nothing
        new_red = top - np.float32(np.int32(value - red)) * factor + MARGIN
        new_green = top - (np.float32(np.int32(value - green)) * factor + reddened) + MARGIN
        new_blue = top - (np.float32(np.int32(value - blue)) * factor + reddened) + MARGIN
        red_level, green_level, blue_level = np.int32(new_red), np.int32(new_green), np.int32(new_blue)
        after[first], after[first + 1], after[first + 2] = np.uint8(red_level), np.uint8(green_level), np.uint8(blue_level)
        red_above = one if red == value else new_red - np.float32(red_level)
        red_above = one if red == sure else red_above
        green_above = one if green == value else new_green - np.float32(green_level)
        green_above = one if green == sure else green_above
        blue_above = one if blue == value else new_blue - np.float32(blue_level)
        blue_above = one if blue == sure else blue_above
        least = red_above if red_above < green_above else green_above
        least = least if least < blue_above else blue_above
        least = nothing if reddened != nothing else least  # grey that turns red keeps its first channel alone
        doubtful[pixel] = np.uint8(least < IN_DOUBT)


@compiled
def _settle(
    before: Samples,
    doubtful: Samples,
    lift: float,
    gain: float,
    offset: float,
    places: Places,
    held: Samples,
    after: Samples,
) -> None:
    """Writes the pixels that are in doubt anew, by the published steps."""
    one, two, three, eight = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(8)
    doubtful[before.size // 3 :] = 0
    words, count = doubtful.view(np.uint64), np.uint64(0)
    for word in range(np.uint64(words.size)):
        if words[word] != 0:
            for pixel in range(word * eight, (word + one) * eight):
                places[count] = three * pixel
                count += np.uint64(doubtful[pixel])
    for number in range(count):
        place, first = places[number], three * number
        held[first], held[first + one], held[first + two] = before[place], before[place + one], before[place + two]
    through_hsv_steps(held[: three * count], lift, gain, offset)
    for number in range(count):
        place, first = places[number], three * number
        after[place], after[place + one], after[place + two] = held[first], held[first + one], held[first + two]


@compiled
def through_hsv_steps(samples: Samples, lift: float, gain: float, offset: float) -> None:
    """Changes pixels in the published steps."""
    for pixel in range(samples.size // 3):
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
        samples[first] = np.uint8(top if red == largest else (bottom if red == smallest else between))
        samples[first + 1] = np.uint8(not_red if green == largest else (bottom if green == smallest else between))
        samples[first + 2] = np.uint8(not_red if blue == largest else (bottom if blue == smallest else between))


def about_mean(image: Image, gain: float) -> Image:
    """The image with every sample's distance from the mean of its channel shrunk to `gain` of it."""
    height, width = image.shape[:2]
    rest = (1 - gain) / (height * width)
    added = np.array([total * rest + GUARD for total in cv2.sumElems(image)[:3]])
    result = np.empty_like(image)
    _shrink(image.reshape(height, -1), gain, np.tile(added, width), result.reshape(height, -1))
    return result


@compiled
def _shrink(rows: Image, gain: float, added: NDArray[np.float64], result: Image) -> None:
    for y in range(len(rows)):
        row, out = rows[y], result[y]
        for place in range(added.size):
            out[place] = np.uint8(np.int32(row[place] * gain + added[place]))
