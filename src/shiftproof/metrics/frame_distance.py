"""How far two frames are apart in their pixels, and how such distances spread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput


class Spread(NamedTuple):
    """What share of some values is at most so large: a staircase with a step at each value that occurs."""

    values: NDArray[np.floating]  # (values,), rising
    shares: NDArray[np.floating]  # (values,), rising to 1

    def at(self, value: float) -> float:
        """Share of the values that are at most this one."""
        below = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[below - 1]) if below else 0.0


def l_infinity_distance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.floating]:
    """Largest change of any pixel and colour between the frames of each pair, (pairs,); 1 is from black to white.

    Frames are (pairs, height, width, colours), or one frame as the first of every pair.

    >>> anchor = np.zeros((1, 2, 2, 3), np.uint8)
    >>> neighbours = np.stack([anchor[0], anchor[0] + 51])
    >>> l_infinity_distance(anchor, neighbours)
    array([0. , 0.2])
    """
    if first.dtype != np.uint8 or second.dtype != np.uint8:
        raise BadInput(f"frames should be of type uint8, 0 to 255, got {first.dtype} and {second.dtype}")
    if second.ndim != 4 or first.shape[1:] != second.shape[1:] or len(first) not in (1, len(second)):
        raise BadInput(
            f"frames should be (pairs, height, width, colours) alike, got shapes {first.shape} and {second.shape}"
        )
    # the larger minus the smaller: a plain difference of bytes would wrap around
    changes = np.maximum(first, second) - np.minimum(first, second)
    return np.asarray(changes.max(axis=(1, 2, 3)) / 255)


def empirical_cdf(values: NDArray[np.floating]) -> Spread:
    """Share of the values that are at most each value that occurs.

    >>> spread = empirical_cdf(np.array([0.2, 0.1, 0.2, 0.4]))
    >>> spread.values, spread.shares, spread.at(0.3)
    (array([0.1, 0.2, 0.4]), array([0.25, 0.75, 1.  ]), 0.75)
    """
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise BadInput(f"a distribution needs numbers in a row, at least one, got shape {values.shape}")
    distinct, counts = np.unique(values, return_counts=True)
    return Spread(distinct, np.cumsum(counts) / len(values))
