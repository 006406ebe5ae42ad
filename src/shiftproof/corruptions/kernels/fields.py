"""Random fields that weather is made of: normal noise and plasma, each a pure function of one 64-bit seed.

Drawing and using are apart, so that a test can give the same draws to another implementation.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled, fill_with_random_bits, seed_of

Field: TypeAlias = NDArray[np.float32]
"""One number a pixel, (height, width)."""

Seed: TypeAlias = np.uint64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)

LAYERS = 256
LAST_EDGE = 3.6541528853610088  # where the tail begins, so that all 256 layers are equally large
LAYER_AREA = 0.00492867323399141


def _layer_edges() -> NDArray[np.float64]:
    """Right ends of the layers of the bell curve, the widest first, (257,); the last is 0."""
    edges = np.zeros(LAYERS + 1)
    edges[:2] = LAYER_AREA / np.exp(-(LAST_EDGE**2) / 2), LAST_EDGE
    for layer in range(1, LAYERS - 1):
        edges[layer + 1] = np.sqrt(-2 * np.log(LAYER_AREA / edges[layer] + np.exp(-(edges[layer] ** 2) / 2)))
    return edges


EDGES = _layer_edges()
HEIGHTS = np.exp(-(EDGES**2) / 2)


def plasma(rng: np.random.Generator, size: int, decay: float, height: int | None = None, width: int | None = None) -> Field:
    """Cloud-like map of `size` (a power of two) in both directions, from 0 to 1, whose opposite sides meet.

    Coarse shapes weigh `decay` squared times as much as those half their size. Where only an upper left part of so many
    pixels is wanted, a large map ends there, or a pixel later.
    """
    height, width, seed = height or size, width or size, seed_of(rng)
    if size <= WHOLE:
        return plasma_of(symmetric_draws(seed, size * size), size, decay)
    return _upper_left(seed, size, decay, height, width)


def normals(rng: np.random.Generator, height: int, width: int) -> Field:
    """Independent standard normal numbers."""
    return _normals(seed_of(rng), height * width).reshape(height, width)


@compiled
def _mixed(counter: Seed) -> Seed:
    """The counter's 64 bits, scrambled (SplitMix64; Steele, Lea & Flood, 2014)."""
    bits = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def symmetric_draws(seed: Seed, count: int) -> NDArray[np.float32]:
    """Uniform numbers from -1 to 1, (count,), on a grid of 2^24 steps."""
    bits = np.empty(count + count % 2, np.uint32)
    fill_with_random_bits(bits, seed, np.int64(0))  # for a plain 0 it would be compiled once more, here and below
    draws = np.empty(count, np.float32)
    for place in range(count):
        draws[place] = np.float32(np.int32(bits[place] >> np.uint32(8)) - 2**23) * np.float32(2.0**-23)
    return draws


@compiled
def _share(bits: Seed) -> float:
    """A number above 0, up to 1."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


WORDS = 1024  # are scrambled at once, by vector instructions
SPARE = 4  # of them are left for a try, which takes three at most


@compiled
def _scramble(seed: Seed, first: int | np.int64, words: NDArray[np.uint64]) -> None:
    for place in range(words.size):
        words[place] = _mixed(seed + np.uint64(first + place) * GOLDEN)


@compiled
def _normals(seed: Seed, count: int) -> NDArray[np.float32]:
    """Standard normal numbers, (count,), by the ziggurat (Marsaglia & Tsang, 2000)."""
    draws, words, one = np.empty(count, np.float32), np.empty(WORDS, np.uint64), np.uint64(1)
    first, used, enough = np.int64(1), np.uint64(0), np.uint64(WORDS - SPARE)
    _scramble(seed, first, words)
    for place in range(count):
        while True:
            if used > enough:
                first += int(used)
                _scramble(seed, first, words)
                used = np.uint64(0)
            bits = words[used]
            used += one
            layer = bits & np.uint64(LAYERS - 1)
            draw = np.float64(np.int64(bits) >> np.int64(11)) * 2.0**-52 * EDGES[layer]
            if abs(draw) < EDGES[layer + one]:
                break
            if layer == 0:  # beyond the last edge: how far
                while True:
                    beyond = -np.log(_share(words[used])) / LAST_EDGE
                    used += one + one
                    if -2 * np.log(_share(words[used - one])) > beyond * beyond:
                        break
                    if used > enough:
                        first += int(used)
                        _scramble(seed, first, words)
                        used = np.uint64(0)
                draw = LAST_EDGE + beyond if draw > 0 else -LAST_EDGE - beyond
                break
            height = HEIGHTS[layer] + _share(words[used]) * (HEIGHTS[layer + one] - HEIGHTS[layer])
            used += one
            if height < np.exp(-draw * draw / 2):
                break
        draws[place] = draw
    return draws


WHOLE = 512  # pixels: maps up to this size are made sooner than it is found out what of them is needed


def plasma_of(draws: NDArray[np.float32], size: int, decay: float) -> Field:
    """The map that these draws make, from 0 to 1; a map of one pixel is 0."""
    field, _ = _diamond_square(draws, size, float(decay))
    lowest, highest = field.min(), field.max()
    if highest > lowest:
        _to_unit(field.reshape(-1), lowest, highest - lowest)
    return field


def _upper_left(seed: Seed, size: int, decay: float, height: int, width: int) -> Field:
    """Part of the map of a seed; 0 and 1 are those of the whole map.

    Of the last level, which has three quarters of all points, rows that are not wanted are made only where they may hold the
    lowest or the highest point: all lie within twice the level's swing of the points around them.
    """
    side, rows, columns = size // 2, -(-height // 2), -(-width // 2)
    # one piece of memory: the C library gives several large ones back to the system, and each new page takes microseconds
    room = np.empty(4 * rows * columns + side * side, np.float32)
    part, draws = room[: 4 * rows * columns].reshape(2 * rows, 2 * columns), room[4 * rows * columns :]
    deal(seed, 2 * side * side, 0, draws)
    coarse, swing = _diamond_square(draws, side, float(decay))
    lows, highs = coarse.min(axis=1), coarse.max(axis=1)
    lowest, highest, reach = lows.min(), highs.max(), 2.01 * swing + 1
    extreme = (lows - reach <= lowest) | (highs + reach >= highest)
    doubtful = extreme | np.roll(extreme, 1) | np.roll(extreme, -1)
    lowest, highest = _last_level(coarse, seed, np.float32(swing), doubtful, lowest, highest, part)
    _to_unit(room[: part.size], np.float32(lowest), np.float32(highest) - np.float32(lowest))
    return part


@compiled
def _to_unit(field: NDArray[np.float32], lowest: np.float32, span: np.float32) -> None:
    for place in range(field.size):
        field[place] = (field[place] - lowest) / span


@compiled
def deal(seed: Seed, half: int, first: int, draws: NDArray[np.float32]) -> None:
    """Writes draws from number `first` on, of twice `half` that `symmetric_draws` would make: the first half of them are
    lower halves of words, the others upper ones.
    """
    lower = max(0, min(draws.size, half - first))
    for place in range(lower):
        word = _mixed(seed + np.uint64(first + place) * GOLDEN)
        draws[place] = np.float32(np.int32(np.uint32(word) >> np.uint32(8)) - 2**23) * np.float32(2.0**-23)
    for place in range(lower, draws.size):
        word = _mixed(seed + np.uint64(first + place - half) * GOLDEN) >> np.uint64(32)
        draws[place] = np.float32(np.int32(np.uint32(word) >> np.uint32(8)) - 2**23) * np.float32(2.0**-23)


@compiled
def deal_pairs(seed: Seed, first: int, lower: NDArray[np.float32], upper: NDArray[np.float32]) -> None:
    """Writes the draws of words from number `first` on: those of their lower halves, and of their upper ones."""
    for place in range(lower.size):
        word = _mixed(seed + np.uint64(first + place) * GOLDEN)
        lower[place] = np.float32(np.int32(np.uint32(word) >> np.uint32(8)) - 2**23) * np.float32(2.0**-23)
        upper[place] = np.float32(np.int32(np.uint32(word >> np.uint64(40))) - 2**23) * np.float32(2.0**-23)


@compiled
def _last_level(
    coarse: Field,
    seed: Seed,
    swing: np.float32,
    doubtful: NDArray[np.bool_],
    lowest: np.float32,
    highest: np.float32,
    part: Field,
) -> tuple[np.float32, np.float32]:
    """Writes the upper left part of the map that this one becomes; lowest and highest of the whole, given those of this one.

    In the order of draws and sums of `_diamond_square`.
    """
    side, rows, columns = len(coarse), len(part) // 2, part.shape[1] // 2
    points = side * side
    middles, uppers, lefts = np.empty((2, side), np.float32), np.empty(side, np.float32), np.empty(side, np.float32)
    draws = np.empty(side, np.float32)
    quarter, made = np.float32(0.25), -2
    for y in range(side):
        if y >= rows and not doubtful[y]:
            continue
        for own in range(y if made == y - 1 else y - 1, y + 1):  # those above are needed too
            at = own % side
            row, below, middle = coarse[at], coarse[(at + 1) % side], middles[own % 2]
            deal(seed, 2 * points, points - 1 + at * side, draws)
            for x in range(side - 1):
                middle[x] = (row[x] + below[x] + row[x + 1] + below[x + 1]) * quarter + swing * draws[x]
            middle[-1] = (row[-1] + below[-1] + row[0] + below[0]) * quarter + swing * draws[-1]
        made = y
        row, below, middle, middle_above = coarse[y], coarse[(y + 1) % side], middles[y % 2], middles[(y - 1) % 2]
        wanted = side if doubtful[y] else columns
        deal(seed, 2 * points, 2 * points - 1 + y * side, draws[:wanted])
        for x in range(min(wanted, side - 1)):
            uppers[x] = (middle[x] + middle_above[x] + row[x] + row[x + 1]) * quarter + swing * draws[x]
        if wanted == side:
            uppers[-1] = (middle[-1] + middle_above[-1] + row[-1] + row[0]) * quarter + swing * draws[-1]
        deal(seed, 2 * points, 3 * points - 1 + y * side, draws[:wanted])
        lefts[0] = (row[0] + below[0] + middle[0] + middle[-1]) * quarter + swing * draws[0]
        for x in range(1, wanted):
            lefts[x] = (row[x] + below[x] + middle[x] + middle[x - 1]) * quarter + swing * draws[x]
        if doubtful[y]:
            for x in range(side):
                lowest = min(lowest, middle[x], uppers[x], lefts[x])
                highest = max(highest, middle[x], uppers[x], lefts[x])
        if y < rows:
            even, odd = part[2 * y], part[2 * y + 1]
            for x in range(columns):
                even[2 * x], even[2 * x + 1], odd[2 * x], odd[2 * x + 1] = row[x], uppers[x], lefts[x], middle[x]
    return lowest, highest


@compiled
def _diamond_square(draws: NDArray[np.float32], size: int, decay: float) -> tuple[Field, float]:
    """Level by level the middles of squares, of their upper edges, then of their left; a draw a point, in this order.

    Also by how much the points of the next level would move.
    """
    coarse = np.zeros((1, 1), np.float32)
    used, amplitude = 0, 10000.0
    while len(coarse) < size:
        side, swing = len(coarse), np.float32(amplitude)
        points = side * side
        middles = np.empty((side, side), np.float32)
        fine = np.empty((2 * side, 2 * side), np.float32)
        for y in range(side):
            row, below, middle = coarse[y], coarse[(y + 1) % side], middles[y]
            draw = draws[used + y * side : used + (y + 1) * side]
            for x in range(side - 1):
                middle[x] = (row[x] + below[x] + row[x + 1] + below[x + 1]) * np.float32(0.25) + swing * draw[x]
            middle[-1] = (row[-1] + below[-1] + row[0] + below[0]) * np.float32(0.25) + swing * draw[-1]
        used += points
        for y in range(side):
            row, middle, middle_above, even = coarse[y], middles[y], middles[y - 1], fine[2 * y]
            draw = draws[used + y * side : used + (y + 1) * side]
            for x in range(side - 1):
                around = middle[x] + middle_above[x] + row[x] + row[x + 1]
                even[2 * x] = row[x]
                even[2 * x + 1] = around * np.float32(0.25) + swing * draw[x]
            around = middle[-1] + middle_above[-1] + row[-1] + row[0]
            even[-2] = row[-1]
            even[-1] = around * np.float32(0.25) + swing * draw[-1]
        used += points
        for y in range(side):
            row, below, middle, odd = coarse[y], coarse[(y + 1) % side], middles[y], fine[2 * y + 1]
            draw = draws[used + y * side : used + (y + 1) * side]
            odd[0] = (row[0] + below[0] + middle[0] + middle[-1]) * np.float32(0.25) + swing * draw[0]
            odd[1] = middle[0]
            for x in range(1, side):
                odd[2 * x] = (row[x] + below[x] + middle[x] + middle[x - 1]) * np.float32(0.25) + swing * draw[x]
                odd[2 * x + 1] = middle[x]
        used += points
        coarse, amplitude = fine, amplitude / decay**2
    return coarse, amplitude
