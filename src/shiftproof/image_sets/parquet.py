"""Rows of a Parquet table as plain values."""

from __future__ import annotations

import os
from typing import Any

import pyarrow.compute
import pyarrow.lib
import pyarrow.parquet

from shiftproof.errors import BadInput
from shiftproof.files import repeated

ROWS_A_BYTE, MOST_ROWS = 16, 100_000
LETTERS_A_BYTE, MOST_LETTERS = 64, 2**28
"""How much a file may hold for each of its bytes, and in any case: repeated values take next to no room in it."""


def load_parquet_rows(path: str) -> list[dict[str, Any]]:
    """One mapping a row, dates as text."""
    try:
        if twice := repeated(pyarrow.parquet.read_schema(path).names):
            raise BadInput(f"{path} has two columns called {twice!r}; rename or remove one of them")
        _check_amount(path)
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except OverflowError as problem:
        raise BadInput(f"{path} holds a date outside the years 1 to 9999") from problem
    except (OSError, pyarrow.lib.ArrowException, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {problem}") from problem
    plain = (str, int, float, bool, list, type(None))
    return [{column: value if isinstance(value, plain) else str(value) for column, value in row.items()} for row in rows]


def _check_amount(path: str) -> None:
    """BadInput for a small file that would be a very large table: every image has its own name, and few have long texts."""
    size = os.path.getsize(path)
    with pyarrow.parquet.ParquetFile(path) as file:
        columns = [file.schema.column(place) for place in range(len(file.schema))]
        rows = file.metadata.num_rows
    if rows > MOST_ROWS + ROWS_A_BYTE * size:
        raise BadInput(
            f"{path} holds {rows:,} rows in {size:,} bytes, so nearly all are the same; a list names each image once"
        )
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    # texts that repeat stay together so, and are counted before they are spread out
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        letters = sum(map(_letters, file.read(columns=texts).columns))
    if letters > MOST_LETTERS + LETTERS_A_BYTE * size:
        raise BadInput(
            f"{path} holds {letters:,} letters in {size:,} bytes, so nearly all are the same; leave such columns out"
        )


def _letters(column: Any) -> int:
    """The bytes of all texts of a column, those of its lists too."""
    total = 0
    for chunk in column.chunks:
        part = chunk
        while pyarrow.types.is_list(part.type) or pyarrow.types.is_large_list(part.type):
            part = part.flatten()
        if pyarrow.types.is_dictionary(part.type):
            sizes = pyarrow.compute.binary_length(part.dictionary)
            total += pyarrow.compute.sum(sizes.take(part.indices)).as_py() or 0
    return total
