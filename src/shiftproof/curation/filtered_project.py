"""A review project of the images that filter models left, with a table of the outcome of every image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from shiftproof.curation.filtering import Filtered
from shiftproof.curation.known_items import known_items
from shiftproof.curation.ood_candidates import NearestPair
from shiftproof.curation.pictures import AddedPictures, add_pictures
from shiftproof.curation.project import Item, Project, ReviewSettings
from shiftproof.curation.provenance import making_of, origin
from shiftproof.curation.review_classes import review_classes
from shiftproof.curation.screens import CLARITY, NEAREST_PAIR
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput
from shiftproof.files import csv_bytes, write_whole
from shiftproof.places import local_path
from shiftproof.runs.predict import Progress
from shiftproof.types import Classes, Sample

TABLE = "images.csv"


@dataclass(frozen=True)
class NearestImages:
    """ID images, and the nearest of them to each candidate."""

    images: ImageList
    pairs: Sequence[NearestPair]

    @cached_property
    def pair_of(self) -> Mapping[str, NearestPair]:
        return {pair.outside: pair for pair in self.pairs}


@dataclass(frozen=True)
class FilteredProject:
    """How images were filtered, and the project of what is left."""

    filtered: Filtered
    project: Project

    @property
    def short_classes(self) -> list[str]:
        """Classes with fewer candidates than the target."""
        there = Counter(self.filtered.class_of[sample.id] for sample in self.filtered.choice.left)
        return sorted(key for key in set(self.filtered.class_of.values()) if key and there[key] < (self.project.target or 0))


def save_filtered(
    filtered: Filtered,
    images: ImageList,
    folder: str | Path,
    *,
    review: ReviewSettings | None = None,
    beside: NearestImages | None = None,
    progress: Progress | None = None,
) -> FilteredProject:
    """Writes a project that asks whether images show their class, clearly and alone; `images.csv` lists all images.

    With ID images `beside` them it asks whether they show none of the ID classes. Existing pictures are not written again.
    """
    folder, review = local_path(folder, "a review project"), review or ReviewSettings()
    left = [sample.id for sample in filtered.choice.left]
    examples = {key: filtered.examples.get(key, ()) for key in {filtered.class_of[image_id] for image_id in left}}
    added = _put(folder, images, [*left, *(image_id for some in examples.values() for image_id in some)], progress)
    filtered = filtered.step("put into the project", added.unreadable)
    if not filtered.choice.left:
        steps = ", ".join(f"{step.left:,} {step.name}" for step in filtered.choice.steps)
        raise BadInput(f"no candidate of {images.name} is left for review: {steps}")
    items = [_item(filtered, images, sample, added.names) for sample in filtered.choice.left]
    if beside is not None:
        shown = _put(folder, beside.images, [beside.pair_of[item.id].inside for item in items], progress)
        items = [_paired(item, beside.pair_of[item.id], shown.names) for item in items]
    screen = CLARITY if beside is None else NEAREST_PAIR
    items += known_items(review.known, screen, folder, shown=review.known_shown)
    sources = [images, *([beside.images] if beside else []), *([review.known] if review.known else [])]
    classes = _joined([filtered.classes, *(source.classes for source in sources[1:])])
    references = {key: [added.names[one] for one in some if one in added.names] for key, some in examples.items()}
    write_whole(folder / TABLE, csv_bytes(filtered.table()))
    project = review.save(
        folder,
        f"Candidates of {images.name}",
        screen,
        items,
        review_classes(classes, _keys(items), references),
        making_of(sources, filtered.choice.steps, models=filtered.models, choices=filtered.limits),
    )
    return FilteredProject(filtered, project)


def _put(folder: Path, images: ImageList, ids: Iterable[str], progress: Progress | None) -> AddedPictures:
    samples = {sample.id: sample for sample in images.samples}
    return add_pictures(folder, {image_id: images.source(samples[image_id]) for image_id in ids}, progress=progress)


def _item(filtered: Filtered, images: ImageList, sample: Sample, names: Mapping[str, str]) -> Item:
    return Item(
        sample.id,
        (names[sample.id],),
        filtered.class_of[sample.id],
        shown=filtered.shown(sample.id),
        facts={**origin(images, sample), **filtered.facts[sample.id]},
    )


def _paired(item: Item, pair: NearestPair, names: Mapping[str, str]) -> Item:
    """The item with the ID image nearest to it, grouped by class."""
    facts = {**item.facts, "inside": pair.inside, "distance": round(pair.distance, 6)}
    pictures = (*item.images, names[pair.inside])
    return replace(item, images=pictures, group=item.label, beside=pair.inside_class or None, facts=facts)


def _joined(several: Iterable[Classes | None]) -> Classes:
    """The union of several lists of classes."""
    names = {key: name for some in several if some for key, name in zip(some.keys, some.names, strict=True)}
    return Classes(tuple(names.values()), tuple(names))


def _keys(items: Iterable[Item]) -> set[str]:
    """The classes of items, and those they are compared with."""
    return {key for item in items for key in (item.label, item.beside) if key}
