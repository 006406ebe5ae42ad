"""Decoding: pixels as stored, or a short reason."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageOps

from shiftproof.datasets import decoding
from shiftproof.datasets.decoding import PIXEL_LIMIT, decode_image
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.types import Decoder

Pattern = Callable[[int, int], NDArray[np.uint8]]
Encode = Callable[..., bytes]
DECODERS: tuple[Decoder, ...] = ("pillow", "opencv")


def _by_pillow(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Pillow.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WebP", {"lossless": True})],
)
def test_lossless_formats_give_back_what_was_stored(
    kind: str, options: dict[str, object], decoder: Decoder, pattern: Pattern, encode: Encode
) -> None:
    image = pattern(20, 31)
    decoded = decode_image(encode(image, kind, **options), decoder=decoder)
    assert decoded.dtype == np.uint8
    assert np.array_equal(decoded, image)


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"progressive": True}, {"quality": 40}])
def test_a_jpeg_decodes_exactly_as_pillow_does_and_nearly_so_with_opencv(
    options: dict[str, object], pattern: Pattern, encode: Encode
) -> None:
    data = encode(pattern(97, 130), "JPEG", **options)
    assert np.array_equal(decode_image(data), _by_pillow(data))
    by_opencv = decode_image(data, decoder="opencv")
    assert np.abs(by_opencv.astype(int) - _by_pillow(data).astype(int)).max() <= 3


def test_the_first_frame_of_an_animation_counts(encode: Encode) -> None:
    red, blue = (Pillow.new("RGB", (9, 7), colour) for colour in ("red", "blue"))
    for kind in ("GIF", "WebP", "TIFF"):
        data = encode(red, kind, save_all=True, append_images=[blue], **({"lossless": True} if kind == "WebP" else {}))
        assert decode_image(data).reshape(-1, 3).tolist() == [[255, 0, 0]] * 63, kind


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WebP", "TIFF"])
def test_exif_orientation_is_applied_once(
    kind: str, orientation: int, decoder: Decoder, pattern: Pattern, encode: Encode
) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WebP" else {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    data = encode(pattern(16, 24), kind, exif=exif.tobytes() if kind != "TIFF" else exif, **options)
    upright = np.asarray(ImageOps.exif_transpose(Pillow.open(io.BytesIO(data))).convert("RGB"))
    assert upright.shape == ((16, 24, 3) if orientation < 5 else (24, 16, 3))
    assert np.abs(decode_image(data, decoder=decoder).astype(int) - upright.astype(int)).max() <= 3


@pytest.mark.parametrize("decoder", DECODERS)
def test_cmyk_is_taken_as_adobe_writes_it(decoder: Decoder, pattern: Pattern, encode: Encode) -> None:
    image = pattern(32, 48)
    data = encode(Pillow.fromarray(image).convert("CMYK"), "JPEG", quality=95, subsampling=0)
    assert b"Adobe" in data[:200]
    decoded = decode_image(data, decoder=decoder)
    assert np.abs(decoded.astype(int) - image.astype(int)).max() <= 12
    without_marker = _without_segment(data, 0xEE)
    assert np.array_equal(decode_image(without_marker, decoder=decoder), decoded)


def _without_segment(data: bytes, marker: int) -> bytes:
    start = data.index(bytes([0xFF, marker]))
    return data[:start] + data[start + 2 + int.from_bytes(data[start + 2 : start + 4], "big") :]


@pytest.mark.parametrize("decoder", DECODERS)
def test_grey_and_palette_images_become_rgb(decoder: Decoder, pattern: Pattern, encode: Encode) -> None:
    grey = pattern(10, 12)[:, :, 0]
    assert np.array_equal(decode_image(encode(grey, "PNG"), decoder=decoder), np.repeat(grey[:, :, None], 3, axis=2))
    bits = Pillow.fromarray((grey > 90).astype(np.uint8) * 255).convert("1")
    assert set(np.unique(decode_image(encode(bits, "PNG"), decoder=decoder))) == {0, 255}
    flat = np.zeros((4, 4, 3), np.uint8) + np.array([200, 10, 30], np.uint8)
    palette = Pillow.fromarray(flat).convert("P", palette=Pillow.Palette.ADAPTIVE)
    assert np.array_equal(decode_image(encode(palette, "PNG"), decoder=decoder), flat)


@pytest.mark.parametrize("decoder", DECODERS)
def test_transparent_pixels_show_white(decoder: Decoder, encode: Encode) -> None:
    layers = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 51]]], np.uint8)
    for kind in ("PNG", "WebP", "TIFF"):
        decoded = decode_image(
            encode(layers, kind, **({"lossless": True, "exact": True} if kind == "WebP" else {})), decoder=decoder
        )
        assert decoded[0].tolist() == [[10, 20, 30], [255, 255, 255], [204, 204, 204]], kind
    grey = Pillow.fromarray(layers[:, :, 2:].copy(), mode=None)
    assert decode_image(encode(grey, "PNG"), decoder=decoder)[0].tolist()[1] == [255, 255, 255]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_transparent_colour_or_palette_entry_shows_white(decoder: Decoder, encode: Encode) -> None:
    colours = np.array([[[1, 2, 3], [9, 9, 9]]], np.uint8)
    keyed = encode(colours, "PNG", transparency=(9, 9, 9))
    assert decode_image(keyed, decoder=decoder)[0].tolist() == [[1, 2, 3], [255, 255, 255]]
    palette = Pillow.new("P", (2, 1))
    palette.putpalette([1, 2, 3, 9, 9, 9])
    palette.putdata([0, 1])
    for transparency in (1, bytes([255, 0])):
        data = encode(palette, "PNG", transparency=transparency)
        assert decode_image(data, decoder=decoder)[0].tolist() == [[1, 2, 3], [255, 255, 255]]


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_and_not_clipped(kind: str, decoder: Decoder, encode: Encode) -> None:
    values = np.array([[0, 255, 256, 0x8000, 0xABCD, 0xFFFF]], np.uint16)
    decoded = decode_image(encode(values, kind), decoder=decoder)
    assert decoded[0, :, 0].tolist() == [0, 0, 1, 0x80, 0xAB, 255]
    assert decoded.shape == (1, 6, 3)


@pytest.mark.parametrize("decoder", DECODERS)
def test_sixteen_bit_colour_keeps_the_high_byte_too(decoder: Decoder) -> None:
    rows = struct.pack(">6H", 0xABCD, 0x00FF, 0xFFFF, 0, 0x1234, 0x8000)
    data = _png(2, 1, depth=16, colour=2, body=b"\0" + rows)
    assert decode_image(data, decoder=decoder)[0].tolist() == [[0xAB, 0, 0xFF], [0, 0x12, 0x80]]


def test_pixels_of_unknown_range_are_refused(encode: Encode) -> None:
    for values in (np.ones((2, 2), np.float32), np.ones((2, 2), np.int32)):
        with pytest.raises(UnreadableImage, match="32 bits"):
            decode_image(encode(values, "TIFF"))


def _png(width: int, height: int, *, depth: int = 8, colour: int = 2, body: bytes = b"") -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">2I5B", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_huge_picture_is_refused_from_its_header(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    for unpacks in ("_rgb_pixels", "_by_opencv"):
        monkeypatch.setattr(decoding, unpacks, lambda *_: pytest.fail("its pixels are unpacked"))
    with pytest.raises(
        UnreadableImage, match=r"^30000 x 30000 pixels, limit is 120,000,000; raise it with --max-pixels or SHIFTPROOF"
    ):
        decode_image(_png(30_000, 30_000, body=b"\0" * 100), decoder=decoder)


def _chunk(kind: bytes, content: bytes, length: int | None = None) -> bytes:
    said = len(content) if length is None else length
    return struct.pack(">I", said) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@cache
def _hostile(kind: str) -> bytes:
    """Small files that ask for a lot of room, below the limit on pixels."""
    start, end = _png(30, 30)[:33], _chunk(b"IEND", b"")
    large = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">2I5B", 10_900, 10_900, 8, 2, 0, 0, 0))
    frames = [_chunk(b"fcTL", struct.pack(">5I2H2B", place, 10_900, 10_900, 0, 0, 1, 1, 0, 0)) for place in (0, 1)]
    short = _chunk(b"IDAT", zlib.compress(bytes(1000)))
    match kind:
        case "chunk that says it is long":
            return start + _chunk(b"IDAT", bytes(3000), length=2**31 - 1) + end
        case "animation":
            more = _chunk(b"fdAT", struct.pack(">I", 2) + zlib.compress(bytes(1000)))
            return large + _chunk(b"acTL", struct.pack(">2I", 2, 0)) + frames[0] + short + frames[1] + more + end
        case "profile":
            return start + _chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(50_000_000), 9)) + short + end
        case _:
            return large + short + end


MEASURE = """
import os
import sys
import cv2
from shiftproof.errors import UnreadableImage
from shiftproof.datasets import decoding

decoding.STRIP //= 4  # quicker with pictures a quarter as large

def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

def grown(path, decoder):
    with open(path, "rb") as file:
        data = file.read()
    before = most()
    try:
        decoding.decode_image(data, decoder=decoder)
    except UnreadableImage:
        pass
    return (most() - before) // 1024

for line in sys.stdin:
    child = os.fork()
    if not child:
        print(grown(*line.rstrip().split("\\t")), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("died", flush=True)
"""


@pytest.fixture(scope="module")
def most_memory() -> Iterator[Callable[[Path, Decoder], int]]:
    """Megabytes that a process grows by while it decodes a file, at most: one forked for each, with all imports done."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the most memory used")
    with subprocess.Popen(
        [sys.executable, "-c", MEASURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def most(path: Path, decoder: Decoder) -> int:
            asked.write(f"{path}\t{decoder}\n")
            return int(told.readline())

        yield most


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("kind", ["chunk that says it is long", "animation", "profile", "pixels that are missing"])
def test_a_small_file_takes_little_memory(
    kind: str, decoder: Decoder, most_memory: Callable[[Path, Decoder], int], tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(_hostile(kind))
    assert most_memory(tmp_path / "a.png", decoder) < 300


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_a_transparent_picture_is_never_there_many_times_over(
    mode: str, most_memory: Callable[[Path, Decoder], int], tmp_path: Path
) -> None:
    Pillow.new(mode, (3000, 3000)).save(tmp_path / "a.png", transparency=0 if mode == "P" else None, compress_level=1)
    # four bytes a pixel with Pillow and three as an array, 63 MB, and a strip's worth of the way between
    assert most_memory(tmp_path / "a.png", "pillow") < 160


def test_large_pictures_are_converted_in_strips_to_the_same_pixels(
    monkeypatch: pytest.MonkeyPatch, pattern: Pattern, encode: Encode
) -> None:
    image = pattern(37, 50)
    clear = np.dstack([image, image[:, :, 0]])
    grey = Pillow.fromarray(image).convert("P")
    files = [
        encode(image, "PNG"),
        encode(clear, "PNG"),
        encode(grey, "PNG", transparency=3),
        encode(image[:, :, 0].astype(np.uint16) * 257, "PNG"),
        encode(Pillow.fromarray(image).convert("CMYK"), "JPEG"),
        encode(image, "JPEG"),
    ]
    whole = [decode_image(data) for data in files]
    monkeypatch.setattr(decoding, "STRIP", 130)
    assert all(np.array_equal(decode_image(data), one) for data, one in zip(files, whole, strict=True))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WebP"])
def test_the_pixel_limit_counts_for_every_format_and_can_be_moved(kind: str, pattern: Pattern, encode: Encode) -> None:
    data = encode(pattern(10, 10), kind)
    assert decode_image(data, pixel_limit=100).shape == (10, 10, 3)
    with pytest.raises(UnreadableImage, match="10 x 10 pixels, limit is 99"):
        decode_image(data, pixel_limit=99)


def test_a_long_thin_picture_takes_no_memory_for_its_rows(pattern: Pattern, encode: Encode) -> None:
    data = encode(pattern(10, 10), "PNG")
    header = data[12:16] + struct.pack(">2I", 1, 110_000_000) + data[24:29]
    thin = data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]
    with pytest.raises(UnreadableImage, match=r"1 x 110000000 pixels; no side may have more than 1,000,000"):
        decode_image(thin)


def test_the_limit_can_be_raised_above_pillows_own(
    monkeypatch: pytest.MonkeyPatch, pattern: Pattern, encode: Encode
) -> None:
    monkeypatch.setattr(Pillow, "MAX_IMAGE_PIXELS", 10)
    for kind in ("JPEG", "PNG", "BMP"):
        assert decode_image(encode(pattern(10, 10), kind)).shape == (10, 10, 3)


def test_the_limit_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, pattern: Pattern, encode: Encode) -> None:
    data = encode(pattern(10, 10), "PNG")
    try:
        monkeypatch.setenv("SHIFTPROOF_PIXEL_LIMIT", "99")
        decoding.limit_from_environment.cache_clear()
        with pytest.raises(UnreadableImage, match="limit is 99"):
            decode_image(data)
        monkeypatch.setenv("SHIFTPROOF_PIXEL_LIMIT", "many")
        decoding.limit_from_environment.cache_clear()
        with pytest.raises(BadInput, match="number of pixels, got 'many'"):
            decode_image(data)
    finally:
        decoding.limit_from_environment.cache_clear()
    assert PIXEL_LIMIT == 120_000_000


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WebP"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused_as_such(
    kind: str, share: float, decoder: Decoder, encode: Encode, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    data = encode(noise, kind)
    with pytest.raises(UnreadableImage, match=r"^(truncated|broken)") as refusal:
        decode_image(data[: int(len(data) * share)], decoder=decoder)
    if share > 0.4 and kind in ("JPEG", "PNG", "BMP", "WebP"):
        assert str(refusal.value) == f"truncated {kind}"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"just some text\n", "not an image"),
        (b"\0\0\0\x20ftypheic" + b"\0" * 50, "HEIC or AVIF"),
        (b"\xff\xd8\xff", "JPEG"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"GIF89a", "GIF"),
        (b"BM", "BMP"),
        (b"II*\0\x08\0\0\0\xff\xff", "TIFF"),
        (b"RIFF\x10\0\0\0WEBPVP8 \0\0\0\0\0\0\0\0", "WebP"),
    ],
)
def test_what_is_no_image_is_refused_with_a_reason(data: bytes, reason: str, decoder: Decoder) -> None:
    with pytest.raises(UnreadableImage, match=reason):
        decode_image(data, decoder=decoder)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WebP"])
def test_damaged_bytes_give_pixels_or_a_reason_and_no_warning(
    kind: str, decoder: Decoder, pattern: Pattern, encode: Encode
) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    whole = bytearray(encode(pattern(24, 24), kind, **({"exif": exif.tobytes()} if kind in ("JPEG", "PNG", "WebP") else {})))
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(150):
            damaged = bytearray(whole)
            for place in rng.integers(4, len(whole), 3):
                damaged[place] = rng.integers(256)
            outcome = _pixels_or_reason(bytes(damaged), decoder)
            assert isinstance(outcome, str) or (outcome.dtype == np.uint8 and outcome.shape[2] == 3)
            assert 0 < len(outcome) < 10_000


def _pixels_or_reason(data: bytes, decoder: Decoder) -> NDArray[np.uint8] | str:
    try:
        return decode_image(data, decoder=decoder, pixel_limit=1_000_000)
    except UnreadableImage as refusal:
        return str(refusal)


@pytest.mark.real
def test_real_photos_decode_as_pillow_does(real_data: Path) -> None:
    paths = sorted((real_data / "ilsvrc-sample-1000").iterdir())[::25]
    for path in paths:
        data = path.read_bytes()
        expected = np.asarray(ImageOps.exif_transpose(Pillow.open(path)).convert("RGB"))
        assert np.array_equal(decode_image(data), expected), path.name
        by_opencv = decode_image(data, decoder="opencv").astype(int)
        assert np.abs(by_opencv - expected.astype(int)).mean() < 0.5, path.name
