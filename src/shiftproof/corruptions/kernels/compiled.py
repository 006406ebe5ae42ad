"""Loops that no library has, compiled on first use and kept on disk, so that the next process waits for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """The function as machine code; other threads run meanwhile, and where no folder can be written it is compiled again."""
    try:
        kernel = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Kernel, kernel)


def inlined(function: Kernel) -> Kernel:
    """The function as a part of every kernel that calls it, from the start: what is inlined later vectorises badly."""
    return cast(Kernel, numba.njit(inline="always", error_model="numpy")(function))


RandomBits = NDArray[np.uint32]
"""Independent and uniform over all 32-bit words, (samples,)."""

BLOCK = 16384  # samples: 64 KB of bits, which stay near the processor until they are used


def seed_of(rng: np.random.Generator) -> np.uint64:
    """A seed for a kernel, drawn from the generator of the image."""
    bits = rng.bit_generator
    if isinstance(bits, np.random.MT19937):  # whose words have 32
        return np.uint64(rng.integers(0, 2**64, dtype=np.uint64))
    return np.uint64(bits.random_raw())  # as `integers` draws all 64 bits, in a quarter of the time


@compiled
def fill_with_random_bits(bits: RandomBits, seed: np.uint64, block: int | np.int64) -> None:
    """Writes block number `block` of the stream of a seed; all blocks have the same even number of samples.

    Counter-based (SplitMix64; Steele et al., 2014): vector registers fill at once, where a carried state would go word by
    word. The two halves of a word go to the two halves of the block, so both are written in order.
    """
    half = bits.size // 2
    count = seed + np.uint64(block * half) * np.uint64(0x9E3779B97F4A7C15)
    for place in range(half):
        word = count
        count += np.uint64(0x9E3779B97F4A7C15)  # a sum, for a product would take a third of all the time
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        bits[place] = np.uint32(word)
        bits[half + place] = np.uint32(word >> np.uint64(32))
