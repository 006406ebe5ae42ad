"""Stored bytes to RGB pixels, or the reason why not.

EXIF orientation is applied. Transparent pixels are laid on white. CMYK is taken as Adobe writes it, colour profiles are
ignored. Of 16-bit samples the high byte is kept, so that black stays black and white white. Of animations and
multi-page files the first picture counts.
"""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from collections.abc import Callable
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

PIXEL_LIMIT = 178_956_970
"""More pixels than this are refused before they are unpacked: a small file can claim a very large picture."""

LIMIT_VARIABLE = "SHIFTPROOF_PIXEL_LIMIT"
BACKDROP = (255, 255, 255)
"""What shows through transparent pixels."""

_ORIENTATION = 0x0112
_TURNS: dict[int, Callable[[Image], Image]] = {
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: image.swapaxes(0, 1)[:, ::-1],
    7: lambda image: image.swapaxes(0, 1)[::-1, ::-1],
    8: lambda image: image.swapaxes(0, 1)[::-1],
}
"""What makes an image upright, by its EXIF orientation."""

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
    limit = _limit_from_environment() if pixel_limit is None else pixel_limit
    kind, opener = _opener(data)
    if decoder == "pillow" and kind == "JPEG" and b"Exif\0" not in data[:131072]:
        return _decoded(data, kind, opener, limit, decoder)
    # catching warnings is not for threads, hence not for the plain photo that makes up most sets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _decoded(data, kind, opener, limit, decoder)


def _decoded(data: bytes, kind: str, opener: type[ImageFile], limit: int, decoder: Decoder) -> Image:
    try:
        if kind == "PNG":
            # its size stands first in the file; Pillow would read on to the pixels before it tells
            _check_size(struct.unpack(">2I", data[16:24]), limit)
        with opener(BytesIO(data)) as picture:
            _check_size(picture.size, limit)
            pixels = _by_opencv(data, picture) if decoder == "opencv" and kind in ("JPEG", "PNG") else None
            return _upright(np.asarray(_to_rgb(picture)) if pixels is None else pixels, picture)
    except UnreadableImage:
        raise
    except Pillow.DecompressionBombError as problem:
        raise UnreadableImage(f"too many pixels: {problem}") from problem
    except _BROKEN as problem:
        raise UnreadableImage(_reason(kind, problem)) from problem


def _check_size(size: tuple[int, ...], limit: int) -> None:
    width, height = size
    if width * height > limit:
        advice = f"raise it with {LIMIT_VARIABLE}={width * height}"
        raise UnreadableImage(f"{width} x {height} pixels, limit is {limit:,}; {advice}")


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


def _to_rgb(picture: ImageFile) -> Pillow.Image:
    picture.load()
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
        from shiftproof.image_sets.opencv import opencv_pixels
    except ModuleNotFoundError as missing:
        raise missing_extra("decoder 'opencv'", missing) from missing
    return opencv_pixels(data, header)


def _upright(image: Image, header: ImageFile) -> Image:
    # a TIFF was turned by Pillow as it was loaded, and has no orientation any more
    if isinstance(header, JpegImageFile) and "exif" not in header.info:
        return image
    turn = _TURNS.get(header.getexif().get(_ORIENTATION, 1))
    return image if turn is None else np.ascontiguousarray(turn(image))


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
def _limit_from_environment() -> int:
    text = os.environ.get(LIMIT_VARIABLE, str(PIXEL_LIMIT))
    if not text.isdecimal():
        raise BadInput(f"{LIMIT_VARIABLE} should be a number of pixels, got {text!r}")
    return int(text)
