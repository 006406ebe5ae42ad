"""Frames as the bytes of an mp4 file and back, by PyAV: H.264 as the published perturbation sequences have it."""

from __future__ import annotations

import io
import os
import platform
from functools import lru_cache
from typing import Literal

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from numpy.typing import NDArray

from shiftproof.errors import UnreadableImage
from shiftproof.image_sets.decoding import check_size, limit_from_environment
from shiftproof.types import Image

Grain = Literal["kept", "smoothed"]
"""How the encoder treats fine noise: sequences of noise are saved with it kept, those that move are not."""

SETTINGS: dict[Grain, dict[str, str]] = {
    "kept": {"preset": "veryslow", "tune": "grain"},
    "smoothed": {"preset": "veryslow", "crf": "20"},
}

# the published files were made of RGB pictures without a word on colours, for which ffmpeg chooses full ones
COLOURS = "yuv444p"


def to_video(frames: NDArray[np.uint8], grain: Grain) -> bytes:
    """The frames, one a second, as the bytes of an mp4 file; the same bytes every time."""
    settings = SETTINGS[grain]
    if platform.machine().lower() in ("x86_64", "amd64"):
        # with wider instructions the encoder's rate control reads what it never wrote, and answers differently each time
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
