"""The published test sets: how to recognise them and what a whole copy holds."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shiftproof.errors import UnknownName, listed
from shiftproof.image_sets.image_list import ImageList
from shiftproof.reference import wnids_of
from shiftproof.types import Sample


@dataclass(frozen=True)
class Published:
    """What a whole copy of a published set holds; None where no count is known."""

    title: str
    images: int | None = None
    classes: int | None = None
    per_class: int | None = None  # where every class has as many
    class_list: str | None = None  # the reference table of its wnids
    file_start: str = ""  # how its file names begin
    per_condition: int | None = None  # images under each corruption at each severity, or sequences of each perturbation


PUBLISHED = {
    "imagenet": Published("ImageNet validation", 50_000, 1000, 50, "ilsvrc2012_classes", "ILSVRC2012_val_"),
    "imagenet-a": Published("ImageNet-A", 7_500, 200, None, "imagenet_a_classes"),
    "imagenet-a-plus": Published("ImageNet-A-Plus", 3_286),
    "imagenet-o": Published("ImageNet-O", 2_000, 200, None, "imagenet_o_classes"),
    "imagenet-r": Published("ImageNet-R", 30_000, 200, None, "imagenet_r_classes"),
    "imagenet-sketch": Published("ImageNet-Sketch", 50_889, 1000, None, "ilsvrc2012_classes", "sketch_"),
    "imagenet-v2": Published("ImageNetV2", 10_000, 1000, 10),
    "imagenet-c": Published("ImageNet-C", None, 1000, per_condition=50_000),
    "imagenet-p": Published("ImageNet-P", None, 1000, per_condition=50_000),
    "tiny-imagenet-c": Published("Tiny-ImageNet-C", None, 200, per_condition=10_000),
    "cifar-10-c": Published("CIFAR-10-C", None, 10, per_condition=10_000),
    "cifar-10-p": Published("CIFAR-10-P", None, None, per_condition=10_000),
    "objectnet": Published("ObjectNet", 50_273, 313),
    "tiny-imagenet": Published("Tiny-ImageNet validation", 10_000, 200, 50),
    "imagenet-ood": Published("ImageNet-OOD", 31_802, 637, None, "imagenet_ood_classes"),
    "openimage-o": Published("OpenImage-O", 17_632),
}
"""By the name that studies and models use."""


DERIVED = frozenset({"sequence", "anchor", "cut"})
"""Facts of images that were made from others, which are no published set whatever their classes."""


def with_recognition(images: ImageList) -> ImageList:
    """The set, saying which published set it is or looks like.

    The folders of ImageNet-O are called after ILSVRC classes, but its images are outside all of them: the folder becomes
    a fact, and there are no labels.
    """
    name = images.published or recognised_as(images)
    if name is None:
        return images
    notes = (_sentence(name, images), *images.notes)
    if name != "imagenet-o" or images.classes is None:
        return dataclasses.replace(images, published=name, notes=notes)
    samples = [Sample(s.id, facts={**s.facts, "folder": s.id.rpartition("/")[0]}) for s in images.samples]
    notes = (*notes, "its images are outside every ILSVRC class, so they have no labels")
    return dataclasses.replace(images, samples=samples, classes=None, published=name, notes=notes)


def recognised_as(images: ImageList) -> str | None:
    """The published set with these class folders, such file names and not more images; None where none fits."""
    if images.classes is None or images.classes.wnids is None or DERIVED & images.samples[0].facts.keys():
        return None
    wnids, count = _used_classes(images), len(images.samples)
    if count == PUBLISHED["imagenet-a-plus"].images and wnids <= set(wnids_of("imagenet_a_classes")):
        return "imagenet-a-plus"
    first = images.samples[0].id.rpartition("/")[2]
    is_validation = first.startswith(PUBLISHED["imagenet"].file_start)
    for name in ("imagenet", "imagenet-sketch", "imagenet-a", "imagenet-o", "imagenet-r"):
        known = PUBLISHED[name]
        named_so = first.startswith(known.file_start) and is_validation == (name == "imagenet")
        # a fifth is enough to look like a set with gaps, and too much for a few samples of each class
        as_many = known.images is not None and known.images / 5 <= count <= known.images
        if named_so and as_many and known.class_list and wnids == set(wnids_of(known.class_list)):
            return name
    return None


def check_published(images: ImageList, name: str) -> list[str]:
    """What differs from a whole copy of a published set, in sentences; none where nothing does."""
    if name not in PUBLISHED:
        raise UnknownName("published set", name, PUBLISHED)
    known = PUBLISHED[name]
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


def _sentence(name: str, images: ImageList) -> str:
    known = PUBLISHED[name]
    problems = check_published(images, name)
    if problems:
        return f"looks like {known.title} but has {'; '.join(problems)}"
    classes = f", {known.classes:,} classes" if known.classes else ""
    return f"{known.title}: {len(images.samples):,} images{classes}{', as published' if known.images else ''}"


def _class_problems(found: set[str], published: Iterable[str]) -> list[str]:
    missing, foreign = sorted(set(published) - found), sorted(found - set(published))
    problems = [f"no images of {listed(missing, most=3)}"] if missing else []
    return problems + ([f"classes it should not have: {listed(foreign, most=3)}"] if foreign else [])


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
    """The classes that have images; a set may name more."""
    return set(_keys(images))
