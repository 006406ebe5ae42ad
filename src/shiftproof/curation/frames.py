"""Review of video frames: pairs of an anchor and a frame, as for ImageNet-Vid-Robust, or anchors alone.

The labels of a clip apply to its anchor, and those of an anchor to the frames around it that reviewers find similar. Where
labels are sparse, the anchors are labelled first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from shiftproof.curation.funnel import Funnel, save_outcomes
from shiftproof.curation.known_items import known_items
from shiftproof.curation.pictures import AddedPictures, add_pictures
from shiftproof.curation.project import REVIEW, Item, Project, ReviewSettings
from shiftproof.curation.provenance import making_of, origin
from shiftproof.curation.review_classes import joined_keys, review_classes
from shiftproof.curation.screens import ANCHOR_LABELS, PAIR, Choice, screen_named
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.video.frame_sets import frame_itself
from shiftproof.errors import BadInput
from shiftproof.places import local_path
from shiftproof.runs.predict import Progress
from shiftproof.types import Classes, Fact, Sample

REASONS = ("motion", "background", "blur", "other")
"""Why a pair is dissimilar, as in the paper (Shankar et al., 2021); the screen's own."""

VOCABULARIES: Mapping[str, tuple[Choice, ...]] = {
    "paper": tuple(PAIR.choice(name) for name in REASONS),
    "released": (
        Choice("deformation", "d", "Dissimilar: deformation"),
        Choice("background-change", "b", "Dissimilar: background change"),
        Choice("occlusion-increased", "c", "Dissimilar: more covered"),
        Choice("blur-increase", "r", "Dissimilar: more blur"),
        Choice("problematic", "x", "Dissimilar: problematic"),
        Choice("dissimilar", "o", "Dissimilar: other"),
    ),
}
"""Those of the paper, and those in the files of YTBB-Robust."""


def pair_choices(vocabulary: str) -> tuple[Choice, ...]:
    """The answers to a pair with the reasons of a vocabulary, or with reasons of one's own as ``rain:w,night:n``.

    >>> [choice.key for choice in pair_choices("rain:w,night:n")]
    ['s', 'w', 'n', 'l', 'u', 'a']
    """
    reasons = VOCABULARIES.get(vocabulary) or [_own(part, vocabulary) for part in vocabulary.split(",")]
    first, *others = [choice for choice in PAIR.choices if choice.name not in REASONS]
    return (first, *reasons, *others)


def _own(part: str, vocabulary: str) -> Choice:
    name, _, key = (text.strip() for text in part.partition(":"))
    if not name or len(key) != 1:
        known: Sequence[str] = list(VOCABULARIES)
        raise BadInput(f"reasons are {' or '.join(known)}, or words with a key each as rain:w,night:n; got {vocabulary!r}")
    return Choice(name, key.lower(), f"Dissimilar: {name}")


TABLE = "frames.csv"
RELABELLED, ANCHORS_LABELLED = "relabelled", "anchors labelled by people"
"""What a review of pairs records of the review of their anchors: whether labels changed, and how many there were."""

REFERENCES = 3
"""Example anchors of a class that reviewers may see on request."""

FrameChoice: TypeAlias = Funnel[Sample, str]

AnchorLabels: TypeAlias = Mapping[str, Sequence[str]]
"""Class keys by anchor id; anchors that are not listed are not used."""


@dataclass(frozen=True)
class FrameProject:
    """A review project of frames, and how they were chosen."""

    choice: FrameChoice
    project: Project
    notes: tuple[str, ...]  # on the dataset


def pair_frames(
    images: ImageList,
    folder: str | Path,
    *,
    labels: AnchorLabels | None = None,
    reasons: str = "paper",
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> FrameProject:
    """A review project of pairs: every frame around an anchor beside it.

    `labels` are the reviewed labels of the anchors; the dataset's own by default. `reasons` is a vocabulary, see
    `pair_choices`. The offset of a frame from its anchor is never shown to reviewers.
    """
    folder, anchors = local_path(folder, "a review project"), anchors_of(images)
    choices = () if reasons == "paper" else pair_choices(reasons)
    known_pairs = known_items(review.known, screen_named(PAIR.name, choices=choices), folder)
    keys = _own_labels(images, anchors) if labels is None else labels
    relabelled = {} if labels is None else _relabelled(_own_labels(images, anchors), labels)
    choice = FrameChoice.start(sample for sample in images.samples if sample.facts["offset"] != 0)
    if labels is not None:
        choice = choice.step(
            "around annotated anchors", lambda one: None if _anchor(one) in keys else "its anchor was not kept"
        )
    wanted = [anchors[key] for key in dict.fromkeys(_anchor(one) for one in choice.left)]
    added = _added(images, [*wanted, *choice.left], folder, progress)
    choice = choice.step("can be read beside their anchors", lambda one: _unreadable(one, added))
    items = tuple(
        Item(
            sample.id,
            (added.names[_anchor(sample)], added.names[sample.id]),
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
    _save_outcomes(choice, folder)
    project = review.save(
        folder,
        f"Frames of {images.name}",
        PAIR,
        (*items, *known_pairs),
        review_classes(
            _classes(images, keys),
            {*references, *(item.label for item in known_pairs if item.label)},
            {key: some[:REFERENCES] for key, some in references.items()},
        ),
        making_of(
            [images, review.known],
            choice.steps,
            choices={"reasons": reasons, **({} if labels is None else {ANCHORS_LABELLED: len(anchors)})},
        ),
        choices=choices,
    )
    return FrameProject(choice, project, images.notes)


def label_anchors(
    images: ImageList,
    folder: str | Path,
    *,
    classes: Classes | None = None,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> FrameProject:
    """A review project of anchors alone: reviewers mark the classes of each.

    `classes` are those to choose among; the dataset's own by default.
    """
    folder, anchors = local_path(folder, "a review project"), anchors_of(images)
    among = classes or images.classes
    if among is None:
        raise BadInput(f"{images.name} has no classes to choose among; give a list of them")
    known_anchors = known_items(review.known, ANCHOR_LABELS, folder, classes=among.keys)
    keys = _own_labels(images, anchors)
    choice = FrameChoice.start(anchors.values())
    added = _added(images, choice.left, folder, progress)
    choice = choice.step("can be read", lambda one: added.unreadable.get(one.id))
    items = tuple(
        Item(
            sample.id,
            (added.names[sample.id],),
            joined_keys(key for key in keys.get(sample.id, ()) if key in among.keys),
            facts={**_facts(sample), **origin(images, sample)},
        )
        for sample in choice.left
    )
    _save_outcomes(choice, folder)
    making = making_of([images, review.known], choice.steps)
    title = f"Anchors of {images.name}"
    project = review.save(folder, title, ANCHOR_LABELS, (*items, *known_anchors), review_classes(among), making)
    return FrameProject(choice, project, images.notes)


def anchors_of(images: ImageList) -> dict[str, Sample]:
    """The anchor frames by their ids; BadInput where the dataset has no frames around anchors."""
    if any(not sample.facts.keys() >= {"anchor", "offset"} for sample in images.samples):
        raise BadInput(
            f"{images.name} is no dataset of frames around anchors; name a clip, a folder of clips or of their frames"
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
    """Whether reviewers changed the labels of an anchor, as a fact of the frames around it."""
    return {anchor: {RELABELLED: set(keys) != set(before.get(anchor, ()))} for anchor, keys in labels.items()}


def _classes(images: ImageList, labels: AnchorLabels) -> Classes:
    return images.classes or Classes(tuple(sorted({key for keys in labels.values() for key in keys})))


def _added(images: ImageList, samples: Sequence[Sample], folder: Path, progress: Progress | None) -> AddedPictures:
    """Pictures of the samples in the order of the dataset, in which clips are quick to decode."""
    ordered = sorted(samples, key=lambda sample: sample.id)
    return add_pictures(folder, {sample.id: images.source(sample) for sample in ordered}, progress=progress)


def _unreadable(sample: Sample, added: AddedPictures) -> str | None:
    if _anchor(sample) in added.unreadable:
        return f"its anchor cannot be read: {added.unreadable[_anchor(sample)]}"
    return added.unreadable.get(sample.id)


def _facts(sample: Sample) -> dict[str, Fact]:
    return {name: value for name, value in sample.facts.items() if value is not None}


def _save_outcomes(choice: FrameChoice, folder: Path) -> None:
    columns = ("id", "anchor", "offset")
    save_outcomes(folder / TABLE, choice, columns, lambda one: (one.id, _anchor(one), one.facts["offset"]))
