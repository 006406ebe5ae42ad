"""Folders of images: one folder a class, flat files named ``wnid_name.jpg``, or no labels at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from shiftproof.datasets.classes import WNID
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import SPLITS, Listing, folder_name, inner_root, list_images, subfolders
from shiftproof.datasets.published.known import CLASS_FOLDERS
from shiftproof.errors import BadInput, listed
from shiftproof.types import Classes, Sample

Labelled: TypeAlias = tuple[list[Sample], Classes | None, tuple[str, ...]]
"""Samples in the order of their ids, their classes, and notes on how the labels were found."""


@layout(
    holds="a folder for each class, flat files such as `n01440764_tench.jpg`, or any other folder of images",
    labels="the folder or the wnid; wnids get readable names, whole numbers are class numbers; none in any other folder",
    is_fallback=True,
    published=CLASS_FOLDERS,
    example=Example({"cat/a.png": "", "dog/b.jpg": ""}),
)
def open_folder(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The images below a folder, labelled by the folder or the wnid in the file name, where there is one."""
    root = inner_root(location)
    inner = subfolders(root)
    splits = [folder for folder in inner if folder.lower() in SPLITS]
    if len(splits) > 1:
        raise BadInput(f"{location} holds {listed(splits)}, which are separate splits; name one: {root}/{splits[-1]}")
    listing = list_images(root)
    if not listing.folders:
        raise BadInput(f"no images below {location} (looked for .jpg, .png, .webp, .gif, .bmp and .tif files)")
    samples, classes, notes = labelled(listing, classes)
    filled = {folder.partition("/")[0] for folder in listing.folders}
    empty = [folder for folder in inner if folder not in filled]
    if classes and empty:
        notes += (f"folders without images are no classes: {listed(empty)}",)
    return ImageList(name or folder_name(location), samples, classes, FilesBelow(root), notes=(*notes, *listing.notes()))


def labelled(listing: Listing, classes: Classes | None = None) -> Labelled:
    """The images of a listing under the labels that their folders or file names give."""
    keys = _keys_by_folder(listing.folders)
    if not keys and all(_begins_with_wnid(name) for name in listing.folders[""]):
        return _named_by_wnid(listing, classes)
    if not keys:
        return [Sample(image_id) for image_id in listing.ids()], None, ()
    classes, places = places_of(keys.values(), classes)
    samples: list[Sample] = []
    for folder, names in listing.folders.items():
        labels = (places[keys[folder]],) if folder else ()
        samples += [Sample(f"{folder}/{name}" if folder else name, labels) for name in names]
    samples.sort(key=lambda sample: sample.id)
    loose = len(listing.folders.get("", ()))
    notes = (f"{loose:,} of {len(samples):,} images lie outside the class folders and are unlabelled",) if loose else ()
    return samples, classes, notes


def _keys_by_folder(folders: Mapping[str, list[str]]) -> dict[str, str]:
    """What names the class in each folder's path: the wnid where all have one, else the first step."""
    steps = {folder: folder.split("/") for folder in folders if folder}
    while len({path[0] for path in steps.values()}) == 1 and all(len(path) > 1 for path in steps.values()):
        steps = {folder: path[1:] for folder, path in steps.items()}
    wnids = {folder: next(filter(WNID.fullmatch, path), "") for folder, path in steps.items()}
    return wnids if all(wnids.values()) else {folder: path[0] for folder, path in steps.items()}


def _named_by_wnid(listing: Listing, classes: Classes | None) -> Labelled:
    ids = listing.ids()
    classes, places = places_of((image_id[:9] for image_id in ids), classes)
    samples = [Sample(image_id, (places[image_id[:9]],)) for image_id in ids]
    return samples, classes, ("labelled by the wnid in each file name",)


def _begins_with_wnid(name: str) -> bool:
    return WNID.match(name) is not None and name[9:10] in ("_", ".")
