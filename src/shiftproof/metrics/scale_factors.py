"""Objects by the size of their boxes, in powers of two: the scale factors of ImageNet-A-Plus (Li et al., 2021, section 5).

The whole image is scaled to 224 x 224, and an object has the power of two at or above the larger side of its box there, over
224: one of 107 x 73 has 1/2, and fits an input of 112 x 112. The paper's bins are closed at both ends, so that an object of
exactly half the image counts in two of them; ours hold their upper end alone, and the last one all that is smaller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.types import Boxes

SCALE_FACTORS = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)

INPUT_SIDE = 224

DIGITS = 9
"""Of a share of an image: a box of exactly half has that share whatever rounding adds to its corners."""


class ScaleTable(NamedTuple):
    """How many objects of each scale factor were right, of how many."""

    factors: tuple[float, ...]
    input_sizes: tuple[int, ...]  # side of the square input that such an object is shown in: the factor times 224
    tally: Tally

    @property
    def overall(self) -> float:
        """Share right of all objects, nan where there are none."""
        total = int(self.tally.total.sum())
        return int(self.tally.right.sum()) / total if total else float("nan")


def scale_factor(boxes: Boxes, *, sizes: NDArray[np.number] | None = None, side: int = INPUT_SIDE) -> NDArray[np.floating]:
    """The power of two, 1 to 1/16, at or above the larger side of each box as a share of its image's side, (boxes,).

    Boxes are in pixels of images scaled to `side` x `side`, or of images of `sizes`, width and height of each, (boxes, 2).

    >>> scale_factor(np.array([[0, 0, 107, 73], [0, 0, 50, 112], [0, 0, 113, 80], [0, 0, 6, 2]]))
    array([0.5   , 0.5   , 1.    , 0.0625])
    >>> scale_factor(np.array([[0, 0, 100, 90]]), sizes=np.array([[400, 300]]))  # 90 of 300 is more than 100 of 400
    array([0.5])
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise BadInput(f"boxes should be (boxes, 4), got {boxes.shape}")
    across = np.full((len(boxes), 2), side) if sizes is None else np.asarray(sizes, float)
    if across.shape != (len(boxes), 2) or not (across > 0).all():
        raise BadInput(f"expected a width and height above 0 for each of {len(boxes)} boxes, got shape {across.shape}")
    shares = ((boxes[:, 2:] - boxes[:, :2]) / across).max(axis=1).round(DIGITS)
    factors = np.array(SCALE_FACTORS)
    larger = shares[:, None] > factors / 2
    larger[:, -1] = True
    return np.asarray(factors[larger.argmax(axis=1)])


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
        raise BadInput(f"every object should have a scale factor of 1, 1/2, 1/4, 1/8 or 1/16, got {found}")
    inside = factors[:, None] == np.array(SCALE_FACTORS)
    sizes = tuple(round(side * factor) for factor in SCALE_FACTORS)
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
