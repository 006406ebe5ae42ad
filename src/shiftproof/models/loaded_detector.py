"""A model that finds objects: the one object detector behind every kind of model file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import numpy as np

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models.batches import filled_up
from shiftproof.models.candidates import BoxRules, Candidates
from shiftproof.models.grid_boxes import asked_of
from shiftproof.models.preparation import ImagePreparation
from shiftproof.types import Boxes, Classes, Found, Inputs, ModelRef, Seen

Propose: TypeAlias = Callable[[Inputs], Sequence[Candidates]]
"""The boxes a network proposes in each input of a batch, in pixels of the input."""


@dataclass(frozen=True)
class LoadedDetector:
    """An object detector made of what is known about it and a function that proposes boxes."""

    ref: ModelRef
    preparation: ImagePreparation
    propose: Propose
    rules: BoxRules = field(default_factory=BoxRules)
    classes: Classes | None = None
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    batch_size: int | None = None  # the only size that `propose` takes; None: any
    good_batch: int = 32  # images a batch had best have
    at_once: int = 1  # batches that may be asked at the same time, from as many threads

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> list[Found]:
        """What is found in each prepared image, in the pixels of its original, whose sizes are (height, width)."""
        proposed = list(self._proposed(inputs))
        if len(proposed) != len(inputs) or len(sizes) != len(inputs):
            raise BadInput(f"{self.ref.name} answered {len(inputs)} images of {len(sizes)} sizes with {len(proposed)} lists")
        _, height, width = asked_of(inputs, self.preparation.layout)
        return [
            self._in_original(self.rules.found_among(candidates), (height, width), size)
            for candidates, size in zip(proposed, sizes, strict=True)
        ]

    def _proposed(self, inputs: Inputs) -> Iterator[Candidates]:
        step = self.batch_size or max(1, len(inputs))
        for start in range(0, len(inputs), step):
            batch = inputs[start : start + step]
            full = batch if self.batch_size is None else filled_up(batch, self.batch_size)
            yield from self.propose(full)[: len(batch)]

    def _in_original(self, found: Found, input_size: tuple[int, int], size: tuple[int, int]) -> Found:
        if self.classes is not None and found.classes.max(initial=-1) >= len(self.classes):
            raise ClassMismatch(
                f"{self.ref.name} found an object of class {found.classes.max()}, counted from 0, "
                f"but {len(self.classes)} classes are named"
            )
        boxes = to_original(found.boxes, input_size, self.preparation.window(*size))
        height, width = size
        boxes = np.clip(boxes, 0, [width, height, width, height])
        # not a number stays: whoever stores it sets the image aside
        there = ~((boxes[:, :2] >= boxes[:, 2:]).any(axis=1))
        return Found(boxes[there], found.scores[there], found.classes[there])

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.ref.name} stays in its process; send its preparation to workers instead")


def to_original(boxes: Boxes, input_size: tuple[int, int], window: tuple[float, float, float, float]) -> Boxes:
    """Boxes of an input in the pixels of the image that it shows this window of.

    >>> to_original(np.array([[0.0, 0, 208, 416]]), (416, 416), (-10.0, 0.0, 406.0, 832.0)).tolist()
    [[-10.0, 0.0, 198.0, 832.0]]
    """
    left, top, right, bottom = window
    height, width = input_size
    across, down = (right - left) / width, (bottom - top) / height
    return boxes * [across, down, across, down] + [left, top, left, top]
