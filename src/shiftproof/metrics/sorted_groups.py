"""Rows that stand together in groups: where each group begins, and how far down a row stands in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether a value differs from the one before it; the first always does.

    >>> changes(np.array([4, 4, 2])).tolist()
    [True, False, True]
    """
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def rank_in_group(first: NDArray[np.bool_]) -> NDArray[np.integer]:
    """How many rows of the same group stand above each, where `first` marks the top row of each group.

    >>> rank_in_group(np.array([True, False, False, True])).tolist()
    [0, 1, 2, 0]
    """
    rows = np.arange(len(first))
    return np.asarray(rows - np.maximum.accumulate(np.where(first, rows, 0)))
