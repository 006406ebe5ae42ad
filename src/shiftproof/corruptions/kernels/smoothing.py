"""Fields under a gaussian window, mirrored at the border: by products of matrices, by OpenCV, or by Fourier transforms.

Products and OpenCV take a time that grows with the window. Transforms do not, but round otherwise; so where the last bits
of a field decide over a pixel, `fields_at` has those of the products.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.fields import Field, Seed, deal_pairs
from shiftproof.corruptions.kernels.filters import gaussian, gaussian_kernel

CUT_OFF = 3.0  # sigmas, where everything else is cut off at 4
TILE, SUMMED_AT_ONCE = 32, 256  # larger products are shared out among threads, and their sums then depend on how many
PROBES = 16  # sums by which summation orders are told apart; two that differ come to the same at most every other time
LARGE = 1 << 14  # pixels from which on transforms of lengths without large factors are sooner done than products
LONG = 1200  # pixels of both sides together, from which on transforms of all lengths are

ROUNDING = 2.0**-24  # of single precision
LEAST_TERMS = 100  # whose roundings a transform has, however narrow the window is

Places: TypeAlias = NDArray[np.int64]


class Draws(NamedTuple):
    """Two fields that a seed stands for, uniform from -1 to 1."""

    seed: Seed
    height: int
    width: int

    def fields(self) -> tuple[Field, Field]:
        """The first and the second: their draws are the two halves of the same random words."""
        first, second = (np.empty((self.height, self.width), np.float32) for _ in range(2))
        deal_pairs(self.seed, 0, first.reshape(-1), second.reshape(-1))
        return first, second


class Slack(NamedTuple):
    """How far a field may be from the sums of `smooth_field`: so much, and so large a part of itself."""

    least: float
    relative: float


CERTAIN = Slack(0.0, 0.0)


class SmoothFields(NamedTuple):
    """Two smooth random fields times an amplitude, as `rows` gives them."""

    fields: tuple[Field, Field] | Field  # both; or folded, as `_transformed` has them
    slack: Slack = CERTAIN

    def rows(self, rows: slice) -> tuple[Field, Field]:
        """Some rows of both."""
        if isinstance(self.fields, tuple):
            return self.fields[0][rows], self.fields[1][rows]
        shape = (rows.stop - rows.start, self.fields.shape[1] // 2)
        first, second = np.empty(shape, np.float32), np.empty(shape, np.float32)
        _unfold(self.fields, rows.start, first, second)
        return first, second


def smooth_fields(draws: Draws, sigma: float, amplitude: float) -> SmoothFields:
    """Both fields under the window of `smooth_field`, times the amplitude."""
    height, width = draws.height, draws.width
    if transforms(height, width, sigma):
        return SmoothFields(_transformed(draws, sigma, amplitude), _slack(height, width, sigma, amplitude))
    first, second = draws.fields()
    first = smooth_field(first, sigma)  # one after the other: what was drawn is then let go
    first *= np.float32(amplitude)
    second = smooth_field(second, sigma)
    second *= np.float32(amplitude)
    return SmoothFields((first, second))


@lru_cache(maxsize=64)
def transforms(height: int, width: int, sigma: float) -> bool:
    """Whether fields of this size are smoothed sooner by Fourier transforms."""
    fast = height * width >= LARGE and max(_largest_factor(height), _largest_factor(width)) <= 23
    return _by_product(height, width, sigma) and (fast or height + width >= LONG)


def _largest_factor(number: int) -> int:
    """The largest prime that divides it.

    >>> [_largest_factor(number) for number in (1, 224, 299, 1080, 701)]
    [1, 7, 23, 5, 701]
    """
    largest, factor = 1, 2
    while number > 1:
        while number % factor == 0:
            number, largest = number // factor, factor
        factor += 1
    return largest


@lru_cache(maxsize=64)
def _slack(height: int, width: int, sigma: float, amplitude: float) -> Slack:
    """What roundings can make of the difference between a field by transforms and by products.

    They add up like steps to either side: a field is the sum of as many numbers as the window holds, each rounded, and as
    large as what it is the sum of. A quarter of the root of their count was measured to be the standard deviation, and the
    largest difference in ten million pixels about half of what is allowed here. A transform sums whole sides, so that its
    roundings do not become fewer with the window.
    """
    terms = math.sqrt(max(LEAST_TERMS, min(max(height, width), 2 * CUT_OFF * sigma)))
    spread = math.prod(float(np.sqrt((mixing_of(length, sigma)[0] ** 2).sum())) for length in (height, width)) / math.sqrt(3)
    return Slack(3 * terms * ROUNDING * amplitude * spread, 2 * terms * ROUNDING)


def _by_product(height: int, width: int, sigma: float) -> bool:
    return not 8 * CUT_OFF * sigma < min(height, width)


def smooth_field(field: Field, sigma: float) -> Field:
    """The field under a gaussian window cut off early; beyond the border it goes on in a mirror."""
    height, width = field.shape
    if not _by_product(height, width, sigma):
        return gaussian(field, sigma, truncate=CUT_OFF, border="reflect")
    return np.ascontiguousarray(mixed(mixed(field, mixing_of(height, sigma)).T, mixing_of(width, sigma)).T)


def fields_at(draws: Draws, sigma: float, rows: Places, columns: Places) -> NDArray[np.float32]:
    """Both fields at some pixels, (2, pixels), to the bit as `smooth_field` has them by products."""
    fields, down, across = draws.fields(), mixing_of(draws.height, sigma), mixing_of(draws.width, sigma)
    found = np.empty((2, len(rows)), np.float32)
    for lines in _whole_and_rest(draws.height):
        here = np.flatnonzero((rows >= lines.start) & (rows < lines.stop))
        if not len(here):
            continue
        taken, which = np.unique(rows[here], return_inverse=True)
        tall = min(TILE, lines.stop - lines.start)
        of_rows = _packed((taken - lines.start) % TILE, _orders_of_rows(tall, draws.width, draws.height))
        number = of_rows.tile * tall + of_rows.place
        chosen = np.full(of_rows.tiles * tall, lines.start)
        chosen[number] = taken
        sums = [mixed(field, down[chosen]) for field in fields]
        for span in _whole_and_rest(draws.width):
            there = np.flatnonzero((columns[here] >= span.start) & (columns[here] < span.stop))
            if not len(there):
                continue
            wide, x, y = min(TILE, span.stop - span.start), columns[here[there]], rows[here[there]]
            place = (x - span.start) % TILE * tall + (y - lines.start) % TILE
            packed = _packed(place, _orders_of_places(wide, tall, draws.width))
            left, right = (np.zeros((packed.tiles, side), np.int64) for side in (wide, tall))
            tile, (of_left, of_right) = packed.tile, np.divmod(packed.place, tall)
            left[tile, of_left], right[tile, of_right] = x, number[which[there]]
            for field, summed in zip(found, sums, strict=True):
                tiles = np.empty((packed.tiles, wide, tall), np.float32)
                _multiply(across[left], summed[right].transpose(0, 2, 1), tiles)
                field[here[there]] = tiles[tile, of_left, of_right]
    return found


class SummationOrders(NamedTuple):
    """Places of a tile by the order in which their sums are added up: of one kind, each may stand for another."""

    kinds: Places  # of each place
    rooms: tuple[Places, ...]  # of each kind, places that a tile has for it
    together: bool  # whether there is room for all kinds in one tile


class Packed(NamedTuple):
    """Where things are summed that do not fill tiles."""

    tiles: int
    tile: Places
    place: Places


def _packed(places: Places, orders: SummationOrders) -> Packed:
    """Things from these places, in as few tiles as have room for them.

    >>> orders = SummationOrders(np.array([0, 0, 1]), (np.array([0, 1]), np.array([2])), together=True)
    >>> _packed(np.array([0, 2, 2, 1]), orders)
    Packed(tiles=2, tile=array([0, 0, 1, 0]), place=array([0, 2, 2, 1]))
    """
    tile, place, kinds, tiles = *np.empty((2, len(places)), np.int64), orders.kinds[places], 0
    for kind, rooms in enumerate(orders.rooms):
        some, first = np.flatnonzero(kinds == kind), 0 if orders.together else tiles
        tile[some], room = np.divmod(np.arange(len(some)) + first * len(rooms), len(rooms))
        place[some] = rooms[room]
        tiles = max(tiles, first + -(-len(some) // len(rooms)))
    return Packed(tiles, tile, place)


@lru_cache(maxsize=64)
def _orders_of_rows(tall: int, width: int, terms: int) -> SummationOrders:
    """Rows of tiles that have the same summation order in every column."""
    wides = {min(TILE, span.stop - span.start) for span in _whole_and_rest(width)}
    orders = np.concatenate([_summation_orders(tall, wide, terms, transposed=False) for wide in sorted(wides)], axis=1)
    kinds = np.unique(orders, axis=0, return_inverse=True)[1].reshape(-1)
    return SummationOrders(kinds, tuple(np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)), together=True)


@lru_cache(maxsize=64)
def _orders_of_places(left: int, right: int, terms: int) -> SummationOrders:
    """Places of tiles that have the same summation order; rooms of a kind are in rows and columns of their own."""
    kinds, rooms = _summation_orders(left, right, terms, transposed=True), []
    for kind in range(kinds.max() + 1):
        room, free = [], set(range(right))
        for row, is_kind in enumerate(kinds == kind):
            # along the diagonal, where there is one
            column = next((at for at in np.roll(np.arange(right), -row).tolist() if at in free and is_kind[at]), None)
            if column is not None:
                free.remove(column)
                room.append(row * right + column)
        rooms.append(np.array(room))
    return SummationOrders(kinds.reshape(-1), tuple(rooms), together=False)


def _summation_orders(tall: int, wide: int, terms: int, *, transposed: bool) -> Places:
    """Which places of a tile have the same summation order, (tall, wide): the sums of the same numbers are then the same.

    OpenBLAS's kernels for AVX2 have several, those for AVX-512 one in whole tiles.
    """
    rng, sums = np.random.default_rng(0), np.empty((PROBES, tall, wide), np.float32)
    for products in sums:
        first = np.repeat(rng.random((1, terms), np.float32), tall, axis=0)
        second = np.repeat(rng.random((1, terms), np.float32) - np.float32(0.5), wide, axis=0).T
        _multiply(first, second if transposed else np.ascontiguousarray(second), products)
    return np.unique(sums.reshape(PROBES, -1), axis=1, return_inverse=True)[1].reshape(tall, wide)


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
            factors = _tiles(mixing[rows], TILE, len(field)), _tiles(field[:, columns], len(field), TILE)
            _multiply(*factors, _tiles(total[rows, columns], TILE, TILE))
    return total


def _multiply(first: Field, second: Field, products: Field) -> None:
    """Writes the products of tiles, of which only so many terms are summed at once."""
    for at in range(0, first.shape[-1], SUMMED_AT_ONCE):
        factors = first[..., at : at + SUMMED_AT_ONCE], second[..., at : at + SUMMED_AT_ONCE, :]
        if at == 0:
            np.matmul(*factors, out=products)
        else:
            products += np.matmul(*factors)


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


class Response(NamedTuple):
    """What smoothing along an axis does to the Fourier transform of a folded field: each term takes a share of itself and
    of the term of the opposite frequency, both (length,).
    """

    own: NDArray[np.float32]
    real: NDArray[np.float32]
    imaginary: NDArray[np.float32]


@lru_cache(maxsize=8)
def response_of(length: int, sigma: float, scale: float) -> Response:
    """The response of the window of `smooth_field`, times a scale.

    In the mirror, smoothing scales each cosine of the field. The Fourier transform of the folded field has cosine k and
    cosine `length` - k in its terms k and -k (Makhoul, 1980), so that these are mixed by the sum and the difference.
    """
    kernel, frequency = gaussian_kernel(sigma, CUT_OFF), np.arange(length)
    offsets = np.arange(len(kernel)) - len(kernel) // 2
    gain = scale * (np.cos(np.pi / length * np.outer(frequency, offsets)) @ kernel)
    opposite = gain[-frequency % length]
    other = (gain - opposite) / 2 * np.exp(1j * np.pi / length * frequency)
    return Response(*(part.astype(np.float32) for part in ((gain + opposite) / 2, other.real, other.imag)))


def _transformed(draws: Draws, sigma: float, amplitude: float) -> Field:
    """Both smooth fields times the amplitude, folded, as the parts of complex numbers, (height, 2 x width)."""
    height, width = draws.height, draws.width
    folded = np.empty((height, width, 2), np.float32)
    rows = folded.reshape(height, 2 * width)
    _deal_folded(draws.seed, rows)
    cv2.dft(folded, dst=folded)
    _respond(rows, response_of(height, sigma, 1 / (height * width)), response_of(width, sigma, amplitude))
    cv2.dft(folded, dst=folded, flags=cv2.DFT_INVERSE)
    return rows


@compiled
def _fold(place: int, length: int) -> int:
    """Where a row or column stands in a folded field: the even ones first, then the odd ones from the last on."""
    return place // 2 if place % 2 == 0 else length - 1 - place // 2


@compiled
def _deal_folded(seed: Seed, folded: Field) -> None:
    height, width = folded.shape[0], folded.shape[1] // 2
    first, second = np.empty(width, np.float32), np.empty(width, np.float32)
    for y in range(height):
        deal_pairs(seed, y * width, first, second)
        row = folded[_fold(y, height)]
        for place in range((width + 1) // 2):
            row[2 * place], row[2 * place + 1] = first[2 * place], second[2 * place]
        for place in range(width // 2):
            back = 2 * (width - 1 - place)
            row[back], row[back + 1] = first[2 * place + 1], second[2 * place + 1]


@compiled
def _unfold(folded: Field, top: int, first: Field, second: Field) -> None:
    """Writes rows of both fields from `top` on."""
    height, width = len(folded), folded.shape[1] // 2
    for line in range(len(first)):
        row, one, other = folded[_fold(top + line, height)], first[line], second[line]
        for place in range(width // 2):
            back = 2 * (width - 1 - place)
            one[2 * place], one[2 * place + 1] = row[2 * place], row[back]
            other[2 * place], other[2 * place + 1] = row[2 * place + 1], row[back + 1]
        if width % 2:
            one[width - 1], other[width - 1] = row[width - 1], row[width]


@compiled
def _respond(spectrum: Field, down: Response, across: Response) -> None:
    height, width = spectrum.shape[0], spectrum.shape[1] // 2
    real, imaginary = np.empty((2, width + 1), np.float32), np.empty((2, width + 1), np.float32)
    for number in range(height // 2 + 1):
        other = (height - number) % height
        upper, lower = spectrum[number], spectrum[other]
        own, upper_real, upper_imaginary = down.own[number], down.real[number], down.imaginary[number]
        lower_real, lower_imaginary = down.real[other], down.imaginary[other]
        for x in range(width):
            a, b, c, d = upper[2 * x], upper[2 * x + 1], lower[2 * x], lower[2 * x + 1]
            real[0, x] = own * a + (upper_real * c - upper_imaginary * d)
            imaginary[0, x] = own * b + (upper_real * d + upper_imaginary * c)
            real[1, x] = own * c + (lower_real * a - lower_imaginary * b)
            imaginary[1, x] = own * d + (lower_real * b + lower_imaginary * a)
        for which in range(2):
            row, reals, imaginaries = lower if which else upper, real[which], imaginary[which]
            reals[width], imaginaries[width] = reals[0], imaginaries[0]
            for x in range(width):
                a, b = reals[width - x], imaginaries[width - x]
                row[2 * x] = across.own[x] * reals[x] + (across.real[x] * a - across.imaginary[x] * b)
                row[2 * x + 1] = across.own[x] * imaginaries[x] + (across.real[x] * b + across.imaginary[x] * a)
