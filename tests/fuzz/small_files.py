"""Small valid files of every kind, and seeds whose lengths and checksums are put right after a change."""

from __future__ import annotations

import io
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from fuzz.cases import Documents, Seed
from fuzz.documents import jsons, texts
from shiftproof.types import Image

COCO = {
    "images": [
        {"id": 1, "file_name": "a.png", "width": 12, "height": 9, "anchor": "x"},
        {"id": 2, "file_name": "b.jpg", "width": 12, "height": 9},
    ],
    "categories": [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog", "supercategory": "animal"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 2, 4.5, 3], "area": 12.0, "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 7, "bbox": [0, 0, 12, 9]},
    ],
}


def pixels(height: int = 9, width: int = 12) -> Image:
    return np.random.default_rng(4).integers(0, 256, (height, width, 3), dtype=np.uint8)


def image_bytes(form: str, picture: Pillow.Image | None = None, **options: Any) -> bytes:
    buffer = io.BytesIO()
    (picture or Pillow.fromarray(pixels())).save(buffer, form, **options)
    return buffer.getvalue()


def array_bytes(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def files_made(make: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a function writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        return _files_in(Path(folder))


@cache
def photos() -> Mapping[str, bytes]:
    return {"a.png": image_bytes("PNG"), "b.jpg": image_bytes("JPEG")}


@cache
def clip_bytes(codec: str, form: str) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form) as container:
        stream: Any = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = (
            32,
            32,
            "yuvj420p" if codec == "mjpeg" else "yuv420p",
            4,
        )
        for number in range(9):
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 20 * number, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


# ---- files whose lengths and checksums are put right after a change, so that reading goes on behind them


def with_png_checksums(data: bytes) -> bytes:
    parts, place = [data[:8]], 8
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        if len(body) < 4 + length:
            break
        parts.append(data[place : place + 4] + body + struct.pack(">I", zlib.crc32(body)))
        place += 12 + length
    return b"".join([*parts, data[place:]])


def with_tar_checksums(data: bytes) -> bytes:
    blocks = [data[place : place + 512] for place in range(0, len(data), 512)]
    for place, block in enumerate(blocks):
        if block[257:262] == b"ustar":
            total = sum(block[:148]) + 8 * 32 + sum(block[156:])
            blocks[place] = block[:148] + f"{total:06o}\0 ".encode() + block[156:]
    return b"".join(blocks)


def _in_zip(data: bytes, *, archive: bytes, member: str) -> bytes:
    """The archive with other content of one member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, data if info.filename == member else old.read(info))
    return buffer.getvalue()


def zip_seeds(name: str, files: Mapping[str, bytes], target: str, documents: Documents | None = None) -> list[Seed]:
    """The archive as a whole, and each small member by itself."""
    archive = files[target]
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = [info.filename for info in opened.infolist() if 0 < info.file_size < 10_000]
        content = {member: opened.read(member) for member in members}
    inner = [
        Seed(
            f"{name}-{Path(member).name}",
            files,
            target,
            jsons if member.endswith(".json") else documents,
            content[member],
            partial(_in_zip, archive=archive, member=member),
        )
        for member in members
    ]
    return [Seed(name, files, target), *inner]


def safetensors_seeds(name: str, files: Mapping[str, bytes], target: str) -> list[Seed]:
    """The file as a whole, and its header with the length put right."""
    data = files[target]
    end = 8 + int.from_bytes(data[:8], "little")
    behind = partial(_behind_header, rest=data[end:])
    return [Seed(name, files, target), Seed(f"{name}-header", files, target, texts, data[8:end], behind)]


def _behind_header(header: bytes, *, rest: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + rest
