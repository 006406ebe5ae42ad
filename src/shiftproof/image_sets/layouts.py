"""Published folders that are more than one folder a class: ImageNet-C, ImageNetV2 and Tiny-ImageNet."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from shiftproof.catalog import PERTURBATIONS
from shiftproof.corruptions import GROUPS, IMAGENET_C
from shiftproof.errors import BadInput
from shiftproof.files import read_text
from shiftproof.image_sets.class_keys import NUMBER, places_of
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name, inner_root, list_images
from shiftproof.image_sets.records import cut_in, is_unlabelled, notes_on, record_of
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Fact, Sample

CORRUPTIONS = (*IMAGENET_C, *GROUPS["extra"])
"""The folders and files of ImageNet-C and CIFAR-10-C: fifteen, then the four extra ones."""

SEVERITIES = ("1", "2", "3", "4", "5")
"""The folders inside each of them."""

LEVELS = ("2", "3")
"""How the folders and files of further levels of a perturbation end."""

TINY_CLASSES = 200


def open_imagenet_c(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """Images in ``corruption/severity/class`` folders, with the facts `corruption` and `severity`.

    One corruption alone, ``fog/`` with the folders 1 to 5 in it, takes its name from the folder.
    """
    root = os.path.abspath(location)
    record = record_of(root)
    listing = list_images(root)
    steps = {folder: _condition_steps(root, folder, labelled=not is_unlabelled(record)) for folder in listing.folders}
    strange = [folder for folder, path in steps.items() if path is None]
    if strange or not steps:
        found = f"images in {strange[0] or location}" if strange else "no images"
        raise BadInput(f"{location} should hold corruption/severity/class folders, but has {found}")
    conditions = {folder: path for folder, path in steps.items() if path is not None}
    classes, places = places_of((path.key for path in conditions.values() if path.key is not None), classes)
    samples: list[Sample] = []
    for folder, names in listing.folders.items():
        corruption, severity, key = conditions[folder]
        facts: dict[str, Fact] = {"corruption": corruption, "severity": severity}
        labels = () if key is None else (places[key],)
        samples += [Sample(f"{folder}/{image}", labels, facts) for image in names]
    samples.sort(key=lambda sample: sample.id)
    known = {path.corruption for path in conditions.values()} <= set(CORRUPTIONS) and classes.wnids is not None
    title = "tiny-imagenet-c" if len(places) == TINY_CLASSES else "imagenet-c"
    return ImageList(
        name or folder_name(location),
        samples,
        classes if places else None,
        FilesBelow(root),
        notes=(*notes_on(record), *listing.notes()),
        published=title if known and not record else None,
        cut=cut_in(record),
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
    rows = [line.split("\t") for line in read_text(annotations).splitlines() if line.strip()]
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


def clean_id(image_id: str, severity: int) -> str:
    """What the id of a corrupted image says of the image it was made from, the same for all its conditions.

    >>> clean_id("blur/defocus_blur/3/n01440764/a.JPEG", 3), clean_id("3/n01440764/a.JPEG", 3), clean_id("fog/3/00017", 3)
    ('n01440764/a.JPEG', 'n01440764/a.JPEG', '00017')
    """
    return f"/{image_id}".partition(f"/{severity}/")[2]


def level_of(folder: str) -> tuple[str, int] | None:
    """The perturbation and level that a folder or file is called after; None where it is not.

    >>> level_of("gaussian_noise_2"), level_of("tilt"), level_of("cat")
    (('gaussian_noise', 2), ('tilt', 1), None)
    """
    stem, _, number = folder.rpartition("_")
    if stem in PERTURBATIONS and number in LEVELS:
        return stem, int(number)
    return (folder, 1) if folder in PERTURBATIONS else None


class _Condition(NamedTuple):
    corruption: str
    severity: int
    key: str | None  # what names the class; None for images without labels


def _condition_steps(root: str, folder: str, *, labelled: bool) -> _Condition | None:
    """What a folder's path says, begun with the root's own name where that is a corruption; None where it says nothing."""
    own = os.path.basename(root)
    steps = [*([own] if own in CORRUPTIONS else []), *filter(None, folder.split("/"))]
    if labelled and len(steps) > 2 and steps[-2] in SEVERITIES:
        return _Condition(steps[-3], int(steps[-2]), steps[-1])
    for corruption, severity in pairwise(steps if not labelled else steps[-2:]):
        if corruption in CORRUPTIONS and severity in SEVERITIES:
            return _Condition(corruption, int(severity), None)
    return None
