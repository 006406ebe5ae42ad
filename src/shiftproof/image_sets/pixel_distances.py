"""How far each frame is from its anchor in its pixels: the one fact of frames for which all of them are decoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from shiftproof.errors import UnreadableImage
from shiftproof.metrics.frame_distance import l_infinity_distance
from shiftproof.types import Image, ImageSource, Sample

Find = Callable[[str], ImageSource]

CLIPS_AT_ONCE = 4


def with_pixel_distances(samples: Sequence[Sample], find: Find) -> list[Sample]:
    """The frames with the fact `pixel_distance`, the largest change of any pixel and colour from the anchor.

    1 is from black to white; None where either cannot be read, or where their sizes differ.
    """
    sets: dict[str, dict[str, list[Sample]]] = {}
    for sample in samples:
        sets.setdefault(str(sample.facts["clip"]), {}).setdefault(str(sample.facts["anchor"]), []).append(sample)
    with ThreadPoolExecutor(CLIPS_AT_ONCE) as threads:
        # a thread for a whole clip: readers go on where they stand, and would jump between the frames of two
        of_clips = threads.map(partial(_of_clip, find=find), [list(of_clip.values()) for of_clip in sets.values()])
        found = {image_id: distance for of_clip in of_clips for image_id, distance in of_clip.items()}
    return [dataclasses.replace(sample, facts={**sample.facts, "pixel_distance": found[sample.id]}) for sample in samples]


def _of_clip(sets: Sequence[Sequence[Sample]], *, find: Find) -> dict[str, float | None]:
    return {image_id: distance for frames in sets for image_id, distance in _of_set(frames, find).items()}


def _of_set(frames: Sequence[Sample], find: Find) -> dict[str, float | None]:
    """The distances of the frames around one anchor, read in the order of time, since clips are quickest to read so."""
    in_time = sorted(frames, key=_offset)
    pictures = {frame.id: _picture(find(frame.id)) for frame in in_time}
    anchor = next((pictures[frame.id] for frame in in_time if _offset(frame) == 0), None)
    return {image_id: _distance(anchor, picture) for image_id, picture in pictures.items()}


def _distance(anchor: Image | None, frame: Image | None) -> float | None:
    if anchor is None or frame is None or anchor.shape != frame.shape:
        return None
    return float(l_infinity_distance(anchor[None], frame[None])[0])


def _offset(frame: Sample) -> int:
    return int(frame.facts["offset"] or 0)


def _picture(source: ImageSource) -> Image | None:
    try:
        return source.decode(source.read())
    except (UnreadableImage, OSError):
        return None
