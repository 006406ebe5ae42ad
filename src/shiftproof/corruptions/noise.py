"""Noise: every sample of a picture moves by chance, alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, pdtr

from shiftproof.corruptions.alias_tables import LEVELS, AliasTable, alias_table, drawn, laws_from_cumulative
from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.random_bits import BLOCK, fill_with_random_bits, seed_of
from shiftproof.types import Image

KEPT_TABLES = 32  # of each noise, 256 KB each: the strengths of all editions and of the sequences


def gaussian_noise(image: Image, rng: np.random.Generator, *, spread: float) -> Image:
    """Low-light noise: every sample moves by a normal random amount, `spread` times the full range."""
    return drawn(image, gaussian_table(spread), seed_of(rng))


def shot_noise(image: Image, rng: np.random.Generator, *, photons: float) -> Image:
    """Noise of light itself: every sample becomes a Poisson count, white being `photons` of them."""
    return drawn(image, shot_table(photons), seed_of(rng))


def speckle_noise(image: Image, rng: np.random.Generator, *, spread: float) -> Image:
    """Noise that grows with brightness: every sample moves by a normal random share of itself."""
    return drawn(image, speckle_table(spread), seed_of(rng))


def impulse_noise(image: Image, rng: np.random.Generator, *, amount: float) -> Image:
    """Salt and pepper: a share `amount` of samples becomes 0 or 255, each channel by itself."""
    every = 2**32 - 1
    return _salted(image, seed_of(rng), np.uint32(amount / 2 * every), np.uint32(amount * every))


INPUT = np.arange(LEVELS, dtype=np.float64)[:, None]
EDGES = np.arange(1, LEVELS, dtype=np.float64)
"""Output is cut to whole levels: it stays below level k if and only if the moved sample is less than k."""


@lru_cache(KEPT_TABLES)
def gaussian_table(spread: float) -> AliasTable:
    """The table of gaussian noise."""
    return alias_table(laws_from_cumulative(ndtr((EDGES - INPUT) / (255 * spread))))


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
def _salted(image: Image, seed: np.uint64, pepper: np.uint32, either: np.uint32) -> Image:
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
