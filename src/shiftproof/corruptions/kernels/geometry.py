"""Pictures resampled: rotated, scaled and sheared about the middle, elastically transformed, pixelated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.fields import Field
from shiftproof.corruptions.kernels.filters import strips
from shiftproof.corruptions.kernels.smoothing import CERTAIN, Draws, Slack, SmoothFields, fields_at, smooth_fields
from shiftproof.corruptions.kernels.vectors import CHANNELS, blend_pixel, blend_pixel_within, tilt_pixel
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


Moves: TypeAlias = NDArray[np.float64]
"""How far three points move, (3, 2): right and down."""

Places: TypeAlias = NDArray[np.int64]
"""Where pixels come from, (2, length): right and down, in 1/1024 of a pixel."""

Levels: TypeAlias = NDArray[np.float32]
"""Bytes as floats, (height, width, 3)."""

PIXELS_AT_ONCE = 1 << 16  # are tilted and displaced: large pictures in strips, for they would take 12 bytes a pixel


class WayBack(NamedTuple):
    """Where the pixels of a tilted picture come from: the sum of what their column and their row say."""

    of_column: Places
    of_row: Places


class Doubts(NamedTuple):
    """Pixels whose bytes hang on the last bits of the fields."""

    rows: Places  # (pixels,)
    columns: Places
    lefts: Places  # how far from it the samples begin
    aboves: Places
    samples: NDArray[np.float32]  # (pixels, 4, 4, 3): of the tilted picture, from which each may come


def elastic(image: Image, moves: Moves, draws: Draws, sigma: float, amplitude: float) -> Image:
    """The image under `tilt`, then displaced by two random fields, smooth over `sigma`, times the amplitude."""
    height, width = image.shape[:2]
    fields = smooth_fields(draws, sigma, amplitude)
    result = np.empty_like(image)  # not before: now it takes memory that the fields needed
    doubts = list(_write_strips(image, _way_back(height, width, moves), fields, result))
    del fields
    if doubts:
        every = Doubts(*(np.concatenate(values) for values in zip(*doubts, strict=True)))
        right, down = fields_at(draws, sigma, every.rows, every.columns) * np.float32(amplitude)
        _settle(*every, right, down, result)
    return result


def _write_strips(image: Image, way: WayBack, fields: SmoothFields, result: Image) -> Iterator[Doubts]:
    """Writes the result strip by strip; the pixels over which the slack of the fields may decide."""
    height, width = image.shape[:2]
    for rows, _ in strips(height, PIXELS_AT_ONCE // width):
        right, down = fields.rows(rows)
        tilted = _tilted_for(image, way, down, rows.start)
        places = _displaced(tilted, height, rows.start, right, down, fields.slack, result[rows])
        if len(places):
            yield Doubts(*_doubts(tilted.levels, tilted.first, height, rows.start, right, down, places))
        del tilted  # before the next is made


def tilt(image: Image, moves: Moves) -> Levels:
    """The image under the affine map that moves three points about its middle so; beyond its border it goes on in a mirror.

    Places are rounded to 1/32 of a pixel, as OpenCV did with all pictures when the sets were made.
    """
    height, width = image.shape[:2]
    return _tilted(image, _way_back(height, width, moves), 0, height).levels


def _way_back(height: int, width: int, moves: Moves) -> WayBack:
    arm = max(1, min(height, width) // 3)
    points = np.array([width // 2, height // 2]) + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    affine = cv2.getAffineTransform(points.astype(np.float32), (points + moves).astype(np.float32))
    back = np.asarray(cv2.invertAffineTransform(affine), np.float64)
    way = WayBack(np.empty((2, width), np.int64), np.empty((2, height), np.int64))
    _find_way(back, *way)
    return way


@compiled
def _find_way(back: Affine, of_column: Places, of_row: Places) -> None:
    """Rounds the two parts of a place apart, to 1/1024, before their sum is."""
    for axis in range(2):
        for x in range(of_column.shape[1]):
            of_column[axis, x] = np.int64(np.rint(back[axis, 0] * x * 1024))
        for y in range(of_row.shape[1]):
            of_row[axis, y] = np.int64(np.rint((back[axis, 1] * y + back[axis, 2]) * 1024)) + 16


class Tilted(NamedTuple):
    """Some rows of a tilted picture."""

    first: int
    samples: NDArray[np.float32]  # of all its pixels, and room for some more
    levels: Levels  # a view of them


def _tilted(image: Image, way: WayBack, first: int, past: int) -> Tilted:
    """Some rows of the tilted image."""
    height, width = image.shape[:2]
    of_column, of_row = way.of_column, np.ascontiguousarray(way.of_row[:, first:past])
    (left, right), (top, bottom) = _span(of_column[0], of_row[0]), _span(of_column[1], of_row[1])
    periods = np.array([max(2 * width - 2, 1), max(2 * height - 2, 1)]) * 1024
    far = min(left + width, top + height, 2 * width - right, 2 * height - bottom) < 1
    if far:  # beyond the first mirror image: the next ones are like the image and the first in turn
        left, top, right, bottom = 0, 0, max(2 * width, 3), max(2 * height, 3)
    # a frame of mirrored pixels, about those rows of the image that are needed; below it a row of which only the first
    # sample is ever loaded
    start = max(0, min(top, 2 * height - 1 - bottom if bottom > height else top))
    stop = min(height, max(bottom, 1 - top if top < 0 else bottom))
    above, before = max(0, -top), max(0, -left)
    framed = cv2.copyMakeBorder(
        image[start:stop],
        above,
        max(0, bottom - height) + 1,
        before,
        max(0, right - width),
        cv2.BORDER_REFLECT_101,
    )
    tilted = room_for((past - first, width, CHANNELS))
    corner = np.array([before, above - start]) * 1024
    pixels = np.asarray(framed, np.uint8).reshape(-1)
    _tilt(pixels, framed.shape[1], of_column, of_row, corner, periods, far, tilted.samples)
    return tilted._replace(first=first)


@compiled
def _span(of_column: Places, of_row: Places) -> tuple[int, int]:
    """The first pixel along an axis that is needed, and the one past the last: both parts go from one end to the other."""
    low = min(of_column[0], of_column[-1]) + min(of_row[0], of_row[-1])
    high = max(of_column[0], of_column[-1]) + max(of_row[0], of_row[-1])
    return low >> 10, (high >> 10) + 2


def room_for(shape: tuple[int, ...]) -> Tilted:
    """Room for levels of this shape, from row 0 on."""
    samples = np.empty(math.prod(shape) + ROOM, np.float32)
    return Tilted(0, samples, samples[:-ROOM].reshape(shape))


GUARD = np.float32(6e-5)  # of `from_pixels`
ROOM = 4 * CHANNELS + 1  # behind the samples, for four pixels and what a vector holds beyond them


@compiled
def _tilt(
    pixels: Image,
    stride: int,
    of_column: Places,
    of_row: Places,
    corner: Places,
    periods: Places,
    far: bool,
    tilted: NDArray[np.float32],
) -> None:
    height, width = of_row.shape[1], of_column.shape[1]
    rights, downs, wide = np.empty(width, np.int64), np.empty(width, np.int64), np.int32(stride)
    places, below, step = np.empty(width, np.uint32), np.uint64(CHANNELS * stride), np.uint64(CHANNELS)
    right_shares, down_shares, at = np.empty(width, np.int32), np.empty(width, np.int32), np.uint64(0)
    for y in range(height):
        from_left, from_top = of_row[0, y] + corner[0], of_row[1, y] + corner[1]
        for x in range(width):
            rights[x], downs[x] = from_left + of_column[0, x], from_top + of_column[1, x]
        if far:
            for x in range(width):
                rights[x], downs[x] = rights[x] % periods[0], downs[x] % periods[1]
        # loops of few arrays, for the compiler looks whether one touches another
        for x in range(width):
            right_shares[x], down_shares[x] = np.int32(rights[x] >> 5) & np.int32(31), np.int32(downs[x] >> 5) & np.int32(31)
        for x in range(width):
            pixel = np.int32(np.int32(np.int32(downs[x] >> 10) * wide) + np.int32(rights[x] >> 10))
            places[x] = np.uint32(np.int32(CHANNELS) * pixel)
        for x in range(np.uint64(width)):
            tilt_pixel(pixels, np.uint64(places[x]), below, right_shares[x], down_shares[x], tilted, at)
            at += step


def _tilted_for(image: Image, way: WayBack, down: Field, top: int) -> Tilted:
    """The rows that these displacements bring to the rows from `top` on, and one more each side; mirrored at the border."""
    height = len(image)
    if len(down) == height:
        return _tilted(image, way, 0, height)
    low, high = top + math.floor(down.min()) - 1, top + len(down) + math.floor(down.max()) + 2
    first = max(0, min(low, 2 * height - high if high > height else low))
    past = min(height, max(high, -low if low < 0 else high))
    return _tilted(image, way, first, past)


def displaced(levels: Levels, right: Field, down: Field) -> Image:
    """The image whose pixels come from so far right and down, bilinear, cut to bytes; beyond its border it is mirrored."""
    image, tilted = np.empty((*right.shape, CHANNELS), np.uint8), room_for(levels.shape)
    tilted.levels[:] = levels
    _displaced(tilted, len(right), 0, right, down, CERTAIN, image)
    return image


def _displaced(tilted: Tilted, height: int, top: int, right: Field, down: Field, slack: Slack, image: Image) -> Places:
    """Writes rows of the displaced picture from `top` on; the numbers of those pixels over which the slack may decide."""
    rows, width = right.shape
    doubtful = np.empty(rows * width if slack != CERTAIN else 0, np.int64)
    own, relative = np.float32(slack.least), np.float32(slack.relative)
    some = _displace(
        tilted.samples, tilted.first, height, top, right, down, own, relative, doubtful, image.reshape(rows, -1)
    )
    return doubtful[:some]


@compiled
def _displace(
    samples: NDArray[np.float32],
    first_row: int,
    height: int,
    top: int,
    right: Field,
    down: Field,
    slack: np.float32,
    relative: np.float32,
    doubtful: Places,
    image: Image,
) -> int:
    rows, width = right.shape
    stride, step, corners = np.uint64(CHANNELS * width), np.uint64(CHANNELS), np.uint64(samples.size - ROOM)
    lefts, aboves, places = np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.uint32)
    right_shares, down_shares = np.empty(width, np.float32), np.empty(width, np.float32)
    reach, slacks, outside = np.uint64(CHANNELS * width + 1), np.empty(width, np.float32), np.empty(width, np.uint64)
    levels, words, some, guard, most = np.empty(2 * reach, np.float32), (width + 7) // 8, 0, GUARD, np.float32(255)
    doubts, close = np.zeros(8 * words, np.uint8), np.zeros(8 * CHANNELS * words, np.uint8)
    doubt_words, close_words = doubts.view(np.uint64), close.view(np.uint64)  # most of them 0
    for line in range(rows):
        y, steps_right, steps_down, row = top + line, right[line], down[line], image[line]
        # for plain numbers it would be compiled twice
        _part(steps_right, np.int64(0), np.int64(1), lefts, right_shares)
        _part(steps_down, y, np.int64(0), aboves, down_shares)
        beyond = _find_places(lefts, aboves, height, first_row, places, outside)
        if slack > 0:
            _find_slacks(steps_right, steps_down, slack, relative, slacks)
            for x in range(np.uint64(width)):
                place, at, own = np.uint64(places[x]), step * x, slacks[x]
                blend_pixel_within(samples, place, stride, right_shares[x], down_shares[x], levels, at, own, reach + at)
        else:
            for x in range(np.uint64(width)):
                place = np.uint64(places[x])
                blend_pixel(samples, place, stride, right_shares[x], down_shares[x], levels, step * x)
        for number in range(beyond):
            x = outside[number]
            _take_corners(samples, lefts[x], aboves[x], width, height, first_row)
            # the fourth samples fall on a pixel that is there already
            at, after = step * x, step * x + step
            level, own = levels[after], levels[reach + after]
            right_share, down_share = right_shares[x], down_shares[x]
            blend_pixel_within(samples, corners, step + step, right_share, down_share, levels, at, slacks[x], reach + at)
            levels[after], levels[reach + after] = level, own
        for sample in range(CHANNELS * width):
            level = levels[sample] + guard
            row[sample] = np.uint8(np.int32(level if level < most else most))
        if slack > 0:
            _find_edges(right_shares, down_shares, slacks, doubts)
            _find_close(levels[:reach], levels[reach:], close)
            for word in range(CHANNELS * words):
                if close_words[word]:
                    for sample in range(8 * word, 8 * word + 8):
                        doubts[sample // CHANNELS] |= close[sample]
            for word in range(words):
                if doubt_words[word]:
                    for x in range(8 * word, min(8 * word + 8, width)):
                        if doubts[x]:
                            own, other = slack + relative * abs(steps_right[x]), slack + relative * abs(steps_down[x])
                            _take_corners(samples, lefts[x], aboves[x], width, height, first_row)
                            if _hangs(samples[corners:], right_shares[x], down_shares[x], own, other):
                                doubtful[some] = line * width + x
                                some += 1
    return some


@compiled
def _part(steps: Field, start: int | np.int64, step: np.int64, wholes: NDArray[np.int32], shares: Field) -> None:
    """Writes where pixels begin from which others come, and the shares of those after them."""
    first, second = np.int32(start), np.int32(step)
    for x in range(steps.size):
        # casts cut towards zero, which is downwards only above it
        whole = np.int32(np.int32(steps[x] + 1048576.0) - 1048576)
        wholes[x] = np.int32(whole + first + second * np.int32(x))
        shares[x] = steps[x] - np.float32(whole)


@compiled
def _find_places(
    lefts: NDArray[np.int32],
    aboves: NDArray[np.int32],
    height: int,
    first_row: int,
    places: NDArray[np.uint32],
    outside: NDArray[np.uint64],
) -> int:
    """Writes the samples at which four pixels begin, any where one of them lies beyond the border; which these are."""
    width, first, count = np.int32(lefts.size), np.int32(first_row), 0
    # without a sign, places before the first lie far beyond the last
    last_column, last_row, nowhere = np.uint32(width - 1), np.uint32(height - 1), np.uint32(2**32 - 1)
    for x in range(lefts.size):
        beyond = (np.uint32(lefts[x]) >= last_column) | (np.uint32(aboves[x]) >= last_row)
        place = np.uint32(np.int32(CHANNELS) * np.int32(np.int32(np.int32(aboves[x] - first) * width) + lefts[x]))
        places[x] = nowhere if beyond else place
    for x in range(lefts.size):
        outside[count] = np.uint64(x)
        count += places[x] == nowhere
        places[x] = np.uint32(0) if places[x] == nowhere else places[x]
    return count


@compiled
def _find_slacks(right: Field, down: Field, slack: np.float32, relative: np.float32, slacks: Field) -> None:
    """The larger of both slacks, and a little."""
    more = np.float32(1.01)
    for x in range(slacks.size):
        across, along = abs(right[x]), abs(down[x])
        slacks[x] = more * (slack + relative * (across if across > along else along))


@compiled
def _find_edges(right: Field, down: Field, slacks: Field, edges: NDArray[np.uint8]) -> None:
    """Whether a share may be that of other pixels."""
    one = np.float32(1)
    for x in range(slacks.size):
        slack, across, along = slacks[x], right[x], down[x]
        least, largest = across if across < along else along, across if across > along else along
        edges[x] = np.uint8((least < slack) | (largest + slack >= one))


@compiled
def _find_close(levels: NDArray[np.float32], reaches: NDArray[np.float32], close: NDArray[np.uint8]) -> None:
    """Whether a level is so close to a whole one that its reach, and what was rounded on the way, may decide."""
    most, rounded = np.float32(255), np.float32(2e-4)
    for sample in range(levels.size - 1):
        level, reach = levels[sample] + GUARD, reaches[sample]
        away = reach + (rounded if reach > 0 else reach)  # where four pixels are alike, nothing is rounded
        low, high = level - away, level + away
        lowest, highest = np.int32(low if low < most else most), np.int32(high if high < most else most)
        close[sample] = np.uint8(lowest != highest)


@compiled
def _take_corners(samples: NDArray[np.float32], left: int, above: int, width: int, height: int, first_row: int) -> None:
    """Copies the four pixels around a place that may lie beyond the border to the end of the samples."""
    to = samples.size - ROOM
    for corner in range(4):
        row, column = _mirrored(above + corner // 2, height) - first_row, _mirrored(left + corner % 2, width)
        for channel in range(CHANNELS):
            samples[to + CHANNELS * corner + channel] = samples[CHANNELS * (row * width + column) + channel]


@compiled
def _hangs(
    corners: NDArray[np.float32],
    right_share: np.float32,
    down_share: np.float32,
    right_slack: np.float32,
    down_slack: np.float32,
) -> bool:
    """Whether the byte of a pixel depends on the last bits of its shares.

    Each step of the way to a level takes the lowest and the highest that the slack allows to the lowest and the highest.
    """
    most = np.float32(255)
    nearer, farther = right_share - right_slack, right_share + right_slack
    higher, lower = down_share - down_slack, down_share + down_slack
    if min(nearer, higher) < 0 or max(farther, lower) >= 1:  # it may come from between other pixels
        return True
    for channel in range(CHANNELS):
        upper, under = corners[channel], corners[2 * CHANNELS + channel]
        across, along = corners[CHANNELS + channel] - upper, corners[3 * CHANNELS + channel] - under
        one_end, other_end = upper + nearer * across, upper + farther * across
        low_before, high_before = min(one_end, other_end), max(one_end, other_end)
        one_end, other_end = under + nearer * along, under + farther * along
        low_after, high_after = min(one_end, other_end), max(one_end, other_end)
        least, largest = low_after - high_before, high_after - low_before
        low = low_before + min(higher * least, lower * least) + GUARD
        high = high_before + max(higher * largest, lower * largest) + GUARD
        if np.int32(min(low, most)) != np.int32(min(high, most)):
            return True
    return False


@compiled
def _doubts(
    levels: Levels, first_row: int, height: int, top: int, right: Field, down: Field, places: Places
) -> tuple[Places, Places, Places, Places, NDArray[np.float32]]:
    """What decides over doubtful pixels of the rows from `top` on, as `Doubts` has it."""
    width, count = right.shape[1], len(places)
    rows, columns, lefts, aboves = np.empty((4, count), np.int64)
    samples = np.empty((count, 4, 4, CHANNELS), np.float32)
    for number in range(count):
        line, x = places[number] // width, places[number] % width
        left, above = int(np.floor(right[line, x])) - 1, int(np.floor(down[line, x])) - 1
        rows[number], columns[number], lefts[number], aboves[number] = top + line, x, left, above
        for row in range(4):
            source = levels[_mirrored(top + line + above + row, height) - first_row]
            for column in range(4):
                at = _mirrored(x + left + column, width)
                for channel in range(CHANNELS):  # to assign all at once takes two seconds longer to compile
                    samples[number, row, column, channel] = source[at, channel]
    return rows, columns, lefts, aboves, samples


@compiled
def _settle(
    rows: Places,
    columns: Places,
    lefts: Places,
    aboves: Places,
    samples: NDArray[np.float32],
    right: NDArray[np.float32],
    down: NDArray[np.float32],
    image: Image,
) -> None:
    """Writes the doubtful pixels, now that it is known where they come from: `_displace` by other means."""
    for number in range(len(rows)):
        left, above = int(np.floor(right[number])), int(np.floor(down[number]))
        right_share, down_share = right[number] - np.float32(left), down[number] - np.float32(above)
        upper, lower = samples[number, above - aboves[number]], samples[number, above - aboves[number] + 1]
        x = left - lefts[number]
        for channel in range(CHANNELS):
            before = upper[x, channel] + right_share * (upper[x + 1, channel] - upper[x, channel])
            after = lower[x, channel] + right_share * (lower[x + 1, channel] - lower[x, channel])
            level = before + down_share * (after - before) + GUARD
            image[rows[number], columns[number], channel] = np.uint8(np.int32(min(level, np.float32(255))))


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
