"""Objects by their size in the model's input, in powers of two (ImageNet-A-Plus; Li et al., 2021).

The paper's bins are closed at both ends, so that an object of exactly half the input counts in two of them. Ours hold their
lower edge only: an object is in the bin of the largest factor that does not enlarge it. Objects below the smallest factor,
which the paper would give a factor of 0, have a bin of their own and no input size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.types import Boxes

SCALE_FACTORS = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 0.0)
"""From objects as large as the input down to those smaller than a thirty-second of it, which stand under 0."""

INPUT_SIDE = 224


class ScaleTable(NamedTuple):
    """How many objects of each scale factor were right, of how many."""

    factors: tuple[float, ...]
    input_sizes: tuple[int | None, ...]  # side of the square input that keeps such an object's size; None below the smallest
    tally: Tally

    @property
    def overall(self) -> float:
        """Share right of all objects, nan where there are none."""
        total = int(self.tally.total.sum())
        return int(self.tally.right.sum()) / total if total else float("nan")


def scale_factor(boxes: Boxes, *, side: int = INPUT_SIDE) -> NDArray[np.floating]:
    """The largest power of two, at most 1, that does not exceed the longer side of each box over `side`, (boxes,).

    0 stands for boxes below a thirty-second.

    >>> scale_factor(np.array([[0, 0, 300, 10], [0, 0, 50, 112], [0, 0, 111, 80], [0, 0, 6, 2]]))
    array([1.  , 0.5 , 0.25, 0.  ])
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise BadInput(f"boxes should be (boxes, 4), got {boxes.shape}")
    longer = (boxes[:, 2:] - boxes[:, :2]).max(axis=1) / side
    factors = np.array(SCALE_FACTORS)
    # the last factor, 0, is below every box
    return np.asarray(factors[(longer[:, None] >= factors).argmax(axis=1)])


def accuracy_by_scale(correct: NDArray[np.bool_], factors: NDArray[np.floating], *, side: int = INPUT_SIDE) -> ScaleTable:
    """Right and total for each scale factor, largest first; `factors` as `scale_factor` gives them.

    >>> table = accuracy_by_scale(np.array([True, False, True]), np.array([1.0, 0.5, 0.5]))
    >>> table.input_sizes[:2], table.tally.accuracy[:2]
    ((224, 112), array([1. , 0.5]))
    >>> round(table.overall, 4)
    0.6667
    """
    strange = sorted(set(np.unique(factors).tolist()) - set(SCALE_FACTORS))
    if strange or len(correct) != len(factors):
        found = f"{strange[0]:g}" if strange else f"{len(factors)} for {len(correct)} objects"
        raise BadInput(f"every object should have a scale factor of 1, 1/2, ... 1/32 or 0, got {found}")
    inside = factors[:, None] == np.array(SCALE_FACTORS)
    sizes = tuple(round(side * factor) if factor else None for factor in SCALE_FACTORS)
    return ScaleTable(SCALE_FACTORS, sizes, Tally((inside & correct[:, None]).sum(axis=0), inside.sum(axis=0)))


def pooled_accuracy(accuracies: NDArray[np.floating], totals: NDArray[np.integer]) -> float:
    """Accuracy over all objects from that of each bin, as the last row of a published table; empty bins do not count.

    >>> pooled_accuracy(np.array([0.5, 0.0, np.nan]), np.array([30, 10, 0]))
    0.375
    """
    if not totals.sum():
        raise BadInput("there are no objects to take an accuracy of")
    filled = totals > 0
    return float((accuracies[filled] * totals[filled]).sum() / totals.sum())
