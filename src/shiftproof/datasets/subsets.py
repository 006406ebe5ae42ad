"""Subsets and relabelled views of datasets, coarse classes among them: pixels, ids and stored predictions stay."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import xxhash

from shiftproof.datasets.classes import COCO, coco_classes, match_columns, with_wnids
from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.image_list import DatasetBase, ImageList, origin_of
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.wordnet import wordnet
from shiftproof.errors import BadInput, UnknownName
from shiftproof.files import read_json
from shiftproof.options import MatchingSettings
from shiftproof.reference import ilsvrc_classes, load_table
from shiftproof.types import Classes, Dataset, DatasetRef, ImageSource, Origin, Sample, Truths


@dataclass(frozen=True, repr=False)
class View(DatasetBase):
    """Some samples of a dataset, labelled in these classes."""

    of: Dataset
    classes: Classes | None
    samples: Sequence[Sample]
    name: str = ""  # that of the dataset, unless another is given
    notes: tuple[str, ...] = ()
    truths: Truths | None = None  # the ground-truth boxes of these samples, in these classes
    published: str | None = None  # as of the dataset
    origin: Origin | None = None  # the same, or the dataset itself where this has another name

    def __post_init__(self) -> None:
        object.__setattr__(self, "published", self.published or self.of.published)
        object.__setattr__(self, "origin", origin_of(self.of) if self.name else self.of.origin)

    @cached_property
    def ref(self) -> DatasetRef:
        return DatasetRef(self.name or self.of.ref.name, self.fingerprint())

    def source(self, sample: Sample) -> ImageSource:
        return self.of.source(sample)


def unlabelled(images: Dataset, classes: Classes | None = None) -> View:
    """The images without labels, as of classes that a model lacks; `classes` are those that scores are compared among."""
    return View(images, classes, [dataclasses.replace(sample, labels=()) for sample in images.samples])


def labelled_among(images: Dataset, classes: Classes) -> View:
    """The images labelled in these classes, matched by wnid or name; labels of other classes are dropped."""
    if images.classes is None:
        return unlabelled(images, classes)
    places = match_columns(images.classes, classes, len(classes)).columns
    samples = [
        dataclasses.replace(sample, labels=tuple(places[label] for label in sample.labels if places[label] >= 0))
        for sample in images.samples
    ]
    return View(images, classes, samples)


def with_label(images: Dataset) -> Dataset:
    """The images that have a label; all, where every image or none has one."""
    samples = [sample for sample in images.samples if sample.labels]
    if len(samples) in (0, len(images.samples)):
        return images
    truths = images.truths and images.truths.of_images([sample.id for sample in samples])
    return View(images, images.classes, samples, f"{images.ref.name}, labelled", notes=images.notes, truths=truths)


def drawn(images: Dataset, count: int, *, seed: int = 0) -> Dataset:
    """`count` images drawn at random, or a few more: frames around one anchor and versions of one photo stay together.

    A larger draw holds every smaller one, and the same images are drawn whatever their labels say.
    """
    if count >= len(images.samples):
        return images
    together = _kept_together(images.samples)
    sizes = Counter(together)
    chosen: set[str] = set()
    held = 0
    for key in sorted(sizes, key=lambda one: (xxhash.xxh3_64_intdigest(one.encode("utf-8", "surrogateescape"), seed), one)):
        if held >= count:
            break
        chosen.add(key)
        held += sizes[key]
    samples = [sample for sample, key in zip(images.samples, together, strict=True) if key in chosen]
    name = f"{images.ref.name}, {len(samples):,} of {len(images.samples):,}"
    notes = (*images.notes, f"{len(samples):,} of {len(images.samples):,} images, drawn at random with seed {seed}")
    truths = images.truths and images.truths.of_images([sample.id for sample in samples])
    if isinstance(images, ImageList):
        return dataclasses.replace(images, name=name, samples=samples, notes=notes, truths=truths, origin=origin_of(images))
    return View(images, images.classes, samples, name, notes=notes, truths=truths)


def anchors_of(images: Dataset) -> Dataset:
    """Of frames around anchors the anchors alone, since their neighbours hardly differ; of other images all."""
    samples = [sample for sample in images.samples if sample.facts.get("offset", 0) == 0]
    if len(samples) == len(images.samples):
        return images
    return View(images, images.classes, samples, f"{images.ref.name}, anchors", notes=images.notes)


def _kept_together(samples: Sequence[Sample]) -> Sequence[str]:
    """A key for each image: of frames their anchor, of others their cluster."""
    clusters = Clustering().unjoined(samples)
    keys = [sample.id for sample in samples] if clusters is None else clusters.keys
    anchors = [sample.facts.get("anchor") for sample in samples]
    return [key if anchor is None else str(anchor) for key, anchor in zip(keys, anchors, strict=True)]


def of_classes(images: Dataset, wnids: Collection[str], *, name: str | None = None) -> View:
    """The images of some classes, as 200 of 1000; classes keep the order of the dataset."""
    if images.classes is None or images.classes.wnids is None:
        raise BadInput(f"{images.ref.name} has no wnids for its classes, so they cannot be chosen by wnid")
    chosen = [place for place, wnid in enumerate(images.classes.wnids) if wnid in wnids]
    if not chosen:
        raise BadInput(f"{images.ref.name} has no image of the {len(wnids)} classes that were chosen")
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


def objects_among(images: Dataset, samples: Sequence[Sample], places: Sequence[int]) -> Truths | None:
    """The ground-truth boxes of some samples in new classes: `places` by the old class, -1 for boxes to leave out."""
    truths = images.truths
    if truths is None:
        return None
    classes = np.array(places)[truths.classes]
    chosen = dataclasses.replace(truths, classes=classes).take(classes >= 0)
    return chosen.of_images([sample.id for sample in samples])


def load_groups(path: str | Path) -> dict[str, list[str]]:
    """Class groups of a JSON file like ``{"dog": ["n02085620", ...]}``, or by name: ``coco``, ``imagenet-vid``, ``ytbb``."""
    if str(path) in VIDEO_CLASSES:
        return video_groups(str(path))
    if str(path) == COCO:
        return coco_groups()
    groups = read_json(path)
    fits = isinstance(groups, dict) and all(isinstance(members, list) for members in groups.values())
    if not fits or not any(groups.values()):
        raise BadInput(f'{path} should hold class groups as {{"dog": ["n02085620", ...], ...}}')
    return {name: [str(member) for member in members] for name, members in groups.items()}


def load_class_map(named: str) -> dict[str, str] | Literal["near"]:
    """The model's class for classes of the images, from a JSON file like ``{"kitty": "tabby"}``, or the word near."""
    if named == "near":
        return "near"
    names = read_json(named)
    if not isinstance(names, dict) or not names or not all(isinstance(target, str) for target in names.values()):
        raise BadInput(f'{named} should hold names of the images\' classes with those of the model, as {{"kitty": "tabby"}}')
    return names


VIDEO_CLASSES = {"imagenet-vid": "imagenet_vid_classes", "ytbb": "ytbb_classes"}
"""The reference tables of ImageNet-Vid-Robust's and YTBB-Robust's classes."""


def video_groups(name: str) -> dict[str, list[str]]:
    """The ILSVRC classes of each class of a video dataset, as `Scoring` and `merge_classes` take them.

    Groups are in the order of the dataset's own labels; one without an ILSVRC class is empty.

    >>> groups = video_groups("imagenet-vid")
    >>> len(groups), sum(map(len, groups.values())), groups["squirrel"]
    (30, 288, ['n02356798'])
    """
    if name not in VIDEO_CLASSES:
        raise UnknownName("video dataset", name, VIDEO_CLASSES)
    return {row["name"]: _members(row["wnid"], row.get("without", "")) for row in load_table(VIDEO_CLASSES[name])}


def _members(wnid: str, without: str) -> list[str]:
    """The ILSVRC classes that are a noun or its hyponyms, without those of another noun."""
    steps_up = wordnet().steps_up
    return [one for one in ilsvrc_classes().keys if wnid in steps_up(one) and without not in steps_up(one)]


def with_coarse_classes(images: Dataset, classes: Classes) -> View:
    """The images whose class is one of these coarse classes or a hyponym of one, labelled with it.

    Of several hypernyms the nearest is the label, so that a minivan is a car although it is also a kind of truck; of
    several equally near each is a label. Images of no coarse class are left out, and a note counts them; so are coarse
    classes without images.
    """
    own = None if images.classes is None else with_wnids(images.classes)
    if own is None or own.wnids is None:
        raise BadInput(f"{images.ref.name} has no wnids for its classes, so their coarse classes are unknown")
    above = [nearest_hypernyms(wnid, classes.keys) for wnid in own.wnids]
    found = [(sample, {place for label in sample.labels for place in above[label]}) for sample in images.samples]
    chosen = sorted({place for _, places in found for place in places})
    if not chosen:
        raise BadInput(
            f"no image of {images.ref.name} is of any of the {len(classes)} coarse classes; name them by their wnids"
        )
    new = {place: order for order, place in enumerate(chosen)}
    samples = [
        dataclasses.replace(sample, labels=tuple(new[place] for place in sorted(places)))
        for sample, places in found
        if places
    ]
    coarser = Classes(tuple(classes.names[place] for place in chosen), tuple(classes.keys[place] for place in chosen))
    note = (
        f"{len(samples):,} of {len(found):,} images are of {len(chosen)} of the {len(classes)} coarse classes "
        "and labelled with these; the others are left out"
    )
    name = f"{images.ref.name}, {len(chosen)} coarse classes"
    # an object has one class: where several are equally near, it is left out
    objects = objects_among(images, samples, [new.get(places[0], -1) if len(places) == 1 else -1 for places in above])
    return View(images, coarser, samples, name, notes=(*images.notes, note), truths=objects)


def coco_groups() -> dict[str, list[str]]:
    """The ILSVRC classes of each class of COCO, as `Scoring` and `merge_classes` take them.

    >>> groups = coco_groups()
    >>> sum(map(bool, groups.values())), sum(map(len, groups.values())), groups["hot dog"], groups["toilet"]
    (55, 288, ['n07697537'], [])
    """
    coco = coco_classes()
    groups: dict[str, list[str]] = {name: [] for name in coco.names}
    for wnid in ilsvrc_classes().keys:
        for place in nearest_hypernyms(wnid, coco.keys):
            groups[coco.names[place]].append(wnid)
    return groups


def nearest_hypernyms(wnid: str, classes: Sequence[str]) -> list[int]:
    """The places of the classes that are a noun or its nearest hypernyms; none where no class is.

    >>> nearest_hypernyms("n03770679", ["n04490091", "n02958343"])  # a minivan, among truck and car
    [1]
    """
    if wnid not in wordnet():
        return []
    steps_up = wordnet().steps_up(wnid)
    steps = {place: steps_up[above] for place, above in enumerate(classes) if above in steps_up}
    return [place for place, count in steps.items() if count == min(steps.values())]


def scoring_of(options: MatchingSettings) -> Scoring:
    """How predictions are scored, as the options say."""
    groups = load_groups(options.class_groups) if options.class_groups else None
    class_map = load_class_map(options.class_map) if options.class_map else None
    return Scoring(options.scored, options.unmatched, groups, class_map=class_map)
