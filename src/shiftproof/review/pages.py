"""The pages of a review, from templates that escape every name and fail on one that is missing."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.utils import htmlsafe_json_dumps
from starlette.responses import HTMLResponse

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


# JSON that can stand inside a page without ending it, whatever names are in it
_templates.filters["data"] = htmlsafe_json_dumps
