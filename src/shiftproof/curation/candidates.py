"""What people look through before new classes become a test set: some images of each, and pairs that look alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shiftproof.curation.tables import table_bytes
from shiftproof.detectors.neighbour_search import nearest_rows
from shiftproof.errors import BadInput, listed
from shiftproof.files import write_whole
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.listing import list_images
from shiftproof.image_sets.manifest import joined_labels
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.types import Predictions, Sample

FOLDER = "folder"
"""The fact that holds the class of an image which is outside all of a model's classes, as in ImageNet-O and -OOD."""

DROP_REASONS = (
    "shows an inside class",
    "same thing under another name",
    "cannot be told what it shows",
    "duplicate",
    "inappropriate image",
    "inappropriate class",
)
"""Why a reviewer may drop an outside image; the last drops its whole class."""


@dataclass(frozen=True)
class Pair:
    """An outside image and the inside image nearest it in a model's features, each with its class."""

    outside: str
    inside: str
    distance: float
    outside_class: str
    inside_class: str


def choose_images(
    root: str | Path, wnids: Sequence[str], *, per_class: int = 50, seed: int = 0
) -> Mapping[str, tuple[str, ...]]:
    """Up to so many images out of the folder of each class, as paths below the root; nothing of a class without one.

    The seed decides for each image by its own path, so that more classes or more images do not change the others' turn.
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
            chosen[wnid] = tuple(sorted(sorted(paths, key=lambda path: _turn(path, seed))[:per_class]))
    if not chosen:
        raise BadInput(f"{root} has no images in folders such as {listed(wnids, most=3)}")
    return chosen


def save_manifest(path: Path, root: str | Path, images: Mapping[str, Sequence[str]]) -> None:
    """A manifest of the images, which `open_images` opens with `allow_outside`; their classes are a fact and no label."""
    to_root = Path(os.path.relpath(root, path.parent)).as_posix()
    rows = [(f"{to_root}/{image_id}", image_id, wnid) for wnid, ids in images.items() for image_id in ids]
    names = {wnid: wordnet().name(wnid) for wnid in images}
    table = [("path", "id", FOLDER, "name"), *((*row, names[row[2]]) for row in rows)]
    write_whole(path, table_bytes(table))


def candidate_pairs(outside: Predictions, inside: Predictions, *, first: int = 1000) -> list[Pair]:
    """The inside image nearest each outside image, by the directions of their features, the `first` nearest pairs first."""
    if not len(outside) or not len(inside):
        raise BadInput("pairs need outside and inside images, and of one of them there are none")
    places, distances = nearest_rows(outside.need_features(), inside.need_features())
    return [
        Pair(
            outside.ids[row],
            inside.ids[places[row]],
            float(distances[row]),
            _class_of(outside, int(row)),
            _class_of(inside, int(places[row])),
        )
        for row in np.argsort(distances, kind="stable")[:first]
    ]


def save_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """Pairs as a list to review, JSON lines or CSV by the ending; `drop` is for one of the DROP_REASONS."""
    rows = [{**dataclasses.asdict(pair), "distance": round(pair.distance, 6), "drop": ""} for pair in pairs]
    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_whole(path, "".join(lines).encode("utf-8", "surrogateescape"))
    else:
        columns = [field.name for field in dataclasses.fields(Pair)]
        write_whole(path, table_bytes([(*columns, "drop"), *(tuple(row.values()) for row in rows)]))


def with_folders(images: ImageList) -> ImageList:
    """The images without labels, which a model of other classes could not read; their classes become a fact."""
    if images.classes is None:
        return images
    keys = images.classes.keys
    samples = [
        Sample(sample.id, facts={**sample.facts, FOLDER: joined_labels(keys[label] for label in sample.labels)})
        for sample in images.samples
    ]
    return dataclasses.replace(images, samples=samples, classes=None)


def _turn(path: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{path}".encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _class_of(predictions: Predictions, row: int) -> str:
    labels = [int(label) for label in predictions.labels[row] if label >= 0]
    if labels and predictions.classes:
        return joined_labels(predictions.classes.keys[label] for label in labels)
    return str(predictions.facts[FOLDER][row] or "") if FOLDER in predictions.facts else ""
