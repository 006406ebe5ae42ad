"""What object detectors learn from: the objects of each picture, in pixels of the network's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.manifest import SEPARATOR
from shiftproof.errors import BadInput, listed
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.training.detectors.recipe import mirrored
from shiftproof.types import Boxes, Classes, Sample, Truths

ANNOTATED = "annotated"
"""The fact of an image that lists the classes which were annotated in it, where others may be there without a box."""

LEAST_SIDE = 1.0
"""Of a box in the input, in pixels; smaller ones take no part."""


class Objects(NamedTuple):
    """The objects of one picture."""

    boxes: Boxes  # in pixels of the input
    classes: NDArray[np.intp]  # (boxes,)
    unlabelled: NDArray[np.intp]  # classes that may be there without a box

    def mirrored(self, width: int) -> Objects:
        """The same in the mirrored picture, which is so wide."""
        return Objects(mirrored(self.boxes, width), self.classes, self.unlabelled)


@dataclass(frozen=True)
class Targets:
    """The objects of each picture, in order, and what is to be said about them."""

    objects: tuple[Objects, ...]
    notes: tuple[str, ...]

    @property
    def are_partly_labelled(self) -> bool:
        """Whether no picture has all of its objects boxed."""
        return all(len(one.unlabelled) for one in self.objects)


def targets_of(
    samples: Sequence[Sample],
    sizes: Sequence[tuple[int, int]],
    truths: Truths,
    classes: Classes,
    preprocessing: ImagePreprocessing,
    *,
    all_annotated: bool = False,
) -> Targets:
    """The objects of the pictures that a preprocessing makes of images with these heights and widths.

    Boxes are clipped to their image; those of which less than a pixel is left, and crowds and ignored objects, take no part.
    """
    of_image = _rows_by_image(truths)
    found: list[Objects] = []
    dropped = left_out = 0
    for sample, (height, width) in zip(samples, sizes, strict=True):
        rows = of_image.get(sample.id, np.zeros(0, int))
        counted = rows[~(truths.crowd[rows] | truths.ignored[rows])]
        boxes = to_input(np.clip(truths.boxes[counted], 0, [width, height, width, height]), (height, width), preprocessing)
        large = ((boxes[:, 2:] - boxes[:, :2]) >= LEAST_SIDE).all(axis=1)
        dropped, left_out = dropped + int((~large).sum()), left_out + len(rows) - len(counted)
        own = truths.classes[counted].astype(int)
        unlabelled = [] if all_annotated else _unlabelled(sample, classes, own.tolist())
        found.append(Objects(boxes[large], own[large], np.array(unlabelled, int)))
    notes = (
        *(
            (f"boxes outside of their image or under a pixel in the input, which took no part: {dropped:,}",)
            if dropped
            else ()
        ),
        *((f"crowds and ignored objects, which took no part: {left_out:,}",) if left_out else ()),
    )
    return Targets(tuple(found), notes)


def to_input(boxes: Boxes, size: tuple[int, int], preprocessing: ImagePreprocessing) -> Boxes:
    """Boxes in pixels of an image of this height and width as they lie in the input that is made of it."""
    left, top, right, bottom = preprocessing.window(*size)
    height, width = preprocessing.size or size
    across, down = width / (right - left), height / (bottom - top)
    placed = (boxes - [left, top, left, top]) * [across, down, across, down]
    return np.clip(placed, 0, [width, height, width, height])


def _rows_by_image(truths: Truths) -> Mapping[str, NDArray[np.intp]]:
    order = np.argsort(truths.image, kind="stable")
    starts = np.searchsorted(truths.image[order], np.arange(len(truths.ids) + 1))
    return {key: order[starts[place] : starts[place + 1]] for place, key in enumerate(truths.ids)}


def _unlabelled(sample: Sample, classes: Classes, own: Sequence[int]) -> list[int]:
    """Classes that were not annotated in an image: all but those that its fact lists; none where it has no such fact."""
    told = sample.facts.get(ANNOTATED)
    if told is None:
        return []
    named = {part.strip() for part in str(told).split(SEPARATOR)}
    pairs = zip(classes.names, classes.keys, strict=True)
    unlabelled = [place for place, names in enumerate(pairs) if not named & {*names}]
    if odd := [classes.names[place] for place in dict.fromkeys(own) if place in unlabelled]:
        raise BadInput(
            f"{sample.id} has boxes of {listed(odd)}, which are not among the classes that were annotated in it, {told!r}; "
            f"{ANNOTATED} lists them with {SEPARATOR} between them"
        )
    return unlabelled
