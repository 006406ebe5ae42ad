"""Fields under a gaussian window, mirrored at the border: by products of matrices, by OpenCV, or by sums that slide.

Products and OpenCV take a time that grows with the window. Sliding sums do not, but round otherwise; so where the last bits
of a field decide over a pixel, `fields_at` has those of the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.fields import Field, Seed, deal
from shiftproof.corruptions.kernels.filters import gaussian, gaussian_kernel

CUT_OFF = 3.0  # sigmas, where everything else is cut off at 4
TILE, SUMMED_AT_ONCE = 32, 256  # larger products are shared out among threads, and their sums then depend on how many
LONG = 1200  # pixels of both sides together, from which on sliding is sooner done than a product

Places: TypeAlias = NDArray[np.int64]


class Draws(NamedTuple):
    """Two fields that a seed stands for, uniform from -1 to 1."""

    seed: Seed
    height: int
    width: int

    def field(self, number: int) -> Field:
        """The first field or the second: their draws are the two halves of the same random words."""
        pixels = self.height * self.width
        draws = np.empty(pixels, np.float32)
        deal(self.seed, pixels, number * pixels, draws)
        return draws.reshape(self.height, self.width)


def slides(height: int, width: int, sigma: float) -> bool:
    """Whether fields of this size are smoothed sooner by sliding sums."""
    return _by_product(height, width, sigma) and height + width >= LONG


def _by_product(height: int, width: int, sigma: float) -> bool:
    return not 8 * CUT_OFF * sigma < min(height, width)


def smooth_field(field: Field, sigma: float) -> Field:
    """The field under a gaussian window cut off early; beyond the border it goes on in a mirror."""
    height, width = field.shape
    if not _by_product(height, width, sigma):
        return gaussian(field, sigma, truncate=CUT_OFF, border="reflect")
    return np.ascontiguousarray(mixed(mixed(field, mixing_of(height, sigma)).T, mixing_of(width, sigma)).T)


def fields_at(draws: Draws, sigma: float, rows: Places, columns: Places) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Both fields at some pixels, (pixels,), to the bit as `smooth_field` has them by products."""
    first, second = (_at(draws.field(number), sigma, rows, columns) for number in (0, 1))
    return first, second


def _at(field: Field, sigma: float, rows: Places, columns: Places) -> NDArray[np.float32]:
    height, width = field.shape
    down, across = mixing_of(height, sigma), mixing_of(width, sigma)
    found = np.empty(len(rows), np.float32)
    for lines in _whole_and_rest(height):
        here = np.flatnonzero((rows >= lines.start) & (rows < lines.stop))
        if not len(here):
            continue
        # of whole tiles any rows make up another tile; what is left over keeps its shape, on which its bits depend
        chosen, number = np.unique(rows[here], return_inverse=True)
        whole = lines.stop - lines.start >= TILE
        chosen, number = (
            (_filled(chosen), number) if whole else (np.arange(lines.start, lines.stop), rows[here] - lines.start)
        )
        summed = mixed(field, down[chosen])
        for span in _whole_and_rest(width):
            there = np.flatnonzero((columns[here] >= span.start) & (columns[here] < span.stop))
            for at in range(0, len(there), TILE):
                few = there[at : at + TILE]
                left, right = columns[here[few]], number[few]
                left_is, right_is = np.arange(len(few)), np.arange(len(few))
                if span.stop - span.start >= TILE:
                    left = _filled(left)
                else:
                    left, left_is = np.arange(span.start, span.stop), left - span.start
                if whole:
                    right = _filled(right)
                else:
                    right, right_is = np.arange(len(chosen)), right
                found[here[few]] = mixed(summed[right].T, across[left])[left_is, right_is]
    return found


def _filled(places: Places) -> Places:
    """The places, the last of them again and again until they fill whole tiles.

    >>> _filled(np.array([3, 5])).tolist()[:4], len(_filled(np.arange(33)))
    ([3, 5, 5, 5], 64)
    """
    return places[np.minimum(np.arange(-(-len(places) // TILE) * TILE), len(places) - 1)]


@lru_cache(maxsize=4)  # both axes at two sigmas, which severities 1 and 2 have; for 4000 pixels one takes 64 MB
def mixing_of(length: int, sigma: float) -> Field:
    """How much of each place along an axis the window brings to each other, (length, length)."""
    kernel = gaussian_kernel(sigma, CUT_OFF)
    reach = len(kernel) // 2
    mixing = np.zeros((length, length))
    np.add.at(
        mixing,
        (np.arange(length)[:, None], mirrored(np.arange(length)[:, None] + np.arange(-reach, reach + 1), length)),
        kernel,
    )
    return mixing.astype(np.float32)


def mirrored(places: Places, length: int) -> Places:
    """Where in a field the places lie of one that goes on in a mirror, its last pixel twice."""
    places = places % (2 * length)
    return np.minimum(places, 2 * length - 1 - places)


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


TERMS = 8  # cosines that add up to the window: within 4e-9 of its middle
LENGTHENED = 1.42  # half a turn of the first cosine, in reaches of the window: the best for so many terms
WIDE, ROWS = 64, 4  # columns and rows that are summed at once

# where the parts of the memory of `_slide` begin: in one array, so that the compiler sees that none touches another
OUTER, INNER, SUM = (number * ROWS * WIDE for number in range(3))
NOW, BEFORE, ROOM = (3 * ROWS * WIDE + number * TERMS * WIDE for number in range(3))


class Sliding(NamedTuple):
    """A window along an axis as a sum of cosines, each of which a recurrence moves on by a row."""

    starts: NDArray[np.float64]  # (length + ROWS, TERMS): of each row in the sums of the first; rows that lack have 0
    factors: NDArray[np.float64]  # (3, TERMS): of the sum itself, of rows just beyond the window, of its outermost
    mirrored: Places  # the row that stands for each from just above the first window on
    reach: int


@lru_cache(maxsize=8)
def sliding_of(length: int, sigma: float) -> Sliding:
    """The sums of the window of `smooth_field` along an axis."""
    kernel = gaussian_kernel(sigma, CUT_OFF)
    reach = len(kernel) // 2
    turns = np.pi * np.arange(TERMS) / (LENGTHENED * max(reach, 1))
    offsets = np.arange(-reach, reach + 1)
    shares = np.linalg.lstsq(np.cos(np.outer(offsets[reach:], turns)), kernel[reach:], rcond=None)[0]
    starts = np.zeros((length + ROWS, TERMS))
    np.add.at(starts, mirrored(offsets, length), shares * np.cos(np.outer(offsets, turns)))
    factors = np.stack([2 * np.cos(turns), shares * np.cos(turns * reach), -shares * np.cos(turns * (reach + 1))])
    return Sliding(starts, factors, mirrored(np.arange(-reach - 1, length + reach + 1 + ROWS), length), reach)


def slid_fields(draws: Draws, sigma: float, amplitude: float) -> tuple[Field, Field]:
    """`smooth_field` of both fields times the amplitude, but for the last bits."""
    first, second = (_slid(draws.field(number), sigma, amplitude) for number in (0, 1))
    return first, second


def _slid(field: Field, sigma: float, amplitude: float) -> Field:
    height, width = field.shape
    room, other = np.zeros(ROOM), np.empty_like(field)
    _slide(field, *sliding_of(height, sigma), 1.0, room, other)
    turned, back = field.reshape(width, height), other.reshape(width, height)
    cv2.transpose(other, dst=turned)
    _slide(turned, *sliding_of(width, sigma), amplitude, room, back)
    return np.asarray(cv2.transpose(back, dst=field), np.float32)


@compiled
def _slide(
    field: Field,
    starts: NDArray[np.float64],
    factors: NDArray[np.float64],
    mirrored: Places,
    reach: int,
    amplitude: float,
    room: NDArray[np.float64],
    smooth: Field,
) -> None:
    """Sums down the columns: of the first row in full, each other from the two before and from what enters and leaves."""
    height, width = field.shape
    twice, beyond, outermost = factors[0], factors[1], factors[2]
    for left in range(0, width, WIDE):
        columns = min(WIDE, width - left)
        room[NOW : NOW + TERMS * WIDE] = 0.0
        for y in range(0, height, ROWS):
            for row in range(ROWS):
                line = field[min(y + row, height - 1), left : left + columns]
                for x in range(columns):
                    room[OUTER + row * WIDE + x] = line[x]
            for x in range(WIDE):
                one, two = room[OUTER + x], room[OUTER + WIDE + x]
                three, four = room[OUTER + 2 * WIDE + x], room[OUTER + 3 * WIDE + x]
                for term in range(TERMS):
                    upper = starts[y, term] * one + starts[y + 1, term] * two
                    lower = starts[y + 2, term] * three + starts[y + 3, term] * four
                    room[NOW + term * WIDE + x] += upper + lower
        # in the mirror the row above the first is the first
        for x in range(WIDE):
            total = 0.0
            for term in range(TERMS):
                room[BEFORE + term * WIDE + x] = room[NOW + term * WIDE + x]
                total += room[NOW + term * WIDE + x]
            room[SUM + x] = total
        for x in range(columns):
            smooth[0, left + x] = room[SUM + x] * amplitude
        for y in range(0, height - 1, ROWS):
            for row in range(ROWS):
                below, above = mirrored[y + row + 2 * reach + 2], mirrored[y + row]
                first, last = field[above, left : left + columns], field[below, left : left + columns]
                for x in range(columns):
                    room[OUTER + row * WIDE + x] = np.float64(first[x]) + np.float64(last[x])
                below, above = mirrored[y + row + 2 * reach + 1], mirrored[y + row + 1]
                first, last = field[above, left : left + columns], field[below, left : left + columns]
                for x in range(columns):
                    room[INNER + row * WIDE + x] = np.float64(first[x]) + np.float64(last[x])
            for x in range(WIDE):
                out_one, out_two = room[OUTER + x], room[OUTER + WIDE + x]
                out_three, out_four = room[OUTER + 2 * WIDE + x], room[OUTER + 3 * WIDE + x]
                in_one, in_two = room[INNER + x], room[INNER + WIDE + x]
                in_three, in_four = room[INNER + 2 * WIDE + x], room[INNER + 3 * WIDE + x]
                one = two = three = four = 0.0
                for term in range(TERMS):
                    place = term * WIDE + x
                    now, before = room[NOW + place], room[BEFORE + place]
                    own, out, inside = twice[term], beyond[term], outermost[term]
                    next_one = own * now + (out * out_one + (inside * in_one - before))
                    next_two = own * next_one + (out * out_two + (inside * in_two - now))
                    next_three = own * next_two + (out * out_three + (inside * in_three - next_one))
                    next_four = own * next_three + (out * out_four + (inside * in_four - next_two))
                    room[BEFORE + place], room[NOW + place] = next_three, next_four
                    one, two, three, four = one + next_one, two + next_two, three + next_three, four + next_four
                room[SUM + x], room[SUM + WIDE + x] = one, two
                room[SUM + 2 * WIDE + x], room[SUM + 3 * WIDE + x] = three, four
            for row in range(min(ROWS, height - 1 - y)):
                for x in range(columns):
                    smooth[y + row + 1, left + x] = room[SUM + row * WIDE + x] * amplitude
