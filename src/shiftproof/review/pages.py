"""The pages of a review, from templates that escape every name and fail on one that is missing."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
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


def data_block(value: Any) -> str:
    """JSON that can stand inside a page without ending it, whatever names are in it."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_templates.filters["data"] = data_block
