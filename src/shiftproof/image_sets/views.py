"""The same images seen otherwise: with other labels, or only some of them. Pixels, ids and stored answers stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.image_sets.class_matching import match_columns
from shiftproof.types import Classes, ImageSet, ImageSetRef, ImageSource, Sample, Truths, fingerprint_of

Item = TypeVar("Item")


@dataclass(frozen=True)
class View:
    """Some samples of a set, labelled in these classes."""

    of: ImageSet
    classes: Classes | None
    samples: Sequence[Sample]
    name: str | None = None
    notes: tuple[str, ...] = ()
    truths: Truths | None = None  # the objects of these samples, in these classes

    @cached_property
    def ref(self) -> ImageSetRef:
        keys = self.classes.keys if self.classes else ()
        rows = [(sample.id, sample.labels, sample.facts) for sample in self.samples]
        return ImageSetRef(self.name or self.of.ref.name, fingerprint_of(keys, rows))

    @property
    def published(self) -> str | None:
        found: str | None = getattr(self.of, "published", None)
        return found

    def source(self, sample: Sample) -> ImageSource:
        return self.of.source(sample)


def unlabelled(images: ImageSet, classes: Classes | None = None) -> View:
    """The images without labels, as of a model's new classes; `classes` are those their answers are scored among."""
    return View(images, classes, [dataclasses.replace(sample, labels=()) for sample in images.samples])


def labelled_among(images: ImageSet, classes: Classes) -> View:
    """The images with labels in these classes, matched by wnid or name; labels of other classes are dropped."""
    if images.classes is None:
        return unlabelled(images, classes)
    places = match_columns(images.classes, classes, len(classes)).columns
    samples = [
        dataclasses.replace(sample, labels=tuple(places[label] for label in sample.labels if places[label] >= 0))
        for sample in images.samples
    ]
    return View(images, classes, samples)


def of_classes(images: ImageSet, wnids: Collection[str], *, name: str | None = None) -> View:
    """The images of these classes alone, as 200 of 1000; their order is that of the set."""
    if images.classes is None or images.classes.wnids is None:
        raise BadInput(f"{images.ref.name} says no wnids of its classes, so none can be chosen by them")
    chosen = [place for place, wnid in enumerate(images.classes.wnids) if wnid in wnids]
    if not chosen:
        raise BadInput(f"{images.ref.name} has no image of the {len(wnids)} classes asked for")
    place_of = {place: new for new, place in enumerate(chosen)}
    names = tuple(images.classes.names[place] for place in chosen)
    classes = Classes(names, tuple(images.classes.wnids[place] for place in chosen))
    samples = [
        dataclasses.replace(sample, labels=tuple(place_of[label] for label in sample.labels if label in place_of))
        for sample in images.samples
        if any(label in place_of for label in sample.labels)
    ]
    places = [place_of.get(label, -1) for label in range(len(images.classes))]
    objects = objects_among(images, samples, places)
    return View(images, classes, samples, name or f"{images.ref.name}, {len(chosen)} classes", truths=objects)


def objects_among(images: ImageSet, samples: Sequence[Sample], places: Sequence[int]) -> Truths | None:
    """The objects of some samples in new classes, `places` by the set's own; objects without a place, -1, are left out."""
    truths: Truths | None = getattr(images, "truths", None)
    if truths is None:
        return None
    classes = np.array(places)[truths.classes]
    chosen = dataclasses.replace(truths, classes=classes).take(classes >= 0)
    return chosen.of_images([sample.id for sample in samples])


def spread_over(samples: Sequence[Item], limit: int | None) -> Sequence[Item]:
    """As many samples as `limit` says, at even distances, so that every part of the set is in them."""
    if limit is None or limit >= len(samples):
        return samples
    if limit < 1:
        raise BadInput(f"limit should be a number of images, at least 1, got {limit}")
    return [samples[place * len(samples) // limit] for place in range(limit)]
