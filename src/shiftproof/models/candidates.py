"""Which of the boxes that a network proposes count as found: the sure ones, each object once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.box_overlap import box_overlap
from shiftproof.metrics.sorted_groups import descending_order
from shiftproof.types import Boxes, Found

BLOCK = 512
"""Boxes compared with each other at once: about 40 MB."""


class Candidates(NamedTuple):
    """What a network proposes in one image."""

    boxes: Boxes  # in pixels of the input
    scores: NDArray[np.floating]  # (boxes,), or (boxes, classes) where no class was chosen yet
    classes: NDArray[np.integer] | None = None  # (boxes,)


@dataclass(frozen=True)
class BoxRules:
    """When a box counts.

    The published numbers of COCO take boxes from a score of 0.001 (YOLOX: 0.01) up. `overlap` is that above which the less
    sure of two boxes of a class is dropped; None drops none, for models that do so themselves. With `several`, a box counts
    for each class that is sure enough, else for its best class alone.
    """

    least_score: float = 0.01
    overlap: float | None = 0.65
    most: int = 100
    several: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.least_score <= 1:
            raise BadInput(f"the least score of a box should lie between 0 and 1, got {self.least_score}")
        if self.overlap is not None and not 0 < self.overlap <= 1:
            raise BadInput(f"overlap should lie above 0 and not above 1, such as 0.65, got {self.overlap}")
        if self.most < 1:
            raise BadInput(f"at least one box an image should be kept, got {self.most}")

    def found_among(self, candidates: Candidates) -> Found:
        """The boxes that count, surest first; one that is not a number where the network gave such."""
        boxes, scores = np.asarray(candidates.boxes, float), np.asarray(candidates.scores, float)
        if not (np.isfinite(boxes).all() and np.isfinite(scores).all()):
            return Found(np.full((1, 4), np.nan), np.full(1, np.nan), np.zeros(1, int))
        rows, scores, classes = self._sure(scores, candidates.classes)
        order = descending_order(scores)
        boxes, scores, classes = boxes[rows][order], scores[order], classes[order]
        if self.overlap is not None:
            kept = suppress(boxes, classes, self.overlap)
            boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        return Found(boxes[: self.most], scores[: self.most], classes[: self.most])

    def _sure(
        self, scores: NDArray[np.floating], classes: NDArray[np.integer] | None
    ) -> tuple[NDArray[np.integer], NDArray[np.floating], NDArray[np.integer]]:
        """The rows of the boxes that are sure enough, with score and class."""
        if classes is None and self.several:
            rows, classes = np.nonzero(scores >= self.least_score)
            return rows, scores[rows, classes], classes
        if classes is None:
            best = scores.argmax(axis=1)
            scores, classes = np.take_along_axis(scores, best[:, None], axis=1)[:, 0], best
        rows = np.flatnonzero(scores >= self.least_score)
        return rows, scores[rows], classes[rows]


def suppress(boxes: Boxes, classes: NDArray[np.integer], overlap: float) -> NDArray[np.integer]:
    """Rows of the boxes, surest first, that overlap no surer box that is kept of their class by more than `overlap`.

    >>> boxes = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 12, 12]])
    >>> suppress(boxes, np.zeros(3, int), 0.65).tolist(), suppress(boxes, np.arange(3), 0.65).tolist()
    ([0, 2], [0, 1, 2])
    """
    kept = [rows[_alone(boxes[rows], overlap)] for rows in (np.flatnonzero(classes == one) for one in np.unique(classes))]
    return np.sort(np.concatenate([np.zeros(0, int), *kept]))


def _alone(boxes: Boxes, overlap: float) -> NDArray[np.integer]:
    """Places of the boxes of one class that are kept."""
    kept = np.zeros(0, int)
    for start in range(0, len(boxes), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(boxes)))
        free = block[~(_overlaps(boxes[kept], boxes[block]) > overlap).any(axis=0)]
        hides = np.triu(_overlaps(boxes[free], boxes[free]) > overlap, k=1)
        # a box is dropped by those kept alone: from all of them on, each round settles at least the next one
        alive, before = np.ones(len(free), bool), np.zeros(len(free), bool)
        while not np.array_equal(alive, before):
            alive, before = np.asarray(~hides[alive].any(axis=0)), alive
        kept = np.concatenate([kept, free[alive]])
    return kept


def _overlaps(first: Boxes, second: Boxes) -> NDArray[np.floating]:
    """How much every box of the one shares with every box of the other, (first, second)."""
    pairs = np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))
    return box_overlap(*pairs, np.zeros(len(first) * len(second), bool)).reshape(len(first), len(second))
