"""How much of an image its objects fill: shares of single boxes and of all together, by class and between two sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Boxes


class ShareComparison(NamedTuple):
    """The object shares of two sets, counted in the same bins; a bin holds its lower edge, the last one both."""

    edges: NDArray[np.floating]  # (bins + 1,)
    first: NDArray[np.floating]  # (bins,): share of the first set's objects in each bin
    second: NDArray[np.floating]  # (bins,)
    overlap: float  # 1 where both are spread alike, 0 where no bin holds objects of both


def object_share(boxes: Boxes, sizes: NDArray[np.number]) -> NDArray[np.floating]:
    """Share of its image that each box fills, (boxes,); `sizes` is the width and height of the image of each, (boxes, 2).

    >>> object_share(np.array([[0, 0, 50, 20], [10, 10, 20, 20]]), np.array([[100, 40], [10, 10]]))
    array([0.25, 1.  ])
    """
    sizes = np.asarray(sizes, float)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or sizes.shape != (len(boxes), 2):
        raise BadInput(f"expected (boxes, 4) and a width and height for each, got {boxes.shape} and {sizes.shape}")
    if (sizes <= 0).any():
        raise BadInput("every image should have a width and a height above 0")
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return np.asarray(sides.prod(axis=1) / sizes.prod(axis=1))


def covering_boxes(boxes: Boxes, groups: NDArray[np.integer]) -> Boxes:
    """One box over all boxes of each group, (groups, 4), as ImageNet-A-Plus draws one over all instances of an object.

    `groups` is the group of each box, from 0, such as its image; the box of a group without any is nan.

    >>> covering_boxes(np.array([[0, 0, 2, 2], [5, 1, 9, 3], [4, 4, 5, 5]]), np.array([0, 0, 2]))
    array([[ 0.,  0.,  9.,  3.],
           [nan, nan, nan, nan],
           [ 4.,  4.,  5.,  5.]])
    """
    count = int(groups.max(initial=-1)) + 1
    covering = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf]), (count, 1))
    np.minimum.at(covering[:, :2], groups, boxes[:, :2])
    np.maximum.at(covering[:, 2:], groups, boxes[:, 2:])
    covering[~np.isfinite(covering).all(axis=1)] = np.nan
    return covering


def mean_share_by_class(shares: NDArray[np.floating], labels: NDArray[np.integer], *, classes: int) -> NDArray[np.floating]:
    """Mean object share of each class, (classes,); nan for a class without objects.

    >>> mean_share_by_class(np.array([0.2, 0.4, 0.9]), np.array([0, 0, 2]), classes=3)
    array([0.3, nan, 0.9])
    """
    if labels.max(initial=-1) >= classes:
        raise BadInput(f"class {labels.max()} is beyond the {classes} classes counted")
    counts = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, weights=shares, minlength=classes)
    return np.asarray(np.divide(sums, counts, out=np.full(classes, np.nan), where=counts > 0))


def compare_shares(first: NDArray[np.floating], second: NDArray[np.floating], *, bins: int = 20) -> ShareComparison:
    """The object shares of two sets as histograms between 0 and 1, and how far they overlap.

    >>> compare_shares(np.array([0.1, 0.2, 0.6, 0.7]), np.array([0.3, 0.8, 0.9, 1.0]), bins=2)[1:]
    (array([0.5, 0.5]), array([0.25, 0.75]), 0.75)
    """
    if not len(first) or not len(second):
        raise BadInput("two sets of object shares are compared, but one of them has no objects")
    lowest, highest = min(first.min(), second.min()), max(first.max(), second.max())
    if not 0 <= lowest <= highest <= 1:
        raise BadInput(f"object shares should lie between 0 and 1, got {lowest:g} to {highest:g}")
    edges = np.linspace(0, 1, bins + 1)
    ours, theirs = (np.histogram(shares, edges)[0] / len(shares) for shares in (first, second))
    return ShareComparison(edges, ours, theirs, float(np.minimum(ours, theirs).sum()))
