"""The pages of a review, from templates that escape every name and fail on one that is missing."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.utils import htmlsafe_json_dumps
from starlette.responses import HTMLResponse

from shiftproof.curation.screens import key_name

_templates = Environment(
    loader=PackageLoader("shiftproof.review"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of the review."""
    return HTMLResponse(_templates.get_template(template).render(**values), status)


def percent(share: float | None) -> str:
    """A share as people read it.

    >>> percent(0.896), percent(None)
    ('90 %', '–')
    """
    return "–" if share is None else f"{100 * share:.0f} %"


def lasting(seconds: float | None) -> str:
    """A time as people say it.

    >>> lasting(8.4), lasting(300), lasting(9000), lasting(200_000), lasting(None)
    ('8 s', '5 min', '2.5 h', '2.3 days', '–')
    """
    if seconds is None:
        return "–"
    for least, length, unit in ((86_400, 86_400, "days"), (5400, 3600, "h")):
        if seconds >= least:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Block(NamedTuple):
    """A part of a text, to be put on a page."""

    kind: Literal["heading", "list", "paragraph"]
    lines: list[str]


def blocks(text: str) -> list[Block]:
    r"""The headings, lists and paragraphs of a text, told as in Markdown; everything else in it stays as it is written.

    >>> for block in blocks("# Pairs\n\nTwo frames\nof a clip.\n- similar\n- or\n  not"):
    ...     print(*block)
    heading ['Pairs']
    paragraph ['Two frames', 'of a clip.']
    list ['similar', 'or not']
    """
    found: list[Block] = []
    goes_on = False  # whether a line belongs to what came before it
    for line in map(str.rstrip, text.splitlines()):
        inner = line.strip()
        if not inner:
            goes_on = False
        elif inner.startswith("#") and (title := inner.lstrip("#").strip()):
            found.append(Block("heading", [title]))
            goes_on = False
        elif inner.startswith(("- ", "* ")):
            if not found or found[-1].kind != "list":
                found.append(Block("list", []))
            found[-1].lines.append(inner[2:].strip())
            goes_on = True
        elif goes_on and found[-1].kind == "list":
            found[-1].lines[-1] += f" {inner}"
        elif goes_on:
            found[-1].lines.append(inner)
        else:
            found.append(Block("paragraph", [inner]))
            goes_on = True
    return found


_templates.filters |= {"percent": percent, "lasting": lasting, "key_name": key_name, "blocks": blocks}
# JSON that can stand inside a page without ending it, whatever names are in it
_templates.filters["data"] = htmlsafe_json_dumps
