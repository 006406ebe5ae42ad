"""Object proportion, box area over image area: of single boxes and of all together, by class and between two datasets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.types import Boxes


class ShareComparison(NamedTuple):
    """The object proportions of two datasets, counted in the same bins; a bin holds its lower edge, the last one both."""

    edges: NDArray[np.floating]  # (bins + 1,)
    first: NDArray[np.floating]  # (bins,): share of the first dataset's objects in each bin
    second: NDArray[np.floating]  # (bins,)
    overlap: float  # 1 where both histograms are identical, 0 where no bin holds objects of both


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
    """The object proportions of two datasets as histograms between 0 and 1, and their overlap.

    >>> compare_shares(np.array([0.1, 0.2, 0.6, 0.7]), np.array([0.3, 0.8, 0.9, 1.0]), bins=2)[1:]
    (array([0.5, 0.5]), array([0.25, 0.75]), 0.75)
    """
    if not len(first) or not len(second):
        raise BadInput("object proportions of two datasets are compared, but one of them has no objects")
    lowest, highest = min(first.min(), second.min()), max(first.max(), second.max())
    if not 0 <= lowest <= highest <= 1:
        raise BadInput(f"object shares should lie between 0 and 1, got {lowest:g} to {highest:g}")
    edges = np.linspace(0, 1, bins + 1)
    ours, theirs = (np.histogram(shares, edges)[0] / len(shares) for shares in (first, second))
    return ShareComparison(edges, ours, theirs, float(np.minimum(ours, theirs).sum()))


SCALE_FACTORS = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)

INPUT_SIDE = 224

DIGITS = 9
"""Of a share of an image: a box of exactly half has that share whatever rounding adds to its corners."""


class ScaleTable(NamedTuple):
    """How many objects of each scale factor were classified correctly, of how many."""

    factors: tuple[float, ...]
    input_sizes: tuple[int, ...]  # side of the square input that such an object is shown in: the factor times 224
    tally: Tally

    @property
    def overall(self) -> float:
        """Share correct of all objects, nan where there are none."""
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


SaliencyMaps = NDArray[np.floating]
"""Saliency maps, (images, rows, columns), nothing below 0."""

OnObject = NDArray[np.bool_]
"""Which pixels of the maps are on the object, (images, rows, columns)."""


def saliency_on_object(saliency: SaliencyMaps, on_object: OnObject) -> NDArray[np.floating]:
    """Share of each map's saliency that lies on the object, (images,); nan for a map that is 0 everywhere.

    1 is all of it. Chance is the share of pixels that are on the object.

    >>> saliency_on_object(np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[True, False], [True, False]]]))
    array([0.75])
    """
    _check(saliency, on_object)
    totals = saliency.sum(axis=(1, 2))
    held = np.where(on_object, saliency, 0).sum(axis=(1, 2))
    return np.asarray(np.divide(held, totals, out=np.full(len(saliency), np.nan), where=totals > 0))


def pointing_game_hit(saliency: SaliencyMaps, on_object: OnObject) -> NDArray[np.bool_]:
    """Whether the maximum of each map lies on the object, (images,): the pointing game (Zhang et al., 2018).

    Of equal maxima the first counts, row by row.

    >>> pointing_game_hit(np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[False, True], [True, True]]]))
    array([False])
    """
    _check(saliency, on_object)
    maximum = saliency.reshape(len(saliency), -1).argmax(axis=1)
    return np.asarray(on_object.reshape(len(saliency), -1)[np.arange(len(saliency)), maximum])


def salient_region(saliency: SaliencyMaps, *, share: float = 0.1) -> NDArray[np.bool_]:
    """The most salient `share` of the pixels of each map, (images, rows, columns); ties with the last of them too.

    Pixels of saliency 0 are never in it, so the region of a map with few salient pixels is smaller.

    >>> salient_region(np.array([[[3.0, 1.0], [0.0, 1.0]]]), share=0.5)
    array([[[ True,  True],
            [False,  True]]])
    """
    if not 0 < share <= 1:
        raise BadInput(f"a share of pixels is above 0 and at most 1, got {share:g}")
    places = saliency.reshape(len(saliency), saliency.shape[1] * saliency.shape[2])
    counted = int(np.ceil(share * places.shape[1]))
    least = np.sort(places, axis=1)[:, -counted] if len(saliency) else np.zeros(0)
    return np.asarray((saliency >= least[:, None, None]) & (saliency > 0))


def salient_region_meets(saliency: SaliencyMaps, on_object: OnObject, *, share: float = 0.1) -> NDArray[np.bool_]:
    """Whether any of the most salient `share` of the pixels of each map lies on the object, (images,).

    >>> saliency, on_object = np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[False, True], [False, False]]])
    >>> salient_region_meets(saliency, on_object, share=0.25), salient_region_meets(saliency, on_object, share=0.5)
    (array([False]), array([ True]))
    """
    _check(saliency, on_object)
    return np.asarray((salient_region(saliency, share=share) & on_object).any(axis=(1, 2)))


def _check(saliency: SaliencyMaps, on_object: OnObject) -> None:
    if saliency.ndim != 3 or saliency.shape != on_object.shape:
        raise BadInput(
            f"expected (images, rows, columns) of saliency and of the object, got {saliency.shape} and {on_object.shape}"
        )
    if saliency.size and saliency.min() < 0:
        raise BadInput("saliency should nowhere be below 0")
