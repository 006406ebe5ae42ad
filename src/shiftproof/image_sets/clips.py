"""Video files as frame sets: a clip, a folder of clips or a table of them."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.image_sets.clip_files import ClipIndex, Place, index_clip, reader_of
from shiftproof.image_sets.folder import labelled
from shiftproof.image_sets.frame_sets import Clip, Clips, frames_around
from shiftproof.image_sets.image_list import FileImage, ImageList, file_stamp
from shiftproof.image_sets.listing import folder_name, inner_root, is_clip_name, list_files
from shiftproof.image_sets.manifest import open_manifest
from shiftproof.image_sets.recognition import MANIFEST_ENDINGS
from shiftproof.types import Classes, Decoder, Fact, Image, Sample

PIXELS = 1
"""Raised whenever frames come out otherwise than before, so that stored answers to the old ones are not used."""


@dataclass(frozen=True, slots=True)
class ClipFrame:
    """An image that is a frame of a clip; in place of its bytes stand the digest of the file and its number."""

    path: str
    frame: int
    place: Place | None  # None for a frame that the file does not hold

    def stamp(self) -> str:
        return f"{file_stamp(self.path)}\0{PIXELS}\0{self.frame}"

    def read(self) -> bytes:
        digest = _file_digest(self.path, file_stamp(self.path))
        return f"frame of a clip\0{PIXELS}\0{digest}\0{self.frame}".encode()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - of images
        if self.place is None:
            raise UnreadableImage("broken video: the file ends before this frame")
        return reader_of(self.path, file_stamp(self.path)).read(self.place)


@dataclass(frozen=True)
class FramesOfClips:
    """Finds a frame by the id of its clip and its number."""

    paths: Mapping[str, str]
    indices: Mapping[str, ClipIndex | None]  # None for a clip that cannot be read

    def __call__(self, image_id: str) -> ClipFrame:
        clip, _, number = image_id.rpartition("/")
        index, frame = self.indices[clip], int(number)
        # reading it tells the reason
        return ClipFrame(self.paths[clip], frame, Place(frame, None) if index is None else index.place(frame))


def open_clips(location: str, *, classes: Classes | None = None, **options: Any) -> ImageList:
    """The frames around anchors of a clip, of the clips below a folder, or of those that a table lists.

    Frames are numbered from 0 in the order in which they are shown. Clips in folders are labelled as images in folders
    are; in a table the column `anchor` may name each clip's own anchors. The options are those of `frames_around`.
    """
    return frames_around(clips_at(location, classes=classes, allow_outside=options.pop("allow_outside", False)), **options)


def clips_at(location: str, *, classes: Classes | None = None, allow_outside: bool | str = False) -> Clips:
    """The clips at a location, each read as far as is needed to know its frames; `allow_outside` as of a manifest."""
    if os.path.isdir(location):
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
    clip = os.path.basename(location)
    try:
        index = index_clip(location)
    except (UnreadableImage, OSError) as problem:
        raise BadInput(f"{location}: {problem}") from problem
    find = FramesOfClips({clip: os.path.abspath(location)}, {clip: index})
    return Clips(os.path.splitext(clip)[0], [_clip(Sample(clip), index)], None, find)


def _clips(
    name: str,
    samples: Sequence[Sample],
    paths: Mapping[str, str],
    classes: Classes | None,
    notes: tuple[str, ...] = (),
) -> Clips:
    with ThreadPoolExecutor(8) as threads:
        indices = dict(zip(paths, threads.map(_index_at, paths.values()), strict=True))
    clips = [_clip(sample, indices[sample.id]) for sample in samples]
    return Clips(name, clips, classes, FramesOfClips(paths, indices), notes)


def _clip(sample: Sample, index: ClipIndex | None) -> Clip:
    facts: dict[str, Fact] = dict(sample.facts)
    own = facts.pop("anchor", None)
    # one that cannot be read keeps a frame, so that it is set aside and not lost
    frames = 1 if index is None else len(index.types) + index.lost
    ids = [f"{sample.id}/{number:06d}" for number in range(frames)]
    if index is None:
        return Clip(sample.id, range(1), ids, sample.labels, facts)
    types = [*index.types, *[None] * index.lost]
    anchors = None if own is None else str(own)
    return Clip(sample.id, range(frames), ids, sample.labels, facts, types, index.rate, index.seconds, anchors)


def _index_at(path: str) -> ClipIndex | None:
    try:
        return index_clip(path)
    except (UnreadableImage, OSError):
        return None


@lru_cache(maxsize=256)
def _file_digest(path: str, stamp: str) -> str:  # noqa: ARG001 - what tells a changed file
    if not os.path.isfile(path):  # opening a pipe would wait for whoever writes into it
        raise OSError(errno.EINVAL, "not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
