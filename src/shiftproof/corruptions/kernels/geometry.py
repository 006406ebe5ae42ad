"""Pictures resampled: rotated, scaled and sheared about the middle, elastically transformed, pixelated."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled, seed_of
from shiftproof.corruptions.kernels.fields import Field, symmetric_draws
from shiftproof.corruptions.kernels.filters import gaussian, gaussian_kernel
from shiftproof.types import Image

if TYPE_CHECKING:
    from shiftproof.corruptions.sequences import Canvas

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


CUT_OFF = 3.0  # sigmas, where everything else is cut off at 4
TILE, SUMMED_AT_ONCE = 32, 256  # larger products are shared out among threads, and their sums then depend on how many

Moves: TypeAlias = NDArray[np.float64]
"""How far three points move, (3, 2): right and down."""

Places: TypeAlias = NDArray[np.int64]
"""Where pixels come from, (2, length): right and down, in 1/1024 of a pixel."""

Quads: TypeAlias = NDArray[np.float32]
"""Bytes as floats, (height, width, 4): three channels and one that says nothing, so that two words are moved for a pixel."""

Words: TypeAlias = NDArray[np.uint64]
"""Four samples of 16 bits or two of 32, moved at once."""


def tilt(image: Image, moves: Moves) -> Quads:
    """The image under the affine map that moves three points about its middle so; beyond its border it goes on in a mirror.

    Places are rounded to 1/32 of a pixel, as OpenCV did with all pictures when the sets were made.
    """
    height, width = image.shape[:2]
    arm = max(1, min(height, width) // 3)
    points = np.array([width // 2, height // 2]) + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    affine = cv2.getAffineTransform(points.astype(np.float32), (points + moves).astype(np.float32))
    back = np.asarray(cv2.invertAffineTransform(affine), np.float64)
    # the two parts of a place are rounded apart, to 1/1024, before their sum is
    of_column = np.rint(back[:, :1] * np.arange(width) * 1024).astype(np.int64)
    of_row = np.rint((back[:, 1:2] * np.arange(height) + back[:, 2:]) * 1024).astype(np.int64) + 16
    # a word a pixel: sums of its channels, weighted by 32nds, stay within their 16 bits
    words = cv2.cvtColor(image, cv2.COLOR_RGB2RGBA).astype(np.uint16).reshape(-1).view(np.uint64)
    tilted = np.empty((height, width, 4), np.float32)
    _tilt(words, of_column, of_row, tilted.reshape(height, -1))
    return tilted


@compiled
def _tilt(words: Words, of_column: Places, of_row: Places, tilted: Field) -> None:
    height, width = of_row.shape[1], of_column.shape[1]
    stride, all_of_it, thousandth = np.uint64(width), np.uint64(32), np.float32(1 / 1024)
    lefts, aboves = np.empty(width, np.int64), np.empty(width, np.int64)
    right_shares, down_shares = np.empty(width, np.uint64), np.empty(4 * width, np.int32)
    uppers, lowers = np.empty(width, np.uint64), np.empty(width, np.uint64)
    upper_samples, lower_samples = uppers.view(np.uint16), lowers.view(np.uint16)
    for y in range(height):
        for x in range(width):
            right, down = (of_row[0, y] + of_column[0, x]) >> 5, (of_row[1, y] + of_column[1, x]) >> 5
            lefts[x], aboves[x] = right >> 5, down >> 5
            right_shares[x] = np.uint64(right & 31)
            for channel in range(4):
                down_shares[4 * x + channel] = np.int32(down & 31)
        for x in range(stride):
            left, above = int(lefts[x]), int(aboves[x])
            next_x, next_y = left + 1, above + 1
            if left < 0 or next_x >= width or above < 0 or next_y >= height:
                left, next_x = _mirrored_about_last(left, width), _mirrored_about_last(next_x, width)
                above, next_y = _mirrored_about_last(above, height), _mirrored_about_last(next_y, height)
            upper, lower = np.uint64(above) * stride, np.uint64(next_y) * stride
            right_share, left_share = right_shares[x], all_of_it - right_shares[x]
            uppers[x] = words[upper + np.uint64(left)] * left_share + words[upper + np.uint64(next_x)] * right_share
            lowers[x] = words[lower + np.uint64(left)] * left_share + words[lower + np.uint64(next_x)] * right_share
        row = tilted[y]
        for place in range(4 * width):
            before, after = np.int32(upper_samples[place]), np.int32(lower_samples[place])
            total = np.int32(np.int32(32 * before) + np.int32(np.int32(after - before) * down_shares[place]))
            row[place] = np.float32(total) * thousandth


def random_fields(rng: np.random.Generator, height: int, width: int, sigma: float) -> tuple[Field, Field]:
    """How far each pixel moves right and down, from -1 to 1, smooth over `sigma`."""
    right, down = symmetric_draws(seed_of(rng), 2 * height * width).reshape(2, height, width)
    return smooth_field(right, sigma), smooth_field(down, sigma)


def smooth_field(field: Field, sigma: float) -> Field:
    """The field under a gaussian window cut off early; beyond the border it goes on in a mirror."""
    height, width = field.shape
    if 8 * CUT_OFF * sigma < min(height, width):
        return gaussian(field, sigma, truncate=CUT_OFF, border="reflect")
    return np.ascontiguousarray(mixed(mixed(field, mixing_of(height, sigma)).T, mixing_of(width, sigma)).T)


@lru_cache(maxsize=4)  # both axes at two sigmas, which severities 1 and 2 have; for 4000 pixels one takes 64 MB
def mixing_of(length: int, sigma: float) -> Field:
    """How much of each place along an axis the window brings to each other, (length, length)."""
    kernel = gaussian_kernel(sigma, CUT_OFF)
    reach = len(kernel) // 2
    places = (np.arange(length)[:, None] + np.arange(-reach, reach + 1)) % (2 * length)
    mixing = np.zeros((length, length))
    np.add.at(mixing, (np.arange(length)[:, None], np.minimum(places, 2 * length - 1 - places)), kernel)
    return mixing.astype(np.float32)


def mixed(field: Field, mixing: Field) -> Field:
    """The rows of a field, each become a sum of all: the product of both, to the same bits with any number of threads."""
    height, width = len(mixing), field.shape[1]
    total = np.empty((height, width), np.float32)
    for rows in _whole_and_rest(height):
        for columns in _whole_and_rest(width):
            tiles = _tiles(total[rows, columns], TILE, TILE)
            for at in range(0, len(field), SUMMED_AT_ONCE):
                span = slice(at, at + SUMMED_AT_ONCE)
                factors = (
                    _tiles(mixing[rows, span], TILE, SUMMED_AT_ONCE),
                    _tiles(field[span, columns], SUMMED_AT_ONCE, TILE),
                )
                if at == 0:
                    np.matmul(*factors, out=tiles)
                else:
                    tiles += np.matmul(*factors)
    return total


def _whole_and_rest(length: int) -> list[slice]:
    """The part of a side that whole tiles cover, and what is left over, unless there is none.

    >>> _whole_and_rest(70)
    [slice(0, 64, None), slice(64, 70, None)]
    """
    whole = length - length % TILE
    return [part for part in (slice(0, whole), slice(whole, length)) if part.start < part.stop]


def _tiles(field: Field, height: int, width: int) -> Field:
    """The field cut into tiles of this size, or of its own where it is smaller, (rows, columns, height, width): a view."""
    height, width = min(height, field.shape[0]), min(width, field.shape[1])
    return field.reshape(field.shape[0] // height, height, field.shape[1] // width, width).transpose(0, 2, 1, 3)


def displaced(quads: Quads, right: Field, down: Field) -> Image:
    """The image whose pixels come from so far right and down, bilinear, cut to bytes; beyond its border it is mirrored."""
    height, width = right.shape
    image = np.empty((height, width, 4), np.uint8)
    _displace(quads.reshape(-1).view(np.uint64), right, down, image.reshape(height, -1))
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGBA2RGB), np.uint8)


@compiled
def _displace(words: Words, right: Field, down: Field, image: Image) -> None:
    height, width = right.shape
    stride, one, two = np.uint64(width), np.uint64(1), np.uint64(2)  # words a pixel: two
    guard, most = np.float32(6e-5), np.float32(255)
    corners = np.empty((4, 2 * width), np.uint64)
    upper_left, upper_right, lower_left, lower_right = corners[0], corners[1], corners[2], corners[3]
    samples = corners.view(np.float32)
    right_shares, down_shares = np.empty(4 * width, np.float32), np.empty(4 * width, np.float32)
    lefts, aboves = np.empty(width, np.int32), np.empty(width, np.int32)
    for y in range(height):
        for x in range(width):
            # casts cut towards zero, which is downwards only above it
            lefts[x] = np.int32(np.int32(right[y, x] + 1048576.0) - 1048576)
            aboves[x] = np.int32(np.int32(down[y, x] + 1048576.0) - 1048576)
        for x in range(width):
            right_share, down_share = right[y, x] - np.float32(lefts[x]), down[y, x] - np.float32(aboves[x])
            for channel in range(4):
                right_shares[4 * x + channel], down_shares[4 * x + channel] = right_share, down_share
        for x in range(stride):
            left, above = int(np.int64(x) + lefts[x]), int(y + aboves[x])
            next_x, next_y = left + 1, above + 1
            if left < 0 or next_x >= width or above < 0 or next_y >= height:
                left, next_x = _mirrored(left, width), _mirrored(next_x, width)
                above, next_y = _mirrored(above, height), _mirrored(next_y, height)
            upper, lower = np.uint64(above) * stride, np.uint64(next_y) * stride
            first, second = two * x, two * x + one
            place = two * (upper + np.uint64(left))
            upper_left[first], upper_left[second] = words[place], words[place + one]
            place = two * (upper + np.uint64(next_x))
            upper_right[first], upper_right[second] = words[place], words[place + one]
            place = two * (lower + np.uint64(left))
            lower_left[first], lower_left[second] = words[place], words[place + one]
            place = two * (lower + np.uint64(next_x))
            lower_right[first], lower_right[second] = words[place], words[place + one]
        row = image[y]
        for sample in range(4 * width):
            before, after = samples[0, sample], samples[2, sample]
            before += right_shares[sample] * (samples[1, sample] - before)
            after += right_shares[sample] * (samples[3, sample] - after)
            level = before + down_shares[sample] * (after - before) + guard
            row[sample] = np.uint8(np.int32(level if level < most else most))


@compiled
def _mirrored(place: int, length: int) -> int:
    if place < 0:
        place = -1 - place
    if place >= length:
        place = 2 * length - 1 - place
    if place < 0:  # more than once there and back
        place %= 2 * length
        place = min(place, 2 * length - 1 - place)
    return place


@compiled
def _mirrored_about_last(place: int, length: int) -> int:
    if place < 0:
        place = -place
    if place >= length:
        place = 2 * length - 2 - place
    if place < 0:  # more than once there and back
        period = max(2 * length - 2, 1)
        place %= period
        place = min(place, period - place) if length > 1 else 0
    return place


BITS = np.int32(22)  # of the fixed-point weights that Pillow uses
HALF = np.int32(1 << 21)
NEXT, AFTER, PIXEL = np.uintp(1), np.uintp(2), np.uintp(3)  # steps between samples; unsigned places are not checked for < 0


class Cells(NamedTuple):
    """One side of a picture divided into cells: what each averages, and which of them is shown where."""

    starts: NDArray[np.uintp]  # (cells,)
    stops: NDArray[np.uintp]  # (cells,)
    weights: NDArray[np.int32]  # (cells,); one over the pixels of the cell, in fixed point
    shown: NDArray[np.uintp]  # (pixels,)


@lru_cache(256)
def cells(length: int, wanted: int) -> Cells:
    """A side divided into so many cells, at least one; neighbours share no pixel, and sizes differ by one at most.

    >>> grid = cells(7, 3)
    >>> print(grid.starts.tolist(), grid.stops.tolist(), grid.shown.tolist())
    [0, 2, 5] [2, 5, 7] [0, 0, 1, 1, 1, 2, 2]
    """
    wanted = max(wanted, 1)
    size = length / wanted
    # Pillow's own order of operations: where an edge falls on the middle of a pixel, rounding decides who gets it
    centres = (np.arange(wanted) + 0.5) * size
    starts, stops = ((centres + reach + 0.5).astype(np.int64) for reach in (-size / 2, size / 2))
    starts += (starts - centres + 0.5) * (1 / size) <= -0.5
    stops -= (stops - 1 - centres + 0.5) * (1 / size) > 0.5
    shown = ((np.arange(length) + 0.5) * (wanted / length)).astype(np.uintp)
    weights = (2.0**BITS / (stops - starts) + 0.5).astype(np.int32)
    return Cells(starts.astype(np.uintp), stops.astype(np.uintp), weights, shown)


def averaged_over_cells(image: Image, rows: Cells, columns: Cells) -> Image:
    """The image with each cell filled by its mean, rounded twice: along rows first, then down columns."""
    height, width = image.shape[:2]
    if (height, width) != (2 * len(rows.starts), 2 * len(columns.starts)):
        return _averaged(image, rows, columns)
    result = np.empty_like(image)
    means = np.empty(3 * width + 3, np.uint8)
    _average_squares(image.reshape(height, -1), _whether_left(width), means, result.reshape(height, -1))
    return result


@lru_cache(32)
def _whether_left(width: int) -> NDArray[np.bool_]:
    """Of each sample of a row, whether it is of the left of two pixels, (3 x width,)."""
    return np.arange(3 * width) % 6 < 3


@compiled
def _average_squares(lines: Image, left: NDArray[np.bool_], means: NDArray[np.uint8], result: Image) -> None:
    """Cells of two by two pixels: means are made at every sample, and those at the left of a cell are shown twice."""
    last = left.size - 3
    means[:3] = 0
    for y in range(0, len(lines), 2):
        upper, lower, even, odd = lines[y], lines[y + 1], result[y], result[y + 1]
        for place in range(last):
            first = (np.uint16(upper[place]) + np.uint16(upper[place + 3]) + np.uint16(1)) >> np.uint16(1)
            second = (np.uint16(lower[place]) + np.uint16(lower[place + 3]) + np.uint16(1)) >> np.uint16(1)
            means[place + 3] = np.uint8((first + second + np.uint16(1)) >> np.uint16(1))
        for place in range(left.size):
            even[place] = means[place + 3] if left[place] else means[place]
        for place in range(left.size):
            odd[place] = even[place]


@compiled
def _averaged(image: Image, rows: Cells, columns: Cells) -> Image:
    height, width = image.shape[:2]
    lines, result = image.reshape(height, 3 * width), np.empty((height, 3 * width), np.uint8)
    y = 0
    for row in range(len(rows.starts)):
        sums = np.zeros(3 * len(columns.starts), np.int32)
        for line in range(rows.starts[row], rows.stops[row]):
            _add_means(lines[line], columns, sums)
        _make_means(sums, rows.weights[row])
        while y < height and rows.shown[y] == row:
            _show(sums, columns.shown, result[y])
            y += 1
    return result.reshape(height, width, 3)


@compiled
def _add_means(line: Image, columns: Cells, sums: NDArray[np.int32]) -> None:
    """Adds the mean of each cell's part of a line, rounded, to the sums down the cells."""
    for cell in range(len(columns.starts)):
        red, green, blue = np.int32(0), np.int32(0), np.int32(0)
        sample, stop = PIXEL * columns.starts[cell], PIXEL * columns.stops[cell]
        while sample < stop:
            red += np.int32(line[sample])
            green += np.int32(line[sample + NEXT])
            blue += np.int32(line[sample + AFTER])
            sample += PIXEL
        weight, place = columns.weights[cell], PIXEL * np.uintp(cell)
        sums[place] += (red * weight + HALF) >> BITS
        sums[place + NEXT] += (green * weight + HALF) >> BITS
        sums[place + AFTER] += (blue * weight + HALF) >> BITS


@compiled
def _make_means(sums: NDArray[np.int32], weight: np.int32) -> None:
    for place in range(len(sums)):
        sums[place] = (sums[place] * weight + HALF) >> BITS


@compiled
def _show(means: NDArray[np.int32], shown: NDArray[np.uintp], line: Image) -> None:
    for x in range(len(shown)):
        cell, sample = PIXEL * shown[x], PIXEL * np.uintp(x)
        line[sample] = np.uint8(means[cell])
        line[sample + NEXT] = np.uint8(means[cell + NEXT])
        line[sample + AFTER] = np.uint8(means[cell + AFTER])
