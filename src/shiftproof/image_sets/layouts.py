"""Published folders that are more than one folder a class: ImageNet-C, ImageNetV2 and Tiny-ImageNet."""

from __future__ import annotations

import os
from pathlib import Path

from shiftproof.errors import BadInput
from shiftproof.image_sets.class_keys import NUMBER, places_of
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name, inner_root, list_images
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Fact, Sample

CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression", "speckle_noise",
    "gaussian_blur", "spatter", "saturate",
)  # fmt: skip
"""The folders and files of ImageNet-C and CIFAR-10-C: fifteen, then the four extra ones."""

SEVERITIES = ("1", "2", "3", "4", "5")
"""The folders inside each of them."""


def open_imagenet_c(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """Images in ``corruption/severity/class`` folders, with the facts `corruption` and `severity`.

    One corruption alone, ``fog/`` with the folders 1 to 5 in it, takes its name from the folder.
    """
    root = os.path.abspath(location)
    listing = list_images(root)
    steps = {folder: _steps(root, folder) for folder in listing.folders}
    strange = [folder for folder, path in steps.items() if len(path) < 3 or path[-2] not in SEVERITIES]
    if strange or not steps:
        found = f"images in {strange[0] or location}" if strange else "no images"
        raise BadInput(f"{location} should hold corruption/severity/class folders, but has {found}")
    classes, places = places_of((path[-1] for path in steps.values()), classes)
    samples: list[Sample] = []
    for folder, names in listing.folders.items():
        corruption, severity, key = steps[folder][-3:]
        facts: dict[str, Fact] = {"corruption": corruption, "severity": int(severity)}
        samples += [Sample(f"{folder}/{image}", (places[key],), facts) for image in names]
    samples.sort(key=lambda sample: sample.id)
    known = {path[-3] for path in steps.values()} <= set(CORRUPTIONS) and classes.wnids is not None
    return ImageList(
        name or folder_name(location),
        samples,
        classes,
        FilesBelow(root),
        notes=listing.notes(),
        published="imagenet-c" if known else None,
    )


def open_imagenet_v2(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """Images in folders 0 to 999, which are the numbers of the ILSVRC-2012 classes and not names to be sorted."""
    root = inner_root(location)
    listing = list_images(root)
    classes = classes or ilsvrc_classes()
    strange = [folder for folder in listing.folders if not NUMBER.fullmatch(folder) or int(folder) >= len(classes)]
    if strange or not listing.folders:
        found = f"images in {strange[0] or location}" if strange else "no images"
        raise BadInput(f"{location} should hold folders called 0 to 999, but has {found}")
    samples = [Sample(f"{folder}/{image}", (int(folder),)) for folder, names in listing.folders.items() for image in names]
    samples.sort(key=lambda sample: sample.id)
    return ImageList(
        name or folder_name(location), samples, classes, FilesBelow(root), notes=listing.notes(), published="imagenet-v2"
    )


def open_tiny_imagenet(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The validation images of Tiny-ImageNet, labelled by its ``val_annotations.txt``."""
    root = inner_root(location)
    annotations = Path(root, "val_annotations.txt")
    if not annotations.is_file():
        raise BadInput(f"{location} has no val_annotations.txt; name the folder 'val' of Tiny-ImageNet")
    rows = [line.split("\t") for line in annotations.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(row) < 2 for row in rows):
        raise BadInput(f"{annotations} should have lines of a file name, a tab and a wnid")
    keys = {row[0]: row[1] for row in rows}
    classes, places = places_of(keys.values(), classes)
    listing = list_images(root)
    if not listing.folders:
        raise BadInput(f"no images below {location}")
    ids = listing.ids()
    names = [image_id.rpartition("/")[2] for image_id in ids]
    samples = [Sample(i, (places[keys[n]],) if n in keys else ()) for i, n in zip(ids, names, strict=True)]
    return ImageList(name or folder_name(location), samples, classes, FilesBelow(root), published="tiny-imagenet")


def _steps(root: str, folder: str) -> list[str]:
    """The folder's path, begun with the root's own name where that is a corruption."""
    own = os.path.basename(root)
    return [own, *folder.split("/")] if own in CORRUPTIONS else folder.split("/")
