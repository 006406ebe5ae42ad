"""Frames that were taken out of clips before: a folder of numbered images for each clip."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.image_sets.folder import Labelled, labelled
from shiftproof.image_sets.frame_sets import Clip, Clips, frames_around
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name, group_by_folder, inner_root, list_images
from shiftproof.types import Classes, Sample

INFO = "info.json"
"""What may lie beside the frames of a clip: its `fps` and its `anchor`, as in YTBB-Robust."""


def open_frames(location: str, *, classes: Classes | None = None, **options: Any) -> ImageList:
    """The frames around anchors of clips that lie as images in a folder each, or of the one clip a folder holds.

    The last number in a file's name is that of the frame, and offsets are differences of these numbers. Clips inside
    further folders are labelled by them. The options are those of `frames_around`.
    """
    return frames_around(extracted_at(location, classes=classes), **options)


def extracted_at(location: str, *, classes: Classes | None = None) -> Clips:
    """The clips below a folder, a folder of images each."""
    root = inner_root(location)
    listing = list_images(root)
    if not listing.folders:
        raise BadInput(f"no frames below {location}; expected a folder of images for each clip")
    if list(listing.folders) == [""]:
        found: Labelled = [Sample("")], None, ()
    else:
        found = labelled(group_by_folder(listing.folders), classes)
    samples, classes, notes = found
    clips = [_clip(root, sample, listing.folders[sample.id]) for sample in samples]
    notes += tuple(note for note in listing.notes() if INFO not in note)
    return Clips(folder_name(location), clips, classes, FilesBelow(root), notes)


def frame_number(name: str) -> int:
    """The last number in a file's name; BadInput where there is none.

    >>> frame_number("val_7/000432.JPEG"), frame_number("frame-722.jpg")
    (432, 722)
    """
    found = re.findall(r"\d+", os.path.splitext(os.path.basename(name))[0])
    if not found:
        raise BadInput(f"{name} has no number in its name that says which frame it is")
    return int(found[-1])


def _clip(root: str, clip: Sample, names: Sequence[str]) -> Clip:
    by_number = {frame_number(name): name for name in names}
    if len(by_number) < len(names):
        raise BadInput(f"{clip.id or root} has two images of one frame number")
    numbers = sorted(by_number)
    ids = [f"{clip.id}/{by_number[number]}" if clip.id else by_number[number] for number in numbers]
    info = _info(os.path.join(root, clip.id, INFO))
    rate = info.get("fps")
    return Clip(
        clip.id or folder_name(root),
        numbers,
        ids,
        clip.labels,
        rate=rate,
        seconds=[number / rate for number in numbers] if rate else None,
        anchors=None if info.get("anchor") is None else str(info["anchor"]),
    )


def _info(path: str) -> dict[str, Any]:
    try:
        info = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise BadInput(f"{path} cannot be read: {problem}") from problem
    return info if isinstance(info, dict) else {}
