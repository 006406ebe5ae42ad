"""Frames around anchors in the files of ImageNet-Vid-Robust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shiftproof.errors import BadInput
from shiftproof.image_sets.frame_sets import frame_itself
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.vid_robust import CLASSES, LABELS, SETS
from shiftproof.types import Sample
from shiftproof.writing.originals import original_places, picture_files
from shiftproof.writing.whole_folders import File, json_file, plain_file

FACTS = frozenset({"anchor", "offset"})


def vid_robust_files(images: ImageList) -> Iterator[File]:
    """The frames as images, the sets around anchors and the labels in two files; a third names the classes."""
    if images.classes is None or any(not sample.facts.keys() >= FACTS for sample in images.samples):
        raise BadInput(f"layout vid-robust holds labelled frames around anchors, and {images.name} has others")
    frames = {frame_itself(sample.id): sample for sample in images.samples}
    shown = ImageList(images.name, [Sample(frame) for frame in frames], None, lambda frame: images.source(frames[frame]))
    places = dict(zip(frames, (f"val/{place}" for place in original_places(shown)), strict=True))
    yield json_file(f"metadata/{SETS}", _sets(images, places))
    yield json_file(f"metadata/{LABELS}", {places[frame]: sample.labels for frame, sample in frames.items()})
    yield plain_file(f"metadata/{CLASSES}", "".join(f"{key}\n" for key in images.classes.keys))
    yield from picture_files(shown, list(places.values()))


def _sets(images: ImageList, places: Mapping[str, str]) -> dict[str, list[str]]:
    """The other frames around each anchor."""
    sets: dict[str, list[str]] = {}
    for sample in images.samples:
        around = sets.setdefault(places[str(sample.facts["anchor"])], [])
        if sample.facts["offset"]:
            around.append(places[frame_itself(sample.id)])
    return sets
