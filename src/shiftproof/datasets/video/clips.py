"""Clips as frame datasets: video files, or a folder of extracted frames for each clip."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from shiftproof.datasets.boxed.boxes import short
from shiftproof.datasets.folder import Labelled, labelled
from shiftproof.datasets.image_list import FileImage, FilesBelow, ImageList, broken_note, skip_broken
from shiftproof.datasets.layout import Example, Folder, layout
from shiftproof.datasets.listing import (
    CLIP_ENDINGS,
    folder_name,
    group_by_folder,
    inner_root,
    is_clip_name,
    is_image_name,
    list_files,
    list_images,
    visible_entries,
)
from shiftproof.datasets.manifest import MANIFEST_ENDINGS, open_manifest
from shiftproof.datasets.video.frame_sets import AnchorRule, Clip, Clips, frames_around
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import read_json
from shiftproof.places import absolute, exists, is_folder
from shiftproof.types import Classes, Fact, Sample

if TYPE_CHECKING:
    from shiftproof.datasets.video.video_files import ClipIndex


def _holds_clips(folder: Folder) -> bool:
    """Whether there are video files and no images in a folder, or in the first of its folders."""
    names, folders = folder.files, folder.folders
    inside = visible_entries(os.path.join(folder.root, folders[0]))[1] if folders else []
    return any(map(is_clip_name, (*names, *inside))) and not any(map(is_image_name, (*names, *inside)))


@layout(
    holds="a video file, or a folder of them",
    labels="the class folder, as for images; the frames around anchors are the images",
    endings=tuple(sorted(CLIP_ENDINGS)),
    recognise=_holds_clips,
    passes_to=frames_around,
    example=Example({"cat/a.mp4": ""}, options={"k": 1, "every": 2}),
)
def open_clips(
    location: str, *, classes: Classes | None = None, allow_outside: bool | str = False, **options: Any
) -> ImageList:
    """The frames around anchors of a clip, of the clips below a folder, or of those that a table lists.

    Frames are numbered from 0 in presentation order. Clips in folders are labelled as images in folders
    are; in a table the column `anchor` may name each clip's own anchors. The options are those of `frames_around`.
    """
    return frames_around(clips_at(location, classes=classes, allow_outside=allow_outside), **options)


def clips_at(location: str, *, classes: Classes | None = None, allow_outside: bool | str = False) -> Clips:
    """The clips at a location, each with an index of its frames; `allow_outside` as of a manifest."""
    if is_folder(location):
        root = inner_root(location)
        listing = list_files(root, is_clip_name)
        if not listing.folders:
            raise BadInput(f"no clips below {location} (looked for .mp4, .mov, .avi, .mkv, .webm and the like)")
        samples, classes, notes = labelled(listing, classes)
        files = {sample.id: os.path.join(root, sample.id) for sample in samples}
        return _clips(folder_name(location), samples, files, classes, (*notes, *listing.notes()))
    if location.lower().endswith(MANIFEST_ENDINGS):
        table = open_manifest(location, classes=classes, allow_outside=allow_outside)
        sources = {sample.id: table.source(sample) for sample in table.samples}
        files = {clip: source.path for clip, source in sources.items() if isinstance(source, FileImage)}
        listed = _clips(table.name, table.samples, files, table.classes, table.notes)
        return dataclasses.replace(listed, credits=table.credits)
    from shiftproof.datasets.video.video_files import FramesOfClips, index_clip  # only where it is needed: it loads PyAV

    clip = os.path.basename(location)
    try:
        index = index_clip(location)
    except (UnreadableImage, OSError) as problem:
        raise BadInput(f"{location}: {problem}") from problem
    find = FramesOfClips({clip: absolute(location)}, {clip: index})
    return Clips(os.path.splitext(clip)[0], [_clip(Sample(clip), index)], None, find)


def _clips(
    name: str,
    samples: Sequence[Sample],
    paths: Mapping[str, str],
    classes: Classes | None,
    notes: tuple[str, ...] = (),
) -> Clips:
    from shiftproof.datasets.video.video_files import FramesOfClips, index_if_readable

    with ThreadPoolExecutor(8) as threads:
        indices = dict(zip(paths, threads.map(index_if_readable, paths.values()), strict=True))
    clips = [_clip(sample, indices[sample.id]) for sample in samples]
    return Clips(name, clips, classes, FramesOfClips(paths, indices), notes)


def _clip(sample: Sample, index: ClipIndex | None) -> Clip:
    facts: dict[str, Fact] = dict(sample.facts)
    own = facts.pop("anchor", None)
    # one that cannot be read keeps a frame, so that it is skipped and not lost
    frames = 1 if index is None else len(index.types) + index.lost
    ids = [f"{sample.id}/{number:06d}" for number in range(frames)]
    if index is None:
        return Clip(sample.id, range(1), ids, sample.labels, facts)
    types = [*index.types, *[None] * index.lost]
    anchors = None if own is None else str(own)
    return Clip(sample.id, range(frames), ids, sample.labels, facts, types, index.rate, index.seconds, anchors)


MOST_DIGITS = 18
"""Digits of a frame number; longer numbers in a file name are something else."""

INFO = "info.json"
"""Optional file beside the frames of a clip: its `fps` and `anchor`, as in YTBB-Robust."""


@layout(
    holds="a folder of numbered frames for each clip",
    labels="the class folder, if the folders of clips lie in one",
    passes_to=frames_around,
    example=Example({f"a/frame-{number}.png": "" for number in range(5)}, options={"k": 1, "every": 2}),
)
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
    clips = [_extracted_clip(root, sample, listing.folders[sample.id], broken) for sample in samples]
    notes += tuple(note for note in listing.notes() if INFO not in note)
    find = skip_broken(FilesBelow(root), broken, len(clips))
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


def _extracted_clip(root: str, clip: Sample, names: Sequence[str], broken: dict[str, str]) -> Clip:
    """The clip in a folder; where it is broken, its first image stays, with the reason in `broken` by its id."""
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
        AnchorRule(0).choose(clip.id, numbers, seconds, anchors)  # raises BadInput where they are wrong
    return Clip(clip.id or folder_name(root), numbers, ids, clip.labels, rate=rate, seconds=seconds, anchors=anchors)


def _info(path: str) -> dict[str, Any]:
    if not (exists(path) or os.path.islink(path)):
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
