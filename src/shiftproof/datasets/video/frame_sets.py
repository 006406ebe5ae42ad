"""The frames around anchor frames of clips, as one dataset (Shankar et al., 2021)."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple

from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.layout import whole_number, yes_or_no
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.randomness import rng_for
from shiftproof.types import Classes, Fact, Image, ImageSource, Sample

FrameType = Literal["I", "P", "B"]
"""Picture types of coded video: intra-coded, predicted, bidirectional."""


@dataclass(frozen=True)
class AnchorRule:
    """How the anchor frames of a clip are chosen."""

    k: int
    anchors: str | Sequence[int | str] | None = None
    every: int | None = None
    count: int | None = None
    seed: int = 0
    alone: bool = True  # whether there is only one clip

    def __post_init__(self) -> None:
        if sum(said is not None for said in (self.anchors, self.every, self.count)) > 1:
            raise BadInput("say only one of anchors, every and count: each of them places the anchor frames")

    @property
    def is_silent(self) -> bool:
        """Whether no option was given, so that a clip's own anchors count."""
        return self.anchors is None and self.every is None and self.count is None

    def __str__(self) -> str:
        if self.anchors is not None and self.anchors != "random":
            return "as given"
        if self.count is not None:
            return "evenly spread over each clip"
        if self.every is not None:
            return f"one every {self.every} frames"
        if self.alone and self.is_silent:
            return f"one every {2 * self.k + 1} frames, so that none is near two"
        return f"one random (seed {self.seed})"

    def choose(
        self, clip: str, numbers: Sequence[int], seconds: Sequence[float] | None = None, own: str | None = None
    ) -> list[int]:
        """The places of the anchors, ascending. A clip's own anchors come first, if the rule does not name any.

        >>> AnchorRule(k=2).choose("a.mp4", range(12)), AnchorRule(k=2, count=3).choose("a.mp4", range(12))
        ([2, 7], [3, 6, 8])
        >>> AnchorRule(k=2, anchors="0,0.5s").choose("a.mp4", range(4), [0, 0.2, 0.6, 0.8])
        [0, 2]
        """
        frames = len(numbers)
        if self.anchors is not None and self.anchors != "random":
            return _given(clip, self.anchors, numbers, seconds)
        if own is not None and self.is_silent:
            return _given(clip, own, numbers, seconds)
        # anchors stand where whole neighbourhoods are; a clip too short for one has its anchor in the middle
        first, last = (self.k, frames - 1 - self.k) if frames > 2 * self.k else ((frames - 1) // 2, (frames - 1) // 2)
        if self.count is not None and self.count > last - first:
            return list(range(first, last + 1))
        if self.count is not None:
            stretch = (last - first + 1) / self.count
            return sorted({first + int((place + 0.5) * stretch) for place in range(self.count)})
        if self.every is not None or (self.alone and self.is_silent):
            return list(range(first, last + 1, self.every or 2 * self.k + 1))
        return [first + int(rng_for(clip, "anchor", self.seed).integers(last - first + 1))]


def _given(
    clip: str, anchors: str | Sequence[int | str], numbers: Sequence[int], seconds: Sequence[float] | None
) -> list[int]:
    wanted = anchors.replace("|", ",").split(",") if isinstance(anchors, str) else anchors
    return sorted({_place(clip, str(anchor).strip(), numbers, seconds) for anchor in wanted})


def _place(clip: str, anchor: str, numbers: Sequence[int], seconds: Sequence[float] | None) -> int:
    try:
        value = float(anchor.removesuffix("s"))
        if not anchor.endswith("s"):
            return numbers.index(int(anchor))
    except ValueError:
        raise BadInput(
            f"{clip} has no frame {anchor!r}; anchors are 'random', or frame numbers from {numbers[0]} to {numbers[-1]}, "
            "or times such as 2.5s"
        ) from None
    if seconds is None:
        raise BadInput(f"{clip} does not say when its frames are shown; give anchors as frame numbers")
    return min(range(len(seconds)), key=lambda place: abs(seconds[place] - value))


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
    from shiftproof.metrics.temporal import l_infinity_distance

    return float(l_infinity_distance(anchor[None], frame[None])[0])


def _picture(source: ImageSource) -> Image | None:
    try:
        return source.decode(source.read())
    except (UnreadableImage, OSError):
        return None


SECOND_ANCHOR = "@"
"""Separates the id of a frame from its anchor, where another anchor is nearer."""


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
    """Clips, their classes, and a function that finds each frame by its id."""

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
    `count` of them evenly spread, or one `every` so many frames. By default a single clip is cut into
    neighbourhoods that do not overlap, and each of several clips has one random anchor, as in the published datasets.
    `limit` takes that many anchors, evenly spread over the dataset.

    A frame near two anchors is an image for each of them: its id is that of the frame for the nearer one, and ends in
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
    """Finds a frame by its id, whichever its anchor."""

    find: Callable[[str], ImageSource]

    def __call__(self, image_id: str) -> ImageSource:
        return self.find(frame_itself(image_id))


def frame_itself(image_id: str) -> str:
    """The id of a frame without its anchor.

    >>> frame_itself("a.mp4/000020@000031")
    'a.mp4/000020'
    """
    folder, step, frame = image_id.rpartition("/")
    return folder + step + frame.partition(SECOND_ANCHOR)[0]


def one_id_each(frames: Iterable[Sample]) -> list[Sample]:
    """Frames with unique ids; one of several anchors keeps its id for the nearest of them."""
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
