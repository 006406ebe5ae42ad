"""A review project of the images that filter models left, with a table that says why every image stayed or went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from shiftproof.curation.candidates import Pair
from shiftproof.curation.filtered import Filtered
from shiftproof.curation.known_items import known_items
from shiftproof.curation.origins import making_of, origin
from shiftproof.curation.project import Item, Project, Verify, save_project
from shiftproof.curation.review_classes import review_classes
from shiftproof.curation.screens import CLARITY, NEAREST_PAIR
from shiftproof.curation.shelf import Shelved, put_all
from shiftproof.curation.tables import table_bytes
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.image_sets.image_list import ImageList
from shiftproof.prediction import Progress
from shiftproof.types import Classes, Sample

TABLE = "images.csv"


@dataclass(frozen=True)
class Asking:
    """What is asked of people, and how many of them."""

    title: str | None = None  # None: after the images
    reviewers_each: int = 2
    target: int | None = None  # images of each class that they should keep
    known: ImageList | None = None  # images whose answer is known, see `known_items`
    known_shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what models take each of them for
    seed: int = 0
    verify: Verify | None = None
    instructions: str = ""  # what people read before they begin; those of the screen where empty


@dataclass(frozen=True)
class Beside:
    """Images of known classes, and which of them each candidate is shown beside."""

    images: ImageList
    pairs: Sequence[Pair]

    @cached_property
    def pair_of(self) -> Mapping[str, Pair]:
        return {pair.outside: pair for pair in self.pairs}


@dataclass(frozen=True)
class FilteredProject:
    """How images were filtered, and the project that was made of what is left."""

    filtered: Filtered
    project: Project

    @property
    def short_classes(self) -> list[str]:
        """Classes with fewer candidates than people should keep of each."""
        there = Counter(self.filtered.class_of[sample.id] for sample in self.filtered.choice.left)
        return sorted(key for key in set(self.filtered.class_of.values()) if key and there[key] < (self.project.target or 0))


def save_filtered(
    filtered: Filtered,
    images: ImageList,
    folder: str | Path,
    *,
    asking: Asking | None = None,
    beside: Beside | None = None,
    progress: Progress | None = None,
) -> FilteredProject:
    """Writes a project that asks whether images show their class, clearly and alone; `images.csv` has them all.

    With others `beside` them it asks whether they show nothing of the classes that a model knows. Pictures that are there
    already are not written again.
    """
    folder, asking = Path(folder), asking or Asking()
    left = [sample.id for sample in filtered.choice.left]
    examples = {key: filtered.examples.get(key, ()) for key in {filtered.class_of[image_id] for image_id in left}}
    shelved = _put(folder, images, [*left, *(image_id for some in examples.values() for image_id in some)], progress)
    filtered = filtered.step("put into the project", shelved.unreadable)
    if not filtered.choice.left:
        steps = ", ".join(f"{step.left:,} {step.name}" for step in filtered.choice.steps)
        raise BadInput(f"no image of {images.name} is left for people to look at: {steps}")
    items = [_item(filtered, images, sample, shelved.names) for sample in filtered.choice.left]
    if beside is not None:
        shown = _put(folder, beside.images, [beside.pair_of[item.id].inside for item in items], progress)
        items = [_paired(item, beside.pair_of[item.id], shown.names) for item in items]
    screen = CLARITY if beside is None else NEAREST_PAIR
    items += known_items(asking.known, screen, folder, shown=asking.known_shown)
    sources = [images, *([beside.images] if beside else []), *([asking.known] if asking.known else [])]
    classes = _joined([filtered.classes, *(source.classes for source in sources[1:])])
    references = {key: [shelved.names[one] for one in some if one in shelved.names] for key, some in examples.items()}
    project = Project(
        folder,
        asking.title or f"Candidates of {images.name}",
        screen.name,
        tuple(items),
        review_classes(classes, _keys(items), references),
        instructions=asking.instructions,
        reviewers_each=asking.reviewers_each,
        verify=asking.verify,
        target=asking.target,
        seed=asking.seed,
        making=making_of(sources, filtered.choice.steps, models=filtered.models, choices=filtered.limits),
    )
    write_whole(folder / TABLE, table_bytes(filtered.table()))
    save_project(project)
    return FilteredProject(filtered, project)


def _put(folder: Path, images: ImageList, ids: Iterable[str], progress: Progress | None) -> Shelved:
    samples = {sample.id: sample for sample in images.samples}
    return put_all(folder, {image_id: images.source(samples[image_id]) for image_id in ids}, progress=progress)


def _item(filtered: Filtered, images: ImageList, sample: Sample, names: Mapping[str, str]) -> Item:
    return Item(
        sample.id,
        (names[sample.id],),
        filtered.class_of[sample.id],
        shown=filtered.shown(sample.id),
        facts={**origin(images, sample), **filtered.facts[sample.id]},
    )


def _paired(item: Item, pair: Pair, names: Mapping[str, str]) -> Item:
    """The same item with the image nearest it, in a group with all of its class."""
    facts = {**item.facts, "inside": pair.inside, "distance": round(pair.distance, 6)}
    pictures = (*item.images, names[pair.inside])
    return replace(item, images=pictures, group=item.label, beside=pair.inside_class or None, facts=facts)


def _joined(several: Iterable[Classes | None]) -> Classes:
    """All classes of several sets, each once."""
    names = {key: name for some in several if some for key, name in zip(some.keys, some.names, strict=True)}
    return Classes(tuple(names.values()), tuple(names))


def _keys(items: Iterable[Item]) -> set[str]:
    """The classes that items show, or are held against."""
    return {key for item in items for key in (item.label, item.beside) if key}
