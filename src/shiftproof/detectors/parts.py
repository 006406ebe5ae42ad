"""Many rows worked through a few at a time, so that what is made on the way stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import AnomalyScores

ROWS_AT_ONCE = 1024
"""A thousand classes of as many rows are 8 MB in double precision."""


def parts_of(rows: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Consecutive slices that cover so many rows.

    >>> list(parts_of(1500))
    [slice(0, 1024, None), slice(1024, 1500, None)]
    """
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


def in_parts(
    score: Callable[..., AnomalyScores], *arrays: NDArray[np.generic], at_once: int = ROWS_AT_ONCE
) -> AnomalyScores:
    """What a function says of all rows of these arrays, asked part by part.

    >>> in_parts(lambda rows: rows.sum(axis=1), np.ones((3000, 2))).shape
    (3000,)
    """
    parts = [score(*(array[part] for array in arrays)) for part in parts_of(len(arrays[0]), at_once)]
    return np.concatenate(parts) if parts else np.empty(0)
