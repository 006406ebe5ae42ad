"""Which published dataset some images are, told by their classes and number, and how a copy differs from the whole."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.layout import Published, published_dataset
from shiftproof.datasets.sample_table import SampleTable
from shiftproof.errors import listed
from shiftproof.options import DatasetSettings
from shiftproof.reference import wnids_of
from shiftproof.types import Sample

IMAGENET = Published("imagenet", "ImageNet validation", 50_000, 1000, 50, "ilsvrc2012_classes", "ILSVRC2012_val_")
IMAGENET_A_PLUS = Published("imagenet-a-plus", "ImageNet-A-Plus", 3_286)
BY_CLASSES = (
    IMAGENET,
    Published("imagenet-sketch", "ImageNet-Sketch", 50_889, 1000, None, "ilsvrc2012_classes", "sketch_"),
    Published("imagenet-a", "ImageNet-A", 7_500, 200, None, "imagenet_a_classes"),
    # its folders are called after ILSVRC classes, but its images are of none
    Published("imagenet-o", "ImageNet-O", 2_000, 200, None, "imagenet_o_classes", labelled=False),
    Published("imagenet-r", "ImageNet-R", 30_000, 200, None, "imagenet_r_classes"),
)
"""Recognised by the classes that have images; the first that fits counts."""

CLASS_FOLDERS = (*BY_CLASSES, IMAGENET_A_PLUS)
"""Published as a folder for each class."""

DERIVED = frozenset({"sequence", "anchor", "cut"})
"""Facts of images that were made from others, which are no published dataset whatever their classes."""


def with_recognition(images: ImageList) -> ImageList:
    """The dataset with the name of the published one that it is or looks like; folders that are no labels become a fact."""
    if images.published is not None:
        return _recognised(images, published_dataset(images.published))
    known = recognised_as(images)
    return images if known is None else _recognised(images, known)


def _recognised(images: ImageList, known: Published) -> ImageList:
    notes = (_sentence(known, images), *images.notes)
    if known.labelled or images.classes is None:
        return dataclasses.replace(images, published=known.name, notes=notes)
    samples = [Sample(s.id, facts={**s.facts, "folder": s.id.rpartition("/")[0]}) for s in images.samples]
    notes = (*notes, "its images are of no ILSVRC class, so they have no labels")
    return dataclasses.replace(images, samples=samples, classes=None, published=known.name, notes=notes)


def recognised_as(images: ImageList) -> Published | None:
    """The published dataset with these class folders, such file names and not more images; None where none fits."""
    if images.classes is None or images.classes.wnids is None or DERIVED & images.samples[0].facts.keys():
        return None
    wnids, count = _used_classes(images), len(images.samples)
    if count == IMAGENET_A_PLUS.images and wnids <= set(wnids_of("imagenet_a_classes")):
        return IMAGENET_A_PLUS
    first = images.samples[0].id.rpartition("/")[2]
    is_validation = first.startswith(IMAGENET.file_start)
    for known in BY_CLASSES:
        named_so = first.startswith(known.file_start) and is_validation == (known is IMAGENET)
        # a fifth is enough to look like a dataset with gaps, and too much for a few samples of each class
        as_many = known.images is not None and known.images / 5 <= count <= known.images
        if named_so and as_many and known.class_list and wnids == set(wnids_of(known.class_list)):
            return known
    return None


def check_published(images: ImageList, name: str) -> list[str]:
    """What differs from a whole copy of a published dataset, in sentences; none where nothing does."""
    return _differences(images, published_dataset(name))


def _differences(images: ImageList, known: Published) -> list[str]:
    count = len(images.samples)
    problems = [f"{count:,} of {known.images:,} images"] if known.images not in (None, count) else []
    if known.per_condition:
        counts = Counter(_condition(sample) for sample in images.samples if not sample.facts.get("frame"))
        problems += _uneven(counts, known.per_condition, "conditions")
    if images.classes is None:
        return problems
    if known.class_list:
        problems += _class_problems(_used_classes(images), wnids_of(known.class_list))
    elif known.classes not in (None, len(_used_classes(images))):
        problems.append(f"{len(_used_classes(images)):,} of {known.classes:,} classes")
    if known.per_class:
        problems += _uneven(Counter(_keys(images)), known.per_class, "classes")
    return problems


def _sentence(known: Published, images: ImageList) -> str:
    problems = _differences(images, known)
    if problems:
        return f"looks like {known.title} but has {'; '.join(problems)}"
    classes = f", {known.classes:,} classes" if known.classes else ""
    return f"{known.title}: {len(images.samples):,} images{classes}{', as published' if known.images else ''}"


def _class_problems(found: set[str], published: Iterable[str]) -> list[str]:
    missing, extra = sorted(set(published) - found), sorted(found - set(published))
    problems = [f"no images of {listed(missing, most=3)}"] if missing else []
    return problems + ([f"classes it should not have: {listed(extra, most=3)}"] if extra else [])


def _uneven(counts: Mapping[str, int], each: int, what: str) -> list[str]:
    uneven = [f"{key} ({count:,})" for key, count in sorted(counts.items()) if count != each]
    return [f"{what} without exactly {each:,} images: {listed(uneven, most=3)}"] if uneven else []


def _condition(sample: Sample) -> str:
    facts = sample.facts
    return f"{facts.get('corruption') or facts.get('perturbation')} {facts.get('severity') or facts.get('level')}"


def _keys(images: ImageList) -> Iterator[str]:
    """The class of every labelled image."""
    keys = images.classes.keys if images.classes else ()
    return (keys[sample.labels[0]] for sample in images.samples if sample.labels)


def _used_classes(images: ImageList) -> set[str]:
    """The classes that have images; a dataset may name more."""
    if isinstance(images.samples, SampleTable) and images.classes:
        return {images.classes.keys[told[0]] for told in images.samples.used_label_sets if told}
    return set(_keys(images))


class DatasetCheck(NamedTuple):
    """A dataset, the published one that it looks like or should be, and how it differs from that."""

    dataset: ImageList
    published: str | None
    differences: Sequence[str]


def check_dataset(
    dataset: str | Path | ImageList, *, published: str | None = None, dataset_options: DatasetSettings | None = None
) -> DatasetCheck:
    """What a dataset is, and how it differs from the published one; opens no image."""
    from shiftproof.datasets import open_with

    images = dataset if isinstance(dataset, ImageList) else open_with(dataset, dataset_options or DatasetSettings())
    name = published or images.published
    return DatasetCheck(images, name, check_published(images, name) if name else [])
