"""The published editions: the size of their pictures, and how a picture is cut out of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image as Pillow

from shiftproof import catalog
from shiftproof.types import Image

LONGEST = 64
"""How many times as long as wide an image may be and still be resized whole."""


@dataclass(frozen=True)
class Edition:
    """One published set of pictures; `strengths` names the column of the table of strengths it uses."""

    size: int
    strengths: str
    picture: Callable[[Image], Image]
    about: str  # how `picture` comes about, in words for lists and reports


def resized_whole(image: Image, height: int, width: int) -> Image:
    """The whole image at another size, bilinear with Pillow's smoothing, as the published sets were made."""
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BILINEAR))


def shorter_side(image: Image, length: int) -> Image:
    """The image with its shorter side at this length, the longer cut to whole pixels.

    Of an image more than `LONGEST` times as long as wide the middle, far more than a crop sees; a strip of 1 x 60,000 pixels
    would fill the memory.
    """
    most = LONGEST * min(image.shape[:2])
    image = centre(image, min(image.shape[0], most), min(image.shape[1], most))
    height, width = image.shape[:2]
    if height <= width:
        return resized_whole(image, length, int(length * width / height))
    return resized_whole(image, int(length * height / width), length)


def centre(image: Image, height: int, width: int) -> Image:
    """The middle of an image."""
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return image[top : top + height, left : left + width]


def _imagenet_224(image: Image) -> Image:
    return centre(shorter_side(image, 256), 224, 224)


def _inception_299(image: Image) -> Image:
    height, width = (max(1, int(0.875 * side)) for side in image.shape[:2])
    return resized_whole(centre(image, height, width), 299, 299)


def _whole_64(image: Image) -> Image:
    return resized_whole(image, 64, 64)


def _whole_32(image: Image) -> Image:
    return resized_whole(image, 32, 32)


IMAGENET_224 = Edition(224, "imagenet-224", _imagenet_224, "shorter side to 256, centre 224")
INCEPTION_299 = Edition(299, "inception-299", _inception_299, "centre of 0.875 of each side, resized to 299 x 299")
IMAGENET_64 = Edition(64, "tiny-64", _whole_64, "the whole image resized to 64 x 64; the strengths of Tiny-ImageNet")
TINY_64 = Edition(64, "tiny-64", _whole_64, "the whole image resized to 64 x 64")
CIFAR_32 = Edition(32, "cifar-32", _whole_32, "the whole image resized to 32 x 32")


def edition_of(name: str) -> Edition:
    """An edition by name, or UnknownName with the nearest."""
    edition: Edition = catalog.EDITIONS.load(name)
    return edition
