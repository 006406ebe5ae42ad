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
from shiftproof.corruptions.kernels.smoothing import Draws, fields_at, mirrored, slid_fields, slides, smooth_field
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

Quads: TypeAlias = NDArray[np.float32]
"""Bytes as floats, (height, width, 4): three channels and one that says nothing, so that two words are moved for a pixel."""

Words: TypeAlias = NDArray[np.uint64]
"""Four samples of 16 bits or two of 32, moved at once."""

PIXELS_AT_ONCE = 1 << 16  # are tilted and displaced: large pictures in strips, for they would take 16 bytes a pixel


ROUNDING = 2.0**-24  # of single precision


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
    slack = np.float32(0)
    if slides(height, width, sigma):
        right, down = slid_fields(draws, sigma, amplitude)
        # what sums rounded in another order differ by was never half of it
        slack = np.float32(5 * ROUNDING * amplitude / math.sqrt(10.6 * sigma))
    else:
        right, down = (smooth_field(draws.field(number), sigma) for number in (0, 1))
        right *= np.float32(amplitude)
        down *= np.float32(amplitude)
    result = np.empty_like(image)  # not before: now it takes memory that the fields needed
    doubts = list(_write_strips(image, _way_back(height, width, moves), right, down, slack, result))
    del right, down
    if doubts:
        every = Doubts(*(np.concatenate(values) for values in zip(*doubts, strict=True)))
        right, down = (field * np.float32(amplitude) for field in fields_at(draws, sigma, every.rows, every.columns))
        _settle(every, right, down, result)
    return result


def _write_strips(
    image: Image, way: WayBack, right: Field, down: Field, slack: np.float32, result: Image
) -> Iterator[Doubts]:
    """Writes the result strip by strip; the pixels over which the slack of the fields may decide."""
    height, width = right.shape
    strip = max(1, PIXELS_AT_ONCE // width)
    for top in range(0, height, strip):
        rows = slice(top, min(top + strip, height))
        tilted = _tilted_for(image, way, down[rows], top)
        places = _displaced(tilted, height, top, right[rows], down[rows], slack, result[rows])
        if len(places):
            yield _doubts(tilted, height, top, right[rows], down[rows], places)
        del tilted  # before the next is made


def tilt(image: Image, moves: Moves) -> Quads:
    """The image under the affine map that moves three points about its middle so; beyond its border it goes on in a mirror.

    Places are rounded to 1/32 of a pixel, as OpenCV did with all pictures when the sets were made.
    """
    height, width = image.shape[:2]
    return _tilted(image, _way_back(height, width, moves), 0, height)


def _way_back(height: int, width: int, moves: Moves) -> WayBack:
    arm = max(1, min(height, width) // 3)
    points = np.array([width // 2, height // 2]) + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    affine = cv2.getAffineTransform(points.astype(np.float32), (points + moves).astype(np.float32))
    back = np.asarray(cv2.invertAffineTransform(affine), np.float64)
    # the two parts of a place are rounded apart, to 1/1024, before their sum is
    of_column = np.rint(back[:, :1] * np.arange(width) * 1024).astype(np.int64)
    of_row = np.rint((back[:, 1:2] * np.arange(height) + back[:, 2:]) * 1024).astype(np.int64) + 16
    return WayBack(of_column, of_row)


def _tilted(image: Image, way: WayBack, first: int, past: int) -> Quads:
    """Some rows of the tilted image."""
    height, width = image.shape[:2]
    of_column, of_row = way.of_column, way.of_row[:, first:past]
    (left, top), (right, bottom) = (
        ((rows + columns) >> 10).tolist()
        for rows, columns in ((of_row.min(axis=1), of_column.min(axis=1)), (of_row.max(axis=1), of_column.max(axis=1)))
    )
    right, bottom = right + 2, bottom + 2
    periods = np.array([max(2 * width - 2, 1), max(2 * height - 2, 1)]) * 1024
    far = min(left + width, top + height, 2 * width - right, 2 * height - bottom) < 1
    if far:  # beyond the first mirror image: the next ones are like the image and the first in turn
        left, top, right, bottom = 0, 0, max(2 * width, 3), max(2 * height, 3)
    # a frame of mirrored pixels, about those rows of the image that are needed
    start = max(0, min(top, 2 * height - 1 - bottom if bottom > height else top))
    stop = min(height, max(bottom, 1 - top if top < 0 else bottom))
    above, before = max(0, -top), max(0, -left)
    framed = cv2.copyMakeBorder(
        cv2.cvtColor(image[start:stop], cv2.COLOR_RGB2RGBA),
        above,
        max(0, bottom - height),
        before,
        max(0, right - width),
        cv2.BORDER_REFLECT_101,
    )
    # a word a pixel: sums of its channels, weighted by 32nds, stay within their 16 bits
    words = framed.astype(np.uint16).reshape(-1).view(np.uint64)
    tilted = np.empty((past - first, width, 4), np.float32)
    corner = np.array([before, above - start]) * 1024
    _tilt(words, framed.shape[1], of_column, of_row, corner, periods, far, tilted.reshape(past - first, -1))
    return tilted


@compiled
def _tilt(
    words: Words, stride: int, of_column: Places, of_row: Places, corner: Places, periods: Places, far: bool, tilted: Field
) -> None:
    height, width = of_row.shape[1], of_column.shape[1]
    below, all_of_it, thousandth, one = np.uint64(stride), np.uint64(32), np.float32(1 / 1024), np.uint64(1)
    places, right_shares, down_shares = np.empty(width, np.uint64), np.empty(width, np.uint64), np.empty(4 * width, np.int32)
    uppers, lowers = np.empty(width, np.uint64), np.empty(width, np.uint64)
    upper_samples, lower_samples = uppers.view(np.uint16), lowers.view(np.uint16)
    for y in range(height):
        from_left, from_top = of_row[0, y] + corner[0], of_row[1, y] + corner[1]
        for x in range(width):
            right, down = from_left + of_column[0, x], from_top + of_column[1, x]
            if far:
                right, down = right % periods[0], down % periods[1]
            places[x] = np.uint64((down >> 10) * stride + (right >> 10))
            right_shares[x] = np.uint64((right >> 5) & 31)
            for channel in range(4):
                down_shares[4 * x + channel] = np.int32((down >> 5) & 31)
        for x in range(np.uint64(width)):
            place, right_share = places[x], right_shares[x]
            left_share = all_of_it - right_share
            uppers[x] = words[place] * left_share + words[place + one] * right_share
            lowers[x] = words[place + below] * left_share + words[place + below + one] * right_share
        row = tilted[y]
        for place in range(4 * width):
            before, after = np.int32(upper_samples[place]), np.int32(lower_samples[place])
            total = np.int32(np.int32(32 * before) + np.int32(np.int32(after - before) * down_shares[place]))
            row[place] = np.float32(total) * thousandth


class Tilted(NamedTuple):
    """Some rows of a tilted picture."""

    first: int
    quads: Quads


def _tilted_for(image: Image, way: WayBack, down: Field, top: int) -> Tilted:
    """The rows that these displacements bring to the rows from `top` on, and one more each side; mirrored at the border."""
    height = len(image)
    if len(down) == height:
        return Tilted(0, _tilted(image, way, 0, height))
    low, high = top + math.floor(down.min()) - 1, top + len(down) + math.floor(down.max()) + 2
    first = max(0, min(low, 2 * height - high if high > height else low))
    past = min(height, max(high, -low if low < 0 else high))
    return Tilted(first, _tilted(image, way, first, past))


def displaced(quads: Quads, right: Field, down: Field) -> Image:
    """The image whose pixels come from so far right and down, bilinear, cut to bytes; beyond its border it is mirrored."""
    image = np.empty((*right.shape, 3), np.uint8)
    _displaced(Tilted(0, quads), len(right), 0, right, down, np.float32(0), image)
    return image


def _displaced(tilted: Tilted, height: int, top: int, right: Field, down: Field, slack: np.float32, image: Image) -> Places:
    """Writes rows of the displaced picture from `top` on; the numbers of those pixels over which the slack may decide."""
    rows, width = right.shape
    quads = np.empty((rows, width, 4), np.uint8)
    words, doubtful = tilted.quads.reshape(-1).view(np.uint64), np.empty(rows * width if slack else 0, np.int64)
    some = _displace(words, tilted.first, height, top, right, down, slack, doubtful, quads.reshape(rows, -1))
    cv2.cvtColor(quads, cv2.COLOR_RGBA2RGB, dst=image)
    return doubtful[:some]


@compiled
def _displace(
    words: Words,
    first_row: int,
    height: int,
    top: int,
    right: Field,
    down: Field,
    slack: np.float32,
    doubtful: Places,
    image: Image,
) -> int:
    rows, width = right.shape
    stride, one, two, three = np.uint64(2 * width), np.uint64(1), np.uint64(2), np.uint64(3)  # words a pixel: two
    guard, most, rounding = np.float32(6e-5), np.float32(255), np.float32(16 * ROUNDING)
    corners = np.empty((4, 2 * width), np.uint64)
    upper_left, upper_right, lower_left, lower_right = corners[0], corners[1], corners[2], corners[3]
    samples = corners.view(np.float32)
    right_shares, down_shares = np.empty(4 * width, np.float32), np.empty(4 * width, np.float32)
    slacks, doubts, some = np.empty(4 * width, np.float32), np.empty(width, np.uint32), 0
    doubtful_samples = doubts.view(np.uint8)
    lefts, aboves, places = np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.uint64)
    for line in range(rows):
        y, steps_right, steps_down = top + line, right[line], down[line]
        least_right = most_right = least_down = most_down = np.int32(0)
        for x in range(width):
            # casts cut towards zero, which is downwards only above it
            left = np.int32(np.int32(steps_right[x] + 1048576.0) - 1048576)
            above = np.int32(np.int32(steps_down[x] + 1048576.0) - 1048576)
            lefts[x], aboves[x] = left, above
            least_right = left if left < least_right else least_right
            most_right = left if left > most_right else most_right
            least_down = above if above < least_down else least_down
            most_down = above if above > most_down else most_down
        for x in range(width):
            right_share, down_share = steps_right[x] - np.float32(lefts[x]), steps_down[x] - np.float32(aboves[x])
            for channel in range(4):
                right_shares[4 * x + channel], down_shares[4 * x + channel] = right_share, down_share
            places[x] = np.uint64(2 * ((y - first_row + aboves[x]) * width + x + lefts[x]))
        inside = y + least_down >= 0 and y + most_down + 1 < height
        first = min(-int(least_right), width) if inside else width
        past = max(width - 1 - int(most_right), first)
        for x in range(np.uint64(first), np.uint64(past)):
            place, begin = places[x], two * x
            upper_left[begin], upper_left[begin + one] = words[place], words[place + one]
            upper_right[begin], upper_right[begin + one] = words[place + two], words[place + three]
            place += stride
            lower_left[begin], lower_left[begin + one] = words[place], words[place + one]
            lower_right[begin], lower_right[begin + one] = words[place + two], words[place + three]
        for number in range(first + width - past):
            x = number if number < first else number + past - first
            begin, from_left, from_top = two * np.uint64(x), int(x + lefts[x]), int(y + aboves[x])
            this_x, this_y = two * np.uint64(_mirrored(from_left, width)), np.uint64(_mirrored(from_top, height) - first_row)
            next_x, next_y = (
                two * np.uint64(_mirrored(from_left + 1, width)),
                np.uint64(_mirrored(from_top + 1, height) - first_row),
            )
            place = this_y * stride + this_x
            upper_left[begin], upper_left[begin + one] = words[place], words[place + one]
            place = this_y * stride + next_x
            upper_right[begin], upper_right[begin + one] = words[place], words[place + one]
            place = next_y * stride + this_x
            lower_left[begin], lower_left[begin + one] = words[place], words[place + one]
            place = next_y * stride + next_x
            lower_right[begin], lower_right[begin + one] = words[place], words[place + one]
        row = image[line]
        for sample in range(4 * width):
            before, after = samples[0, sample], samples[2, sample]
            before += right_shares[sample] * (samples[1, sample] - before)
            after += right_shares[sample] * (samples[3, sample] - after)
            level = before + down_shares[sample] * (after - before) + guard
            row[sample] = np.uint8(np.int32(level if level < most else most))
        if slack > 0:
            for x in range(width):
                own = slack + rounding * (abs(steps_right[x]) + abs(steps_down[x]))
                for channel in range(4):
                    slacks[4 * x + channel] = own
            # each step of the above takes the lowest and the highest that the slack allows to the lowest and the highest
            for sample in range(4 * width):
                own, right_share, down_share = slacks[sample], right_shares[sample], down_shares[sample]
                nearer, farther, higher, lower = right_share - own, right_share + own, down_share - own, down_share + own
                upper, across = samples[0, sample], samples[1, sample] - samples[0, sample]
                one_end, other_end = upper + nearer * across, upper + farther * across
                low_before = one_end if one_end < other_end else other_end
                high_before = other_end if one_end < other_end else one_end
                upper, across = samples[2, sample], samples[3, sample] - samples[2, sample]
                one_end, other_end = upper + nearer * across, upper + farther * across
                low_after = one_end if one_end < other_end else other_end
                high_after = other_end if one_end < other_end else one_end
                least, largest = low_after - high_before, high_after - low_before
                one_end, other_end = higher * least, lower * least
                low = low_before + (one_end if one_end < other_end else other_end) + guard
                one_end, other_end = higher * largest, lower * largest
                high = high_before + (other_end if one_end < other_end else one_end) + guard
                same = np.int32(low if low < most else most) == np.int32(high if high < most else most)
                within = (nearer >= 0) & (farther < 1) & (higher >= 0) & (lower < 1)
                doubtful_samples[sample] = np.uint8(0 if same & within else 1)
            for x in range(width):
                if doubts[x] != 0:
                    doubtful[some] = line * width + x
                    some += 1
    return some


def _doubts(tilted: Tilted, height: int, top: int, right: Field, down: Field, places: Places) -> Doubts:
    """What decides over doubtful pixels of the rows from `top` on."""
    width = right.shape[1]
    rows, columns = np.divmod(places, width)
    lefts, aboves = np.floor(right[rows, columns]).astype(np.int64), np.floor(down[rows, columns]).astype(np.int64)
    around = np.arange(-1, 3)
    across = mirrored((columns + lefts)[:, None] + around, width)
    along = mirrored((rows + aboves)[:, None] + top + around, height) - tilted.first
    return Doubts(rows + top, columns, lefts - 1, aboves - 1, tilted.quads[along[:, :, None], across[:, None, :], :3])


def _settle(doubts: Doubts, right: NDArray[np.float32], down: NDArray[np.float32], image: Image) -> None:
    """Writes the doubtful pixels, now that it is known where they come from: `_displace` by other means."""
    lefts, aboves = np.floor(right).astype(np.int64), np.floor(down).astype(np.int64)
    right_shares, down_shares = (
        (step - whole.astype(np.float32))[:, None] for step, whole in ((right, lefts), (down, aboves))
    )
    number, x, y = np.arange(len(right)), lefts - doubts.lefts, aboves - doubts.aboves
    before, after = doubts.samples[number, y, x], doubts.samples[number, y + 1, x]
    before = before + right_shares * (doubts.samples[number, y, x + 1] - before)
    after = after + right_shares * (doubts.samples[number, y + 1, x + 1] - after)
    levels = before + down_shares * (after - before) + np.float32(6e-5)
    image[doubts.rows, doubts.columns] = np.minimum(levels, 255).astype(np.uint8)


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
