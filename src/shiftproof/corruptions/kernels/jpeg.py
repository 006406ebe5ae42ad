"""Saving as JPEG and reading it back, in memory: libjpeg-turbo through OpenCV, byte for byte what Pillow does."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Image


def jpeg_round_trip(image: Image, quality: int, *, optimised: bool = False) -> Image:
    """The image after a save as JPEG (4:2:0) and a decode."""
    return np.asarray(cv2.imdecode(_saved(image, quality, optimised), cv2.IMREAD_COLOR_RGB), dtype=np.uint8)


def to_jpeg(image: Image, quality: int, *, optimised: bool = False) -> bytes:
    """The bytes of the image saved as JPEG (4:2:0)."""
    return _saved(image, quality, optimised).tobytes()


def jpeg85(image: Image) -> Image:
    """The image as the published files hold it: quality 85, 4:2:0.

    The published files are also saved with optimised Huffman tables, which change their length and not their pixels.
    """
    return jpeg_round_trip(image, 85)


def _saved(image: Image, quality: int, optimised: bool) -> NDArray[np.uint8]:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, int(optimised)]
    _, saved = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    return np.asarray(saved, np.uint8)
