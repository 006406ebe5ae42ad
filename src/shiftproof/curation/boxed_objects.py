"""The objects of a boxed set as ImageNet-A-Plus counts them: one box over all instances of a class in an image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.image_sets.boxed import cut_at_edges, is_empty
from shiftproof.image_sets.crops import Instance, instances, known_size
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.opener import decoded
from shiftproof.metrics.object_size import object_share
from shiftproof.types import Sample


@dataclass(frozen=True)
class BoxedObject:
    """All instances of a class in one image; `problem` says why nothing is known of them but their box."""

    id: str  # what its crop is called
    image: str
    label: int
    key: str  # of its class: the wnid where known, else the name
    box: tuple[float, float, float, float]
    size: tuple[int, int] = (0, 0)  # width and height of its image
    problem: str | None = None

    @property
    def share(self) -> float:
        """Share of its image that it fills; nan where there is a problem."""
        return math.nan if self.problem else float(object_share(np.array([self.box]), np.array([self.size]))[0])


def boxed_objects(images: ImageList) -> list[BoxedObject]:
    """One object for each class in each image, without crowds and ignored ones; images of unknown size are opened."""
    if images.truths is None or images.classes is None:
        raise BadInput(f"{images.name} has no boxes; name a set that has some, such as the .json of COCO")
    samples, keys = {sample.id: sample for sample in images.samples}, images.classes.keys
    found = [one for one in instances(images.truths, together=True) if one.image in samples]
    sizes = {image: size_of(images, samples[image]) for image in dict.fromkeys(one.image for one in found)}
    return [_boxed(one, keys[one.label], sizes[one.image]) for one in found]


def size_of(images: ImageList, sample: Sample) -> tuple[int, int] | str:
    """Width and height of an image, or why it cannot be read."""
    known = known_size(sample)
    if known is not None:
        return known
    image = decoded(images.source(sample))
    return image if isinstance(image, str) else (image.shape[1], image.shape[0])


def _boxed(one: Instance, key: str, size: tuple[int, int] | str) -> BoxedObject:
    if isinstance(size, str):
        return BoxedObject(one.id, one.image, one.label, key, one.box, problem=size)
    box = cut_at_edges(one.box, size)
    if is_empty(box):
        problem = f"its box lies outside the image of {size[0]} x {size[1]} pixels"
        return BoxedObject(one.id, one.image, one.label, key, one.box, size, problem)
    return BoxedObject(one.id, one.image, one.label, key, box, size)
