"""One file for every part of every image: JPEG as the published sets were saved, PNG without loss, or mp4."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.jpeg import to_jpeg
from shiftproof.files import write_whole
from shiftproof.registry import missing_extra

Parts = tuple[int, ...]


def jpeg_file(product: NDArray[np.uint8], folder: str) -> bytes:  # noqa: ARG001 an Encoder
    """As the published pictures were saved."""
    return to_jpeg(product, 85, optimised=True)


def png_file(product: NDArray[np.uint8], folder: str) -> bytes:  # noqa: ARG001 an Encoder
    return bytes(cv2.imencode(".png", cv2.cvtColor(product, cv2.COLOR_RGB2BGR))[1])


def mp4_file(product: NDArray[np.uint8], folder: str) -> bytes:
    """As the published sequences were saved: the grain of noise is kept."""
    from shiftproof.image_sets.video_files import to_video

    return to_video(product, "kept" if "noise" in folder else "smoothed")


def check_video() -> None:
    """MissingExtra now rather than at the first sequence."""
    try:
        import shiftproof.image_sets.video_files  # noqa: F401
    except ModuleNotFoundError as missing:
        raise missing_extra("writing .mp4 files", missing) from missing


ENCODERS: dict[str, Callable[[NDArray[np.uint8], str], bytes]] = {".JPEG": jpeg_file, ".png": png_file, ".mp4": mp4_file}
"""By the ending of the files."""


@dataclass(frozen=True)
class FileStorage:
    """A folder for each part, and in it a file for each image."""

    root: Path
    scratch: Path
    folders: tuple[str, ...]  # of each part
    ending: str
    places: Sequence[str] = ()  # of each image; workers are told theirs

    def for_workers(self) -> FileStorage:
        return FileStorage(self.root, self.scratch, self.folders, self.ending)

    def place(self, image: int) -> str:
        return self.places[image]

    def missing(self) -> list[Parts]:
        """The parts of each image that have no file yet."""
        there = cache(_names_in)
        found: list[Parts] = []
        for place in self.places:
            inside, name = os.path.split(f"{place}{self.ending}")
            folders = [os.path.join(self.root, folder, inside) for folder in self.folders]
            found.append(tuple(part for part, folder in enumerate(folders) if name not in there(folder)))
        return found

    def encoded(self, product: NDArray[np.uint8], part: int) -> bytes:
        return ENCODERS[self.ending](product, self.folders[part])

    def save(self, data: bytes, part: int, place: str) -> None:
        write_whole(self.root / self.folders[part] / f"{place}{self.ending}", data, scratch=self.scratch, inside=self.root)

    def finish(self, unreadable: Sequence[int]) -> None:
        """Nothing: every file was whole as soon as it was there."""


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except FileNotFoundError:
        return frozenset()
