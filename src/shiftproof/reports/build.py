"""Results as one HTML file that opens anywhere, offline: styles, scripts, charts and thumbnails inside it."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shiftproof.files import write_whole
from shiftproof.reports.bundle import chart_script
from shiftproof.reports.page import Page
from shiftproof.reports.sections import draw_sections
from shiftproof.reports.summary import summarise
from shiftproof.reports.thumbnails import OpenImage
from shiftproof.reports.words import count, images, moment
from shiftproof.studies.results import Results


def build_report(results: Results, *, open_image: OpenImage | None = None, title: str | None = None) -> str:
    """The report as HTML text; without `open_image` galleries keep their captions and show no pictures."""
    page = Page(results, open_image)
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title or page.title,
            subtitle=subtitle(page),
            summary=summarise(page),
            sections=draw_sections(page),
            results=json.loads(results.to_json()),
            style=_static("report.css"),
            script=_static("report.js"),
            chart_script=Markup(chart_script()),  # noqa: S704 -- a library's own text, without an end of script
        )
    )


def save_report(
    path: str | os.PathLike[str], results: Results, *, open_image: OpenImage | None = None, title: str | None = None
) -> Path:
    """Writes the report and gives its path; the file appears whole or not at all."""
    path = Path(path)
    text = build_report(results, open_image=open_image, title=title)
    # file names may hold bytes that are no text; they show as question marks
    write_whole(path, text.encode("utf-8", "replace"))
    return path


def subtitle(page: Page) -> str:
    """How many images, and when."""
    cards = page.results.image_sets
    shown = [images(sum(card.images for card in cards))] if cards else []
    return " · ".join([*shown, *([moment(page.results.made)] if page.results.made else [])])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("shiftproof.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count_text"] = count
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return environment


def _static(name: str) -> Markup:
    return Markup(files("shiftproof.reports").joinpath("static", name).read_text(encoding="utf-8"))  # noqa: S704 -- our own files
