"""Changes of one coordinate of hue, saturation and value, to the bit as the published datasets were made; and contrast.

They took every pixel through that space and back in double precision and cut the result to bytes. Where the answer is a
whole level, which byte it becomes hangs on the last bit of each step; there the same steps are taken in the same order.
Elsewhere a closed form in single precision finds the byte sooner: another value scales all channels of a pixel alike, and
another saturation their distances from the largest. Hue stays; a grey pixel has none, and published code takes it for red.

The kernel works on the largest, middle and smallest channel of many pixels at a time, each in a row of its own. It chooses
by conditional expressions, which compile to vector instructions; `min` and `max` mind NaN and do not. It is one function:
what a kernel calls is compiled with each of its callers once more.
"""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.types import Image

Samples: TypeAlias = NDArray[np.uint8]
"""Channels of pixels one after the other, (3 x pixels,)."""

# x / 255 without a division: x times the first is exact, so that the sum of both products is rounded once, as a quotient is
LEVEL, REST = float.fromhex("0x1.0101010101p-8"), float.fromhex("0x1.010101010101p-56")
SIXTH = 1 / 6
ONE, EIGHT = np.uint64(1), np.uint64(8)

GUARD = 1e-9  # before results are cut to whole levels: rounding must not push a whole number below itself

PIXELS_AT_ONCE = 2048  # closed form and steps work on the same few kilobytes
VECTOR = 32  # pixels; the steps of fewer would be taken one by one
# Single precision errs by less than the margin, which is added before a result is cut to 256ths. So what then is a whole
# level is in doubt, and all else is cut to the right level.
SHARES, MARGIN = np.float32(256), np.float32(256 * 2e-4)

ROW = PIXELS_AT_ONCE + VECTOR
RED, GREEN, BLUE, LARGEST, MIDDLE, SMALLEST, HUE, TOP, BETWEEN, BOTTOM, DOUBTFUL = range(0, 11 * ROW, ROW)
"""Where the rows of what is known of each pixel begin: in one array, so that the compiler sees that none touches another."""

Room: TypeAlias = tuple[
    NDArray[np.uint8],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.uint16],
    NDArray[np.uint8],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
]
"""Memory for so many pixels: rows, colours whose steps are taken, results of these, two channels in 256ths of a level and
their bytes, doubts as words of eight bytes, the numbers of words that are not 0, places of pixels."""


class _Rooms(threading.local):
    """The memory of each thread, made by numpy and once: in a kernel that would take seconds to compile."""

    def __init__(self) -> None:
        rows, shares = np.zeros(11 * ROW, np.uint8), np.zeros(2 * PIXELS_AT_ONCE, np.uint16)
        doubts = rows[DOUBTFUL : DOUBTFUL + PIXELS_AT_ONCE].view(np.uint64)
        chosen, places = np.empty(PIXELS_AT_ONCE // 8 + 1, np.uint64), np.empty(PIXELS_AT_ONCE + 1, np.uint64)
        self.room: Room = (
            rows,
            np.zeros(ROW, np.int32),
            np.empty(2 * ROW, np.int32),
            shares,
            shares.view(np.uint8),
            doubts,
            chosen,
            places,
        )


_ROOMS = _Rooms()

NO_FALLS = np.empty((0, 2), np.uint8)


def brightened(image: Image, lift: float) -> Image:
    """The image with the value of every pixel moved up, or down where `lift` is negative, within the range."""
    result = np.empty(image.size, np.uint8)
    _change(image.reshape(-1), float(lift), 1.0, 0.0, True, *_levels_up(float(lift)), False, False, _ROOMS.room, result)
    return result.reshape(image.shape)


def saturated(image: Image, gain: float, offset: float) -> Image:
    """The image with the saturation of every pixel `gain` times itself plus `offset`, within its range."""
    result = np.empty(image.size, np.uint8)
    all_whole, redden = bool(offset == 0 and gain == np.floor(gain)), bool(offset > 0)
    _change(image.reshape(-1), 0.0, float(gain), float(offset), False, 0, NO_FALLS, all_whole, redden, _ROOMS.room, result)
    return result.reshape(image.shape)


@lru_cache(maxsize=64)
def _levels_up(lift: float) -> tuple[int, NDArray[np.uint8]]:
    """By how many levels values move within the range; and runs of those that end one below, (runs, 2): first, and how many
    more.

    >>> _levels_up(0.1)[0], _levels_up(0.2)[0], _levels_up(0.2)[1][:4].tolist()
    (25, 51, [[81, 0], [97, 0], [113, 0], [129, 2]])
    """
    levels = np.arange(256)
    moved = (np.clip(levels / 255 + lift, 0, 1) * 255).astype(np.uint8)
    up = math.floor(255 * lift + 1e-9)
    fall = np.diff(np.clip(levels + up, 0, 255) - moved, prepend=0, append=0)
    first, past = np.flatnonzero(fall == 1), np.flatnonzero(fall == -1)
    return up, np.stack([first, past - 1 - first], axis=1).astype(np.uint8)


@compiled
def _change(
    samples: Samples,
    lift: float,
    gain: float,
    offset: float,
    brighten: bool,
    up: int,
    falls: NDArray[np.uint8],
    all_whole: bool,
    redden: bool,
    room: Room,
    result: Samples,
) -> None:
    rows, colours, found, shares, share_bytes, words, chosen, places = room
    nothing, one, brightest = np.float32(0), np.float32(1), np.float32(255)
    lift_32, gain_32, offset_32, up_16 = np.float32(255 * lift), np.float32(gain), np.float32(offset), np.int16(up)
    for start in range(0, samples.size, 3 * PIXELS_AT_ONCE):
        before, after = samples[start : start + 3 * PIXELS_AT_ONCE], result[start : start + 3 * PIXELS_AT_ONCE]
        pixels = before.size // 3

        # the channels of each pixel by size, and its hue; where two channels are alike, the hue matters to none. Its low
        # bits are the sixth of a turn after the one it goes towards from its largest channel, its high ones that channel's
        # own: 0 is red, 2 green, 4 blue
        for pixel in range(pixels):
            red, green, blue = before[3 * pixel], before[3 * pixel + 1], before[3 * pixel + 2]
            larger, smaller = red if red > green else green, green if red > green else red
            most, other = larger if larger > blue else blue, blue if larger > blue else larger
            least, level = smaller if smaller < other else other, other if smaller < other else smaller
            from_red, from_green = np.uint8(0x00 if green == least else 0x02), np.uint8(0x22 if blue == least else 0x24)
            from_blue, others = np.uint8(0x44 if red == least else 0x46), from_green if green == most else from_red
            rows[RED + pixel], rows[GREEN + pixel], rows[BLUE + pixel] = red, green, blue
            rows[LARGEST + pixel], rows[MIDDLE + pixel], rows[SMALLEST + pixel] = most, level, least
            rows[HUE + pixel] = from_blue if blue == most else others

        # the closed form
        if brighten:
            for pixel in range(pixels):
                whole = np.int16(np.int16(rows[LARGEST + pixel]) + up_16)
                whole = whole if whole < np.int16(255) else np.int16(255)
                rows[TOP + pixel] = np.uint8(whole if whole > np.int16(0) else np.int16(0))
            for number in range(len(falls)):
                lowest_fall, further = falls[number, 0], falls[number, 1]
                for pixel in range(pixels):
                    falling = np.uint8(rows[LARGEST + pixel] - lowest_fall) <= further
                    rows[TOP + pixel] -= np.uint8(1 if falling else 0)
            for pixel in range(pixels):
                value = np.float32(np.int32(rows[LARGEST + pixel]))
                lifted = value + lift_32
                lifted = lifted if lifted > nothing else nothing
                lifted = lifted if lifted < brightest else brightest
                factor = lifted * SHARES / (value if value > one else one)
                level_32, least_32 = np.float32(np.int32(rows[MIDDLE + pixel])), np.float32(np.int32(rows[SMALLEST + pixel]))
                shares[pixel] = np.uint16(np.int32(level_32 * factor + MARGIN))
                shares[PIXELS_AT_ONCE + pixel] = np.uint16(np.int32(least_32 * factor + MARGIN))
        elif not all_whole:
            for pixel in range(pixels):
                value = np.float32(np.int32(rows[LARGEST + pixel]))
                spread = value - np.float32(np.int32(rows[SMALLEST + pixel]))
                near = value - np.float32(np.int32(rows[MIDDLE + pixel]))
                far = spread if spread > one else one  # grey has 1 for a distance that it lacks
                full = value / far  # makes saturation full
                factor = (gain_32 if spread > nothing else nothing) + offset_32 * full
                factor = factor if factor > nothing else nothing
                factor = (factor if factor < full else full) * SHARES
                most_32 = value * SHARES + MARGIN
                shares[pixel] = np.uint16(np.int32(most_32 - near * factor))
                shares[PIXELS_AT_ONCE + pixel] = np.uint16(np.int32(most_32 - far * factor))

        # cut to whole levels. Those pixels are in doubt that had a whole level before; 0 never is, for nothing lies below it
        count = np.uint64(0)
        if not all_whole:
            for pixel in range(pixels):
                level, rest = share_bytes[2 * pixel + 1], share_bytes[2 * pixel]
                other, other_rest = (
                    share_bytes[2 * PIXELS_AT_ONCE + 2 * pixel + 1],
                    share_bytes[2 * PIXELS_AT_ONCE + 2 * pixel],
                )
                most = rows[LARGEST + pixel]
                doubt = (rest == 0) & (level != 0) & (rows[MIDDLE + pixel] != most)
                doubt_other = (other_rest == 0) & (other != 0) & (redden | (rows[SMALLEST + pixel] != most))
                rows[BETWEEN + pixel], rows[BOTTOM + pixel] = level, other
                rows[DOUBTFUL + pixel] = np.uint8(1 if doubt | doubt_other else 0)
            for pixel in range(pixels, PIXELS_AT_ONCE):
                rows[DOUBTFUL + pixel] = 0
            # without branches, for none can be foretold; and without signs, so that nobody looks for places below 0
            some = np.uint64(0)
            for word in range(np.uint64(words.size)):
                chosen[some] = word
                some += ONE if words[word] != 0 else np.uint64(0)
            for number in range(some):
                place = EIGHT * chosen[number]
                for _ in range(8):
                    places[count] = place
                    count += np.uint64(rows[np.uint64(DOUBTFUL) + place])
                    place += ONE
            for number in range(count):
                place = places[number]
                largest, middle = np.int32(rows[np.uint64(LARGEST) + place]), np.int32(rows[np.uint64(MIDDLE) + place])
                smallest, hue_bits = np.int32(rows[np.uint64(SMALLEST) + place]), np.int32(rows[np.uint64(HUE) + place])
                colours[number] = np.int32(largest | (middle << 8) | (smallest << 16) | (hue_bits << 24))
        else:
            for pixel in range(pixels):
                largest, middle = np.int32(rows[LARGEST + pixel]), np.int32(rows[MIDDLE + pixel])
                smallest, hue_bits = np.int32(rows[SMALLEST + pixel]), np.int32(rows[HUE + pixel])
                colours[pixel] = np.int32(largest | (middle << 8) | (smallest << 16) | (hue_bits << 24))

        # the published steps, of all pixels or of those in doubt
        for pixel in range(pixels if all_whole else (np.int64(count) + VECTOR - 1) & ~(VECTOR - 1)):
            colour = colours[pixel]
            highest, other_level = np.float64(np.int32(colour & 255)), np.float64(np.int32((colour >> 8) & 255))
            lowest, own = np.float64(np.int32((colour >> 16) & 255)), np.float64(np.int32((colour >> 28) & 15))
            towards = np.float64(np.int32((colour >> 24) & 15)) - 1.0
            value_64: float = highest * LEVEL + highest * REST
            lowest = lowest * LEVEL + lowest * REST
            distance = value_64 - lowest
            grey = distance == 0.0
            saturation: float = distance / (1.0 if grey else value_64)
            beyond = (other_level * LEVEL + other_level * REST - lowest) / (1.0 if grey else distance)
            sixths = own + (towards - own) * beyond
            # a sixth of it, rounded as the quotient is: what the product leaves over is found without an error
            hue = sixths * SIXTH
            hue = hue + ((sixths - 4.0 * hue) - 2.0 * hue) * SIXTH
            hue = hue + 1.0 if hue < 0.0 else hue

            value_64 = value_64 + lift
            value_64 = value_64 if value_64 < 1.0 else 1.0
            value_64 = value_64 if value_64 > 0.0 else 0.0
            saturation = saturation * gain + offset
            saturation = saturation if saturation < 1.0 else 1.0
            saturation = saturation if saturation > 0.0 else 0.0

            share = abs(hue * 6.0 - (towards if towards > 0.0 else 5.0))
            found[pixel] = np.int32(value_64 * (1.0 - share * saturation) * 255.0)
            found[ROW + pixel] = np.int32(value_64 * (1.0 - saturation) * 255.0)
        if all_whole:
            for pixel in range(pixels):
                rows[BETWEEN + pixel], rows[BOTTOM + pixel] = np.uint8(found[pixel]), np.uint8(found[ROW + pixel])
        for number in range(count):
            rows[np.uint64(BETWEEN) + places[number]] = np.uint8(found[number])
            rows[np.uint64(BOTTOM) + places[number]] = np.uint8(found[np.uint64(ROW) + number])

        # each channel of each pixel by its size; where grey is to redden, red alone is the largest
        top = TOP if brighten else LARGEST
        for pixel in range(pixels):
            red, green, blue = rows[RED + pixel], rows[GREEN + pixel], rows[BLUE + pixel]
            most, least, above = rows[LARGEST + pixel], rows[SMALLEST + pixel], rows[top + pixel]
            level, other = rows[BETWEEN + pixel], rows[BOTTOM + pixel]
            not_red = other if redden and most == least else above
            level_red, level_green = other if red == least else level, other if green == least else level
            level_blue = other if blue == least else level
            after[3 * pixel] = above if red == most else level_red
            after[3 * pixel + 1] = not_red if green == most else level_green
            after[3 * pixel + 2] = not_red if blue == most else level_blue


def about_mean(image: Image, gain: float) -> Image:
    """The image with every sample's distance from the mean of its channel shrunk to `gain` of it."""
    rest = (1 - gain) / (image.size // 3)
    red, green, blue, _ = cv2.sumElems(image)
    result, offsets = np.empty(image.shape, np.uint8), np.empty(SAMPLES_AT_ONCE, np.uint16)
    _shrink(
        image.reshape(-1), gain, red * rest + GUARD, green * rest + GUARD, blue * rest + GUARD, offsets, result.reshape(-1)
    )
    return result


SAMPLES_AT_ONCE = 384  # whole pixels, whole vectors


@compiled
def _shrink(
    samples: Samples, gain: float, red: float, green: float, blue: float, offsets: NDArray[np.uint16], result: Samples
) -> None:
    """In 256ths of a level where these give the same for all 256 levels of each channel, else in double precision.

    They do for all published gains, which are twentieths: so are the distances between results, and a twentieth is enough.
    """
    factor = np.int32(gain * 65536 + 0.5)
    large, small, alike = np.uint16(factor >> 8), np.uint16(factor & 255), 0 <= gain < 1
    for channel in range(3):
        own = red if channel == 0 else (green if channel == 1 else blue)
        lowest, highest = np.int32(0), np.int32(65535)
        for level in range(256):
            least = np.int32((np.int32(level * gain + own) << 8) - ((level * factor) >> 8))
            lowest = lowest if lowest > least else least
            highest = highest if highest < least + 255 else np.int32(least + 255)
        alike = alike and bool(lowest <= highest)
        for place in range(channel, SAMPLES_AT_ONCE, 3):
            offsets[place] = np.uint16(lowest)
    for start in range(0, samples.size, SAMPLES_AT_ONCE):
        before, after = samples[start : start + SAMPLES_AT_ONCE], result[start : start + SAMPLES_AT_ONCE]
        if alike:
            for place in range(before.size):
                level_16 = np.uint16(before[place])
                share = np.uint16(np.uint16(level_16 * small) >> np.uint16(8))
                after[place] = np.uint8(np.uint16(level_16 * large + share + offsets[place]) >> np.uint16(8))
        else:
            for place in range(before.size):
                own = red if place % 3 == 0 else (green if place % 3 == 1 else blue)
                after[place] = np.uint8(np.int32(before[place] * gain + own))
