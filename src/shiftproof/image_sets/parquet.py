"""Rows of a Parquet table as plain values."""

from __future__ import annotations

from typing import Any

import pyarrow.lib
import pyarrow.parquet

from shiftproof.errors import BadInput
from shiftproof.files import repeated


def load_parquet_rows(path: str) -> list[dict[str, Any]]:
    """One mapping a row, dates as text."""
    try:
        if twice := repeated(pyarrow.parquet.read_schema(path).names):
            raise BadInput(f"{path} has two columns called {twice!r}; rename or remove one of them")
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except OverflowError as problem:
        raise BadInput(f"{path} holds a date outside the years 1 to 9999") from problem
    except (OSError, pyarrow.lib.ArrowException, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {problem}") from problem
    plain = (str, int, float, bool, list, type(None))
    return [{column: value if isinstance(value, plain) else str(value) for column, value in row.items()} for row in rows]
