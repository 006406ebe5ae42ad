"""Rows of plain values as a Parquet file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import pyarrow
from pyarrow import parquet

from shiftproof.types import Fact


def table_bytes(rows: Sequence[Mapping[str, Fact]]) -> bytes:
    """The file as bytes; a column of mixed kinds, such as classes by name and by number, becomes text."""
    columns = list(rows[0]) if rows else []
    table = pyarrow.table({column: _alike([row[column] for row in rows]) for column in columns})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def _alike(values: Sequence[Fact]) -> Sequence[Fact]:
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    return [None if value is None else str(value) for value in values] if mixed else values
