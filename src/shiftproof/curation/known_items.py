"""Gold and training items, whose answers are known: mixed in to check reviewers, or shown first to train them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftproof.curation.boxes import size_of
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import Item
from shiftproof.curation.provenance import origin
from shiftproof.curation.review_classes import joined_keys
from shiftproof.curation.screens import CLASS_PAIR, Screen
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.manifest import SEPARATOR, ManifestFiles, leads_outside
from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.types import ImageSource, Sample

ROLES = ("training", "gold")


def known_answer(known: ImageList, sample: Sample, screen: Screen, classes: Collection[str]) -> dict[str, Any]:
    """The correct answer to an image, in the form of the screen; `classes` are the keys that reviewers choose among.

    The columns are `role` (training or gold), `answer` and, if need be, `reason`; `shows` has the classes that are there,
    where they are not those of the label, and `box` the left, top, right and bottom of the correct box in pixels.
    """
    who = f"{sample.id} of {known.name}"
    role, answer, reason = (sample.facts.get(fact) for fact in ("role", "answer", "reason"))
    if role not in ROLES or not answer:
        raise BadInput(f"{who} should have a role, {' or '.join(ROLES)}, and an answer; got {role}, {answer}")
    choice = screen.choice(str(answer))
    reasons = [one.name for one in choice.reasons]
    if reason and reason not in reasons:
        raise BadInput(f"{who} has the reason {reason!r}; {answer} knows {listed(reasons) or 'none'}")
    right: dict[str, Any] = {"choice": choice.name, **({"reasons": [reason]} if reason else {})}
    if choice.keeps and screen.form == "labels":
        right["labels"] = _labels(known, sample, classes, who)
    if choice.keeps and screen.form == "box":
        right["points"] = _points(known, sample, who)
    return right


def _labels(known: ImageList, sample: Sample, classes: Collection[str], who: str) -> list[str]:
    told, keys = sample.facts.get("shows"), known.classes.keys if known.classes else ()
    labels = str(told).split(SEPARATOR) if told else [keys[label] for label in sample.labels]
    if not labels:
        raise BadInput(f"{who} should say which classes are there: in the column shows, with {SEPARATOR} between them")
    for label in labels:
        if label not in classes:
            raise UnknownName("class to choose", label, classes)
    return labels


def _points(known: ImageList, sample: Sample, who: str) -> list[list[float]]:
    """The midpoints of the sides of the known box, in fractions of the picture, as extreme points."""
    size, told = size_of(known, sample), str(sample.facts.get("box") or "")
    if isinstance(size, str):
        raise BadInput(f"{who} cannot be read: {size}")
    width, height = size
    try:
        left, top, right, bottom = (float(side) for side in told.split())
        is_inside = 0 <= left < right <= width and 0 <= top < bottom <= height
    except ValueError:
        is_inside = False
    if not is_inside:
        raise BadInput(
            f"{who} should have the correct box in the column box: left, top, right and bottom in its {width} x {height} "
            f"pixels, as 10 20 30 40; got {told!r}"
        )
    across, down = (left + right) / 2, (top + bottom) / 2
    points = [(across, top), (left, down), (across, bottom), (right, down)]
    return [[x / width, y / height] for x, y in points]


@dataclass(frozen=True)
class _Known:
    """A row of the manifest."""

    sample: Sample
    answer: dict[str, Any]
    pictures: Mapping[str, ImageSource]  # shown after the first, by path
    beside: str | None


def known_items(
    known: ImageList | None,
    screen: Screen,
    folder: Path,
    *,
    classes: Collection[str] = (),
    shown: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Item]:
    """An item for each image of a dataset with the facts `role` and `answer`, and those that its screen needs.

    A manifest with such columns is such a dataset; see `known_answer`. Two more columns: `pictures` are further files,
    as of a pair, and `beside` is the class that it is compared with. The pictures are added to the project. `shown`
    is what reviewers may see on request, by image id: gold items without it would be recognised as such.
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
    """BadInput or UnknownName where the images cannot become items of a screen; checked before any work is done."""
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
            f"{sample.id} of {known.name} should name two classes: the OOD class in the column label, the ID class in beside"
        )
    return str(beside) if beside else None


def _put(folder: Path, sources: Mapping[str, ImageSource], name: str) -> Mapping[str, str]:
    added = add_pictures(folder, sources)
    if added.unreadable:
        reasons = listed(f"{image} ({reason})" for image, reason in added.unreadable.items())
        raise BadInput(f"images of {name} cannot be read: {reasons}")
    return added.names
