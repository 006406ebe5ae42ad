"""Video files by PyAV: frames to H.264 and back as in ImageNet-P, and an index of the frames of any clip."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from threading import Lock
from typing import Literal, NamedTuple

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from av.sidedata.sidedata import SideData
from numpy.typing import NDArray

from shiftproof.datasets.decoding import check_size, limit_from_environment
from shiftproof.datasets.image_list import StoredImage, file_stamp
from shiftproof.datasets.video.frame_sets import FrameType
from shiftproof.errors import UnreadableImage
from shiftproof.places import local_file
from shiftproof.types import Decoder, Image

Grain = Literal["kept", "smoothed"]
"""Whether the encoder keeps fine noise: it does for sequences of noise."""

SETTINGS: dict[Grain, dict[str, str]] = {
    "kept": {"preset": "veryslow", "tune": "grain"},
    "smoothed": {"preset": "veryslow", "crf": "20"},
}

# the published files were made from RGB pictures without a pixel format, for which ffmpeg chooses this one
COLOURS = "yuv444p"


def to_video(frames: NDArray[np.uint8], grain: Grain) -> bytes:
    """The frames, one a second, as the bytes of an mp4 file; the same bytes every time."""
    settings = SETTINGS[grain]
    if platform.machine().lower() in ("x86_64", "amd64"):
        # with wider instructions the encoder's rate control reads what it never wrote, and gives other bytes each time
        settings = {**settings, "x264-params": "asm=sse4.2"}
    data = io.BytesIO()
    with av.open(data, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=1, options=settings)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = COLOURS
        stream.codec_context.thread_count = 1  # the number of threads would show in the bytes
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return data.getvalue()


FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,ogg,asf,flv,h264,hevc,m4v"
"""What is opened, whatever a file is called: playlists and their like would open further files, here or elsewhere."""


def open_video(file: str | io.BytesIO) -> InputContainer:
    """A video file; UnreadableImage where it is none, or its pictures are of no known kind or too large."""
    file = local_file(file) if isinstance(file, str) else file
    if isinstance(file, str) and not os.path.isfile(file):
        os.stat(file)  # tells the reason where there is nothing
        raise UnreadableImage("not a regular file")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    try:
        # titles and the like may be in any encoding, and nobody reads them
        container = av.open(file, "r", container_options=options, metadata_errors="ignore")
    except (FFmpegError, OSError) as problem:
        raise UnreadableImage(f"broken video: {_reason(problem)}") from problem
    for stream in container.streams.video[:1]:
        known = getattr(stream, "codec_context", None)  # PyAV has none where FFmpeg has no decoder
        if known is None:
            container.close()
            raise UnreadableImage("broken video: no decoder knows its pictures")
        try:
            check_size((known.width, known.height))
        except UnreadableImage:
            container.close()
            raise
        known.options = {"max_pixels": str(limit_from_environment())}  # the size may change on the way
    return container


def count_frames(path: str) -> int:
    """How many frames a file says it holds, counted where it does not say; nothing is decoded."""
    try:
        with open_video(path) as container:
            if not container.streams.video:
                raise UnreadableImage("no pictures in this video file")
            stream = container.streams.video[0]
            return stream.frames or sum(1 for packet in container.demux(stream) if packet.size)
    except (FFmpegError, OSError) as problem:
        raise UnreadableImage(f"broken video: {_reason(problem)}") from problem


@lru_cache(maxsize=4)
def frames_in(data: bytes) -> tuple[Image, ...]:
    """Every frame of a file; those of the last few files are remembered, since their frames are asked for one by one."""
    try:
        with open_video(io.BytesIO(data)) as container:
            if not container.streams.video:
                raise UnreadableImage("no pictures in this video file")
            decoded = container.decode(container.streams.video[0])
            frames = [np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in decoded]
    except (FFmpegError, OSError) as problem:
        raise UnreadableImage(f"broken video: {_reason(problem)}") from problem
    for frame in frames:
        frame.flags.writeable = False  # several callers hold it
    return tuple(frames)


def _reason(problem: OSError | FFmpegError) -> str:
    return (problem.strerror or str(problem)).lower()


FRAME_TYPES: dict[int, FrameType] = {1: "I", 2: "P", 3: "B"}
"""By the picture type of the decoder."""

NEAR = 8
"""Frames before a key frame from which decoding on is cheaper than seeking: the decoder has read as far already."""

MOST_LOST = 1_000_000
"""Frames that a clip may claim and lack: nine hours of them. More is a damaged header."""

LOST = 2**62
"""The position of a reader that has lost its place: beyond all frames, so that it seeks."""


@dataclass(frozen=True)
class ClipIndex:
    """The frames of a clip in presentation order."""

    times: tuple[int, ...] | None  # presentation times in units of `tick`; None where they do not tell frames apart
    types: tuple[FrameType | None, ...]
    keys: tuple[int, ...]  # key frames
    tick: float  # seconds
    rate: float | None  # frames a second, on average
    lost: int = 0  # frames that the file claims to hold, and does not

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


class Rotation(NamedTuple):
    """How a picture is rotated or flipped before it is shown, in this order."""

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


def index_if_readable(path: str) -> ClipIndex | None:
    """The same; None for a clip that cannot be read."""
    try:
        return index_clip(path)
    except (UnreadableImage, OSError):
        return None


class ClipReader:
    """A clip held open at the frame that was read last, since frames are mostly read in order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        self._number = -1  # of the frame read last
        self._picture: Image | None = None
        self._rotation: Rotation | None = None
        self._start()

    def read(self, place: Place) -> Image:
        """The pixels of a frame, upright; UnreadableImage where it cannot be decoded."""
        with self._lock:
            if place.frame != self._number:
                if self._number > place.frame or place.key - self._number > NEAR:
                    self._seek(place)
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

    def _seek(self, place: Place) -> None:
        """Seek the key frame before a place, or the start."""
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
            if self._rotation is None:
                # once for all frames: one that is asked stays in memory for a while, since it and its answer hold each other
                self._rotation = _display_rotation(frame)
            if place.time is None:
                if passed == place.frame:
                    return _upright(frame, self._rotation)
            elif frame.pts is not None and frame.pts >= place.time:
                return _upright(frame, self._rotation) if frame.pts == place.time else None
        return None


@lru_cache(maxsize=2)
def reader_of(path: str, stamp: str) -> ClipReader:  # noqa: ARG001 - part of the key of the cache
    """The reader of a clip, shared by all callers of this process."""
    return ClipReader(path)


PIXELS = 1
"""Version of the pixels: raised when frames change, so that predictions on the old ones are not used."""


@dataclass(frozen=True, slots=True)
class ClipFrame(StoredImage):
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
        # reading it raises the reason
        return ClipFrame(self.paths[clip], frame, Place(frame, None) if index is None else index.place(frame))


@lru_cache(maxsize=256)
def _file_digest(path: str, stamp: str) -> str:  # noqa: ARG001 - part of the key of the cache
    path = local_file(path)
    if not os.path.isfile(path):  # opening a pipe would wait for whoever writes into it
        raise OSError(errno.EINVAL, "not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def decoded(container: InputContainer) -> Iterator[av.VideoFrame]:
    """Every frame that can be decoded, in presentation order; broken ones are left out."""
    with suppress(FFmpegError):
        for packet in container.demux(container.streams.video[0]):
            with suppress(FFmpegError):
                yield from (frame for frame in packet.decode() if not frame.is_corrupt)


def _by_headers(container: InputContainer) -> ClipIndex | None:
    """The frames by their packets; None where these are not enough and the frames must be decoded."""
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
    path = local_file(path)
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise UnreadableImage("empty file")
    container = open_video(path)
    if not container.streams.video:
        sound = ", only sound" if container.streams.audio else ""
        container.close()
        raise UnreadableImage(f"no pictures in this file{sound}")
    return container


def _display_rotation(frame: av.VideoFrame) -> Rotation:
    """The display rotation of the file, in steps of 90 degrees."""
    asked = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(asked, SideData):
        return Rotation(transposed=False, upside_down=False, mirrored=False)
    # where a step to the right goes (right, down), a number for nothing, and where a step down goes
    right_right, right_down, _, down_right, down_down = np.frombuffer(bytes(asked), np.int32)[:5].tolist()
    if abs(right_right) < abs(right_down):
        return Rotation(transposed=True, upside_down=right_down < 0, mirrored=down_right < 0)
    return Rotation(transposed=False, upside_down=down_down < 0, mirrored=right_right < 0)


def _upright(frame: av.VideoFrame, rotation: Rotation) -> Image:
    """RGB pixels as they are to be shown."""
    picture = np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
    if any(rotation):
        picture = picture.swapaxes(0, 1) if rotation.transposed else picture
        picture = np.ascontiguousarray(picture[:: -1 if rotation.upside_down else 1, :: -1 if rotation.mirrored else 1])
    picture.flags.writeable = False  # several callers may hold it
    return picture


SLICES = (1, 2, 5)
"""NAL unit types that begin with a slice header."""

LETTERS: tuple[FrameType, ...] = ("P", "B", "I", "P", "I")
"""By slice type; the last two are for switching between streams."""


def frame_type(packet: memoryview, length_size: int | None) -> FrameType | None:
    """The type of the H.264 frame in a packet, by its first slice header; None where there is none.

    NAL units are preceded by their lengths in `length_size` bytes, or with None by start codes.

    >>> frame_type(memoryview(bytes.fromhex("00000002 6588")), 4), frame_type(memoryview(bytes.fromhex("000001 419a")), None)
    ('I', 'P')
    """
    starts = _after_start_codes(packet) if length_size is None else _after_lengths(packet, length_size)
    for start in starts:
        header = packet[start : start + 5]
        if len(header) > 1 and header[0] & 31 in SLICES:
            bits = "".join(f"{byte:08b}" for byte in header[1:])
            _, rest = _exp_golomb(bits)  # where in the picture the slice begins
            number, _ = _exp_golomb(rest)
            return None if number is None or number > 9 else LETTERS[number % 5]
    return None


def length_size_of(extradata: bytes | None) -> int | None:
    """The number of bytes of NAL unit lengths; None for start codes (Annex B)."""
    return (extradata[4] & 3) + 1 if extradata and len(extradata) > 4 and extradata[0] == 1 else None


def _after_lengths(packet: memoryview, length_size: int) -> Iterator[int]:
    place = 0
    while place + length_size < len(packet):
        yield place + length_size
        place += length_size + int.from_bytes(packet[place : place + length_size], "big")


def _after_start_codes(packet: memoryview) -> Iterator[int]:
    data = bytes(packet)
    place = data.find(b"\0\0\1")
    while place >= 0:
        yield place + 3
        place = data.find(b"\0\0\1", place + 3)


def _exp_golomb(bits: str) -> tuple[int | None, str]:
    """The exponential-Golomb number at the front of some bits, and the bits after it; None where there is none.

    >>> _exp_golomb("00111101")
    (6, '101')
    """
    zeros = len(bits) - len(bits.lstrip("0"))
    end = 2 * zeros + 1
    return (int(bits[zeros:end], 2) - 1, bits[end:]) if end <= len(bits) else (None, "")
