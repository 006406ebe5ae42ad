"""OOD candidates: images of new classes, their nearest ID images, and review projects that compare the two."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shiftproof.curation.funnel import Funnel, save_outcomes
from shiftproof.curation.known_items import known_items
from shiftproof.curation.novel_classes import Selection, sister_pairs
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import REVIEW, Item, Project, ReviewSettings
from shiftproof.curation.provenance import ID, SOURCE, making_of, origin
from shiftproof.curation.review_classes import review_class
from shiftproof.curation.screens import CLASS_PAIR, NEAREST_PAIR
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.listing import list_images
from shiftproof.datasets.manifest import joined_labels
from shiftproof.datasets.wordnet import wordnet
from shiftproof.errors import BadInput, listed
from shiftproof.files import csv_bytes, write_whole
from shiftproof.ood.nearest_neighbours import nearest_rows
from shiftproof.places import local_path
from shiftproof.runs.predict import Progress
from shiftproof.types import ModelRef, Predictions, Sample

FOLDER = "folder"
"""The fact that holds the class of an OOD image, which is no label of the model, as in ImageNet-O and -OOD."""

DROP_REASONS = (
    "contains an ID class",
    "synonym of an ID class",
    "not recognisable",
    "duplicate",
    "inappropriate image",
    "inappropriate class",
)
"""Why a reviewer may drop an OOD image; the last drops its whole class."""


@dataclass(frozen=True)
class NearestPair:
    """An OOD image (`outside`) and the ID image nearest to it in feature space (`inside`), each with its class."""

    outside: str
    inside: str
    distance: float
    outside_class: str
    inside_class: str


def choose_images(
    root: str | Path, wnids: Sequence[str], *, per_class: int = 50, seed: int = 0
) -> Mapping[str, tuple[str, ...]]:
    """Up to `per_class` random images from the folder of each class, as paths below the root.

    The random order of an image depends on the seed and its own path only, not on other classes or images.
    """
    root = Path(root)
    if not wnids:
        raise BadInput("no class is left to choose images of")
    if not root.is_dir():
        raise BadInput(f"{root} is not a folder")
    chosen = {}
    for wnid in wnids:
        paths = [f"{wnid}/{image_id}" for image_id in list_images(str(root / wnid)).ids()] if (root / wnid).is_dir() else []
        if paths:
            chosen[wnid] = tuple(sorted(sorted(paths, key=lambda path: _sort_key(path, seed))[:per_class]))
    if not chosen:
        raise BadInput(f"{root} has no images in folders such as {listed(wnids, most=3)}")
    return chosen


def save_manifest(path: Path, root: str | Path, images: Mapping[str, Sequence[str]]) -> None:
    """Writes a manifest, which `open_dataset` opens with `allow_outside`; the classes are a fact, not labels."""
    to_root = Path(os.path.relpath(root, path.parent)).as_posix()
    rows = [(f"{to_root}/{image_id}", image_id, wnid) for wnid, ids in images.items() for image_id in ids]
    names = {wnid: wordnet().name(wnid) for wnid in images}
    table = [("path", "id", FOLDER, "name"), *((*row, names[row[2]]) for row in rows)]
    write_whole(path, csv_bytes(table))


def candidate_pairs(outside: Predictions, inside: Predictions, *, first: int = 1000) -> list[NearestPair]:
    """The ID image nearest to each OOD image by cosine distance of features; the `first` pairs, nearest first."""
    if not len(outside) or not len(inside):
        raise BadInput("pairs need OOD and ID images, and of one of them there are none")
    places, distances = nearest_rows(outside.need_features(), inside.need_features())
    return [
        NearestPair(
            outside.ids[row],
            inside.ids[places[row]],
            float(distances[row]),
            _class_of(outside, int(row)),
            _class_of(inside, int(places[row])),
        )
        for row in np.argsort(distances, kind="stable")[:first]
    ]


def save_pairs(path: Path, pairs: Sequence[NearestPair]) -> None:
    """Writes pairs as a list to review, JSON lines or CSV by the suffix; `drop` is for one of the DROP_REASONS."""
    rows = [{**dataclasses.asdict(pair), "distance": round(pair.distance, 6), "drop": ""} for pair in pairs]
    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_whole(path, "".join(lines).encode("utf-8", "surrogateescape"))
    else:
        columns = [field.name for field in dataclasses.fields(NearestPair)]
        write_whole(path, csv_bytes([(*columns, "drop"), *(tuple(row.values()) for row in rows)]))


def with_folders(images: ImageList) -> ImageList:
    """The images with their classes as a fact instead of labels, which a model of other classes could not match."""
    if images.classes is None:
        return images
    keys = images.classes.keys
    samples = [
        Sample(sample.id, facts={**sample.facts, FOLDER: joined_labels(keys[label] for label in sample.labels)})
        for sample in images.samples
    ]
    return dataclasses.replace(images, samples=samples, classes=None)


def _sort_key(path: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{path}".encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _class_of(predictions: Predictions, row: int) -> str:
    labels = [int(label) for label in predictions.labels[row] if label >= 0]
    if labels and predictions.classes:
        return joined_labels(predictions.classes.keys[label] for label in labels)
    return str(predictions.facts[FOLDER][row] or "") if FOLDER in predictions.facts else ""


@dataclass(frozen=True)
class NewClasses:
    """Candidate OOD classes with images of each, and images of the ID classes."""

    selection: Selection
    id_classes: Sequence[str]
    root: str | Path
    images: Mapping[str, Sequence[str]]  # paths below the root, by wnid
    known: ImageList | None = None  # labelled with wnids


def class_pair_project(
    new: NewClasses,
    folder: str | Path,
    *,
    references: int = 50,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> Project:
    """A review project that compares each OOD class with every ID class that is its sibling in WordNet.

    A class without a sibling, or without a readable image, is not reviewed: `classes.csv` in the project says why. One
    ambiguous pair rejects a class. Up to `references` examples of an ID class are shown.
    """
    folder, find = local_path(folder, "a review project"), FilesBelow(str(Path(new.root).resolve()))
    known_pairs = known_items(review.known, CLASS_PAIR, folder)
    sisters = sister_pairs(new.id_classes, new.selection.classes)
    asked = dict.fromkeys(wnid for wnid, _ in sisters)
    paths = [path for wnid in asked for path in new.images.get(wnid, ())]
    names = add_pictures(folder, {path: find(path) for path in paths}, progress=progress).names
    shown = {wnid: [names[path] for path in new.images.get(wnid, ()) if path in names] for wnid in asked}
    choice = (
        Funnel[str, str]
        .start(new.selection.classes)
        .step(
            "with a sister class that is an ID class",
            lambda wnid: None if wnid in asked else "has no sister class that is an ID class",
        )
        .step("with images", lambda wnid: None if shown[wnid] else "has no image to show")
    )
    asked_pairs = [
        Item(f"{wnid} {sister}", tuple(shown[wnid]), wnid, wnid, sister, facts={SOURCE: find.root, ID: wnid})
        for wnid, sister in sisters
        if shown[wnid]
    ]
    items = (*asked_pairs, *known_pairs)
    examples = _examples(new.known, {str(item.beside) for item in items}, references, folder, progress)
    shown_classes = dict.fromkeys([*choice.left, *(item.label for item in known_pairs if item.label), *examples])
    save_outcomes(folder / "classes.csv", choice, ("wnid",), lambda wnid: (wnid,))
    return review.save(
        folder,
        "OOD classes beside their nearest ID classes",
        CLASS_PAIR,
        items,
        (review_class(wnid, references=examples.get(wnid, ())) for wnid in shown_classes),
        making_of([new.known, review.known], (*new.selection.steps, *choice.steps[1:])),
    )


def nearest_pair_project(
    pairs: Sequence[NearestPair],
    outside: ImageList,
    inside: ImageList,
    folder: str | Path,
    *,
    model: ModelRef,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> Project:
    """A review project that shows each OOD image beside the nearest ID image; see `candidate_pairs`.

    Unreadable images are listed with their reason in `pairs.csv` in the project. Dropping a class drops its images.
    """
    folder = local_path(folder, "a review project")
    known_pairs = known_items(review.known, NEAREST_PAIR, folder)
    sources = {
        **{f"outside {sample.id}": outside.source(sample) for sample in outside.samples},
        **{f"inside {sample.id}": inside.source(sample) for sample in inside.samples},
    }
    wanted = [name for pair in pairs for name in (f"outside {pair.outside}", f"inside {pair.inside}")]
    added = add_pictures(folder, {name: sources[name] for name in wanted}, progress=progress)

    def unreadable(pair: NearestPair) -> str | None:
        of_both = (f"outside {pair.outside}", f"inside {pair.inside}")
        return next((f"{name}: {added.unreadable[name]}" for name in of_both if name in added.unreadable), None)

    choice = Funnel[NearestPair, str].start(pairs).step("can be read", unreadable)
    samples = {sample.id: sample for sample in outside.samples}
    asked = [
        Item(
            pair.outside,
            (added.names[f"outside {pair.outside}"], added.names[f"inside {pair.inside}"]),
            pair.outside_class or None,
            pair.outside_class or None,
            pair.inside_class or None,
            facts={"inside": pair.inside, "distance": round(pair.distance, 6), **origin(outside, samples[pair.outside])},
        )
        for pair in choice.left
    ]
    items = (*asked, *known_pairs)
    save_outcomes(folder / "pairs.csv", choice, ("outside", "inside"), lambda pair: (pair.outside, pair.inside))
    keys = dict.fromkeys(key for item in items for key in (item.label, item.beside) if key is not None)
    return review.save(
        folder,
        f"{outside.name} beside {inside.name}",
        NEAREST_PAIR,
        items,
        map(review_class, keys),
        making_of([outside, inside, review.known], choice.steps, models=[model]),
    )


def _examples(
    known: ImageList | None, wnids: Collection[str], most: int, folder: Path, progress: Progress | None
) -> dict[str, list[str]]:
    """Example pictures of ID classes by wnid, up to `most` of each."""
    examples: dict[str, list[str]] = {wnid: [] for wnid in sorted(wnids)}
    if known is None or known.classes is None:
        return examples
    chosen: dict[str, list[Sample]] = {wnid: [] for wnid in examples}
    for sample in known.samples:
        for wnid in {known.classes.keys[label] for label in sample.labels} & examples.keys():
            chosen[wnid] += [sample] if len(chosen[wnid]) < most else []
    sources = {sample.id: known.source(sample) for some in chosen.values() for sample in some}
    names = add_pictures(folder, sources, progress=progress).names
    return {wnid: [names[sample.id] for sample in some if sample.id in names] for wnid, some in chosen.items()}
