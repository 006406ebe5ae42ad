"""Outside sets that are published as a list of files over a larger collection: ImageNet-OOD and OpenImage-O."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from shiftproof.errors import BadInput
from shiftproof.files import read_text
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name
from shiftproof.types import Classes, Sample


def open_imagenet_ood(
    location: str, *, list_file: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images of ImageNet-OOD in a folder of ImageNet-21K, by the published list of ``wnid/file`` lines.

    They are outside every ILSVRC class, so they have no labels; the fact `folder` holds their wnid.
    """
    return _open_list(location, list_file, "imagenetood.txt", "imagenet-ood", ("",), name, classes)


def open_openimage_o(
    location: str, *, list_file: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images of OpenImage-O in a folder of OpenImages, by its list; they have no labels."""
    return _open_list(location, list_file, "openimage_o.txt", "openimage-o", ("", "test", "images"), name, classes)


def _open_list(
    location: str,
    list_file: str | Path | None,
    usual_name: str,
    published: str,
    folders: Sequence[str],
    name: str | None,
    classes: Classes | None,
) -> ImageList:
    if classes is not None:
        raise BadInput(f"the images of {published} are outside the classes of a model, so they take no classes")
    listed = _lines(location, list_file, usual_name)
    ids = sorted(_found(location, listed, folders))
    missing = _missing(location, ids)
    if len(missing) == len(ids):
        raise BadInput(f"none of the {len(ids):,} listed images lies below {location}, such as {ids[0]}")
    notes = (f"{len(missing):,} of {len(ids):,} listed images are not there, such as {missing[0]}",) if missing else ()
    samples = [Sample(i, facts={"folder": i.rpartition("/")[0]} if "/" in i else {}) for i in ids]
    root = os.path.abspath(location)
    return ImageList(name or folder_name(location), samples, None, FilesBelow(root), notes=notes, published=published)


def _lines(location: str, list_file: str | Path | None, usual_name: str) -> list[str]:
    path = Path(location, usual_name) if list_file is None else Path(list_file)
    if not os.path.isfile(path):
        raise BadInput(f"no list of images at {path}; give the published list with list_file={usual_name}")
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    # some benchmarks write a label, -1, behind each name
    names = [line.rsplit(maxsplit=1)[0] if line.rsplit(maxsplit=1)[-1].lstrip("-").isdecimal() else line for line in lines]
    outside = next((entry for entry in names if entry.startswith("/") or ".." in entry.split("/")), None)
    if outside or not names:
        raise BadInput(f"{path} should list paths below the folder, but has {outside or 'no lines'!r}")
    return list(dict.fromkeys(names))


def _found(location: str, listed: Sequence[str], folders: Sequence[str]) -> list[str]:
    """The listed images as paths below the location, which may keep them in another folder than the list says."""
    for names in (listed, [posixpath.basename(entry) for entry in listed]):
        for folder in folders:
            ids = [posixpath.join(folder, name) for name in names]
            if any(os.path.isfile(os.path.join(location, image_id)) for image_id in ids[:100]):
                return ids
    return list(listed)


def _missing(location: str, ids: Sequence[str]) -> list[str]:
    by_folder: dict[str, list[str]] = defaultdict(list)
    for image_id in ids:
        by_folder[image_id.rpartition("/")[0]].append(image_id)
    missing: list[str] = []
    for folder, inside in by_folder.items():
        path = os.path.join(location, folder)
        there = set(os.listdir(path)) if os.path.isdir(path) else set()
        missing += [image_id for image_id in inside if image_id.rpartition("/")[2] not in there]
    return missing
