"""Items whose answer is known: shown first to train people, or strewn in to see how careful they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftproof.curation.known_answers import known_answer
from shiftproof.curation.origins import origin
from shiftproof.curation.project import Item
from shiftproof.curation.review_classes import joined_keys
from shiftproof.curation.screens import CLASS_PAIR, Screen
from shiftproof.curation.shelf import put_all
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.manifest import SEPARATOR, ManifestFiles, leads_outside
from shiftproof.types import ImageSource, Sample


@dataclass(frozen=True)
class _Known:
    """What a row of the manifest says."""

    sample: Sample
    answer: dict[str, Any]
    pictures: Mapping[str, ImageSource]  # shown after the first, by their paths
    beside: str | None


def known_items(
    known: ImageList | None,
    screen: Screen,
    folder: Path,
    *,
    classes: Collection[str] = (),
    shown: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Item]:
    """An item for each image of a set that has the facts `role` and `answer`, and those that its screen asks for.

    A manifest with such columns is such a set; see `known_answer`. Two more say what is shown with the image: `pictures` are
    the files of the others, as of a pair, and `beside` is the class that it is held against. The pictures are put into the
    project. `shown` is what reviewers may call up, by the ids of the images: where other items have such, those that lack it
    would be known for what they are.
    """
    if known is None:
        return []
    read = _read(known, screen, classes)
    first = _put(folder, {one.sample.id: known.source(one.sample) for one in read}, known.name)
    others = _put(folder, {path: source for one in read for path, source in one.pictures.items()}, known.name)
    keys = known.classes.keys if known.classes else ()
    return [
        Item(
            f"known/{one.sample.id}",
            (first[one.sample.id], *(others[path] for path in one.pictures)),
            joined_keys(keys[label] for label in one.sample.labels),
            beside=one.beside,
            role="gold" if one.sample.facts["role"] == "gold" else "training",
            answer=one.answer,
            shown=(shown or {}).get(one.sample.id, {}),
            facts=origin(known, one.sample),
        )
        for one in read
    ]


def check_known(known: ImageList, screen: Screen) -> None:
    """BadInput or UnknownName where the images could not become items of a screen, before anything else is done."""
    _read(known, screen, ())


def _read(known: ImageList, screen: Screen, classes: Collection[str]) -> list[_Known]:
    return [
        _Known(
            sample,
            known_answer(known, sample, screen, classes),
            _pictures(known, sample, screen),
            _beside(known, sample, screen),
        )
        for sample in known.samples
    ]


def _pictures(known: ImageList, sample: Sample, screen: Screen) -> dict[str, ImageSource]:
    told = sample.facts.get("pictures")
    paths = str(told).split(SEPARATOR) if told else []
    if len(paths) + 1 < screen.images:
        raise BadInput(
            f"{sample.id} of {known.name} is one picture, but the screen {screen.name} shows {screen.images}: "
            "name the other in the column pictures"
        )
    if not paths:
        return {}
    if not isinstance(known.find, ManifestFiles):
        raise BadInput(f"{sample.id} of {known.name} names other pictures, which only a manifest can")
    find = FilesBelow(known.find.root)
    outside = [path for path in paths if leads_outside(path, known.find.root)]
    if outside and not known.find.allow_outside:
        raise BadInput(
            f"{sample.id} of {known.name} names {outside[0]}, which lies outside the folder of its manifest; where it may "
            "name such files, write ?allow_outside=true behind the manifest"
        )
    return {path: find(path) for path in paths}


def _beside(known: ImageList, sample: Sample, screen: Screen) -> str | None:
    beside = sample.facts.get("beside")
    if screen.name == CLASS_PAIR.name and not (beside and sample.labels):
        raise BadInput(
            f"{sample.id} of {known.name} should name two classes: the new one in the column label, the known one in beside"
        )
    return str(beside) if beside else None


def _put(folder: Path, sources: Mapping[str, ImageSource], name: str) -> Mapping[str, str]:
    shelved = put_all(folder, sources)
    if shelved.unreadable:
        reasons = listed(f"{image} ({reason})" for image, reason in shelved.unreadable.items())
        raise BadInput(f"images of {name} cannot be read: {reasons}")
    return shelved.names
