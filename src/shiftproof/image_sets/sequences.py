"""The published perturbation sequences, an mp4 file each: every frame is an image of the set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import read_regular
from shiftproof.image_sets.class_keys import places_of
from shiftproof.image_sets.image_list import LARGEST_FILE, ImageList, file_stamp
from shiftproof.image_sets.layouts import level_of
from shiftproof.image_sets.listing import Listing, folder_name, is_video_name, list_files
from shiftproof.image_sets.records import is_unlabelled, notes_on, record_of
from shiftproof.image_sets.video_files import count_frames, frames_in
from shiftproof.types import Classes, Decoder, Fact, Image, Sample


@dataclass(frozen=True, slots=True)
class FrameImage:
    """An image that is one frame of a video file."""

    path: str
    frame: int
    frames: int  # as many as the file said it holds; 0 where it could not say

    def stamp(self) -> str:
        return file_stamp(self.path)  # the digest is that of the file, for all its frames

    def read(self) -> bytes:
        return _bytes_at(self.path, file_stamp(self.path))

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - of images
        frames = frames_in(data)
        if len(frames) < self.frames or not frames:
            # a sequence with gaps is no sequence, so all of it is set aside
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


def open_imagenet_p(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The frames of ``perturbation/class/name.mp4`` files, with the facts `perturbation`, `level`, `sequence` and `frame`.

    Folders such as ``gaussian_noise_2`` hold the further levels. One perturbation alone takes its name from the folder.
    """
    root = os.path.abspath(location)
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
    """How many frames each file holds; 0 for a broken one, which keeps one image so that it is set aside and not lost."""
    files = listing.ids()
    with ThreadPoolExecutor(8) as threads:
        return dict(zip(files, threads.map(lambda file: _frames_at(os.path.join(root, file)), files), strict=True))


def _frames_at(path: str) -> int:
    try:
        return count_frames(path)
    except UnreadableImage:
        return 0


@lru_cache(maxsize=4)
def _bytes_at(path: str, stamp: str) -> bytes:  # noqa: ARG001 - what tells a changed file
    return read_regular(path, most=LARGEST_FILE)
