"""Saving as JPEG and reading it back, in memory: libjpeg-turbo through OpenCV, byte for byte what Pillow does."""

from __future__ import annotations

import threading

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
    _, saved = cv2.imencode(".jpg", _REVERSED.channels_of(image), options)
    return np.asarray(saved, np.uint8)


class _Reversed(threading.local):
    """Memory of each thread for a small image with its channels in OpenCV's order: to get it takes as long as to fill it."""

    def __init__(self) -> None:
        self.last: Image = np.empty((0, 0, 3), np.uint8)

    def channels_of(self, image: Image) -> Image:
        if self.last.shape != image.shape:
            room: Image = np.empty(image.shape, np.uint8)  # in the usual order of memory, whichever the image has
            self.last = room if image.size <= KEPT else self.last
        else:
            room = self.last
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2BGR, dst=room), np.uint8)


KEPT = 1 << 20  # bytes
_REVERSED = _Reversed()
