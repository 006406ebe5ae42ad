"""Frames of clips for people to look at: each beside its anchor, as ImageNet-Vid-Robust was reviewed, or anchors alone.

Labels of a clip hold for its anchor, and those of an anchor for the frames around it that people find like it. Where labels
are sparse, people say first what the anchors show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from shiftproof.curation.known_items import known_items
from shiftproof.curation.origins import making_of, origin
from shiftproof.curation.pair_reasons import pair_choices
from shiftproof.curation.project import Item, Project, Verify, save_project
from shiftproof.curation.review_classes import joined_keys, review_classes
from shiftproof.curation.screens import ANCHOR_LABELS, PAIR, screen_named
from shiftproof.curation.shelf import Shelved, put_all
from shiftproof.curation.sifting import Sifted
from shiftproof.curation.tables import save_fates
from shiftproof.errors import BadInput
from shiftproof.image_sets.frame_sets import frame_itself
from shiftproof.image_sets.image_list import ImageList
from shiftproof.prediction import Progress
from shiftproof.types import Classes, Fact, Sample

TABLE = "frames.csv"
RELABELLED, ANCHORS_LABELLED = "relabelled", "anchors labelled by people"
"""What is kept of a review of anchors in that of their pairs: whose labels changed, and how many there were."""

REFERENCES = 3
"""Anchors of a class that reviewers may call up."""

FrameChoice: TypeAlias = Sifted[Sample, str]

AnchorLabels: TypeAlias = Mapping[str, Sequence[str]]
"""Keys of the classes that an anchor shows, by its id; an anchor that is not there is not to be used."""


@dataclass(frozen=True)
class FrameProject:
    """A review project of frames, and how they were chosen."""

    choice: FrameChoice
    project: Project
    notes: tuple[str, ...]  # on the set of frames


def pair_frames(
    images: ImageList,
    folder: str | Path,
    *,
    labels: AnchorLabels | None = None,
    reasons: str = "paper",
    known: ImageList | None = None,
    reviewers_each: int = 2,
    verify: Verify | None = None,
    instructions: str = "",
    progress: Progress | None = None,
) -> FrameProject:
    """A review project of pairs: every frame around an anchor beside it.

    `labels` are what people said of the anchors before; the set's own hold else. `reasons` is a vocabulary, see
    `pair_reasons`, and `known` are pairs whose answer is known, see `known_items`. With `verify` one person reads each pair,
    and everybody those that were flagged. How far a frame is from its anchor is a fact that no reviewer sees.
    """
    folder, anchors = Path(folder), anchors_of(images)
    choices = () if reasons == "paper" else pair_choices(reasons)
    known_pairs = known_items(known, screen_named(PAIR.name, choices=choices), folder)
    keys = _own_labels(images, anchors) if labels is None else labels
    relabelled = {} if labels is None else _relabelled(_own_labels(images, anchors), labels)
    choice = FrameChoice.start(sample for sample in images.samples if sample.facts["offset"] != 0)
    if labels is not None:
        choice = choice.step(
            "around anchors that people labelled", lambda one: None if _anchor(one) in keys else "its anchor was not kept"
        )
    wanted = [anchors[key] for key in dict.fromkeys(_anchor(one) for one in choice.left)]
    shelved = _shelved(images, [*wanted, *choice.left], folder, progress)
    choice = choice.step("can be read beside their anchors", lambda one: _unreadable(one, shelved))
    items = tuple(
        Item(
            sample.id,
            (shelved.names[_anchor(sample)], shelved.names[sample.id]),
            joined_keys(keys.get(_anchor(sample), ())),
            group=_anchor(sample),
            facts={**_facts(sample), **relabelled.get(_anchor(sample), {}), **origin(images, sample)},
        )
        for sample in choice.left
    )
    shown = {item.group: (item.label, item.images[0]) for item in items if item.label}
    references: dict[str, list[str]] = {}
    for label, picture in shown.values():
        references.setdefault(str(label), []).append(picture)
    project = Project(
        folder,
        f"Frames of {images.name}",
        PAIR.name,
        (*items, *known_pairs),
        review_classes(
            _classes(images, keys),
            {*references, *(item.label for item in known_pairs if item.label)},
            {key: some[:REFERENCES] for key, some in references.items()},
        ),
        choices=choices,
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=verify,
        making=making_of(
            [images, known],
            choice.steps,
            choices={"reasons": reasons, **({} if labels is None else {ANCHORS_LABELLED: len(anchors)})},
        ),
    )
    return _saved(choice, project, images)


def label_anchors(
    images: ImageList,
    folder: str | Path,
    *,
    classes: Classes | None = None,
    known: ImageList | None = None,
    reviewers_each: int = 2,
    instructions: str = "",
    progress: Progress | None = None,
) -> FrameProject:
    """A review project of anchors alone: people say which of the classes each shows.

    `classes` are those to choose among; the set's own where they are not given. `known` are anchors whose classes are known,
    see `known_items`.
    """
    folder, anchors = Path(folder), anchors_of(images)
    among = classes or images.classes
    if among is None:
        raise BadInput(f"{images.name} has no classes to choose among; give a list of them")
    known_anchors = known_items(known, ANCHOR_LABELS, folder, classes=among.keys)
    keys = _own_labels(images, anchors)
    choice = FrameChoice.start(anchors.values())
    shelved = _shelved(images, choice.left, folder, progress)
    choice = choice.step("can be read", lambda one: shelved.unreadable.get(one.id))
    items = tuple(
        Item(
            sample.id,
            (shelved.names[sample.id],),
            joined_keys(key for key in keys.get(sample.id, ()) if key in among.keys),
            facts={**_facts(sample), **origin(images, sample)},
        )
        for sample in choice.left
    )
    project = Project(
        folder,
        f"Anchors of {images.name}",
        ANCHOR_LABELS.name,
        (*items, *known_anchors),
        review_classes(among),
        instructions=instructions,
        reviewers_each=reviewers_each,
        making=making_of([images, known], choice.steps),
    )
    return _saved(choice, project, images)


def anchors_of(images: ImageList) -> dict[str, Sample]:
    """The anchor frames by their ids; BadInput where the set is none of frames around anchors."""
    if any(not sample.facts.keys() >= {"anchor", "offset"} for sample in images.samples):
        raise BadInput(
            f"{images.name} is no set of frames around anchors; name a clip, a folder of clips or of their frames"
        )
    anchors = {frame_itself(sample.id): sample for sample in images.samples if sample.facts["offset"] == 0}
    if lost := {_anchor(sample) for sample in images.samples}.difference(anchors):
        raise BadInput(f"{len(lost):,} anchors of {images.name} are not among its frames, such as {min(lost)}")
    return anchors


def _anchor(sample: Sample) -> str:
    return str(sample.facts["anchor"])


def _own_labels(images: ImageList, anchors: Mapping[str, Sample]) -> AnchorLabels:
    if images.classes is None:
        return {}
    keys = images.classes.keys
    return {anchor: [keys[label] for label in sample.labels] for anchor, sample in anchors.items()}


def _relabelled(before: AnchorLabels, labels: AnchorLabels) -> dict[str, dict[str, Fact]]:
    """Whether people saw other classes on an anchor than it was said to show, as a fact of the frames around it."""
    return {anchor: {RELABELLED: set(keys) != set(before.get(anchor, ()))} for anchor, keys in labels.items()}


def _classes(images: ImageList, labels: AnchorLabels) -> Classes:
    return images.classes or Classes(tuple(sorted({key for keys in labels.values() for key in keys})))


def _shelved(images: ImageList, samples: Sequence[Sample], folder: Path, progress: Progress | None) -> Shelved:
    """Pictures of the samples in the order of the set, in which clips are quick to read."""
    ordered = sorted(samples, key=lambda sample: sample.id)
    return put_all(folder, {sample.id: images.source(sample) for sample in ordered}, progress=progress)


def _unreadable(sample: Sample, shelved: Shelved) -> str | None:
    if _anchor(sample) in shelved.unreadable:
        return f"its anchor cannot be read: {shelved.unreadable[_anchor(sample)]}"
    return shelved.unreadable.get(sample.id)


def _facts(sample: Sample) -> dict[str, Fact]:
    return {name: value for name, value in sample.facts.items() if value is not None}


def _saved(choice: FrameChoice, project: Project, images: ImageList) -> FrameProject:
    columns = ("id", "anchor", "offset")
    save_fates(project.folder / TABLE, choice, columns, lambda one: (one.id, _anchor(one), one.facts["offset"]))
    save_project(project)
    return FrameProject(choice, project, images.notes)
