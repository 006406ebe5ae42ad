"""Rows of a Parquet table as plain values."""

from __future__ import annotations

from typing import Any

import pyarrow.lib
import pyarrow.parquet

from shiftproof.errors import BadInput


def load_parquet_rows(path: str) -> list[dict[str, Any]]:
    """One mapping a row, dates as text."""
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.lib.ArrowException) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {problem}") from problem
    plain = (str, int, float, bool, list, type(None))
    return [{column: value if isinstance(value, plain) else str(value) for column, value in row.items()} for row in rows]
