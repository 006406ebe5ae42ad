"""Where the products of each image are stored: a file each, as in ImageNet-C, or rows of one ``.npy``, as in CIFAR-10-C.

An array grows in the scratch folder, in any order, beside a checksum of every row: a row that was half written when the run
was killed does not match and is made again. The file is moved to its place when it is complete.
"""

from __future__ import annotations

import io
import os
import tokenize
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.jpeg import to_jpeg
from shiftproof.errors import BadInput
from shiftproof.files import refusal, write_whole, writing
from shiftproof.registry import missing_extra

Parts = tuple[int, ...]


def jpeg_file(product: NDArray[np.uint8], noisy: bool) -> bytes:  # noqa: ARG001 an Encoder
    """As the published pictures were saved."""
    return to_jpeg(product, 85, optimised=True)


def png_file(product: NDArray[np.uint8], noisy: bool) -> bytes:  # noqa: ARG001 an Encoder
    return bytes(cv2.imencode(".png", cv2.cvtColor(product, cv2.COLOR_RGB2BGR))[1])


def mp4_file(product: NDArray[np.uint8], noisy: bool) -> bytes:
    """As the published sequences were saved: the grain of noise is kept."""
    from shiftproof.datasets.video.video_files import to_video

    return to_video(product, "kept" if noisy else "smoothed")


def check_video() -> None:
    """MissingExtra now rather than at the first video."""
    try:
        import shiftproof.datasets.video.video_files  # noqa: F401
    except ModuleNotFoundError as missing:
        raise missing_extra("writing .mp4 files", missing) from missing


ENCODERS: dict[str, Callable[[NDArray[np.uint8], bool], bytes]] = {".JPEG": jpeg_file, ".png": png_file, ".mp4": mp4_file}
"""By suffix."""


@dataclass(frozen=True)
class FileStorage:
    """A folder for each product, and in it a file for each image."""

    by_many: ClassVar[bool] = True
    root: Path
    scratch: Path
    folders: tuple[str, ...]  # of each part
    ending: str
    places: Sequence[str] = ()  # of each image; workers are told theirs
    noisy: tuple[bool, ...] = ()  # of each part: whether its frames are noise, whose grain a video keeps

    def for_workers(self) -> FileStorage:
        return FileStorage(self.root, self.scratch, self.folders, self.ending, noisy=self.noisy)

    def place(self, image: int) -> str:
        return self.places[image]

    def missing(self) -> list[Parts]:
        """The products of each image that have no file yet."""
        there = cache(_names_in)
        found: list[Parts] = []
        for place in self.places:
            inside, name = os.path.split(f"{place}{self.ending}")
            folders = [os.path.join(self.root, folder, inside) for folder in self.folders]
            found.append(tuple(part for part, folder in enumerate(folders) if name not in there(folder)))
        return found

    def encoded(self, product: NDArray[np.uint8], part: int) -> bytes:
        return ENCODERS[self.ending](product, bool(self.noisy) and self.noisy[part])

    def save(self, data: bytes, part: int, place: str) -> None:
        write_whole(self.root / self.folders[part] / f"{place}{self.ending}", data, scratch=self.scratch, inside=self.root)

    def finish(self, unreadable: Sequence[int]) -> None:
        """Nothing: every file is complete as soon as it exists."""


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except FileNotFoundError:
        return frozenset()


@dataclass(frozen=True)
class Table:
    """An array file: `blocks` blocks of one row per image."""

    stem: str
    blocks: int
    row: tuple[int, ...]  # the shape of one

    @property
    def row_bytes(self) -> int:
        return prod(self.row)


@dataclass(frozen=True)
class ArrayStorage:
    """A row of an array for every product of every image."""

    by_many: ClassVar[bool] = False  # network file systems lose neighbouring bytes that two machines write at once
    root: Path
    scratch: Path
    tables: tuple[Table, ...]
    parts: tuple[tuple[int, int], ...]  # the table and the block of each
    images: int
    labels: NDArray[np.integer] | None  # (images,), -1 for one without a label

    def for_workers(self) -> ArrayStorage:
        return ArrayStorage(self.root, self.scratch, self.tables, self.parts, self.images, None)

    def place(self, image: int) -> int:
        return image

    def missing(self) -> list[Parts]:
        """The products of each image that have no row yet; arrays are allocated."""
        there = {number: self._rows_there(table) for number, table in enumerate(self.tables)}
        return [
            tuple(part for part, (table, block) in enumerate(self.parts) if not there[table][block, image])
            for image in range(self.images)
        ]

    def encoded(self, product: NDArray[np.uint8], part: int) -> bytes:
        table = self.tables[self.parts[part][0]]
        if product.shape != table.row:
            raise BadInput(f"rows of {table.stem}.npy should have the shape {table.row}, got {product.shape}")
        return product.tobytes()

    def save(self, data: bytes, part: int, place: int) -> None:
        number, block = self.parts[part]
        table, row = self.tables[number], block * self.images + place
        path = self._growing(table)
        with _os_errors_as_refusals(path), path.open("r+b") as file, self._checksums(table).open("r+b") as checksums:
            file.seek(len(self._header(table)) + row * table.row_bytes)
            file.write(data)
            checksums.seek(4 * row)
            checksums.write(_checksum(data))

    def finish(self, unreadable: Sequence[int]) -> None:
        """Moves complete arrays to their places, without the rows of unreadable images, and writes the labels."""
        kept = np.setdiff1d(np.arange(self.images), unreadable)
        for table in self.tables:
            place = self.root / f"{table.stem}.npy"
            if place.exists():
                rows = _rows_in(place)
                if rows != table.blocks * len(kept):
                    raise BadInput(
                        f"{place} has {rows:,} rows, but {len(kept):,} images can be read now, since some were mended or "
                        "broke: name another folder"
                    )
                continue
            self._move(table, place, kept)
            self._checksums(table).unlink(missing_ok=True)
        if self.labels is not None:
            data = io.BytesIO()
            np.save(data, np.tile(self.labels[kept], self.tables[0].blocks))
            write_whole(self.root / "labels.npy", data.getvalue(), scratch=self.scratch, inside=self.root)

    def _move(self, table: Table, place: Path, kept: NDArray[np.intp]) -> None:
        growing = self._growing(table)
        with _os_errors_as_refusals(place):
            if len(kept) == self.images:
                with growing.open("rb") as file:
                    os.fsync(file.fileno())
                growing.replace(place)
                return
            rows = np.load(growing, mmap_mode="r").reshape(table.blocks, self.images, *table.row)[:, kept]
            with writing(place, scratch=self.scratch, inside=self.root) as unfinished, unfinished.open("wb") as file:
                np.save(file, rows.reshape(-1, *table.row))
                file.flush()
                os.fsync(file.fileno())
            growing.unlink()

    def _rows_there(self, table: Table) -> NDArray[np.bool_]:
        """Which rows are complete, (blocks, images)."""
        count = table.blocks * self.images
        if (self.root / f"{table.stem}.npy").exists():
            return np.ones((table.blocks, self.images), bool)
        header, growing, checksums = self._header(table), self._growing(table), self._checksums(table)
        size = len(header) + count * table.row_bytes
        if not (_is_of_size(growing, size) and _is_of_size(checksums, 4 * count)):
            with _os_errors_as_refusals(growing):
                _allocate(growing, header, size)
                _allocate(checksums, b"", 4 * count)
            return np.zeros((table.blocks, self.images), bool)
        written = np.fromfile(checksums, "<u4")
        with growing.open("rb") as file:
            whole = [_is_whole(file, len(header), row, table, checksum) for row, checksum in enumerate(written)]
        return np.array(whole, bool).reshape(table.blocks, self.images)

    def _growing(self, table: Table) -> Path:
        return self.scratch / f"{table.stem}.npy"

    def _checksums(self, table: Table) -> Path:
        return self.scratch / f"{table.stem}.checksums"

    def _header(self, table: Table) -> bytes:
        header = io.BytesIO()
        about = {"descr": "|u1", "fortran_order": False, "shape": (table.blocks * self.images, *table.row)}
        np.lib.format.write_array_header_1_0(header, about)
        return header.getvalue()


def _rows_in(path: Path) -> int:
    """The number of rows of a finished array; BadInput where it is damaged."""
    try:
        found: NDArray[np.generic] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, tokenize.TokenError) as error:
        raise BadInput(f"{path} is damaged, and no array can be read from it; move it away, and it is made again") from error
    return len(found) if found.ndim else 0


def _is_whole(file: io.BufferedReader, start: int, row: int, table: Table, written: np.uint32) -> bool:
    if not written:
        return False
    file.seek(start + row * table.row_bytes)
    return _checksum(file.read(table.row_bytes)) == written.tobytes()


def _checksum(data: bytes) -> bytes:
    """CRC-32; never 0, which stands for a row that was not written."""
    return (zlib.crc32(data) or 1).to_bytes(4, "little")


def _is_of_size(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size == size


def _allocate(path: Path, header: bytes, size: int) -> None:
    """A file of zeros behind a header, with its disk space reserved."""
    with path.open("wb") as file:
        file.write(header)
        file.truncate(size)
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)


@contextmanager
def _os_errors_as_refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, path) from error
