"""What keeps a page small: compressed data, each picture once, values of CSS variables as classes."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.reports.parts import Cell, Table

SHORT = 12
"""Rows of a table that is written out; of a longer one the page holds compressed data and builds the rows."""
LONGEST_SLUG = 60


def packed(text: str) -> str:
    """A text compressed by gzip, in Base64: no letter of it means anything in HTML.

    >>> gzip.decompress(base64.b64decode(packed("</script>"))).decode()
    '</script>'
    """
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode("ascii")


def unpacked(html: str, name: str) -> str:
    """What a report holds compressed: its `data`, its `results` or the `library` that draws its charts."""
    block = re.search(rf'<script type="application/gzip" id="{name}">([^<]*)</script>', html)
    if block is None:
        raise BadInput("this is no report as this version of shiftproof writes them; make it again with shiftproof report")
    return gzip.decompress(base64.b64decode(block[1])).decode()


class Packing:
    """What the templates leave out of the page's markup, by its place."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._pictures: dict[str, int] = {}
        self._looks: dict[str, str] = {}
        self._anchors: set[str] = set()

    def spec(self, spec: dict[str, Any]) -> int:
        """The place of a chart's specification."""
        return self._add(spec)

    def rows(self, table: Table) -> int:
        """The place of a table's rows."""
        return self._add([[_short(cell) for cell in row] for row in table.rows])

    def _add(self, value: Any) -> int:
        self._values.append(value)
        return len(self._values) - 1

    def text(self) -> str:
        """All values, compressed."""
        return packed(json.dumps(_finite(self._values), ensure_ascii=False, separators=(",", ":"), allow_nan=False))

    def picture(self, address: str) -> tuple[str, bool]:
        """The id of a picture, and whether this is the first time that the page shows it."""
        first = address not in self._pictures
        return f"picture-{self._pictures.setdefault(address, len(self._pictures))}", first

    def look(self, **variables: float) -> str:
        """A class that gives an element these values of CSS variables."""
        # 3 and not 3.000, which is no count of columns to a browser
        declared = ";".join(f"--{name}:{round(value, 3):g}" for name, value in variables.items())
        return self._looks.setdefault(declared, f"look-{len(self._looks)}")

    def css(self) -> str:
        """The rules of all looks."""
        return "".join(f".{name}{{{declared}}}\n" for declared, name in self._looks.items())

    def anchor(self, section: str, title: str) -> str:
        """An id to link to, made of letters, figures and hyphens whatever the title holds.

        >>> packing = Packing()
        >>> packing.anchor("corruption", "Error by <b>group</b>"), packing.anchor("corruption", "Error by b group b")
        ('corruption-error-by-b-group-b', 'corruption-error-by-b-group-b-2')
        """
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:LONGEST_SLUG].strip("-")
        name, number = f"{section}-{slug or 'part'}", 1
        while (found := name if number == 1 else f"{name}-{number}") in self._anchors:
            number += 1
        self._anchors.add(found)
        return found


def _finite(value: Any) -> Any:
    """The same value with None for every number that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    return [_finite(held) for held in value] if isinstance(value, list | tuple) else value


def _short(cell: Cell) -> str | Sequence[Any]:
    """A cell as the page's script reads it: its text alone, or text, order, below, mark and bar up to the last it has.

    >>> _short(Cell("tench")), _short(Cell("50 %", 0.5)), _short(Cell("50 %", 0.5, mark="★"))
    ('tench', ['50 %', 0.5], ['50 %', 0.5, '', '★'])
    """
    held = [cell.text, cell.order, cell.below, cell.mark, list(cell.bar) if cell.bar else ""]
    while len(held) > 1 and held[-1] == "":
        held.pop()
    return held if len(held) > 1 else cell.text
