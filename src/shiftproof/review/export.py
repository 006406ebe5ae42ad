"""Export of a review: images, drawn boxes, frames or classes as a dataset, with a data card, Croissant and checksums."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from shiftproof.curation.boxes import size_of
from shiftproof.curation.frames import AnchorLabels
from shiftproof.curation.funnel import Step
from shiftproof.curation.project import Item, Project, ReviewClass, save_project
from shiftproof.curation.provenance import ID, SOURCE, OriginalImages, Pixels, origin_of
from shiftproof.curation.review_classes import TOGETHER
from shiftproof.curation.screens import ANCHOR_LABELS, CLARITY, CLASS_PAIR, EXTREME_POINTS, FAILURE_MODES, HUMAN_TEST, PAIR
from shiftproof.datasets.boxed.boxes import BoxedImage, Object, with_boxes
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.records import CARD_TEXT
from shiftproof.errors import BadInput, UnknownName
from shiftproof.files import csv_bytes, write_whole
from shiftproof.places import local_path
from shiftproof.review.croissant import croissant_file
from shiftproof.review.data_card import amount_of, card_text, class_contents, data_card, image_contents
from shiftproof.review.summary import Summary
from shiftproof.review.verdicts import Verdict, failure_modes_of, rejection_reason
from shiftproof.types import Fact, ImageSource, Sample
from shiftproof.writing.atomic_folder import File, plain_file, write_folder
from shiftproof.writing.layouts import LAYOUTS, manifest_columns
from shiftproof.writing.writer import Progress, Written

WITHOUT_IMAGES: Mapping[str, str] = {
    CLASS_PAIR.name: "it reviews classes",
    HUMAN_TEST.name: "it is a human test; shiftproof verdicts reports its accuracies",
}
"""Screens that keep or reject no images, and why."""

CLIP_FACTS = ("clip", "frame_rate")
"""Facts that an anchor shares with the frames around it."""


@dataclass(frozen=True)
class Entry:
    """One image of the dataset, with the keys of its classes."""

    id: str
    keys: tuple[str, ...]
    facts: Mapping[str, Fact]
    source: ImageSource

    def __or__(self, more: Entry) -> Entry:
        """The same image with the classes of another item too."""
        return dataclasses.replace(self, keys=tuple(dict.fromkeys([*self.keys, *more.keys])))


def kept_items(project: Project, verdicts: Mapping[str, Verdict]) -> list[Item]:
    """The kept items in the project's order, of each class at most the target."""
    taken: Counter[str | None] = Counter()
    kept: list[Item] = []
    for item in project.items:
        if item.id in verdicts and verdicts[item.id].outcome == "kept":
            taken[item.label] += 1
            if project.target is None or taken[item.label] <= project.target:
                kept.append(item)
    return kept


def kept_images(project: Project, verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source") -> ImageList:
    """The kept images, with their reviewed labels, failure modes and boxes; BadInput where there is none."""
    images = images_of(project, kept_items(project, verdicts), verdicts, pixels=pixels)
    return drawn_boxes(project, verdicts, images) if project.screen.form == "box" else images


def candidate_images(project: Project, *, pixels: Pixels = "source") -> ImageList:
    """All images under review, as they were before it."""
    return images_of(project, [item for item in project.items if item.role == "asked"], {}, pixels=pixels)


def images_of(
    project: Project, items: Sequence[Item], verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source"
) -> ImageList:
    """The images of some items, each once and with the classes of all its items; BadInput without any."""
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
    """The image of an item, after its anchor where items are pairs of frames."""
    _, image_id = origin_of(item)
    own = {name: fact for name, fact in item.facts.items() if name not in (SOURCE, ID)}
    keys = _keys(item, verdict)
    if with_anchor:
        anchor, source = originals.find(item, str(item.group), item.images[0])
        of_clip = {name: own[name] for name in CLIP_FACTS if name in own}
        yield Entry(anchor.id, keys, {"anchor": anchor.id, "offset": 0, **of_clip, **anchor.facts}, source)
    sample, source = originals.find(item, image_id, item.images[-1 if with_anchor else 0])
    yield Entry(sample.id, keys, {**sample.facts, **own, **_failure_mode_fact(verdict)}, source)


def _keys(item: Item, verdict: Verdict | None) -> tuple[str, ...]:
    """The classes that reviewers marked, where the screen asks for them, else the item's labels."""
    if verdict is not None and verdict.labels:
        return verdict.labels
    return tuple(item.label.split(TOGETHER)) if item.label else ()


def _failure_mode_fact(verdict: Verdict | None) -> dict[str, Fact]:
    """The failure modes that more than half of the reviewers marked, where the screen asks for them."""
    if verdict is None or verdict.tags is None:
        return {}
    return {"failure_modes": TOGETHER.join(failure_modes_of(verdict))}


def drawn_boxes(project: Project, verdicts: Mapping[str, Verdict], images: ImageList) -> ImageList:
    """The images with a kept box, with one box per class: the median of those drawn.

    `images` is the dataset that the extreme-points project was made from, or a part of it.
    """
    if project.screen_name != EXTREME_POINTS.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not where objects are")
    samples = {sample.id: sample for sample in images.samples}
    objects: dict[str, list[Object]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for item in project.items:
        verdict, (_, image_id) = verdicts.get(item.id), origin_of(item)
        if verdict is None or verdict.outcome != "kept" or verdict.box is None or image_id not in samples:
            continue
        size = size_of(images, samples[image_id])
        if isinstance(size, str):
            raise BadInput(f"{image_id} cannot be read any more: {size}")
        left, top, right, bottom = verdict.box
        box = (left * size[0], top * size[1], right * size[0], bottom * size[1])
        objects.setdefault(image_id, []).append(Object(str(item.label), box))
        sizes[image_id] = size
    if not objects:
        raise BadInput(f"nobody has drawn a box on an image of {images.name} that was kept in {project.title}")
    boxed = [BoxedImage(image_id, some, sizes[image_id]) for image_id, some in objects.items()]
    return with_boxes(images, boxed, classes=images.classes)


SIMILAR, BAD_ANCHOR = "similar", "bad anchor"


def agreed_labels(project: Project, verdicts: Mapping[str, Verdict]) -> AnchorLabels:
    """The majority labels of each good anchor; anchors without any are left out."""
    if project.screen_name != ANCHOR_LABELS.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not which classes anchors show")
    return {anchor: verdict.labels for anchor, verdict in verdicts.items() if verdict.outcome == "kept" and verdict.labels}


def reviewed_frames(project: Project, verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source") -> ImageList:
    """The decided frames, kept or not, with the verdict in the fact `reviewed`.

    It is ``similar`` or the reason against a frame; the temporal study reports accuracy with and without rejected frames
    by it. The fact `votes` counts the standing votes. An anchor is similar to itself, unless it is a bad one.
    """
    if project.screen_name != PAIR.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not whether frames are like their anchors")
    decided = [item for item in project.items if item.id in verdicts and verdicts[item.id].outcome != "open"]
    if not decided:
        raise BadInput(f"no frame of {project.title} is decided so far")
    reviewed: dict[str, str] = {}
    votes: dict[str, str] = {}
    for item in decided:
        verdict, (_, frame) = verdicts[item.id], origin_of(item)
        reviewed[str(item.group)] = BAD_ANCHOR if verdict.closed_by_group else SIMILAR
        reviewed[frame] = _frame_verdict(project, verdict)
        votes[frame] = TOGETHER.join(f"{name} {count}" for name, count in sorted(verdict.choices.items()))
    images = images_of(project, decided, verdicts, pixels=pixels)
    facts = {sample.id: {"reviewed": reviewed[sample.id], "votes": votes.get(sample.id, "")} for sample in images.samples}
    samples = [dataclasses.replace(sample, facts={**sample.facts, **facts[sample.id]}) for sample in images.samples]
    return dataclasses.replace(images, samples=samples)


def _frame_verdict(project: Project, verdict: Verdict) -> str:
    if verdict.closed_by_group:
        return BAD_ANCHOR
    return SIMILAR if verdict.outcome == "kept" else rejection_reason(project, verdict)


CLASS_LIST = "classes.csv"


def kept_classes(project: Project, verdicts: Mapping[str, Verdict]) -> tuple[ReviewClass, ...]:
    """The OOD classes of which every pair with an ID class was kept; BadInput where there is none.

    One open or rejected pair excludes a class.
    """
    if project.screen_name != CLASS_PAIR.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not which classes are new")
    kept = {key for key, pairs in project.by_group.items() if all(verdicts[pair.id].outcome == "kept" for pair in pairs)}
    if not kept:
        raise BadInput(f"no class of {project.title} was kept so far")
    return tuple(one for one in project.classes if one.key in kept)


def class_list(classes: Sequence[ReviewClass]) -> File:
    """A CSV file of classes, as ``curate novel-classes --chosen`` reads it."""
    rows = csv_bytes([("wnid", "name"), *((one.key, one.name) for one in classes)])
    return File(CLASS_LIST, lambda stream: stream.write(rows))


def failure_mode_project(
    project: Project,
    verdicts: Mapping[str, Verdict],
    folder: str | Path,
    *,
    reviewers_each: int = 2,
    instructions: str = "",
) -> Project:
    """A review project that asks for the failure modes of the images kept in another one (see `FAILURE_MODES`)."""
    if project.screen_name != CLARITY.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not whether misclassified images are clear")
    kept = kept_items(project, verdicts)
    if not kept:
        raise BadInput(f"nothing of {project.title} was kept so far")
    asked = dataclasses.replace(
        project,
        folder=local_path(folder, "a dataset"),
        title=f"Failure modes of {project.title}",
        screen_name=FAILURE_MODES.name,
        items=tuple(kept),
        keys={},  # keyboard shortcuts of other answers
        choices=(),
        target=None,
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=None,
        making=dataclasses.replace(project.making, steps=(*project.making.steps, Step("kept in review", len(kept)))),
    )
    for picture in sorted(asked.pictures):
        write_whole(asked.folder / "images" / picture, project.image(picture).read_bytes())
    save_project(asked)
    return asked


Part = Literal["kept", "asked", "decided"]
"""Kept items; all items under review; of frames those decided either way, each with its verdict."""

WHY: Mapping[Part, str] = {
    "kept": "kept in review",
    "asked": "all under review",
    "decided": "kept or rejected in review",
}


@dataclass(frozen=True)
class Exported:
    """What was written, its data card, and the location that `open_dataset` reads."""

    written: Written
    card: dict[str, Any]
    location: str

    @property
    def amount(self) -> str:
        """How much was written, in words."""
        return amount_of(self.card)

    @property
    def undecided(self) -> int:
        """Items that are left out because they are not decided yet."""
        return int(self.card["review"]["outcomes"]["open"])


def export(
    project: Project,
    summary: Summary,
    folder: str | Path,
    *,
    part: Part = "kept",
    layout: str = "folder",
    pixels: Pixels = "source",
    progress: Progress | None = None,
) -> Exported:
    """Writes images of a review with a data card and checksums.

    The folder appears atomically; the same review gives the same bytes, and an interrupted run resumes.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if part == "decided" and not LAYOUTS[layout].with_facts:
        raise BadInput(f"layout {layout} cannot store votes; choose manifest or webdataset")
    images = _images(project, summary, part, pixels)
    card = data_card(project, summary, image_contents(images, layout, WHY[part]))
    about = partial(croissant_file, card, manifest_columns(images, layout))
    written = _write(local_path(folder, "a dataset"), card, LAYOUTS[layout].files(images), progress, about)
    return Exported(written, card, LAYOUTS[layout].opened_as.format(root=written.destination))


def export_classes(project: Project, summary: Summary, folder: str | Path, *, progress: Progress | None = None) -> Exported:
    """Writes the list of kept classes, with a data card and checksums."""
    classes = kept_classes(project, summary.verdicts)
    card = data_card(project, summary, class_contents(classes, WHY["kept"]))
    written = _write(local_path(folder, "a dataset"), card, [class_list(classes)], progress)
    return Exported(written, card, str(written.destination / CLASS_LIST))


def _images(project: Project, summary: Summary, part: Part, pixels: Pixels) -> ImageList:
    match part:
        case "kept":
            return kept_images(project, summary.verdicts, pixels=pixels)
        case "asked":
            return candidate_images(project, pixels=pixels)
        case "decided":
            return reviewed_frames(project, summary.verdicts, pixels=pixels)


def _write(
    root: Path,
    card: Mapping[str, Any],
    files: Iterable[File],
    progress: Progress | None,
    about: Callable[[Mapping[str, str]], File] | None = None,
) -> Written:
    beside = [plain_file(CARD_TEXT, card_text(card)), *files]
    data = (json.dumps(card, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogateescape")
    return write_folder(root, data, beside, total=len(beside), about=about, progress=progress)
