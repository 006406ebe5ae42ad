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

BLOCK = 256
"""Boxes compared with each other at once."""


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
        if not (np.isfinite(candidates.boxes).all() and np.isfinite(candidates.scores).all()):
            return Found(np.full((1, 4), np.nan), np.full(1, np.nan), np.zeros(1, int))
        rows, scores, classes = self._sure(candidates.scores, candidates.classes)
        order = descending_order(scores)
        boxes, scores, classes = candidates.boxes[rows[order]].astype(float), scores[order].astype(float), classes[order]
        if self.overlap is not None:
            kept = suppress(boxes, classes, self.overlap, most=self.most)
            boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        return Found(boxes[: self.most], scores[: self.most], classes[: self.most])

    def _sure(
        self, scores: NDArray[np.floating], classes: NDArray[np.integer] | None
    ) -> tuple[NDArray[np.integer], NDArray[np.floating], NDArray[np.integer]]:
        """The rows of the boxes that are sure enough, each with score and class; with several classes, a row for each."""
        if classes is not None:
            rows = np.flatnonzero(scores >= self.least_score)
            return rows, scores[rows], classes[rows]
        rows = np.flatnonzero(scores.max(axis=1, initial=0) >= self.least_score)
        scores = scores[rows]
        if self.several:
            places, classes = np.nonzero(scores >= self.least_score)
        else:
            places, classes = np.arange(len(rows)), scores.argmax(axis=1)
        return rows[places], scores[places, classes], classes


def suppress(boxes: Boxes, classes: NDArray[np.integer], overlap: float, *, most: int | None = None) -> NDArray[np.integer]:
    """Rows of the boxes, surest first, that overlap no surer box that is kept of their class by more than `overlap`.

    Once there are `most` it is not asked on.

    >>> boxes = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 12, 12]])
    >>> suppress(boxes, np.zeros(3, int), 0.65).tolist(), suppress(boxes, np.arange(3), 0.65).tolist()
    ([0, 2], [0, 1, 2])
    """
    kept = np.zeros(0, int)
    for start in range(0, len(boxes), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(boxes)))
        free = block[~_hides(boxes, classes, kept, block, overlap).any(axis=0)]
        hides = _hides(boxes, classes, free, free, overlap)
        # a box is dropped by those kept alone: from all of them on, each round settles at least the next one
        alive, before = np.ones(len(free), bool), np.zeros(len(free), bool)
        while not np.array_equal(alive, before):
            alive, before = np.asarray(~hides[alive].any(axis=0)), alive
        kept = np.concatenate([kept, free[alive]])
        if most is not None and len(kept) >= most:
            return kept[:most]
    return kept


def _hides(
    boxes: Boxes,
    classes: NDArray[np.integer],
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    overlap: float,
) -> NDArray[np.bool_]:
    """Whether each of the first boxes stands above each of the second, is of its class and shares more than `overlap`."""
    hides = np.asarray((classes[first][:, None] == classes[second][None]) & (first[:, None] < second[None]))
    surer, others = np.nonzero(hides)
    shared = box_overlap(boxes[first[surer]], boxes[second[others]], np.zeros(len(surer), bool))
    hides[surer, others] = shared > overlap
    return hides
