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


def plasma(rng: np.random.Generator, size: int, decay: float) -> Field:
    """Cloud-like map of `size` (a power of two) in both directions, from 0 to 1, whose opposite sides meet.

    Coarse shapes weigh `decay` squared times as much as those half their size.
    """
    return plasma_of(symmetric_draws(seed_of(rng), size * size), size, decay)


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
    fill_with_random_bits(bits, seed, 0)
    draws = np.empty(count, np.float32)
    for place in range(count):
        draws[place] = np.float32(np.int32(bits[place] >> np.uint32(8)) - 2**23) * np.float32(2.0**-23)
    return draws


@compiled
def _share(bits: Seed) -> float:
    """A number above 0, up to 1."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled
def _tail(counter: Seed) -> tuple[Seed, float]:
    """How far beyond the last edge a draw lies that lies there, and the counter after it."""
    while True:
        beyond = -np.log(_share(_mixed(counter + GOLDEN))) / LAST_EDGE
        counter += GOLDEN + GOLDEN
        if -2 * np.log(_share(_mixed(counter))) > beyond * beyond:
            return counter, beyond


@compiled
def _normals(seed: Seed, count: int) -> NDArray[np.float32]:
    """Standard normal numbers, (count,), by the ziggurat (Marsaglia & Tsang, 2000)."""
    draws = np.empty(count, np.float32)
    counter = seed
    for place in range(count):
        while True:
            counter += GOLDEN
            bits = _mixed(counter)
            layer = np.int64(bits & np.uint64(LAYERS - 1))
            draw = np.float64(np.int64(bits) >> np.int64(11)) * 2.0**-52 * EDGES[layer]
            if abs(draw) < EDGES[layer + 1]:
                break
            if layer == 0:
                counter, beyond = _tail(counter)
                draw = LAST_EDGE + beyond if draw > 0 else -LAST_EDGE - beyond
                break
            counter += GOLDEN
            height = HEIGHTS[layer] + _share(_mixed(counter)) * (HEIGHTS[layer + 1] - HEIGHTS[layer])
            if height < np.exp(-draw * draw / 2):
                break
        draws[place] = draw
    return draws


def plasma_of(draws: NDArray[np.float32], size: int, decay: float) -> Field:
    """The map that these draws make, from 0 to 1; a map of one pixel is 0."""
    field = _diamond_square(draws, size, decay)
    field -= field.min()
    highest = field.max()
    return field / highest if highest > 0 else field


@compiled
def _diamond_square(draws: NDArray[np.float32], size: int, decay: float) -> Field:
    """Level by level the middles of squares, of their upper edges, then of their left; a draw a point, in this order."""
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
    return coarse
