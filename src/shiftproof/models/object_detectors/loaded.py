"""The one object detector behind every kind of model file, and which of the proposed boxes it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.metrics.boxes import box_overlap, descending_order
from shiftproof.models.loaded import filled_up
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Boxes, Classes, Companion, Found, Inputs, Layout, ModelRef, Seen
from shiftproof.types.shown import counted, in_a_line

BLOCK = 256
"""Boxes compared with each other at once."""


class Candidates(NamedTuple):
    """What a network proposes in one image."""

    boxes: Boxes  # in pixels of the input
    scores: NDArray[np.floating]  # (boxes,), or (boxes, classes) where no class was chosen yet
    classes: NDArray[np.integer] | None = None  # (boxes,)


class BatchShape(NamedTuple):
    """How many inputs a batch has, and their size."""

    images: int
    height: int
    width: int


def batch_shape(inputs: Inputs, layout: Layout) -> BatchShape:
    """The shape of a batch of inputs in this layout."""
    return BatchShape(len(inputs), *(inputs.shape[1:3] if layout == "nhwc" else inputs.shape[2:4]))


@dataclass(frozen=True)
class BoxRules:
    """Which boxes are kept.

    The published numbers of COCO take boxes from a score of 0.001 (YOLOX: 0.01) up. `nms_iou` is the IoU threshold for
    non-maximum suppression within a class; None does without, for models that suppress boxes themselves. With `several`, a
    box counts for each class above the score threshold, else for its best class alone.
    """

    score_threshold: float = 0.01
    nms_iou: float | None = 0.65
    max_detections: int = 100
    several: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.score_threshold <= 1:
            raise BadInput(f"score_threshold should lie between 0 and 1, got {self.score_threshold}")
        if self.nms_iou is not None and not 0 < self.nms_iou <= 1:
            raise BadInput(f"nms_iou should lie above 0 and not above 1, such as 0.65, got {self.nms_iou}")
        if self.max_detections < 1:
            raise BadInput(f"at least one box an image should be kept, got {self.max_detections}")

    def __str__(self) -> str:
        # part of the fingerprint of every detector, so these words stay
        names = f"least_score={self.score_threshold!r}, overlap={self.nms_iou!r}, most={self.max_detections!r}"
        return f"BoxRules({names}, several={self.several!r})"

    def found_among(self, candidates: Candidates) -> Found:
        """The boxes that count, by descending score; one that is not a number where the network gave such."""
        if not (np.isfinite(candidates.boxes).all() and np.isfinite(candidates.scores).all()):
            return Found(np.full((1, 4), np.nan), np.full(1, np.nan), np.zeros(1, int))
        rows, scores, classes = self._above_threshold(candidates.scores, candidates.classes)
        order = descending_order(scores)
        boxes, scores, classes = candidates.boxes[rows[order]].astype(float), scores[order].astype(float), classes[order]
        if self.nms_iou is not None:
            kept = suppress(boxes, classes, self.nms_iou, most=self.max_detections)
            boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        return Found(boxes[: self.max_detections], scores[: self.max_detections], classes[: self.max_detections])

    def _above_threshold(
        self, scores: NDArray[np.floating], classes: NDArray[np.integer] | None
    ) -> tuple[NDArray[np.integer], NDArray[np.floating], NDArray[np.integer]]:
        """Rows of the boxes above the score threshold, each with score and class; with several classes, a row for each."""
        if classes is not None:
            rows = np.flatnonzero(scores >= self.score_threshold)
            return rows, scores[rows], classes[rows]
        rows = np.flatnonzero(scores.max(axis=1, initial=0) >= self.score_threshold)
        scores = scores[rows]
        if self.several:
            places, classes = np.nonzero(scores >= self.score_threshold)
        else:
            places, classes = np.arange(len(rows)), scores.argmax(axis=1)
        return rows[places], scores[places, classes], classes


def suppress(boxes: Boxes, classes: NDArray[np.integer], nms_iou: float, *, most: int | None = None) -> NDArray[np.integer]:
    """Non-maximum suppression within each class: rows of the boxes that are kept, by descending score.

    It stops once there are `most`.

    >>> boxes = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 12, 12]])
    >>> suppress(boxes, np.zeros(3, int), 0.65).tolist(), suppress(boxes, np.arange(3), 0.65).tolist()
    ([0, 2], [0, 1, 2])
    """
    kept = np.zeros(0, int)
    for start in range(0, len(boxes), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(boxes)))
        free = block[~_hides(boxes, classes, kept, block, nms_iou).any(axis=0)]
        hides = _hides(boxes, classes, free, free, nms_iou)
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
    nms_iou: float,
) -> NDArray[np.bool_]:
    """Whether each of the first boxes stands above each of the second, is of its class and shares more than `nms_iou`."""
    hides = np.asarray((classes[first][:, None] == classes[second][None]) & (first[:, None] < second[None]))
    higher, others = np.nonzero(hides)
    shared = box_overlap(boxes[first[higher]], boxes[second[others]], np.zeros(len(higher), bool))
    hides[higher, others] = shared > nms_iou
    return hides


Propose: TypeAlias = Callable[[Inputs], Sequence[Candidates]]
"""The boxes a network proposes in each input of a batch, in pixels of the input."""


@dataclass(frozen=True)
class LoadedDetector:
    """An object detector made of what is known about it and a function that proposes boxes."""

    ref: ModelRef
    preprocessing: ImagePreprocessing
    propose: Propose
    rules: BoxRules = field(default_factory=BoxRules)
    classes: Classes | None = None
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    fixed_batch_size: int | None = None  # the only size that `propose` takes; None: any
    default_batch_size: int = 32
    concurrent_batches: int = 1  # batches that may run at the same time, each from a thread of its own
    companion: Companion | None = None  # how it was made of another model

    def __repr__(self) -> str:
        classes = "classes not named" if self.classes is None else counted(len(self.classes), "class", "classes")
        return in_a_line(self, self.ref.name, "boxes", classes)

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> list[Found]:
        """What is found in each input, in the pixels of its original, whose sizes are (height, width)."""
        proposed = list(self._proposed(inputs))
        if len(proposed) != len(inputs) or len(sizes) != len(inputs):
            raise BadInput(f"{self.ref.name} gave boxes of {len(proposed)} images for {len(inputs)} of {len(sizes)} sizes")
        _, height, width = batch_shape(inputs, self.preprocessing.layout)
        return [
            self._in_original(self.rules.found_among(candidates), (height, width), size)
            for candidates, size in zip(proposed, sizes, strict=True)
        ]

    def _proposed(self, inputs: Inputs) -> Iterator[Candidates]:
        step = self.fixed_batch_size or max(1, len(inputs))
        for start in range(0, len(inputs), step):
            batch = inputs[start : start + step]
            full = batch if self.fixed_batch_size is None else filled_up(batch, self.fixed_batch_size)
            yield from self.propose(full)[: len(batch)]

    def _in_original(self, found: Found, input_size: tuple[int, int], size: tuple[int, int]) -> Found:
        if self.classes is not None and found.classes.max(initial=-1) >= len(self.classes):
            raise ClassMismatch(
                f"{self.ref.name} found an object of class {found.classes.max()}, counted from 0, "
                f"but {len(self.classes)} classes are named"
            )
        boxes = to_original(found.boxes, input_size, self.preprocessing.window(*size))
        height, width = size
        boxes = np.clip(boxes, 0, [width, height, width, height])
        # not a number stays: whoever stores it skips the image
        there = ~((boxes[:, :2] >= boxes[:, 2:]).any(axis=1))
        return Found(boxes[there], found.scores[there], found.classes[there])

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.ref.name} stays in its process; send its preprocessing to workers instead")


def to_original(boxes: Boxes, input_size: tuple[int, int], window: tuple[float, float, float, float]) -> Boxes:
    """Boxes of an input in the pixels of the image that it shows this window of.

    >>> to_original(np.array([[0.0, 0, 208, 416]]), (416, 416), (-10.0, 0.0, 406.0, 832.0)).tolist()
    [[-10.0, 0.0, 198.0, 832.0]]
    """
    left, top, right, bottom = window
    height, width = input_size
    across, down = (right - left) / width, (bottom - top) / height
    return boxes * [across, down, across, down] + [left, top, left, top]
