"""ImageNet-Vid-Robust as it was released: frame sets and labels in two JSON files, the frames as images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftproof.class_lists import classes_from
from shiftproof.errors import BadInput
from shiftproof.files import read_json
from shiftproof.image_sets.extracted import frame_number
from shiftproof.image_sets.frame_sets import FramesOfSets, frame_itself, one_id_each
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name
from shiftproof.image_sets.manifest import leads_outside
from shiftproof.image_sets.options import yes_or_no
from shiftproof.image_sets.pixel_distances import with_pixel_distances
from shiftproof.reference import load_table
from shiftproof.types import Classes, Fact, Sample

SETS, LABELS = "pmsets.json", "labels.json"
CLASSES = "classes.txt"
"""In sets that we wrote: the classes whose numbers the labels are, where they are others than the 30 published ones."""


def open_vid_robust(
    location: str,
    *,
    name: str | None = None,
    classes: Classes | None = None,
    images: str | None = None,
    pixel_distances: bool | str = False,
) -> ImageList:
    """The frames of ``metadata/pmsets.json`` with the labels of ``labels.json``, any of which is right.

    `images` is the folder that ``val/`` lies in, where it is elsewhere. Frames that are not there are set aside when
    they are read, so sets can be counted without them. `pixel_distances` decodes every frame, as in `frames_around`.
    """
    if classes is not None:
        raise BadInput("the labels of ImageNet-Vid-Robust are numbers of its own 30 classes; leave out the classes")
    metadata = metadata_folder(location, SETS)
    root = images or frames_folder(metadata)
    neighbours: dict[str, list[str]] = _lists(metadata, SETS, str)
    labels: dict[str, list[int]] = _lists(metadata, LABELS, int)
    for frame in dict.fromkeys((*neighbours, *(frame for others in neighbours.values() for frame in others))):
        if leads_outside(frame, root):
            raise BadInput(f"{SETS} names {frame}, which lies outside the folder of frames")
    samples = one_id_each(
        frame_of_set(frame, anchor, tuple(labels.get(frame, ())))
        for anchor, others in neighbours.items()
        for frame in (anchor, *others)
    )
    find = FramesOfSets(FilesBelow(root))
    if yes_or_no("pixel_distances", pixel_distances):
        samples = with_pixel_distances(samples, find)
    known, notes = _classes_in(metadata)
    strange = next((label for some in labels.values() for label in some if not 0 <= label < len(known)), None)
    if strange is not None:
        raise BadInput(f"{LABELS} has the label {strange}, but there are {len(known)} classes, counted from 0")
    pairs = len(samples) - len(neighbours)
    notes = (f"ImageNet-Vid-Robust: {len(neighbours):,} anchors, {pairs:,} pairs", *notes, *missing_note(root, samples))
    return ImageList(name or folder_name(location), samples, known, find, notes=notes)


def _classes_in(metadata: str) -> tuple[Classes, tuple[str, ...]]:
    """The classes that the metadata name, or the published ones with what to know of them."""
    if os.path.isfile(own := os.path.join(metadata, CLASSES)):
        return classes_from(Path(own)), ()
    rows = load_table("imagenet_vid_classes")
    known = Classes(tuple(row["name"] for row in rows), tuple(row["wnid"] for row in rows))
    return known, ("30 classes, each of many ILSVRC classes: score them with --merge imagenet-vid",)


def frame_of_set(frame: str, anchor: str, labels: tuple[int, ...], facts: Mapping[str, Fact] | None = None) -> Sample:
    """A frame of the set around an anchor, both named by path; the offset is the difference of their numbers."""
    number = frame_number(frame)
    offset = number - frame_number(anchor)
    about: dict[str, Fact] = {"clip": frame.rpartition("/")[0], "anchor": anchor, "offset": offset, "frame": number}
    return Sample(frame, labels, {**about, **(facts or {})})


def metadata_folder(location: str, file: str) -> str:
    """The folder with a file of the release: the location itself, or `metadata` inside it."""
    root = os.path.abspath(location)
    for folder in (os.path.join(root, "metadata"), root):
        if os.path.isfile(os.path.join(folder, file)):
            return folder
    raise BadInput(f"no {file} in {location} or its folder metadata")


def frames_folder(metadata: str) -> str:
    """The folder that paths of frames begin in: the one that holds `metadata`, else where the metadata are."""
    return os.path.dirname(metadata) if os.path.basename(metadata) == "metadata" else metadata


def _lists(folder: str, file: str, kind: type) -> dict[str, Any]:
    """What a JSON file of the release holds: a list for each frame."""
    path = Path(folder, file)
    data = read_json(path)
    lists = data.values() if isinstance(data, dict) else (None,)
    # by type and not isinstance: true is no number of a class
    if all(isinstance(some, list) and all(type(one) is kind for one in some) for some in lists):
        return dict(data)
    what = "of frames" if kind is str else "of numbers of classes"
    raise BadInput(f"{path} should hold a list {what} for each frame")


def missing_note(root: str, samples: list[Sample]) -> tuple[str, ...]:
    """How many frames are not where they should be, in a sentence."""
    missing = sum(not os.path.exists(os.path.join(root, frame_itself(sample.id))) for sample in samples)
    return (f"{missing:,} of {len(samples):,} frames are not below {root}",) if missing else ()
