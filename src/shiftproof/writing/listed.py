"""Manifests of images that lie where they are: the same photos with other labels or further facts, and no copies."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from shiftproof.datasets.image_list import FileImage
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.places import is_url, local_path
from shiftproof.types import Dataset
from shiftproof.writing.layouts import manifest_text

ENDING = ".jsonl"


def check_listing(images: Dataset, path: str | Path) -> Path:
    """Where a manifest of these images is to lie; BadInput where it cannot name them."""
    place = local_path(path, "a manifest")
    if place.suffix.lower() != ENDING:
        raise BadInput(
            f"a manifest is written as JSON lines, to a file such as {place.stem or 'photos'}{ENDING}; got {place}"
        )
    for sample in images.samples[:1]:
        source = images.source(sample)
        if not isinstance(source, FileImage) or is_url(source.path):
            raise BadInput(
                f"a manifest names files, and the images of {images.ref.name} are none of their own here; unpack or fetch "
                "them first"
            )
    return place


def save_listing(images: Dataset, path: str | Path) -> str:
    """Writes a manifest of the images, with ids, labels and facts; gives the location that `open_dataset` reads.

    Ids stay, so that what is stored of the images is found again.
    """
    place = check_listing(images, path)
    folder = os.path.realpath(place.parent)
    sources = (images.source(sample) for sample in images.samples)
    paths = [os.path.relpath(os.path.realpath(getattr(source, "path", "")), folder) for source in sources]
    places = [PurePath(one).as_posix() for one in paths]
    write_whole(place, manifest_text(images, places).encode("utf-8", "surrogateescape"))
    outside = any(one.startswith("../") for one in places)
    return f"{place}?allow_outside=true" if outside else str(place)
