"""Values as they show themselves: in a line, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def in_a_line(value: object, *told: str | None) -> str:
    """The short form of a value that holds thousands.

    >>> in_a_line({}, "3 images", None, "2 classes")
    '<dict: 3 images, 2 classes>'
    """
    return f"<{type(value).__name__}: {', '.join(part for part in told if part)}>"


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count and what it counts.

    >>> counted(1, "class", "classes"), counted(1000, "image")
    ('1 class', '1,000 images')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def html_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], below: str = "") -> str:
    """A plain table, which a notebook draws in its own style; every text is escaped."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    after = f"<p>{escape(below)}</p>" if below else ""
    return f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"
