"""Object detectors, the boxes they find and the ground truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types.images import Boxes, Classes, Clusters, Dataset, Fact, SkippedImage
from shiftproof.types.models import BaseModel, Classifier, Inputs
from shiftproof.types.shown import counted, in_a_line


class Found(NamedTuple):
    """What an object detector found in one image, by descending score."""

    boxes: Boxes  # in the pixels of the image as it is stored
    scores: NDArray[np.floating]  # (boxes,)
    classes: NDArray[np.integer]  # (boxes,): places in the detector's classes


@runtime_checkable
class ObjectDetector(BaseModel, Protocol):
    """A model that outputs boxes."""

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> Sequence[Found]:
        """What is found in each input, in the pixels of its original, whose sizes are (height, width)."""


Model: TypeAlias = Classifier | ObjectDetector


@runtime_checkable
class RecordedDetector(ObjectDetector, Protocol):
    """An object detector that never runs: its detections were read from a file of results."""

    def detections_in(self, images: Dataset) -> Detections:
        """What was found in each image, in this object detector's classes."""


@dataclass(frozen=True)
class Detections:
    """Boxes found in some images; box `i` lies in image `ids[image[i]]`."""

    ids: tuple[str, ...]
    image: NDArray[np.integer]  # (boxes,)
    boxes: Boxes
    scores: NDArray[np.floating]  # (boxes,)
    classes: NDArray[np.integer]  # (boxes,)

    def __post_init__(self) -> None:
        counts = {len(self.image), len(self.boxes), len(self.scores), len(self.classes)}
        if len(counts) != 1 or self.boxes.shape[1:] != (4,):
            raise BadInput(f"boxes should be (boxes, 4) with one score, class and image each, got {self.boxes.shape}")

    def __repr__(self) -> str:
        return in_a_line(self, counted(len(self.boxes), "box", "boxes"), counted(len(self.ids), "image"))


@dataclass(frozen=True)
class Truths:
    """The objects that really are in some images; box `i` lies in image `ids[image[i]]`.

    A crowd is a region of many objects: it may be found any number of times. What is ignored, as too hard or made by a
    machine, does not count whether it is found or not.
    """

    ids: tuple[str, ...]
    image: NDArray[np.integer]  # (boxes,)
    boxes: Boxes
    classes: NDArray[np.integer]  # (boxes,)
    crowd: NDArray[np.bool_]  # (boxes,)
    ignored: NDArray[np.bool_]  # (boxes,)
    areas: NDArray[np.floating]  # (boxes,): of the object where its outline is known, else of its box

    def __post_init__(self) -> None:
        columns = (self.image, self.boxes, self.classes, self.crowd, self.ignored, self.areas)
        if len(set(map(len, columns))) != 1 or self.boxes.shape[1:] != (4,):
            raise BadInput(f"boxes should be (boxes, 4) with one class, image and area each, got {self.boxes.shape}")

    def __repr__(self) -> str:
        return in_a_line(self, counted(len(self.boxes), "object"), counted(len(self.ids), "image"))

    def of_images(self, ids: Sequence[str]) -> Truths:
        """The objects of these images, which must be among those of this ground truth."""
        place_of = {key: place for place, key in enumerate(self.ids)}
        new = np.full(len(self.ids), -1)
        new[[place_of[key] for key in ids]] = np.arange(len(ids))
        image = new[self.image]
        kept = np.flatnonzero(image >= 0)
        return dataclasses.replace(self.take(kept), ids=tuple(ids), image=image[kept])

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Truths:
        """Some of the objects, of the same images."""
        return dataclasses.replace(
            self,
            image=self.image[rows],
            boxes=self.boxes[rows],
            classes=self.classes[rows],
            crowd=self.crowd[rows],
            ignored=self.ignored[rows],
            areas=self.areas[rows],
        )


@dataclass(frozen=True)
class FoundObjects:
    """Detections of one model in one dataset under one condition, and the ground truth, in the classes of the dataset.

    Images that could not be read are not among the ids; they are in `skipped_images`.
    """

    detections: Detections
    truths: Truths | None  # of the same ids; None where the dataset has no boxes
    sizes: NDArray[np.integer]  # (images, 2): height and width of each image
    classes: Classes
    facts: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    skipped_images: tuple[SkippedImage, ...] = ()
    convention: Mapping[str, str] = field(default_factory=dict)
    grouped: Clusters | None = None  # None: every image is a cluster of its own

    def __repr__(self) -> str:
        return in_a_line(self, repr(self.detections), "no ground truth" if self.truths is None else repr(self.truths))

    @property
    def clusters(self) -> Clusters:
        """Which images are one cluster."""
        return self.grouped or Clusters("image", self.detections.ids)

    def __post_init__(self) -> None:
        if self.truths is not None and self.truths.ids != self.detections.ids:
            raise BadInput("detections and ground truth should be of the same images in the same order")

    def __len__(self) -> int:
        return len(self.detections.ids)
