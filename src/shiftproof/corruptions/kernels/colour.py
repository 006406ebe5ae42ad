"""Changes of one coordinate of hue, saturation and value, to the bit as the published datasets were made; and contrast.

They took every pixel through that space and back in double precision and cut the result to bytes. Where the answer is a
whole level, which byte it becomes hangs on the last bit of each step; there the same steps are taken in the same order.
Elsewhere a closed form in single precision finds the byte sooner: another value scales all channels of a pixel alike, and
another saturation their distances from the largest. Hue stays; a grey pixel has none, and published code takes it for red.

The kernels work on the largest, middle and smallest channel of many pixels at a time, each in a row of its own. They choose
by conditional expressions, which compile to vector instructions; `min` and `max` mind NaN and do not.
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

Levels: TypeAlias = NDArray[np.uint8]
"""One channel of every pixel, (pixels,)."""

Shares: TypeAlias = NDArray[np.uint16]
"""One channel of every pixel, in 256ths of a level, (pixels,)."""

Factors: TypeAlias = NDArray[np.float32]
"""What a channel of every pixel grows by, in 256ths, (pixels,)."""

Colours: TypeAlias = NDArray[np.int32]
"""Pixels as the published steps need them, (pixels,): from the lowest byte on, largest, middle and smallest channel, then
where the hue lies, in sixths of a turn: four bits for the sixth after the one it goes towards from its largest channel, four
for that channel's own. 0 is red, 2 green, 4 blue."""

# x / 255 without a division: x times the first is exact, so that the sum of both products is rounded once, as a quotient is
LEVEL, REST = float.fromhex("0x1.0101010101p-8"), float.fromhex("0x1.010101010101p-56")

GUARD = 1e-9  # before results are cut to whole levels: rounding must not push a whole number below itself

PIXELS_AT_ONCE = 2048  # closed form and steps work on the same few kilobytes
DOUBTFUL = 6  # the row that tells which pixels are in doubt
VECTOR = 32  # pixels; the steps of fewer would be taken one by one
# Single precision errs by less than the margin, which is added before a result is cut to 256ths. So what then is a whole
# level is in doubt, and all else is cut to the right level.
SHARES, MARGIN = np.float32(256), np.float32(256 * 2e-4)


Room: TypeAlias = tuple[
    NDArray[np.uint8],
    Factors,
    Shares,
    Samples,
    Colours,
    Samples,
    Colours,
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.int32],
]
"""Memory for what is found out about so many pixels; some of it twice, as bytes or as words of eight bytes too."""


class _Rooms(threading.local):
    """The memory of each thread, made by numpy and once: in a kernel that would take seconds to compile."""

    def __init__(self) -> None:
        rows, colours = np.empty((7, PIXELS_AT_ONCE), np.uint8), np.zeros(PIXELS_AT_ONCE, np.int32)
        shares = np.empty((2, PIXELS_AT_ONCE), np.uint16)
        self.room: Room = (
            rows,
            np.empty(PIXELS_AT_ONCE, np.float32),  # factors
            shares,
            shares.view(np.uint8),
            colours,
            colours.view(np.uint8),
            np.zeros(PIXELS_AT_ONCE + VECTOR, np.int32),  # colours that are held up
            rows[DOUBTFUL].view(np.uint64),
            np.empty(PIXELS_AT_ONCE // 8 + 1, np.uint64),  # words that were chosen
            np.empty(PIXELS_AT_ONCE + 1, np.uint64),  # places
            np.empty((2, PIXELS_AT_ONCE + VECTOR), np.int32),  # results of steps
        )


_ROOMS = _Rooms()


def brightened(image: Image, lift: float) -> Image:
    """The image with the value of every pixel moved up, or down where `lift` is negative, within the range."""
    result = np.empty(image.size, np.uint8)
    _with_value(image.reshape(-1), float(lift), *_moved_levels(float(lift)), False, _ROOMS.room, result)
    return result.reshape(image.shape)


def saturated(image: Image, gain: float, offset: float) -> Image:
    """The image with the saturation of every pixel `gain` times itself plus `offset`, within its range."""
    result = np.empty(image.size, np.uint8)
    all_whole, redden = offset == 0 and gain == np.floor(gain), offset > 0
    _with_saturation(image.reshape(-1), float(gain), float(offset), bool(all_whole), bool(redden), _ROOMS.room, result)
    return result.reshape(image.shape)


@lru_cache(maxsize=64)
def _moved_levels(lift: float) -> tuple[Levels, int, bool]:
    """The level that each value moves to, (256,); and by how many levels, where all move alike within the range."""
    levels, up = np.arange(256), math.floor(255 * lift)
    moved = (np.clip(levels / 255 + lift, 0, 1) * 255).astype(np.uint8)
    return moved, up, bool((np.clip(levels + up, 0, 255) == moved).all())


@compiled
def _with_value(
    samples: Samples, lift: float, moved: Levels, up: int, alike: bool, redden: bool, room: Room, result: Samples
) -> None:
    rows, factors, shares, share_bytes, _, colour_bytes, _, _, _, _, _ = room
    for start in range(0, samples.size, 3 * PIXELS_AT_ONCE):
        before, after = samples[start : start + 3 * PIXELS_AT_ONCE], result[start : start + 3 * PIXELS_AT_ONCE]
        pixels = before.size // 3
        largest, middle, smallest, top = rows[0, :pixels], rows[1, :pixels], rows[2, :pixels], rows[3, :pixels]
        between, bottom = rows[4], rows[5]
        _sort(before, largest, middle, smallest, colour_bytes)
        if alike:
            _move_alike(largest, np.int16(up), top)
        else:
            _move(largest, moved, top)
        _find_factors(largest, np.float32(255 * lift), factors)
        _scale(middle, factors, shares[0])
        _scale(smallest, factors, shares[1])
        _cut(share_bytes, largest, middle, smallest, redden, between, bottom, rows[DOUBTFUL])
        _settle(room, lift, 1.0, 0.0, between, bottom)
        _join(before, largest, smallest, top, between, bottom, redden, after)


@compiled
def _with_saturation(
    samples: Samples, gain: float, offset: float, all_whole: bool, redden: bool, room: Room, result: Samples
) -> None:
    rows, factors, shares, share_bytes, colours, colour_bytes, _, _, _, _, steps = room
    for start in range(0, samples.size, 3 * PIXELS_AT_ONCE):
        before, after = samples[start : start + 3 * PIXELS_AT_ONCE], result[start : start + 3 * PIXELS_AT_ONCE]
        pixels = before.size // 3
        largest, middle, smallest = rows[0, :pixels], rows[1, :pixels], rows[2, :pixels]
        between, bottom = rows[4], rows[5]
        _sort(before, largest, middle, smallest, colour_bytes)
        if all_whole:
            _take_steps(colours, 0.0, gain, offset, steps[0], steps[1])
            _narrow(steps[0, :pixels], between)
            _narrow(steps[1, :pixels], bottom)
        else:
            _find_spreads(largest, smallest, np.float32(gain), np.float32(offset), factors)
            _spread(largest, middle, factors, np.float32(0), shares[0])
            _spread(largest, smallest, factors, np.float32(1), shares[1])
            _cut(share_bytes, largest, middle, smallest, redden, between, bottom, rows[DOUBTFUL])
            _settle(room, 0.0, gain, offset, between, bottom)
        _join(before, largest, smallest, largest, between, bottom, redden, after)


@compiled
def _sort(before: Samples, largest: Levels, middle: Levels, smallest: Levels, colour: NDArray[np.uint8]) -> None:
    """Writes the channels of each pixel by size, and its colour; where two channels are alike, the hue matters to none."""
    for pixel in range(largest.size):
        red, green, blue = before[3 * pixel], before[3 * pixel + 1], before[3 * pixel + 2]
        larger, smaller = red if red > green else green, green if red > green else red
        most, other = larger if larger > blue else blue, blue if larger > blue else larger
        least, between = smaller if smaller < other else other, other if smaller < other else smaller
        from_red, from_green = np.uint8(0x00 if green == least else 0x02), np.uint8(0x22 if blue == least else 0x24)
        from_blue, others = np.uint8(0x44 if red == least else 0x46), from_green if green == most else from_red
        largest[pixel], middle[pixel], smallest[pixel] = most, between, least
        colour[4 * pixel], colour[4 * pixel + 1], colour[4 * pixel + 2] = most, between, least
        colour[4 * pixel + 3] = from_blue if blue == most else others


@compiled
def _move_alike(largest: Levels, up: np.int16, top: Levels) -> None:
    darkest, brightest = np.int16(0), np.int16(255)
    for pixel in range(largest.size):
        level = np.int16(np.int16(largest[pixel]) + up)
        level = level if level < brightest else brightest
        top[pixel] = np.uint8(level if level > darkest else darkest)


@compiled
def _move(largest: Levels, moved: Levels, top: Levels) -> None:
    for pixel in range(np.uint64(largest.size)):
        top[pixel] = moved[np.uint64(largest[pixel])]


@compiled
def _find_factors(largest: Levels, lift: np.float32, factors: Factors) -> None:
    """Writes what the channels of each pixel grow by."""
    darkest, brightest, one = np.float32(0), np.float32(255), np.float32(1)
    for pixel in range(largest.size):
        value = np.float32(np.int32(largest[pixel]))
        moved = value + lift
        moved = moved if moved > darkest else darkest
        moved = moved if moved < brightest else brightest
        factors[pixel] = moved * SHARES / (value if value > one else one)


@compiled
def _scale(levels: Levels, factors: Factors, shares: Shares) -> None:
    for pixel in range(levels.size):
        shares[pixel] = np.uint16(np.int32(np.float32(np.int32(levels[pixel])) * factors[pixel] + MARGIN))


@compiled
def _find_spreads(largest: Levels, smallest: Levels, gain: np.float32, offset: np.float32, factors: Factors) -> None:
    """Writes what the distances from the largest channel of each pixel grow by; grey has 1 for a distance that it lacks."""
    nothing, one = np.float32(0), np.float32(1)
    for pixel in range(largest.size):
        value = np.float32(np.int32(largest[pixel]))
        spread = value - np.float32(np.int32(smallest[pixel]))
        most = value / (spread if spread > one else one)  # makes saturation full
        factor = (gain if spread > nothing else nothing) + offset * most
        factor = factor if factor > nothing else nothing
        factor = factor if factor < most else most
        factors[pixel] = factor * SHARES


@compiled
def _spread(largest: Levels, levels: Levels, factors: Factors, least: np.float32, shares: Shares) -> None:
    """Writes levels whose distance from the largest channel, of `least` or more, has grown."""
    for pixel in range(largest.size):
        value = np.float32(np.int32(largest[pixel]))
        distance = value - np.float32(np.int32(levels[pixel]))
        distance = distance if distance > least else least
        shares[pixel] = np.uint16(np.int32(value * SHARES + MARGIN - distance * factors[pixel]))


@compiled
def _cut(
    shares: NDArray[np.uint8],
    largest: Levels,
    middle: Levels,
    smallest: Levels,
    redden: bool,
    between: Levels,
    bottom: Levels,
    doubtful: Levels,
) -> None:
    """Writes whole levels, and which pixels are in doubt; 0 never is, for nothing lies below it."""
    middles, smallests, yes, no = shares[0], shares[1], np.uint8(1), np.uint8(0)
    for pixel in range(largest.size):
        level, rest, most = middles[2 * pixel + 1], middles[2 * pixel], largest[pixel]
        other, other_rest = smallests[2 * pixel + 1], smallests[2 * pixel]
        between[pixel], bottom[pixel] = level, other
        doubt = (rest == 0) & (level != 0) & (middle[pixel] != most)
        doubt_other = (other_rest == 0) & (other != 0) & (redden | (smallest[pixel] != most))
        doubtful[pixel] = yes if doubt | doubt_other else no
    for pixel in range(largest.size, doubtful.size):
        doubtful[pixel] = no


@compiled
def _settle(room: Room, lift: float, gain: float, offset: float, between: Levels, bottom: Levels) -> None:
    """Writes the levels that are in doubt anew, by the published steps."""
    # counts have no sign, so that the kernel does not look for indices below 0; and no branches, for none can be foretold
    rows, _, _, _, colours, _, held, words, chosen, places, steps = room
    one, eight, doubtful = np.uint64(1), np.uint64(8), rows[DOUBTFUL]
    some, count = np.uint64(0), np.uint64(0)
    for word in range(np.uint64(words.size)):
        chosen[some] = word
        some += one if words[word] != 0 else np.uint64(0)
    for number in range(some):
        for pixel in range(eight * chosen[number], eight * chosen[number] + eight):
            held[count], places[count] = colours[pixel], pixel
            count += np.uint64(doubtful[pixel])
    _take_steps(held[: (count + np.uint64(VECTOR - 1)) & ~np.uint64(VECTOR - 1)], lift, gain, offset, steps[0], steps[1])
    for number in range(count):
        between[places[number]] = np.uint8(steps[0, number])
    for number in range(count):
        bottom[places[number]] = np.uint8(steps[1, number])


@compiled
def _take_steps(
    colours: Colours, lift: float, gain: float, offset: float, between: NDArray[np.int32], bottom: NDArray[np.int32]
) -> None:
    """Writes the levels of the middle and of the smallest channel in the published steps."""
    for pixel in range(colours.size):
        colour = colours[pixel]
        largest, middle, smallest = (
            np.float64(colour & 255),
            np.float64((colour >> 8) & 255),
            np.float64((colour >> 16) & 255),
        )
        towards, near = np.float64(((colour >> 24) & 15) - 1), np.float64((colour >> 28) & 15)
        value: float = largest * LEVEL + largest * REST
        least = smallest * LEVEL + smallest * REST
        spread = value - least
        grey = spread == 0.0
        saturation: float = spread / (1.0 if grey else value)
        beyond = (middle * LEVEL + middle * REST - least) / (1.0 if grey else spread)
        hue = (near + (towards - near) * beyond) / 6.0
        hue = hue + 1.0 if hue < 0.0 else hue

        value = value + lift
        value = value if value < 1.0 else 1.0
        value = value if value > 0.0 else 0.0
        saturation = saturation * gain + offset
        saturation = saturation if saturation < 1.0 else 1.0
        saturation = saturation if saturation > 0.0 else 0.0

        share = abs(hue * 6.0 - (towards if towards > 0.0 else 5.0))
        between[pixel] = np.int32(value * (1.0 - share * saturation) * 255.0)
        bottom[pixel] = np.int32(value * (1.0 - saturation) * 255.0)


@compiled
def _narrow(numbers: NDArray[np.int32], levels: Levels) -> None:
    for pixel in range(numbers.size):
        levels[pixel] = np.uint8(numbers[pixel])


@compiled
def _join(
    before: Samples,
    largest: Levels,
    smallest: Levels,
    top: Levels,
    between: Levels,
    bottom: Levels,
    redden: bool,
    after: Samples,
) -> None:
    """Writes each channel of each pixel by its size; where grey is to `redden`, red alone is the largest."""
    for pixel in range(largest.size):
        red, green, blue = before[3 * pixel], before[3 * pixel + 1], before[3 * pixel + 2]
        most, least, one, two, three = largest[pixel], smallest[pixel], top[pixel], between[pixel], bottom[pixel]
        not_red = three if redden and most == least else one
        first, second, third = (
            three if red == least else two,
            three if green == least else two,
            three if blue == least else two,
        )
        after[3 * pixel] = one if red == most else first
        after[3 * pixel + 1] = not_red if green == most else second
        after[3 * pixel + 2] = not_red if blue == most else third


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
