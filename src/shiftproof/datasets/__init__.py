"""Datasets: which images there are, with their labels and facts.

`open_dataset` recognises the layout at a location; no image is decoded before its pixels are needed.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from shiftproof.catalog import DATASETS
from shiftproof.datasets.classes import ClassList, classes_from
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, listed
from shiftproof.files import impossible_name
from shiftproof.options import DatasetSettings
from shiftproof.places import absolute, check_url, given_place, is_url
from shiftproof.registry import missing_extra

__all__ = ["ImageList", "open_dataset"]


def open_dataset(
    location: str | Path,
    *,
    kind: str | None = None,
    labels: str | Path | Sequence[Any] | None = None,
    label: str | None = None,
    classes: ClassList | None = None,
    name: str | None = None,
    **options: Any,
) -> ImageList:
    """The dataset at a location: a folder, a manifest, arrays, shards, videos, boxes or any other layout of the catalog.

    `kind` names the layout where it should not be recognised. `labels` replaces the labels: a file of
    ReaL labels, a text or ``.npy`` file, a sequence in the order of the ids, or ``"none"``. `label` gives every image one
    class. `classes` names the classes in order: a list, a file or ``"ilsvrc2012"``. Other options belong to the kind.

    Everything can also be said in the location, as in ``imagenet-ood:/data/21k?list_file=/data/imagenetood.txt``.
    """
    from shiftproof.datasets.labels import relabelled
    from shiftproof.datasets.layout import recognise
    from shiftproof.datasets.published.known import with_recognition

    place, kind, said = _parsed(given_place(location), kind)
    given = {"labels": labels, "label": label, "classes": classes, "name": name, **options}
    said |= {option: value for option, value in given.items() if value is not None}
    for text in (place, *(str(value) for value in said.values() if isinstance(value, (str, Path)))):
        if problem := impossible_name(text):
            raise BadInput(f"{text!a} is {problem}, which no file can have")
        check_url(text)
    found = kind or recognise(place)
    try:
        opened = _open(found, place, said)
        if not opened.samples:
            raise BadInput(f"{place} names no images")
        opened = with_recognition(opened)
    except OSError as problem:  # no permission, a name that is too long, a folder that became a file
        raise BadInput(f"{place} cannot be read: {problem.strerror or problem}") from problem
    opened = relabelled(opened, labels=said.get("labels"), label=said.get("label"), classes=said.get("classes"))
    # a layout may know its place better: a name on the Hub is a URL
    where = opened.location if opened.location and is_url(opened.location) else place
    return dataclasses.replace(opened, location=_location(where, kind, said))


def open_with(location: str | Path, options: DatasetSettings) -> ImageList:
    """The dataset at a location, read as the settings say."""
    return open_dataset(
        location,
        kind=options.kind,
        labels=options.labels,
        label=options.label,
        allow_outside=options.allow_outside or None,  # only manifests have this option
    )


def _open(kind: str, place: str, said: Mapping[str, Any]) -> ImageList:
    from shiftproof.datasets.layout import load_layout

    own = {option: value for option, value in said.items() if option not in ("labels", "label", "classes")}
    # classes given beside new labels are the classes of those labels, not of the ones they replace
    applies = "classes" in said and "labels" not in said and "label" not in said
    classes = classes_from(said["classes"]) if applies else None
    entry = load_layout(kind)
    unknown = [option for option in own if option not in entry.options]
    if unknown:
        raise BadInput(f"datasets of kind {kind!r} have no option {unknown[0]!r}; they have {listed(sorted(entry.options))}")
    try:
        return entry.open(place, classes=classes, **own)
    except ModuleNotFoundError as missing:
        raise missing_extra(f"dataset {kind!r}", missing) from missing


def _parsed(location: str, kind: str | None) -> tuple[str, str | None, dict[str, Any]]:
    """The path, the layout and the options in a location; what exists on disk is a path whatever its name."""
    said: dict[str, Any] = {}
    if not is_url(location) and os.path.exists(location):
        return location, kind, said
    place, _, query = location.rpartition("?")
    if place and re.match(r"\w+=", query):
        location, said = place, dict(parse_qsl(query, errors="surrogateescape"))
    prefix, _, rest = location.partition(":")
    if kind is None and rest and prefix in DATASETS:
        return rest, prefix, said
    return location, kind, said


def _location(place: str, kind: str | None, said: Mapping[str, Any]) -> str | None:
    """The location that opens the dataset again; None where something was given in memory."""
    options = {option: value for option, value in said.items() if option != "name"}
    if not all(isinstance(value, (str, Path, int, float)) for value in options.values()):
        return None
    query = "&".join(f"{option}={quote(_absolute(value), errors='surrogateescape')}" for option, value in options.items())
    inner, inner_kind, inner_said = _parsed(place, None)
    # the place of a dataset that is made from another is itself a location
    where = _location(inner, inner_kind, inner_said) if inner_kind or inner_said else absolute(place)
    return (f"{kind}:" if kind else "") + str(where) + (f"?{query}" if query else "")


def with_paths(location: str, change: Callable[[str], str]) -> str:
    """A location with every path in it changed, those of its options and of the dataset that it is made from too."""
    place, kind, said = _parsed(location, None)
    if not kind and not said:
        return change(place)
    query = "&".join(f"{option}={quote(change(value), errors='surrogateescape')}" for option, value in said.items())
    return (f"{kind}:" if kind else "") + with_paths(place, change) + (f"?{query}" if query else "")


def _absolute(value: object) -> str:
    text = str(value)
    return os.path.abspath(text) if not is_url(text) and os.path.exists(text) else text
