"""Frames that were taken out of clips before: a folder of numbered images for each clip."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.files import read_json
from shiftproof.image_sets.anchors import AnchorRule
from shiftproof.image_sets.boxed import short
from shiftproof.image_sets.folder import Labelled, labelled
from shiftproof.image_sets.frame_sets import Clip, Clips, frames_around
from shiftproof.image_sets.image_list import FilesBelow, ImageList, all_but, broken_note
from shiftproof.image_sets.listing import folder_name, group_by_folder, inner_root, list_images
from shiftproof.types import Classes, Sample

MOST_DIGITS = 18
"""Of the number of a frame; a longer row of digits in a name is something else."""

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
    broken: dict[str, str] = {}
    clips = [_clip(root, sample, listing.folders[sample.id], broken) for sample in samples]
    notes += tuple(note for note in listing.notes() if INFO not in note)
    find = all_but(FilesBelow(root), broken, len(clips))
    return Clips(folder_name(location), clips, classes, find, (*notes, *broken_note(broken)))


def frame_number(name: str) -> int:
    """The last number in a file's name; BadInput where there is none.

    >>> frame_number("val_7/000432.JPEG"), frame_number("frame-722.jpg")
    (432, 722)
    """
    found = re.findall(r"\d+", os.path.splitext(os.path.basename(name))[0])
    if not found or len(found[-1]) > MOST_DIGITS:
        raise BadInput(f"{name} has no number in its name that says which frame it is")
    return int(found[-1])


def _clip(root: str, clip: Sample, names: Sequence[str], broken: dict[str, str]) -> Clip:
    """The clip in a folder; of one whose frames cannot be told the first image is `broken`, with the reason, by its id."""
    try:
        return _whole_clip(root, clip, names)
    except BadInput as problem:
        image_id = f"{clip.id}/{names[0]}" if clip.id else names[0]
        broken[image_id] = str(problem)
        return Clip(clip.id or folder_name(root), range(1), [image_id], clip.labels)


def _whole_clip(root: str, clip: Sample, names: Sequence[str]) -> Clip:
    by_number = {frame_number(name): name for name in names}
    if len(by_number) < len(names):
        raise BadInput(f"{clip.id or root} has two images of one frame number")
    numbers = sorted(by_number)
    ids = [f"{clip.id}/{by_number[number]}" if clip.id else by_number[number] for number in numbers]
    info = _info(os.path.join(root, clip.id, INFO))
    rate = info.get("fps")
    seconds = [number / rate for number in numbers] if rate else None
    anchors = None if info.get("anchor") is None else str(info["anchor"])
    if anchors is not None:
        AnchorRule(0).choose(clip.id, numbers, seconds, anchors)  # tells what is wrong with them
    return Clip(clip.id or folder_name(root), numbers, ids, clip.labels, rate=rate, seconds=seconds, anchors=anchors)


def _info(path: str) -> dict[str, Any]:
    if not os.path.lexists(path):
        return {}
    info = read_json(path)
    if not isinstance(info, dict):
        return {}
    rate, anchor = info.get("fps"), info.get("anchor")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < math.inf):
        raise BadInput(f"{path}: fps should be frames a second, got {short(rate)}")
    if not isinstance(anchor, (str, int, float, type(None))):
        raise BadInput(f"{path}: anchor should be the number of a frame, got {short(anchor)}")
    return info
