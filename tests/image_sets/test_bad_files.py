"""A folder with one of every kind of bad file, as a user might have it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.errors import UnreadableImage
from shiftproof.image_sets import open_images
from shiftproof.types import Decoder


@pytest.fixture
def zoo(tmp_path: Path, encode: Callable[..., bytes], pattern: Callable[[int, int], NDArray[np.uint8]]) -> Path:
    image = pattern(20, 30)
    jpeg = encode(image, "JPEG", quality=95)
    exif = Pillow.Exif()
    exif[0x0112] = 6
    header = b"IHDR" + struct.pack(">2I5B", 30_000, 30_000, 8, 2, 0, 0, 0)
    files = {
        "truncated.jpg": jpeg[: len(jpeg) // 2],
        "text.jpg": b"this is a note, not a photo\n",
        "empty.jpg": b"",
        "cmyk.jpg": encode(Pillow.fromarray(image).convert("CMYK"), "JPEG"),
        "rotated.jpg": encode(image, "JPEG", exif=exif.tobytes()),
        "deep.png": encode(image[:, :, 0].astype(np.uint16) * 257, "PNG"),
        "bomb.png": b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)),
        "日本語.jpg": jpeg,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("decoder", ["pillow", "opencv"])
def test_each_bad_file_has_its_reason_and_each_odd_one_its_pixels(decoder: Decoder, zoo: Path) -> None:
    images = open_images(zoo)
    assert len(images.samples) == 8
    reasons: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for sample in images.samples:
        source = images.source(sample)
        try:
            shapes[sample.id] = source.decode(source.read(), decoder=decoder).shape
        except UnreadableImage as refusal:
            reasons[sample.id] = str(refusal)
    assert shapes == {
        "cmyk.jpg": (20, 30, 3),
        "rotated.jpg": (30, 20, 3),
        "deep.png": (20, 30, 3),
        "日本語.jpg": (20, 30, 3),
    }
    assert reasons.pop("bomb.png").startswith("30000 x 30000 pixels, limit is 120,000,000; raise it with --max-pixels")
    assert reasons == {
        "truncated.jpg": "truncated JPEG",
        "text.jpg": "not an image (JPEG, PNG, WebP, GIF, BMP or TIFF)",
        "empty.jpg": "empty file",
    }
