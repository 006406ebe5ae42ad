"""Clips by PyAV: which frames there are, without decoding them where their headers tell, and the pixels of each."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from threading import Lock
from typing import NamedTuple

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from av.sidedata.sidedata import SideData

from shiftproof.errors import UnreadableImage
from shiftproof.image_sets.picture_types import FrameType, frame_type, length_size_of
from shiftproof.image_sets.video_files import open_video
from shiftproof.types import Image

FRAME_TYPES: dict[int, FrameType] = {1: "I", 2: "P", 3: "B"}
"""By the number that the decoder gives."""

NEAR = 8
"""Frames before a key frame from which it is cheaper to go on than to jump to it: the decoder has read as far already."""

MOST_LOST = 1_000_000
"""Frames that a clip may claim and lack: nine hours of them. More is a damaged number."""

LOST = 2**62
"""The number of the frame at which a reader stands that no longer knows: beyond all others, so that it jumps."""


@dataclass(frozen=True)
class ClipIndex:
    """The frames of a clip in the order in which they are shown."""

    times: tuple[int, ...] | None  # in ticks of the clip's own clock; None where the file does not tell them apart
    types: tuple[FrameType | None, ...]
    keys: tuple[int, ...]  # frames at which decoding can begin
    tick: float  # seconds
    rate: float | None  # frames a second, on average
    lost: int = 0  # frames that the file says it holds, and does not

    @property
    def seconds(self) -> tuple[float, ...] | None:
        """When each frame is shown, from the first on."""
        return None if self.times is None else tuple((time - self.times[0]) * self.tick for time in self.times)

    def place(self, frame: int) -> Place | None:
        """Where a frame lies; None for one that is lost."""
        if frame >= len(self.types):
            return None
        if self.times is None:
            return Place(frame, None)
        before = bisect_right(self.keys, frame)
        key = self.keys[before - 1] if before else 0
        return Place(frame, self.times[frame], key, self.times[key])


class Place(NamedTuple):
    """Where a frame lies: its number and time, and those of the key frame from which it is decoded."""

    frame: int
    time: int | None
    key: int = 0  # the first frame needs no time: whoever opens a clip stands there
    key_time: int | None = None


class Turn(NamedTuple):
    """What is done to a picture before it is shown, one after the other."""

    transposed: bool  # rows become columns
    upside_down: bool
    mirrored: bool


def index_clip(path: str) -> ClipIndex:
    """Every frame of a clip; UnreadableImage where there is none."""
    with _opened(path) as container:
        found = _by_headers(container)
    if found is None:
        with _opened(path) as container:
            found = _by_decoding(container)
    if not found.types:
        raise UnreadableImage("broken video: no frame can be decoded")
    return found


class ClipReader:
    """A clip held open at the frame that was read last, since frames are mostly asked for in their order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        self._number = -1  # of the frame read last
        self._picture: Image | None = None
        self._turn: Turn | None = None
        self._start()

    def read(self, place: Place) -> Image:
        """The pixels of a frame, upright; UnreadableImage where it cannot be decoded."""
        with self._lock:
            if place.frame != self._number:
                if self._number > place.frame or place.key - self._number > NEAR:
                    self._jump(place)
                self._picture = None  # before the next is made, which then takes its memory
                self._picture = self._next(place)
                self._number = place.frame
            if self._picture is None:
                self._number = LOST
                raise UnreadableImage("broken video: this frame cannot be decoded")
            return self._picture

    def _start(self) -> None:
        self._container = _opened(self._path)
        self._frames = decoded(self._container)
        self._number = -1

    def _jump(self, place: Place) -> None:
        """To the key frame before a place, or to the start."""
        if place.key == 0 or place.key_time is None:
            self._start()
            return
        frames = decoded(self._container)
        first = None
        with suppress(FFmpegError):
            self._container.seek(place.key_time, stream=self._container.streams.video[0])
            first = next(frames, None)
        if first is None or first.pts != place.key_time:
            self._start()  # some key frames are none: the pictures after them still lean on pictures before
        else:
            self._frames = chain([first], frames)

    def _next(self, place: Place) -> Image | None:
        """The picture at a place that lies ahead; None where it is not there."""
        for passed, frame in enumerate(self._frames, self._number + 1):
            if self._turn is None:
                # once for all frames: one that is asked stays in memory for a while, since it and its answer hold each other
                self._turn = _turn_asked(frame)
            if place.time is None:
                if passed == place.frame:
                    return _upright(frame, self._turn)
            elif frame.pts is not None and frame.pts >= place.time:
                return _upright(frame, self._turn) if frame.pts == place.time else None
        return None


@lru_cache(maxsize=2)
def reader_of(path: str, stamp: str) -> ClipReader:  # noqa: ARG001 - what tells a changed file
    """The clip at a path, held open for all callers of this process."""
    return ClipReader(path)


def decoded(container: InputContainer) -> Iterator[av.VideoFrame]:
    """Every frame that can be decoded, in the order in which they are shown; what is broken is passed over."""
    with suppress(FFmpegError):
        for packet in container.demux(container.streams.video[0]):
            with suppress(FFmpegError):
                yield from (frame for frame in packet.decode() if not frame.is_corrupt)


def _by_headers(container: InputContainer) -> ClipIndex | None:
    """The frames as their packets tell; None where that is not the whole story, and only decoding shows."""
    stream = container.streams.video[0]
    if stream.codec_context.name != "h264":
        return None
    length_size = length_size_of(stream.codec_context.extradata)
    found: list[tuple[int, FrameType, bool]] = []
    for packet in _packets(container):
        kind = frame_type(memoryview(packet), length_size)
        if packet.pts is None or kind is None or packet.is_corrupt or packet.is_discard:
            return None
        found.append((packet.pts, kind, packet.is_keyframe))
    if not found:
        return None
    first, found = found[:1], sorted(found)
    times = tuple(time for time, _, _ in found)
    if found[:1] != first or not found[0][2] or len(set(times)) < len(times) or stream.frames not in (0, len(times)):
        return None
    keys = tuple(number for number, (_, _, is_key) in enumerate(found) if is_key)
    return ClipIndex(times, tuple(kind for _, kind, _ in found), keys, float(stream.time_base or 0), _rate(stream))


def _by_decoding(container: InputContainer) -> ClipIndex:
    stream = container.streams.video[0]
    times: list[int | None] = []
    types: list[FrameType | None] = []
    keys: list[int] = []
    for frame in decoded(container):
        if frame.key_frame:
            keys.append(len(times))
        times.append(frame.pts)
        types.append(FRAME_TYPES.get(int(frame.pict_type)))
    known = tuple(time for time in times if time is not None)
    tells = len(known) == len(times) and all(one < other for one, other in pairwise(known))
    lost = max(0, stream.frames - max(len(times), _count_packets(container.name)))
    if lost > MOST_LOST:
        raise UnreadableImage(f"broken video: it says to hold {stream.frames:,} frames, and holds {len(times):,}")
    return ClipIndex(
        known if tells else None,
        tuple(types),
        tuple(keys) if tells else (),
        float(stream.time_base or 0),
        _rate(stream),
        lost,
    )


def _count_packets(path: str) -> int:
    """Packets that are whole, empty ones too: a frame may be stored as nothing, for the one before it once more."""
    with _opened(path) as container:
        return sum(not packet.is_corrupt for packet in _packets(container, empty=True))


def _packets(container: InputContainer, *, empty: bool = False) -> Iterator[av.Packet[av.VideoStream]]:
    with suppress(FFmpegError):
        for packet in container.demux(container.streams.video[0]):
            if packet.size or (empty and packet.dts is not None):  # the very last has nothing at all, and means the end
                yield packet


def _rate(stream: av.VideoStream) -> float | None:
    rate = stream.average_rate or stream.guessed_rate
    return None if not rate else round(float(rate), 3)


def _opened(path: str) -> InputContainer:
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise UnreadableImage("empty file")
    container = open_video(path)
    if not container.streams.video:
        sound = ", only sound" if container.streams.audio else ""
        container.close()
        raise UnreadableImage(f"no pictures in this file{sound}")
    return container


def _turn_asked(frame: av.VideoFrame) -> Turn:
    """How the file asks to show its frames, in steps of a quarter turn."""
    asked = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(asked, SideData):
        return Turn(transposed=False, upside_down=False, mirrored=False)
    # where a step to the right goes (right, down), a number for nothing, and where a step down goes
    right_right, right_down, _, down_right, down_down = np.frombuffer(bytes(asked), np.int32)[:5].tolist()
    if abs(right_right) < abs(right_down):
        return Turn(transposed=True, upside_down=right_down < 0, mirrored=down_right < 0)
    return Turn(transposed=False, upside_down=down_down < 0, mirrored=right_right < 0)


def _upright(frame: av.VideoFrame, turn: Turn) -> Image:
    """RGB pixels as they are to be shown."""
    picture = np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
    if any(turn):
        picture = picture.swapaxes(0, 1) if turn.transposed else picture
        picture = np.ascontiguousarray(picture[:: -1 if turn.upside_down else 1, :: -1 if turn.mirrored else 1])
    picture.flags.writeable = False  # several callers may hold it
    return picture
