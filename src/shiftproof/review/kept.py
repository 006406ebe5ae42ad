"""What people kept of a review project, as an image set with the pixels of its sources."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftproof.curation.original_images import OriginalImages, Pixels
from shiftproof.curation.origins import ID, SOURCE, origin_of
from shiftproof.curation.project import Item, Project
from shiftproof.curation.review_classes import TOGETHER
from shiftproof.curation.screens import CLASS_PAIR, HUMAN_TEST, PAIR
from shiftproof.errors import BadInput
from shiftproof.image_sets import ImageList
from shiftproof.image_sets.class_keys import places_of
from shiftproof.review.drawn_boxes import drawn_boxes
from shiftproof.review.reasons import modes_of
from shiftproof.review.verdicts import Verdict
from shiftproof.types import Fact, ImageSource, Sample

WITHOUT_IMAGES: Mapping[str, str] = {
    CLASS_PAIR.name: "people judge classes there",
    HUMAN_TEST.name: "people are tested there, and shiftproof verdicts tells how they did",
}
"""Screens that no image is kept or rejected by, and what they are for."""

OF_CLIP = ("clip", "frame_rate")
"""Facts that the anchor shares with every frame around it."""


@dataclass(frozen=True)
class Entry:
    """One image of the set to be, with the keys of its classes."""

    id: str
    keys: tuple[str, ...]
    facts: Mapping[str, Fact]
    source: ImageSource

    def __or__(self, more: Entry) -> Entry:
        """The same image with the classes that another item says of it too."""
        return dataclasses.replace(self, keys=tuple(dict.fromkeys([*self.keys, *more.keys])))


def kept_items(project: Project, verdicts: Mapping[str, Verdict]) -> list[Item]:
    """The items that people kept, of each class at most as many as the project wants, in its own order."""
    taken: Counter[str | None] = Counter()
    kept: list[Item] = []
    for item in project.items:
        if item.id in verdicts and verdicts[item.id].outcome == "kept":
            taken[item.label] += 1
            if project.target is None or taken[item.label] <= project.target:
                kept.append(item)
    return kept


def kept_images(project: Project, verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source") -> ImageList:
    """The images that people kept, with what they said of them and the boxes they drew; BadInput where that is none."""
    images = images_of(project, kept_items(project, verdicts), verdicts, pixels=pixels)
    return drawn_boxes(project, verdicts, images) if project.screen.form == "box" else images


def candidate_images(project: Project, *, pixels: Pixels = "source") -> ImageList:
    """All images that people are asked about, as they were before anybody looked."""
    return images_of(project, [item for item in project.items if item.role == "asked"], {}, pixels=pixels)


def images_of(
    project: Project, items: Sequence[Item], verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source"
) -> ImageList:
    """The images of some items, each once and with the classes of all its items; BadInput where there are none."""
    if project.screen_name in WITHOUT_IMAGES:
        raise BadInput(f"{project.title} keeps no images: {WITHOUT_IMAGES[project.screen_name]}")
    if not items:
        raise BadInput(f"nothing of {project.title} was kept so far")
    originals = OriginalImages(project, pixels)
    entries: dict[str, Entry] = {}
    for item in items:
        for entry in _entries(originals, item, verdicts.get(item.id), with_anchor=project.screen_name == PAIR.name):
            known = entries.setdefault(entry.id, entry)
            if known.source != entry.source:
                raise BadInput(f"two images of {project.title} are called {entry.id}; rename one where it comes from")
            entries[entry.id] = known | entry
    ordered = [entries[image_id] for image_id in sorted(entries)]
    classes, places = places_of(key for entry in ordered for key in entry.keys)
    samples = [Sample(entry.id, tuple(places[key] for key in entry.keys), entry.facts) for entry in ordered]
    find = {entry.id: entry.source for entry in ordered}.__getitem__
    return ImageList(project.title, samples, classes if places else None, find, credits=originals.credits)


def _entries(originals: OriginalImages, item: Item, verdict: Verdict | None, *, with_anchor: bool) -> Iterator[Entry]:
    """The image of an item, behind the anchor that it is held against where the project is one of frames."""
    _, image_id = origin_of(item)
    own = {name: fact for name, fact in item.facts.items() if name not in (SOURCE, ID)}
    keys = _keys(item, verdict)
    if with_anchor:
        anchor, source = originals.find(item, str(item.group), item.images[0])
        of_clip = {name: own[name] for name in OF_CLIP if name in own}
        yield Entry(anchor.id, keys, {"anchor": anchor.id, "offset": 0, **of_clip, **anchor.facts}, source)
    sample, source = originals.find(item, image_id, item.images[-1 if with_anchor else 0])
    yield Entry(sample.id, keys, {**sample.facts, **own, **_said(verdict)}, source)


def _keys(item: Item, verdict: Verdict | None) -> tuple[str, ...]:
    """The classes that people saw where they were asked for them, else those that the item is said to show."""
    if verdict is not None and verdict.labels:
        return verdict.labels
    return tuple(item.label.split(TOGETHER)) if item.label else ()


def _said(verdict: Verdict | None) -> dict[str, Fact]:
    """The failure modes that more than half of the people saw, where they were asked for them."""
    if verdict is None or verdict.tags is None:
        return {}
    return {"failure_modes": TOGETHER.join(modes_of(verdict))}
