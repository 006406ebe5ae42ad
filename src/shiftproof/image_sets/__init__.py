"""Image sets: which images there are, with their labels and facts.

`open_images` recognises what lies at a location; nothing is decoded before a picture is asked for.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from shiftproof.catalog import IMAGE_SETS
from shiftproof.class_lists import ClassList, classes_from
from shiftproof.errors import BadInput
from shiftproof.files import impossible_name
from shiftproof.image_sets.image_list import ImageList

__all__ = ["ImageList", "open_images"]


def open_images(
    location: str | Path,
    *,
    kind: str | None = None,
    labels: str | Path | Sequence[Any] | None = None,
    label: str | None = None,
    classes: ClassList | None = None,
    name: str | None = None,
    **options: Any,
) -> ImageList:
    """The image set at a location, which may be a folder, a manifest, ``.npy`` arrays or ``.tar`` shards.

    `kind` names an entry of the catalog where recognition should not decide. `labels` replaces the labels: a file of
    ReaL labels, a text or ``.npy`` file, a sequence in the order of the ids, or ``"none"``. `label` gives every image one
    class. `classes` names the classes in order: a list, a file or ``"ilsvrc2012"``. Other options belong to the kind.

    Everything can also be said in the location, as in ``imagenet-ood:/data/21k?list_file=/data/imagenetood.txt``.
    """
    from shiftproof.image_sets.labels import relabelled
    from shiftproof.image_sets.published import with_recognition
    from shiftproof.image_sets.recognition import recognise

    place, kind, said = _parsed(os.fspath(location), kind)
    given = {"labels": labels, "label": label, "classes": classes, "name": name, **options}
    said |= {option: value for option, value in given.items() if value is not None}
    for text in (place, *(str(value) for value in said.values() if isinstance(value, (str, Path)))):
        if problem := impossible_name(text):
            raise BadInput(f"{text!a} is {problem}, which no file can have")
    found = kind or recognise(place)
    try:
        opened = _open(found, place, said)
        if not opened.samples:
            raise BadInput(f"{place} names no images")
        opened = with_recognition(opened)
    except OSError as problem:  # what a disk says: no permission, a name that is too long, a folder that was a file
        raise BadInput(f"{place} cannot be read: {problem.strerror or problem}") from problem
    opened = relabelled(opened, labels=said.get("labels"), label=said.get("label"), classes=said.get("classes"))
    return dataclasses.replace(opened, location=_location(place, kind, said))


def _open(kind: str, place: str, said: Mapping[str, Any]) -> ImageList:
    own = {option: value for option, value in said.items() if option not in ("labels", "label", "classes")}
    # classes given beside new labels are the classes of those labels, not of the ones they replace
    applies = "classes" in said and "labels" not in said and "label" not in said
    classes = classes_from(said["classes"]) if applies else None
    loader = IMAGE_SETS.load(kind)
    try:
        opened: ImageList = loader(place, classes=classes, **own)
    except TypeError as problem:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(problem))
        if unknown is None or unknown[1] not in own:
            raise
        raise BadInput(f"image sets of kind {kind!r} have no option {unknown[1]!r}") from problem
    return opened


def _parsed(location: str, kind: str | None) -> tuple[str, str | None, dict[str, Any]]:
    """The place, the kind and the options that a location spells out; what exists on disk is taken as it is."""
    said: dict[str, Any] = {}
    if os.path.exists(location):
        return location, kind, said
    place, _, query = location.rpartition("?")
    if place and re.match(r"\w+=", query):
        location, said = place, dict(parse_qsl(query, errors="surrogateescape"))
    prefix, _, rest = location.partition(":")
    if kind is None and rest and prefix in IMAGE_SETS:
        return rest, prefix, said
    return location, kind, said


def _location(place: str, kind: str | None, said: Mapping[str, Any]) -> str | None:
    """What opens the set again, or None where something in it was given in memory."""
    options = {option: value for option, value in said.items() if option != "name"}
    if not all(isinstance(value, (str, Path, int, float)) for value in options.values()):
        return None
    query = "&".join(f"{option}={quote(_absolute(value), errors='surrogateescape')}" for option, value in options.items())
    inner, inner_kind, inner_said = _parsed(place, None)
    # the place of a set that is made from another is itself a location
    where = _location(inner, inner_kind, inner_said) if inner_kind or inner_said else os.path.abspath(place)
    return (f"{kind}:" if kind else "") + str(where) + (f"?{query}" if query else "")


def with_paths(location: str, change: Callable[[str], str]) -> str:
    """A location with every path in it changed, also those of its options and of the set that it is made from."""
    place, kind, said = _parsed(location, None)
    if not kind and not said:
        return change(place)
    query = "&".join(f"{option}={quote(change(value), errors='surrogateescape')}" for option, value in said.items())
    return (f"{kind}:" if kind else "") + with_paths(place, change) + (f"?{query}" if query else "")


def _absolute(value: object) -> str:
    text = str(value)
    return os.path.abspath(text) if os.path.exists(text) else text
