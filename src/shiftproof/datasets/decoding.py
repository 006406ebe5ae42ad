"""Image files to RGB pixels, or the reason why not.

EXIF orientation is applied. Transparent pixels are laid on white. CMYK is taken as Adobe writes it, colour profiles are
ignored. Of 16-bit samples the high byte is kept, so that black stays black and white white. Of animations and
multi-page files the first picture is taken.
"""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO

import numpy as np
from PIL import Image as Pillow
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.registry import missing_extra
from shiftproof.types import Decoder, Image

LONGEST_SIDE = 1_000_000
"""Largest width or height in pixels."""

PIXEL_LIMIT = 120_000_000
"""Largest number of pixels; more are refused from the header: a small file can claim a very large picture.

The largest photos of telephones that are taken every day have 108 million; with either decoder so many take less than a
gigabyte while they are decoded.
"""

LIMIT_VARIABLE = "SHIFTPROOF_PIXEL_LIMIT"
STRIP = 2**24
"""Pixels that are converted to RGB at a time, so that a large picture is never in memory three times."""

BACKDROP = (255, 255, 255)
"""The colour behind transparent pixels."""

_ORIENTATION = 0x0112
_UPRIGHT: dict[int, Callable[[Image], Image]] = {
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: image.swapaxes(0, 1)[:, ::-1],
    7: lambda image: image.swapaxes(0, 1)[::-1, ::-1],
    8: lambda image: image.swapaxes(0, 1)[::-1],
}
"""The rotation or flip that makes an image upright, by its EXIF orientation."""

_OPENERS: tuple[tuple[str, tuple[bytes, ...], type[ImageFile]], ...] = (
    ("JPEG", (b"\xff\xd8\xff",), JpegImageFile),
    ("PNG", (b"\x89PNG\r\n\x1a\n",), PngImageFile),
    ("GIF", (b"GIF87a", b"GIF89a"), GifImageFile),
    ("BMP", (b"BM",), BmpImageFile),
    ("TIFF", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), TiffImageFile),
)
# what Pillow is known to raise on files that break off or lie about themselves
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, AttributeError,
           RuntimeError, struct.error, zlib.error, MemoryError)  # fmt: skip


def decode_image(data: bytes, *, decoder: Decoder = "pillow", pixel_limit: int | None = None) -> Image:
    """RGB pixels; UnreadableImage with a short reason where there are none.

    Pillow decides what an image is. ``opencv`` is faster on 8-bit RGB and grey JPEG and PNG files and leaves all others
    to Pillow, so both agree on orientation, colour and refusals; JPEG pixels may differ by a level here and there.
    """
    if not data:
        raise UnreadableImage("empty file")
    limit = limit_from_environment() if pixel_limit is None else pixel_limit
    kind, opener = _opener(data)
    if decoder == "pillow" and kind == "JPEG" and b"Exif\0" not in data[:131072]:
        return _decoded(data, kind, opener, limit, decoder)
    # catching warnings is not for threads, hence not for the plain JPEG that makes up most datasets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _decoded(data, kind, opener, limit, decoder)


def _decoded(data: bytes, kind: str, opener: type[ImageFile], limit: int, decoder: Decoder) -> Image:
    try:
        # Pillow would read on to the pixels, or make room for them, before it tells the size
        if kind == "PNG":
            check_size(struct.unpack(">2I", data[16:24]), limit)
        elif kind == "WebP":
            check_size(_webp_size(data), limit)
        with opener(BytesIO(data)) as picture:
            check_size(picture.size, limit)
            pixels = _by_opencv(data, picture) if decoder == "opencv" and kind in ("JPEG", "PNG") else None
            if pixels is None:
                pixels = _rgb_pixels(picture)
            turn = _upright_by(picture)
        # only now, when Pillow's own copy of the picture is gone
        return pixels if turn is None else np.ascontiguousarray(turn(pixels))
    except UnreadableImage:
        raise
    except Pillow.DecompressionBombError as problem:
        raise UnreadableImage(f"too many pixels: {problem}") from problem
    except _BROKEN as problem:
        raise UnreadableImage(_reason(kind, problem)) from problem


def check_size(size: tuple[int, ...], limit: int | None = None) -> None:
    """UnreadableImage for a picture of this width and height that is larger than the limit."""
    width, height = size
    if max(width, height) > LONGEST_SIDE:  # Pillow takes memory for each row, however short
        raise UnreadableImage(f"{width} x {height} pixels; no side may have more than {LONGEST_SIDE:,}")
    limit = limit_from_environment() if limit is None else limit
    if width * height > limit:
        advice = f"raise it with --max-pixels or {LIMIT_VARIABLE}={width * height}"
        raise UnreadableImage(f"{width} x {height} pixels, limit is {limit:,}; {advice}")


def _webp_size(data: bytes) -> tuple[int, int]:
    """Width and height of the canvas, which stand where the first chunk's kind says."""
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case _:
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF


def _opener(data: bytes) -> tuple[str, type[ImageFile]]:
    for kind, starts, opener in _OPENERS:
        if data.startswith(starts):
            return kind, opener
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        if len(data) < 8 + int.from_bytes(data[4:8], "little"):
            raise UnreadableImage("truncated WebP")
        return "WebP", WebPImageFile
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypavif"):
        raise UnreadableImage("a HEIC or AVIF image; convert it to JPEG or PNG")
    raise UnreadableImage("not an image (JPEG, PNG, WebP, GIF, BMP or TIFF)")


def _rgb_pixels(picture: ImageFile) -> Image:
    picture.load()
    width, height = picture.size
    if width * height <= STRIP:
        return np.asarray(_to_rgb(picture))
    pixels = np.empty((height, width, 3), np.uint8)
    rows = max(1, STRIP // width)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        pixels[top:bottom] = np.asarray(_to_rgb(picture.crop((0, top, width, bottom))))
    return pixels


def _to_rgb(picture: Pillow.Image) -> Pillow.Image:
    match picture.mode:
        case "RGB" | "L" | "P" if "transparency" in picture.info:
            return _on_backdrop(picture.convert("RGBA"))
        case "RGB":
            return picture
        case "RGBA" | "LA" | "PA" | "RGBa" | "La":
            return _on_backdrop(picture.convert("RGBA"))
        case mode if mode.startswith("I;16"):
            return Pillow.fromarray((np.asarray(picture) >> 8).astype(np.uint8)).convert("RGB")
        case "I" | "F" as mode:
            # a range that only its maker knows: any scale we chose would be a guess
            raise UnreadableImage(f"pixels of 32 bits (mode {mode}); save it with 8 or 16 bits")
        case _:
            return picture.convert("RGB")


def _on_backdrop(picture: Pillow.Image) -> Pillow.Image:
    backdrop = Pillow.new("RGBA", picture.size, (*BACKDROP, 255))
    return Pillow.alpha_composite(backdrop, picture).convert("RGB")


def _by_opencv(data: bytes, header: ImageFile) -> Image | None:
    try:
        return opencv_pixels(data, header)
    except ModuleNotFoundError as missing:
        raise missing_extra("decoder 'opencv'", missing) from missing


def _upright_by(header: ImageFile) -> Callable[[Image], Image] | None:
    """The rotation or flip that makes the picture upright; None where it is."""
    # a TIFF was turned by Pillow as it was loaded, and has no orientation any more
    if isinstance(header, JpegImageFile) and "exif" not in header.info:
        return None
    return _UPRIGHT.get(header.getexif().get(_ORIENTATION, 1))


def _reason(kind: str, problem: BaseException) -> str:
    text = str(problem).lower()
    cut_short = ("truncated", "not enough image data", "eof", "unexpected end", "read error", "buffer")
    if isinstance(problem, (EOFError, struct.error)) or any(sign in text for sign in cut_short):
        return f"truncated {kind}"
    if isinstance(problem, MemoryError):
        return f"{kind} too large for the memory of this machine"
    tells = isinstance(problem, (OSError, SyntaxError, ValueError)) and text
    return f"broken {kind}: {problem}" if tells else f"broken {kind}"


@cache
def limit_from_environment() -> int:
    """The pixel limit of the environment variable, which `--max-pixels` sets for this process and its workers, or ours."""
    text = os.environ.get(LIMIT_VARIABLE, str(PIXEL_LIMIT))
    if not text.isdecimal():
        raise BadInput(f"{LIMIT_VARIABLE} should be a number of pixels, got {text!r}")
    return int(text)


@contextmanager
def pixel_limit(most: int | None) -> Iterator[None]:
    """Larger images are skipped unread, in this process and its workers."""
    if most is None:
        yield
        return
    before = os.environ.get(LIMIT_VARIABLE)
    os.environ[LIMIT_VARIABLE] = str(most)
    limit_from_environment.cache_clear()
    try:
        yield
    finally:
        os.environ.pop(LIMIT_VARIABLE)
        os.environ.update({} if before is None else {LIMIT_VARIABLE: before})
        limit_from_environment.cache_clear()


def opencv_pixels(data: bytes, header: ImageFile) -> Image | None:
    """Pixels of a complete 8-bit RGB or grey file, EXIF orientation ignored; None for files that Pillow decodes."""
    import cv2  # optional, and slow to import

    if header.mode not in ("RGB", "L") or "transparency" in header.info or not _is_whole(data, header):
        return None
    # orientation is ours to apply, by one rule for both decoders
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    return None if pixels is None or pixels.shape[1::-1] != header.size else np.asarray(pixels, np.uint8)


def _is_whole(data: bytes, header: ImageFile) -> bool:
    """Whether the file is complete: OpenCV fills what is missing with grey instead of refusing it."""
    if isinstance(header, JpegImageFile):
        return b"\xff\xd9" in data[-64:]
    eight_bits = data[24] == 8
    return eight_bits and _has_whole_chunks(data)


def _has_whole_chunks(data: bytes) -> bool:
    """Whether a PNG is one picture in chunks that end where they say, up to the last.

    OpenCV makes room for a chunk before it knows that its bytes are there, four gigabytes if it says so, and for several
    pictures of an animation.
    """
    place = 8
    while place + 12 <= len(data):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        place += 12 + length
        if kind == b"IEND":
            return place <= len(data)
        if kind in (b"acTL", b"fcTL", b"fdAT"):
            return False
    return False
