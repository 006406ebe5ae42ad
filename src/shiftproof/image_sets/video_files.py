"""Frames as the bytes of an mp4 file and back, by PyAV: H.264 as the published perturbation sequences have it."""

from __future__ import annotations

import io
import platform
from functools import lru_cache
from typing import Literal

import av
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from shiftproof.errors import UnreadableImage
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


def count_frames(path: str) -> int:
    """How many frames a file says it holds, counted where it does not say; nothing is decoded."""
    try:
        with av.open(path, "r") as container:
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
        with av.open(io.BytesIO(data), "r") as container:
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
