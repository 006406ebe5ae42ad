"""Pages from templates, which escape every value and fail on a missing one, and the pictures of a project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.utils import htmlsafe_json_dumps
from starlette.requests import Request
from starlette.responses import HTMLResponse

from shiftproof.curation.project import Project
from shiftproof.curation.screens import key_name
from shiftproof.errors import BadInput, listed

_templates = Environment(
    loader=PackageLoader("shiftproof.review"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def is_api(request: Request) -> bool:
    """Whether a request comes from a script of a page, and expects JSON."""
    return request.url.path.startswith("/api/")


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, rendered from its template."""
    return HTMLResponse(_templates.get_template(template).render(**values), status)


def percent(share: float | None) -> str:
    """A fraction as a percentage.

    >>> percent(0.896), percent(None)
    ('90 %', '–')
    """
    return "–" if share is None else f"{100 * share:.0f} %"


def duration(seconds: float | None) -> str:
    """A duration in words.

    >>> duration(8.4), duration(300), duration(9000), duration(200_000), duration(None)
    ('8 s', '5 min', '2.5 h', '2.3 days', '–')
    """
    if seconds is None:
        return "–"
    for least, length, unit in ((86_400, 86_400, "days"), (5400, 3600, "h")):
        if seconds >= least:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Block(NamedTuple):
    """A block of a Markdown text."""

    kind: Literal["heading", "list", "paragraph"]
    lines: list[str]


def blocks(text: str) -> list[Block]:
    r"""The headings, lists and paragraphs of a Markdown text; all other markup stays as it is written.

    >>> for block in blocks("# Pairs\n\nTwo frames\nof a clip.\n- similar\n- or\n  not"):
    ...     print(*block)
    heading ['Pairs']
    paragraph ['Two frames', 'of a clip.']
    list ['similar', 'or not']
    """
    found: list[Block] = []
    goes_on = False  # whether a line continues the block before it
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


_templates.filters |= {"percent": percent, "duration": duration, "key_name": key_name, "blocks": blocks}
# JSON that is safe inside a script element, whatever names are in it
_templates.filters["data"] = htmlsafe_json_dumps


MEDIA_TYPES: Mapping[str, str] = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
"""Media types by suffix: never a page or a script."""

# the modification time of a file would tell which were added together: frames of one clip, gold items
NO_TIME = "Thu, 01 Jan 1970 00:00:00 GMT"


def picture_headers(name: str) -> dict[str, str]:
    """Headers of a picture: it never changes, so browsers may cache it."""
    return {"cache-control": "private, max-age=604800, immutable", "etag": f'"{name}"', "last-modified": NO_TIME}


def media_type_of(file: str) -> str:
    return MEDIA_TYPES[PurePosixPath(file).suffix]


def check_pictures(project: Project) -> None:
    """BadInput where a project names files other than pictures in its own folder, as an untrusted one might."""
    strange = [
        file
        for file in sorted(project.pictures)
        if "/" in file or "\\" in file or PurePosixPath(file).suffix not in MEDIA_TYPES
    ]
    if strange:
        raise BadInput(
            f"pictures of {project.title} should be {listed(MEDIA_TYPES)} files beside each other, got {listed(strange)}"
        )


def check_all_there(project: Project) -> None:
    """BadInput where pictures of a project are missing."""
    missing = [file for file in sorted(project.pictures) if own_picture(project, file) is None]
    if missing:
        raise BadInput(f"{project.folder} lacks {len(missing):,} of its pictures, such as {listed(missing, most=1)}")


def own_picture(project: Project, file: str) -> Path | None:
    """The path of a picture; None where it is missing, or a symbolic link out of the project."""
    try:
        path = Path(os.path.realpath(project.image(file)))
    except BadInput:
        return None
    # os.path takes a name that is too long, or a cyclic link, for a missing file
    return path if os.path.isfile(path) else None
