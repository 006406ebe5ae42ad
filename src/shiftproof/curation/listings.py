"""Some images of a set as a manifest, which `open_images` opens with `allow_outside`: with their labels, where they are."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from shiftproof.curation.tables import table_bytes
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.image_sets.image_list import FileImage, ImageList
from shiftproof.image_sets.manifest import joined_labels
from shiftproof.types import Sample


def save_listing(path: Path, images: ImageList, ids: Collection[str]) -> None:
    """Writes a manifest of the images with these ids; BadInput where they are not files of their own, as frames of clips."""
    wanted = frozenset(ids)
    samples = [sample for sample in images.samples if sample.id in wanted]
    names = list(dict.fromkeys(name for sample in samples for name in sample.facts))
    rows = [
        (_path(images, sample, path), sample.id, _labels(images, sample), *(sample.facts.get(name, "") for name in names))
        for sample in samples
    ]
    write_whole(path, table_bytes([("path", "id", "labels", *names), *rows]))


def _path(images: ImageList, sample: Sample, manifest: Path) -> str:
    source = images.source(sample)
    if not isinstance(source, FileImage):
        raise BadInput(f"{images.name} has images that are no files of their own, which a manifest cannot list")
    return Path(os.path.relpath(source.path, manifest.parent)).as_posix()


def _labels(images: ImageList, sample: Sample) -> str:
    return joined_labels(images.classes.keys[label] for label in sample.labels) if images.classes else ""
