"""Image files of a dataset: their paths, and their bytes: the source file itself, or a lossless PNG."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.datasets.image_list import FileImage, decoded
from shiftproof.datasets.listing import IMAGE_ENDINGS
from shiftproof.datasets.tar import TarImage
from shiftproof.errors import BadInput, UnreadableImage, listed
from shiftproof.types import Classes, Dataset, ImageSource, Sample
from shiftproof.writing.atomic_folder import File

MAX_NAME_BYTES = 240
"""Of a file name without its suffix, on every file system."""


def file_places(images: Dataset) -> list[str]:
    """The path of each image below the folder of a condition, without a suffix.

    Labelled images lie in a folder named after their class, by wnid where it is known; those of an unlabelled dataset
    keep their path. Two images of one name, such as ``a.png`` and ``a.jpg``, are named by their whole id.
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
    long = [place for place in places if len(place) > MAX_NAME_BYTES // 4 and any(map(_is_too_long, place.split("/")))]
    if long:
        shown = ", ".join(f"{place[:60]}…" for place in long[:3])
        raise BadInput(f"{len(long):,} names of images or classes are too long for a file, as {shown}; shorten them first")
    return places


def _is_too_long(step: str) -> bool:
    return len(step.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES


def first_labels(images: Dataset) -> NDArray[np.integer] | None:
    """The first label of each image, (images,), -1 for one without; None for an unlabelled dataset."""
    if images.classes is None:
        return None
    return np.array([sample.labels[0] if sample.labels else -1 for sample in images.samples], np.int64)


def array_record(images: Dataset) -> dict[str, Any]:
    """The classes and image ids of array rows, for the record: rows have no names."""
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
    """A path component that is neither hidden nor a parent."""
    step = step.replace("\\", "-").replace("\0", "")
    return f"_{step.lstrip('.')}" if step.startswith(".") or not step else step


def is_own_file(source: ImageSource) -> bool:
    """Whether the bytes of an image are a file of its own, and not a frame, a crop or a row of an array."""
    return isinstance(source, (FileImage, TarImage))


def read_original(image_id: str, source: ImageSource) -> bytes:
    """The bytes of an image file; BadInput where it can no longer be read."""
    try:
        return source.read() if is_own_file(source) else _png_file(source)
    except UnreadableImage as error:
        raise BadInput(f"{image_id}: {error}") from error
    except OSError as error:
        raise BadInput(f"{image_id} cannot be read: {error.strerror or error}") from error


def picture_files(images: Dataset, places: Sequence[str]) -> Iterator[File]:
    """The file of each image at its path."""
    for sample, place in zip(images.samples, places, strict=True):
        yield File(place, partial(_copy, sample.id, images.source(sample)))


def _copy(image_id: str, source: ImageSource, stream: BinaryIO) -> None:
    stream.write(read_original(image_id, source))


def original_places(images: Dataset) -> Sequence[str]:
    """The path of each image below a folder, in the folder of its class, with the suffix of its file."""
    places = zip(file_places(images), images.samples, strict=True)
    return [f"{place}{_ending(sample, images.source(sample))}" for place, sample in places]


def _ending(sample: Sample, source: ImageSource) -> str:
    if not is_own_file(source):
        return ".png"
    return PurePath(source.path if isinstance(source, FileImage) else sample.id).suffix


def _png_file(source: ImageSource) -> bytes:
    image = decoded(source)
    if isinstance(image, str):
        raise UnreadableImage(image)
    held = io.BytesIO()
    Pillow.fromarray(image).save(held, "PNG")
    return held.getvalue()
