"""Tables that people read and keep: why everything stayed or went, and lists of classes with what is said of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from shiftproof.curation.sifting import Sifted
from shiftproof.errors import BadInput
from shiftproof.files import write_whole

Item = TypeVar("Item")


def table_bytes(rows: Sequence[Sequence[object]]) -> bytes:
    """Rows as CSV, with the names of files as the disk has them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def save_fates(
    path: Path, choice: Sifted[Item, str], columns: Sequence[str], cells: Callable[[Item], tuple[object, ...]]
) -> None:
    """Writes all that was chosen among, a row each: its `cells` under the `columns`, whether it was kept, and why not."""
    rows = sorted((*cells(item), step, reason or "") for item, step, reason in choice.fates())
    write_whole(path, table_bytes([(*columns, "step", "reason"), *rows]))


def load_rows(path: str | Path, what: str) -> list[dict[str, str]]:
    """The rows of a CSV file by its columns, without lines that begin with #; BadInput where it cannot be read as `what`."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read as {what}: {problem}") from problem
