"""Which kind of image set a location holds, told from names alone."""

from __future__ import annotations

import os
import re
from glob import has_magic

from shiftproof.errors import BadInput
from shiftproof.image_sets.layouts import CORRUPTIONS, SEVERITIES, level_of
from shiftproof.image_sets.listing import inner_root, is_clip_name, is_image_name, is_video_name, subfolders, visible_entries
from shiftproof.image_sets.records import KINDS, load_record

MANIFEST_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
MANIFEST_NAMES = tuple(f"manifest{ending}" for ending in MANIFEST_ENDINGS)
_NUMBERS = {str(number) for number in range(1000)}


def recognise(location: str) -> str:
    """The name of the kind in the catalog; BadInput in one sentence where there is none."""
    if os.path.isdir(location):
        return _kind_of_folder(location)
    if os.path.isfile(location):
        return _kind_of_file(location)
    if location.endswith(".tar") and (has_magic(location) or re.search(r"\{.*\}", location)):
        return "tar"
    if re.match(r"[a-z][a-z0-9+.-]*://", location):
        raise BadInput(f"{location} is not on this machine; download it and name the folder")
    raise BadInput(f"no such file or folder: {location}")


def _kind_of_file(location: str) -> str:
    lower = location.lower()
    if lower.endswith(MANIFEST_ENDINGS):
        return "manifest"
    if lower.endswith(".npy"):
        return "arrays"
    if lower.endswith(".tar"):
        return "tar"
    if lower.endswith(".json"):
        return "coco"
    if lower.endswith((".zip", ".tgz", ".gz", ".7z", ".rar", ".zst", ".bz2", ".xz")):
        raise BadInput(f"{location} is compressed; unpack it and name the folder (plain .tar files are read as they are)")
    if is_clip_name(os.path.basename(location)):
        return "clips"
    if is_image_name(os.path.basename(location)):
        raise BadInput(f"{location} is one image; name the folder it lies in")
    kinds = "a folder, a manifest (.csv, .jsonl, .parquet), .npy, .tar, the .json of COCO or a video such as .mp4"
    raise BadInput(f"{location} is no image set: expected {kinds}")


def _kind_of_folder(location: str) -> str:
    root = inner_root(location)
    record = load_record(root)
    if record is not None:
        return KINDS[record["layout"]]
    folders, names = visible_entries(root)
    if any(name in names for name in MANIFEST_NAMES):
        return "manifest"
    if "val_annotations.txt" in names:
        return "tiny-imagenet"
    if has_objectnet_mappings(root):
        return "objectnet"
    for file, kind in (("pmsets.json", "vid-robust"), ("anchor_labels.json", "ytbb-robust")):
        if file in names or os.path.isfile(os.path.join(root, "metadata", file)):
            return kind
    if {"Annotations", "JPEGImages"} <= set(folders):
        return "voc"
    if {"images", "labels"} <= set(folders) and any(n.endswith(".txt") for n in visible_entries(f"{root}/labels")[1]):
        return "yolo"
    if not folders and not any(map(is_image_name, names)):
        if any(name.endswith(".npy") for name in names):
            return "arrays"
        if any(name.endswith(".tar") for name in names):
            return "tar"
    if set(folders) == _NUMBERS:
        return "imagenet-v2"
    if holds_sequences(location):
        return "imagenet-p"
    if holds_clips(root):
        return "clips"
    return "imagenet-c" if folders and is_by_severity(location) else "folder"


def has_objectnet_mappings(root: str) -> bool:
    """Whether the files that explain ObjectNet's folders lie in the folder or beside it."""
    return any(os.path.isfile(os.path.join(root, up, "mappings", "folder_to_objectnet_label.json")) for up in ("", ".."))


def is_by_severity(root: str) -> bool:
    """Whether the folders read corruption / severity / class, the corruptions perhaps in groups, or one corruption alone."""
    if _holds_severities(root):
        return os.path.basename(os.path.abspath(root)) in CORRUPTIONS
    inner = [os.path.join(root, folder) for folder in subfolders(root)]
    return all(_holds_severities(path) or _is_group(path) for path in inner)


def holds_sequences(root: str) -> bool:
    """Whether there are folders of .mp4 files called after perturbations, perhaps in groups, or one perturbation alone."""
    inner = [os.path.join(root, folder) for folder in subfolders(root)]
    grouped = [os.path.join(path, folder) for path in inner if not _is_perturbation(path) for folder in subfolders(path)]
    return any(_holds_videos(path) for path in (os.path.abspath(root), *inner, *grouped) if _is_perturbation(path))


def holds_clips(root: str) -> bool:
    """Whether there are video files and no images in a folder, or in the first of its folders."""
    folders, names = visible_entries(root)
    inside = visible_entries(os.path.join(root, folders[0]))[1] if folders else []
    return any(map(is_clip_name, (*names, *inside))) and not any(map(is_image_name, (*names, *inside)))


def _is_perturbation(path: str) -> bool:
    return level_of(os.path.basename(path)) is not None


def _holds_videos(path: str) -> bool:
    folders, names = visible_entries(path)
    inside = visible_entries(os.path.join(path, folders[0]))[1] if folders else []
    return any(map(is_video_name, (*names, *inside)))


def _is_group(path: str) -> bool:
    inner = subfolders(path)
    return bool(inner) and all(_holds_severities(os.path.join(path, folder)) for folder in inner)


def _holds_severities(path: str) -> bool:
    inner = subfolders(path)
    by_class = bool(inner) and bool(subfolders(os.path.join(path, inner[0])))
    return bool(inner) and set(inner) <= set(SEVERITIES) and (by_class or os.path.basename(path) in CORRUPTIONS)
