"""Frame sets: the frames around anchor frames of clips, as one image set (Shankar et al., 2021)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shiftproof.image_sets.anchors import AnchorRule
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.options import whole_number, yes_or_no
from shiftproof.image_sets.picture_types import FrameType
from shiftproof.image_sets.pixel_distances import with_pixel_distances
from shiftproof.types import Classes, Fact, ImageSource, Sample

SECOND_ANCHOR = "@"
"""Stands between the id of a frame and the anchor it is seen from, where it has an anchor nearer to it."""


@dataclass(frozen=True)
class Clip:
    """One clip by its frames, without their pixels. Frames have numbers, which may have gaps, and ids."""

    id: str
    numbers: Sequence[int]  # ascending
    frame_ids: Sequence[str]
    labels: tuple[int, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    types: Sequence[FrameType | None] | None = None
    rate: float | None = None  # frames a second
    seconds: Sequence[float] | None = None  # when each frame is shown
    anchors: str | None = None  # its own, where they are known


@dataclass(frozen=True)
class Clips:
    """Clips with what is known about them as a whole, and a rule that finds each frame by its id."""

    name: str
    clips: Sequence[Clip]
    classes: Classes | None
    find: Callable[[str], ImageSource]
    notes: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()


class FrameSet(NamedTuple):
    """An anchor of a clip, both by place: the clip among its siblings, the anchor among the clip's frames."""

    clip: int
    anchor: int


def frames_around(
    clips: Clips,
    *,
    k: int | str = 10,
    anchors: str | Sequence[int | str] | None = None,
    every: int | str | None = None,
    count: int | str | None = None,
    seed: int | str = 0,
    limit: int | str | None = None,
    pixel_distances: bool | str = False,
    name: str | None = None,
) -> ImageList:
    """The frames at most `k` before and after each anchor, with the facts `clip`, `anchor`, `offset` and `frame`.

    Anchors are given as frame numbers or times (``"2.5s"``); or one is drawn for each clip (``"random"``); or there are
    `count` of them evenly spread, or one `every` so many frames. Where nothing is said, a single clip is cut into
    neighbourhoods that do not overlap, and of several clips each has one random anchor, as in the published sets. `limit`
    takes that many anchors, evenly spread over the set.

    A frame near two anchors is there once for each of them: its id is that of the frame for the nearer one, and ends in
    ``@`` and the other's number for the other. `frame_type` and `frame_rate` are there where the clip tells.
    `pixel_distances` decodes every frame for the fact `pixel_distance`, see `with_pixel_distances`.
    """
    k = whole_number("k", k, least=0)
    every = None if every is None else whole_number("every", every, least=1)
    count = None if count is None else whole_number("count", count, least=1)
    limit = None if limit is None else whole_number("limit", limit, least=1)
    rule = AnchorRule(k, anchors, every, count, whole_number("seed", seed), alone=len(clips.clips) == 1)
    sets = [
        FrameSet(place, anchor)
        for place, clip in enumerate(clips.clips)
        for anchor in rule.choose(clip.id, clip.numbers, clip.seconds, clip.anchors)
    ]
    sets = _spread(sets, limit)
    by_clip: dict[int, list[int]] = {}
    for place, anchor in sets:
        by_clip.setdefault(place, []).append(anchor)
    samples = one_id_each(sample for place, chosen in by_clip.items() for sample in _samples(clips.clips[place], chosen, k))
    find = FramesOfSets(clips.find)
    if yes_or_no("pixel_distances", pixel_distances):
        samples = with_pixel_distances(samples, find)
    anchors_of = f"{len(sets):,} {'anchor' if len(sets) == 1 else 'anchors'} in {len(by_clip):,} "
    how = "as given" if rule.is_silent and all(clip.anchors for clip in clips.clips) else str(rule)
    note = f"frames at most {k} before and after {anchors_of}{'clip' if len(by_clip) == 1 else 'clips'}: {how}"
    return ImageList(
        name or clips.name,
        samples,
        clips.classes,
        find,
        notes=(note, *clips.notes),
        credits=clips.credits,
    )


@dataclass(frozen=True)
class FramesOfSets:
    """Finds a frame by its id, whichever anchor it is seen from."""

    find: Callable[[str], ImageSource]

    def __call__(self, image_id: str) -> ImageSource:
        return self.find(frame_itself(image_id))


def frame_itself(image_id: str) -> str:
    """The id of a frame, whichever anchor it is seen from.

    >>> frame_itself("a.mp4/000020@000031")
    'a.mp4/000020'
    """
    folder, step, frame = image_id.rpartition("/")
    return folder + step + frame.partition(SECOND_ANCHOR)[0]


def one_id_each(frames: Iterable[Sample]) -> list[Sample]:
    """Frames by id; one that is there for several anchors keeps its id for the nearest of them."""
    found: dict[str, Sample] = {}
    for frame in sorted(frames, key=lambda frame: (abs(_offset(frame)), -_offset(frame))):
        number = int(frame.facts["frame"] or 0) - _offset(frame)
        one = replace(frame, id=f"{frame.id}{SECOND_ANCHOR}{number:06d}") if frame.id in found else frame
        found[one.id] = one
    return sorted(found.values(), key=lambda frame: frame.id)


def _offset(frame: Sample) -> int:
    return int(frame.facts["offset"] or 0)


def _samples(clip: Clip, anchors: Sequence[int], k: int) -> Iterator[Sample]:
    for anchor in anchors:
        number = clip.numbers[anchor]
        for place in range(bisect_left(clip.numbers, number - k), bisect_right(clip.numbers, number + k)):
            yield _sample(clip, place, anchor)


def _sample(clip: Clip, place: int, anchor: int) -> Sample:
    number = clip.numbers[place]
    facts: dict[str, Fact] = {
        **clip.facts,
        "clip": clip.id,
        "anchor": clip.frame_ids[anchor],
        "offset": number - clip.numbers[anchor],
        "frame": number,
    }
    if clip.types is not None:
        facts["frame_type"] = clip.types[place]
    if clip.rate is not None:
        facts["frame_rate"] = clip.rate
    return Sample(clip.frame_ids[place], clip.labels, facts)


def _spread(sets: list[FrameSet], limit: int | None) -> list[FrameSet]:
    if limit is None or limit >= len(sets):
        return sets
    return [sets[place * len(sets) // limit] for place in range(limit)]
