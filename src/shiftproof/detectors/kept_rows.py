"""Rows to search in, held in memory or, where they are too many for it, in a temporary file."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.parts import parts_of
from shiftproof.types import Precision

Rows = NDArray[np.float32]
"""(rows, features)."""

Squares = NDArray[np.float64]
"""Squared lengths, (rows,)."""

ROWS_AT_ONCE = 4096


class KeptRows(Protocol):
    """Rows that come back block by block with their squared lengths, in their order, as often as asked."""

    def __len__(self) -> int: ...

    def blocks(self) -> Iterator[tuple[Rows, Squares]]: ...


@dataclass(frozen=True)
class RowsInMemory:
    """Rows in one array."""

    rows: NDArray[np.floating]
    squares: Squares

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> Iterator[tuple[Rows, Squares]]:
        for part in parts_of(len(self.rows), ROWS_AT_ONCE):
            yield self.rows[part].astype(np.float32, copy=False), self.squares[part]


@dataclass(frozen=True)
class RowsOnDisk:
    """Rows in a file without a name, which goes when they do."""

    file: IO[bytes]
    shape: tuple[int, int]
    precision: Precision
    squares: Squares

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[Rows, Squares]]:
        row_bytes = self.shape[1] * np.dtype(self.precision).itemsize
        for part in parts_of(self.shape[0], ROWS_AT_ONCE):
            shape = (part.stop - part.start, self.shape[1])
            # mapped anew for each block: what has been read then counts as memory in use no longer
            rows = np.memmap(self.file, self.precision, "r", part.start * row_bytes, shape)
            yield np.asarray(rows, np.float32), self.squares[part]


def keep_rows(blocks: Iterable[Rows], shape: tuple[int, int], *, precision: Precision, gigabytes: float) -> KeptRows:
    """These blocks as one, of this shape in all: in memory up to so many gigabytes, else in a temporary file."""
    squares = np.empty(shape[0])
    rounded = _rounded(blocks, precision, squares)
    if shape[0] * shape[1] * np.dtype(precision).itemsize <= gigabytes * 1e9:
        kept = np.empty(shape, precision)
        for part, block in rounded:
            kept[part] = block
        return RowsInMemory(kept, squares)
    file = tempfile.TemporaryFile(prefix="shiftproof-")  # noqa: SIM115 open as long as the rows are there
    for _, block in rounded:
        file.write(block.data)
    file.flush()
    rows = RowsOnDisk(file, shape, precision, squares)
    weakref.finalize(rows, file.close)
    return rows


def squared_lengths(rows: NDArray[np.floating]) -> Squares:
    """Of each row, in double precision."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _rounded(blocks: Iterable[Rows], precision: Precision, squares: Squares) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """The blocks as they are kept, each with its place among all; the squared lengths are noted on the way."""
    start = 0
    for block in blocks:
        part = slice(start, start + len(block))
        rounded = np.ascontiguousarray(block, precision)
        squares[part] = squared_lengths(rounded)
        yield part, rounded
        start = part.stop
