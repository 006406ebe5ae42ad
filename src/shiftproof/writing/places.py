"""Which file an image becomes: its class folder and its own name, as in the published sets."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.listing import IMAGE_ENDINGS
from shiftproof.types import Classes, ImageSet, Sample

LONGEST = 240
"""Bytes of a name, before its ending, that every file system takes."""


def file_places(images: ImageSet) -> list[str]:
    """The path of each image below the folder of a condition, without an ending.

    Labelled images lie in a folder called after their class, by wnid where it is known; those of a set without labels
    keep their path. Two images of one name, such as ``a.png`` and ``a.jpg``, are told apart by their whole id.
    """
    folders = _class_folders(images.classes) if images.classes else []
    places = [_place(sample, folders, _stem(sample.id.rpartition("/")[2])) for sample in images.samples]
    counts = Counter(places)
    if len(counts) < len(places):
        pairs = zip(places, images.samples, strict=True)
        places = [_place(sample, folders, _whole_id(sample.id)) if counts[place] > 1 else place for place, sample in pairs]
        twice = [place for place, count in Counter(places).items() if count > 1]
        if twice:
            raise BadInput(f"several images would become one file: {listed(twice, most=3)}; rename them first")
    long = [place for place in places if len(place) > LONGEST // 4 and any(map(_is_too_long, place.split("/")))]
    if long:
        shown = ", ".join(f"{place[:60]}…" for place in long[:3])
        raise BadInput(f"{len(long):,} names of images or classes are too long for a file, as {shown}; shorten them first")
    return places


def _is_too_long(step: str) -> bool:
    return len(step.encode("utf-8", "surrogateescape")) > LONGEST


def first_labels(images: ImageSet) -> NDArray[np.integer] | None:
    """The first label of each image, (images,), -1 for one without; None for a set without labels."""
    if images.classes is None:
        return None
    return np.array([sample.labels[0] if sample.labels else -1 for sample in images.samples], np.int64)


def array_record(images: ImageSet) -> dict[str, Any]:
    """What a record says of the rows of arrays, which have no names: their classes and the images they were made from."""
    classes = {"classes": {"names": images.classes.names, "wnids": images.classes.wnids}} if images.classes else {}
    return {**classes, "images": [sample.id for sample in images.samples]}


def _class_folders(classes: Classes) -> list[str]:
    folders = [_safe(key.replace("/", "-")) for key in classes.keys]
    twice = [folder for folder, count in Counter(folders).items() if count > 1]
    if twice:
        raise BadInput(f"several classes are called {listed(twice, most=3)}, so they cannot be folders; give them wnids")
    return folders


def _place(sample: Sample, folders: list[str], name: str) -> str:
    if sample.labels:
        return f"{folders[sample.labels[0]]}/{name}"
    if folders:
        return name
    steps = [_safe(step) for step in sample.id.split("/")[:-1] if step not in ("", ".", "..")]
    return "/".join([*steps, name])


def _stem(name: str) -> str:
    stem, ending = os.path.splitext(name)
    return _safe(stem if ending.lower() in IMAGE_ENDINGS else name)


def _whole_id(image_id: str) -> str:
    return _safe(image_id.strip("/").replace("/", "-"))


def _safe(step: str) -> str:
    """A step of a path that is neither hidden nor leads elsewhere."""
    step = step.replace("\\", "-").replace("\0", "")
    return f"_{step.lstrip('.')}" if step.startswith(".") or not step else step
