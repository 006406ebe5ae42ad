"""The exact quantile of more numbers than fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.parts import parts_of
from shiftproof.errors import BadInput

_HALF = 16  # bits: a count of every possible upper or lower half of a number takes half a megabyte


def quantile_of(walk: Callable[[], Iterable[NDArray[np.floating]]], share: float) -> float:
    """The value that this share of all numbers in the arrays stay below, as ``numpy.quantile`` interpolates it.

    Single-precision numbers sort as integers do once their sign bit is seen to. So one walk over the arrays counts upper
    halves of these integers, a second the lower halves behind the one upper half that matters, and nothing is kept.
    Double-precision numbers are rounded to single first.

    >>> quantile_of(lambda: [np.arange(4.0).reshape(2, 2), np.array([[4.0]])], 0.9)
    3.6
    """
    if not 0 <= share <= 1:
        raise BadInput(f"a share lies between 0 and 1, got {share}")
    upper = _counts(keys >> _HALF for keys in _keys(walk))
    if not (numbers := int(upper.sum())):
        raise BadInput("there are no numbers to take a quantile of")
    place = share * (numbers - 1)
    below = int(place)
    low, high = (_number_at(walk, upper, min(rank, numbers - 1)) for rank in (below, below + 1))
    return low + (high - low) * (place - below)


def _number_at(walk: Callable[[], Iterable[NDArray[np.floating]]], upper: NDArray[np.integer], rank: int) -> float:
    """The number that so many are before, in order of size."""
    half, rank = _find(upper, rank)
    low_bits = (1 << _HALF) - 1
    lower = _counts(keys[keys >> _HALF == half] & low_bits for keys in _keys(walk))
    other, _ = _find(lower, rank)
    return _number_of((half << _HALF) | other)


def _counts(halves: Iterator[NDArray[np.integer]]) -> NDArray[np.integer]:
    counts = np.zeros(1 << _HALF, np.int64)
    for some in halves:
        counts += np.bincount(some, minlength=1 << _HALF)
    return counts


def _find(counts: NDArray[np.integer], rank: int) -> tuple[int, int]:
    """The bin that holds the item of this rank, and the item's rank among those of its bin."""
    ends = np.cumsum(counts)
    found = int(np.searchsorted(ends, rank, side="right"))
    return found, rank - int(ends[found] - counts[found])


def _keys(walk: Callable[[], Iterable[NDArray[np.floating]]]) -> Iterator[NDArray[np.integer]]:
    """The numbers as integers of the same order, some at a time."""
    for rows in walk():
        for part in parts_of(len(rows)):
            # adding 0 makes minus zero plain zero, which it equals
            bits = (np.ascontiguousarray(rows[part], np.float32).ravel() + np.float32(0)).view(np.uint32)
            yield np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31)).astype(np.int64)


def _number_of(key: int) -> float:
    bits = key ^ (1 << 31) if key >> 31 else key ^ 0xFFFFFFFF
    return float(np.array([bits], np.uint32).view(np.float32)[0])
