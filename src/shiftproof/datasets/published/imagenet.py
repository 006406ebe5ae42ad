"""Relatives of ImageNet in layouts of their own: ImageNet-C, -C-bar, -3DCC, -P, -V2, -OOD, Tiny-ImageNet and OpenImage-O."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from shiftproof.catalog import CORRUPTIONS, PERTURBATIONS
from shiftproof.corruptions import CIFAR_C_BAR, IMAGENET_C_BAR
from shiftproof.datasets.image_list import LARGEST_FILE, FilesBelow, ImageList, StoredImage, file_stamp
from shiftproof.datasets.labels import NUMBER, places_of
from shiftproof.datasets.layout import Example, Folder, Published, layout
from shiftproof.datasets.listing import (
    Listing,
    folder_name,
    inner_root,
    is_video_name,
    list_files,
    list_images,
    subfolders,
    visible_entries,
)
from shiftproof.datasets.records import cut_in, is_unlabelled, notes_on, record_of
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import read_regular, read_text
from shiftproof.places import absolute, is_file, is_folder, names_in
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Decoder, Fact, Image, Sample

SEVERITIES = ("1", "2", "3", "4", "5")
"""The folders inside each of them."""

IMAGENET_3DCC = (
    *("near_focus", "far_focus", "fog_3d", "flash", "color_quant", "low_light"),
    *("xy_motion_blur", "z_motion_blur", "iso_noise", "bit_error", "h265_abr", "h265_crf"),
)
"""The corruptions of ImageNet-3DCC (Kar et al., 2022), which are read and not made: that needs the depth of each image."""

LEVELS = ("2", "3")
"""How the folders and files of further levels of a perturbation end."""

TINY_CLASSES, TINY_LABELS = 200, "val_annotations.txt"


def _is_by_severity(folder: Folder) -> bool:
    """Whether the folders read corruption / severity / class, the corruptions perhaps in groups, or one corruption alone."""
    root = folder.location
    if not folder.folders:
        return False
    if _holds_severities(root):
        return _names_corruption(os.path.basename(absolute(root)))
    inner = [os.path.join(root, folder) for folder in subfolders(root)]
    return all(_holds_severities(path) or _is_group(path) for path in inner)


def _is_group(path: str) -> bool:
    inner = subfolders(path)
    return bool(inner) and all(_holds_severities(os.path.join(path, folder)) for folder in inner)


def _holds_severities(path: str) -> bool:
    inner = subfolders(path)
    by_class = bool(inner) and bool(subfolders(os.path.join(path, inner[0])))
    return bool(inner) and set(inner) <= set(SEVERITIES) and (by_class or _names_corruption(os.path.basename(path)))


def _names_corruption(folder: str) -> bool:
    return folder in CORRUPTIONS or folder in IMAGENET_3DCC


@layout(
    holds="`corruption/severity/class` folders (ImageNet-C, ImageNet-C-bar, ImageNet-3DCC, Tiny-ImageNet-C)",
    labels="the class folder",
    recognise=_is_by_severity,
    written=("imagenet-c",),
    published=(
        Published("imagenet-c", "ImageNet-C", None, 1000, per_condition=50_000),
        Published("imagenet-c-bar", "ImageNet-C-bar", None, 1000, per_condition=50_000),
        Published("imagenet-3dcc", "ImageNet-3DCC", None, 1000, per_condition=50_000),
        Published("tiny-imagenet-c", "Tiny-ImageNet-C", None, TINY_CLASSES, per_condition=10_000),
    ),
    example=Example({"fog/3/n01440764/a.png": ""}),
)
def open_imagenet_c(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """Images in ``corruption/severity/class`` folders, with the facts `corruption` and `severity`.

    One corruption alone, ``fog/`` with the folders 1 to 5 in it, takes its name from the folder.
    """
    root = absolute(location)
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
    held = _published_set({path.corruption for path in conditions.values()}, len(places))
    return ImageList(
        name or folder_name(location),
        samples,
        classes if places else None,
        FilesBelow(root),
        notes=(*notes_on(record), *listing.notes()),
        published=held if classes.wnids is not None and not record else None,
        cut=cut_in(record),
    )


def _published_set(corruptions: set[str], classes: int) -> str | None:
    """The published dataset that these corruptions are of; None where they are of several, or of none."""
    if corruptions <= set(IMAGENET_3DCC):
        return "imagenet-3dcc"
    if corruptions <= set(IMAGENET_C_BAR):
        return "imagenet-c-bar"
    if corruptions <= set(CORRUPTIONS) - {*IMAGENET_C_BAR, *CIFAR_C_BAR}:
        return "tiny-imagenet-c" if classes == TINY_CLASSES else "imagenet-c"
    return None


@layout(
    holds="folders `0` to `999` (ImageNetV2)",
    labels="the class number",
    recognise=lambda folder: set(folder.folders) == {str(number) for number in range(1000)},
    published=(Published("imagenet-v2", "ImageNetV2", 10_000, 1000, 10),),
    example=Example({"7/a.png": ""}),
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


@layout(
    holds="`val_annotations.txt` (Tiny-ImageNet)",
    labels="that file",
    recognise=lambda folder: TINY_LABELS in folder.files,
    published=(Published("tiny-imagenet", "Tiny-ImageNet validation", 10_000, TINY_CLASSES, 50),),
    example=Example({"images/val_0.JPEG": "", "val_annotations.txt": "val_0.JPEG\tn01440764\t0\t0\t1\t1\n"}),
)
def open_tiny_imagenet(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The validation images of Tiny-ImageNet, labelled by its ``val_annotations.txt``."""
    root = inner_root(location)
    annotations = os.path.join(root, TINY_LABELS)
    if not is_file(annotations):
        raise BadInput(f"{location} has no {TINY_LABELS}; name the folder 'val' of Tiny-ImageNet")
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
    """The id of the clean image that a corrupted one was made from, the same under all conditions.

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
    steps = [*([own] if _names_corruption(own) else []), *filter(None, folder.split("/"))]
    if labelled and len(steps) > 2 and steps[-2] in SEVERITIES:
        return _Condition(steps[-3], int(steps[-2]), steps[-1])
    for corruption, severity in pairwise(steps if not labelled else steps[-2:]):
        if _names_corruption(corruption) and severity in SEVERITIES:
            return _Condition(corruption, int(severity), None)
    return None


@layout(
    holds="ImageNet-21K and a list of files (ImageNet-OOD)",
    labels="none: its images are of no ILSVRC class",
    published=(Published("imagenet-ood", "ImageNet-OOD", 31_802, 637, None, "imagenet_ood_classes"),),
    example=Example({"n02666943/a.png": "", "imagenetood.txt": "n02666943/a.png\n"}),
)
def open_imagenet_ood(
    location: str, *, list_file: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images of ImageNet-OOD in a folder of ImageNet-21K, by the published list of ``wnid/file`` lines.

    They are of no ILSVRC class, so they have no labels; the fact `folder` is their wnid.
    """
    return _open_list(location, list_file, "imagenetood.txt", "imagenet-ood", ("",), name, classes)


@layout(
    holds="OpenImages and a list of files (OpenImage-O)",
    labels="none",
    published=(Published("openimage-o", "OpenImage-O", 17_632),),
    example=Example({"test/a.png": "", "openimage_o.txt": "test/a.png\n"}),
)
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
        raise BadInput(f"{published} is an out-of-distribution dataset without labels; leave out the classes")
    listed = _lines(location, list_file, usual_name)
    ids = sorted(_found(location, listed, folders))
    missing = _missing(location, ids)
    if len(missing) == len(ids):
        raise BadInput(f"none of the {len(ids):,} listed images lies below {location}, such as {ids[0]}")
    notes = (f"{len(missing):,} of {len(ids):,} listed images are not there, such as {missing[0]}",) if missing else ()
    samples = [Sample(i, facts={"folder": i.rpartition("/")[0]} if "/" in i else {}) for i in ids]
    root = absolute(location)
    return ImageList(name or folder_name(location), samples, None, FilesBelow(root), notes=notes, published=published)


def _lines(location: str, list_file: str | Path | None, usual_name: str) -> list[str]:
    path = os.path.join(location, usual_name) if list_file is None else os.fspath(list_file)
    if not is_file(path):
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
            if any(is_file(os.path.join(location, image_id)) for image_id in ids[:100]):
                return ids
    return list(listed)


def _missing(location: str, ids: Sequence[str]) -> list[str]:
    by_folder: dict[str, list[str]] = defaultdict(list)
    for image_id in ids:
        by_folder[image_id.rpartition("/")[0]].append(image_id)
    missing: list[str] = []
    for folder, inside in by_folder.items():
        path = os.path.join(location, folder)
        there = set(names_in(path)) if is_folder(path) else set()
        missing += [image_id for image_id in inside if image_id.rpartition("/")[2] not in there]
    return missing


@dataclass(frozen=True, slots=True)
class FrameImage(StoredImage):
    """An image that is one frame of a video file."""

    path: str
    frame: int
    frames: int  # as many as the file said it holds; 0 where it could not say

    def stamp(self) -> str:
        return file_stamp(self.path)  # the digest is that of the file, for all its frames

    def read(self) -> bytes:
        return _bytes_at(self.path, file_stamp(self.path))

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - decodes image files
        from shiftproof.datasets.video.video_files import frames_in  # only where it is needed: it loads PyAV

        frames = frames_in(data)
        if len(frames) < self.frames or not frames:
            # a sequence with gaps is no sequence, so all of its frames are skipped
            raise UnreadableImage(f"broken video: {len(frames)} of {self.frames} frames can be decoded")
        return frames[self.frame]


@dataclass(frozen=True)
class FramesBelow:
    """Finds an image whose id is the path of its file below the root, and the number of the frame."""

    root: str
    frames: Mapping[str, int]  # by file

    def __call__(self, image_id: str) -> FrameImage:
        file, _, frame = image_id.rpartition("/")
        return FrameImage(os.path.join(self.root, file), int(frame), self.frames[file])


def _holds_sequences(at: Folder) -> bool:
    """Whether there are folders of .mp4 files called after perturbations, perhaps in groups, or one perturbation alone."""
    root = at.location
    inner = [os.path.join(root, folder) for folder in subfolders(root)]
    grouped = [os.path.join(path, folder) for path in inner if not _is_perturbation(path) for folder in subfolders(path)]
    return any(_holds_videos(path) for path in (absolute(root), *inner, *grouped) if _is_perturbation(path))


def _is_perturbation(path: str) -> bool:
    return level_of(os.path.basename(path)) is not None


def _holds_videos(path: str) -> bool:
    folders, names = visible_entries(path)
    inside = visible_entries(os.path.join(path, folders[0]))[1] if folders else []
    return any(map(is_video_name, (*names, *inside)))


@layout(
    holds="`perturbation/class` folders of `.mp4` files (ImageNet-P)",
    labels="the class folder; every frame is an image",
    recognise=_holds_sequences,
    written=("imagenet-p",),
    published=(Published("imagenet-p", "ImageNet-P", None, 1000, per_condition=50_000),),
    example=Example({"tilt/n01440764/a.mp4": ""}),
)
def open_imagenet_p(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The frames of ``perturbation/class/name.mp4`` files, with the facts `perturbation`, `level`, `sequence` and `frame`.

    Folders such as ``gaussian_noise_2`` hold the further levels. One perturbation alone takes its name from the folder.
    """
    root = absolute(location)
    record = record_of(root)
    listing = list_files(root, is_video_name)
    steps = {folder: _steps(root, folder, labelled=not is_unlabelled(record)) for folder in listing.folders}
    strange = [folder for folder, path in steps.items() if path is None]
    if strange or not steps:
        found = f"videos in {strange[0] or location}" if strange else "no .mp4 files"
        raise BadInput(f"{location} should hold perturbation/class folders of .mp4 files, but has {found}")
    folders = {folder: path for folder, path in steps.items() if path is not None}
    found_classes, places = places_of((path.key for path in folders.values() if path.key is not None), classes)
    frames = _frames(root, listing)
    samples: list[Sample] = []
    for folder, names in sorted(listing.folders.items()):
        path = folders[folder]
        labels = () if path.key is None else (places[path.key],)
        about: dict[str, Fact] = {"perturbation": path.perturbation, "level": path.level}
        for file in names:
            place = f"{folder}/{file}" if folder else file
            sequence = "/".join([*path.inside, os.path.splitext(file)[0]])
            samples += [
                Sample(f"{place}/{frame:02d}", labels, {**about, "sequence": sequence, "frame": frame})
                for frame in range(frames[place] or 1)
            ]
    return ImageList(
        name or folder_name(location),
        samples,
        found_classes if places else None,
        FramesBelow(root, frames),
        notes=(*notes_on(record), *listing.notes()),
        published="imagenet-p" if places and found_classes.wnids is not None and not record else None,
    )


class _Steps(NamedTuple):
    perturbation: str
    level: int
    inside: tuple[str, ...]  # the path within the perturbation's folder
    key: str | None  # what names the class; None for images without labels


def _steps(root: str, folder: str, *, labelled: bool) -> _Steps | None:
    """What a folder's path says, begun with the root's own name where that is a perturbation; None where it says nothing."""
    steps = [os.path.basename(root), *filter(None, folder.split("/"))]
    found = next((place for place, step in reversed(list(enumerate(steps))) if level_of(step)), None)
    known = None if found is None else level_of(steps[found])
    if found is None or known is None or (labelled and len(steps) > found + 2):
        return None
    inside = tuple(steps[found + 1 :])
    return _Steps(*known, inside, inside[0] if labelled and inside else None)


def _frames(root: str, listing: Listing) -> dict[str, int]:
    """The number of frames of each file; 0 for a broken one, which stays as one image, so that it is counted as skipped."""
    files = listing.ids()
    with ThreadPoolExecutor(8) as threads:
        return dict(zip(files, threads.map(lambda file: _frames_at(os.path.join(root, file)), files), strict=True))


def _frames_at(path: str) -> int:
    from shiftproof.datasets.video.video_files import count_frames

    try:
        return count_frames(path)
    except UnreadableImage:
        return 0


@lru_cache(maxsize=4)
def _bytes_at(path: str, stamp: str) -> bytes:  # noqa: ARG001 - part of the key of the cache
    return read_regular(path, most=LARGEST_FILE)
