"""The pictures of frosted panes: our own, drawn by tools/make_frost.py, or those of a folder the user names."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from shiftproof.errors import BadInput
from shiftproof.types import FrostPictures, Image

OUR_FOLDER = Path(__file__).with_name("frost")

USED = 5  # not 6: the published datasets never used their last frost picture

ORIGINAL_FROST = "bd3336d985552a08018732472a6756ce"
"""Digest of the pictures the published datasets were made with."""


def frost_pictures(folder: str | Path) -> FrostPictures:
    """The pictures of a folder that frost would use, by the digest of their bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for file in used_files(folder):
        digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return FrostPictures(str(folder), digest.hexdigest())


def used_files(folder: str | Path) -> list[Path]:
    """The first five frost pictures of a folder by name, all where it has fewer; BadInput where it has none."""
    place = Path(folder)
    if not place.is_dir():
        raise BadInput(f"no folder {folder}; give one that holds frost1.png, frost2.jpg, ...")
    files = sorted(file for file in place.glob("frost*") if file.suffix.lower() in {".png", ".jpg", ".jpeg"})
    if not files:
        raise BadInput(f"no frost pictures in {folder}: they should be called frost1.png, frost2.jpg, ...")
    return files[:USED]


def picture_covering(height: int, width: int, rng: np.random.Generator, *, scale: float, folder: str | None) -> Image:
    """One of the pictures, as likely as any other, `scale` times as large, or larger where it must be to cover an image."""
    files = _files(folder)
    file = files[rng.integers(len(files))]
    tall, wide = _decoded(file).shape[:2]
    return _scaled(file, max(scale, height / tall, width / wide))


@lru_cache(maxsize=16)
def _files(folder: str | None) -> tuple[Path, ...]:
    return tuple(used_files(OUR_FOLDER if folder is None else folder))


@lru_cache(maxsize=16)
def _decoded(file: Path) -> Image:
    picture = cv2.imdecode(np.frombuffer(file.read_bytes(), np.uint8), cv2.IMREAD_COLOR_RGB)
    if picture is None:
        raise BadInput(f"{file} is not a picture that can be read; replace it, or give another folder")
    picture.flags.writeable = False
    return np.asarray(picture)


@lru_cache(maxsize=USED)  # of one size of image: enlarged to cover a photo of 12 megapixels, each takes 36 MB and more
def _scaled(file: Path, scale: float) -> Image:
    picture = _decoded(file)
    if scale == 1:
        return picture
    resized = np.asarray(cv2.resize(picture, None, fx=scale, fy=scale), np.uint8)
    resized.flags.writeable = False
    return resized
