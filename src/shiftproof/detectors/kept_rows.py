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

ROWS_AT_ONCE = 4096


class KeptRows(Protocol):
    """Rows that come back block by block, in their order, as often as asked."""

    def __len__(self) -> int: ...

    def blocks(self) -> Iterator[Rows]: ...


@dataclass(frozen=True)
class RowsInMemory:
    """Rows in one array."""

    rows: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> Iterator[Rows]:
        for part in parts_of(len(self.rows), ROWS_AT_ONCE):
            yield self.rows[part].astype(np.float32, copy=False)


@dataclass(frozen=True)
class RowsOnDisk:
    """Rows in a file without a name, which goes when they do."""

    file: IO[bytes]
    shape: tuple[int, int]
    precision: Precision

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[Rows]:
        row_bytes = self.shape[1] * np.dtype(self.precision).itemsize
        for part in parts_of(self.shape[0], ROWS_AT_ONCE):
            shape = (part.stop - part.start, self.shape[1])
            # mapped anew for each block: what has been read then counts as memory in use no longer
            rows = np.memmap(self.file, self.precision, "r", part.start * row_bytes, shape)
            yield np.asarray(rows, np.float32)


def keep_rows(blocks: Iterable[Rows], shape: tuple[int, int], *, precision: Precision, gigabytes: float) -> KeptRows:
    """These blocks as one, of this shape in all: in memory up to so many gigabytes, else in a temporary file."""
    if shape[0] * shape[1] * np.dtype(precision).itemsize <= gigabytes * 1e9:
        kept, filled = np.empty(shape, precision), 0
        for block in blocks:
            kept[filled : filled + len(block)] = block
            filled += len(block)
        return RowsInMemory(kept)
    file = tempfile.TemporaryFile(prefix="shiftproof-")  # noqa: SIM115 open as long as the rows are there
    for block in blocks:
        file.write(np.ascontiguousarray(block, precision).data)
    file.flush()
    rows = RowsOnDisk(file, shape, precision)
    weakref.finalize(rows, file.close)
    return rows
