"""Noise by table lookup: each output level is drawn from the law that its input level has (Walker, 1977).

A noise that acts on each sample alone is 256 laws over 256 output levels. As alias tables they are drawn from exactly, to
2^-32 of probability, at the same speed whatever the noise; no normal or Poisson variate is ever made.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, pdtr

from shiftproof.corruptions.kernels.compiled import BLOCK, RandomBits, compiled, fill_with_random_bits
from shiftproof.corruptions.kernels.compiled import seed_of as seed_of
from shiftproof.types import Image

KEPT_TABLES = 32  # of each noise, 256 KB each: the severities of all editions and the levels of the sequences

LEVELS = 256

Laws = NDArray[np.float64]
"""Chances of output levels, (input levels, output levels); rows sum to 1."""

AliasTable = NDArray[np.uint32]
"""One word a column, (input levels * columns,): how often of 2^24 the column itself is drawn, above the 8 bits of the level
that is drawn otherwise."""


def laws_from_cumulative(below: NDArray[np.float64]) -> Laws:
    """Laws from the chances to stay below output levels 1 to 255, (input levels, 255)."""
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


@compiled
def alias_table(laws: Laws) -> AliasTable:
    """The table that draws from these laws (Vose, 1991)."""
    table = np.empty(LEVELS * LEVELS, np.uint32)
    poor, rich = np.empty(LEVELS, np.int64), np.empty(LEVELS, np.int64)
    for level in range(LEVELS):
        shares = laws[level] * LEVELS
        poor_count, rich_count = 0, 0
        for column in range(LEVELS):
            # a column whose other level is itself draws itself, whatever its threshold: what rounding leaves over is right
            table[level * LEVELS + column] = column
            if shares[column] < 1.0:
                poor[poor_count] = column
                poor_count += 1
            else:
                rich[rich_count] = column
                rich_count += 1
        while poor_count > 0 and rich_count > 0:
            poor_count -= 1
            needy, giver = poor[poor_count], rich[rich_count - 1]
            threshold = min(int(shares[needy] * 2.0**24 + 0.5), 2**24 - 1)
            table[level * LEVELS + needy] = (threshold << 8) | giver
            shares[giver] -= 1.0 - shares[needy]
            if shares[giver] < 1.0:
                rich_count -= 1
                poor[poor_count] = giver
                poor_count += 1
    return table


PIECE = 256  # samples that are looked up at a time


@compiled
def drawn(image: Image, table: AliasTable, seed: np.uint64) -> Image:
    """The image with every sample replaced by a draw from the law of its level."""
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    bits, words = np.empty(BLOCK, np.uint32), np.empty(PIECE, np.uint32)
    for block in range((image.size + BLOCK - 1) // BLOCK):
        fill_with_random_bits(bits, seed, block)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        _look_up(samples[here], table, bits, words, result[here])
    return result.reshape(image.shape)


@compiled
def _look_up(samples: Image, table: AliasTable, bits: RandomBits, words: RandomBits, result: Image) -> None:
    """Writes the draws that these bits stand for: 8 bits choose a column, 24 between its two levels.

    Only the loop in the middle goes word by word, and has nothing else to do.
    """
    size, piece = np.uintp(samples.size), np.uintp(PIECE)
    for start in range(np.uintp(0), size, piece):
        count = min(piece, size - start)
        for place in range(count):
            column = bits[start + place] & np.uint32(255)
            words[place] = np.uint32(np.uint32(samples[start + place]) << np.uint32(8)) | column
        for place in range(count):
            words[place] = table[np.uintp(words[place])]
        for place in range(count):
            drawn_bits, word = bits[start + place], words[place]
            own = (drawn_bits >> np.uint32(8)) < (word >> np.uint32(8))
            result[start + place] = np.uint8(drawn_bits if own else word)


INPUT = np.arange(LEVELS, dtype=np.float64)[:, None]
EDGES = np.arange(1, LEVELS, dtype=np.float64)
"""Output is cut to whole levels: it stays below level k if and only if the moved sample is less than k."""


@lru_cache(KEPT_TABLES)
def gaussian_table(spread: float) -> AliasTable:
    """The table of gaussian noise."""
    return alias_table(laws_from_cumulative(ndtr((EDGES - INPUT) / (255 * spread))))


@lru_cache(KEPT_TABLES)
def uniform_table(reach: float) -> AliasTable:
    """The table of noise that is uniform between -reach and reach (on 0..1)."""
    return alias_table(laws_from_cumulative(np.clip((EDGES - INPUT) / (510 * reach) + 0.5, 0, 1)))


@lru_cache(KEPT_TABLES)
def speckle_table(spread: float) -> AliasTable:
    """The table of speckle noise; black does not move."""
    with np.errstate(divide="ignore"):
        return alias_table(laws_from_cumulative(ndtr((EDGES - INPUT) / (INPUT * spread))))


@lru_cache(KEPT_TABLES)
def shot_table(photons: float) -> AliasTable:
    """The table of shot noise."""
    counts = np.arange(int(np.ceil(photons)) + 1)
    # in the published order of operations, because counts may fall on whole levels and are then cut by a rounding error
    outputs = (np.clip(counts / photons, 0, 1) * 255).astype(np.uint8)
    fewest = np.searchsorted(outputs, EDGES)  # photons that reach each level
    return alias_table(laws_from_cumulative(pdtr(fewest - 1, INPUT / 255 * photons)))


@compiled
def salted(image: Image, seed: np.uint64, pepper: np.uint32, either: np.uint32) -> Image:
    """The image with samples that became 0 (bits below `pepper`) or 255 (bits below `either`)."""
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    bits = np.empty(BLOCK, np.uint32)
    for block in range((image.size + BLOCK - 1) // BLOCK):
        fill_with_random_bits(bits, seed, block)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        _salt(samples[here], bits, pepper, either, result[here])
    return result.reshape(image.shape)


@compiled
def _salt(samples: Image, bits: NDArray[np.uint32], pepper: np.uint32, either: np.uint32, result: Image) -> None:
    for place in range(samples.size):
        salted = np.uint8(255) if bits[place] < either else samples[place]
        result[place] = np.uint8(0) if bits[place] < pepper else salted
