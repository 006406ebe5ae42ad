"""Rows brought together in groups: their order, where each group begins, and how far down a row stands in it.

Numpy sorts numbers of which no two are equal four times as fast as it sorts stably, so equals are made unequal by their row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stable_order(groups: NDArray[np.integer]) -> NDArray[np.integer]:
    """Rows by group, a number from 0 up; those of the same group stay in their order.

    >>> stable_order(np.array([2, 0, 2, 0])).tolist()
    [1, 3, 0, 2]
    """
    return np.argsort(groups.astype(np.int64) * len(groups) + np.arange(len(groups)))


def descending_order(values: NDArray[np.floating]) -> NDArray[np.integer]:
    """Rows from the highest value to the lowest; equals stay in their order.

    >>> descending_order(np.array([0.5, 0.9, 0.5])).tolist()
    [1, 0, 2]
    """
    roughly = np.argsort(-values)
    level = np.empty(len(values), dtype=np.int64)
    level[roughly] = np.cumsum(changes(values[roughly]))
    return stable_order(level)


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
