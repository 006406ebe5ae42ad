"""Results as one HTML file that opens anywhere, offline: styles, scripts, charts and thumbnails inside it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shiftproof.errors import StoreError
from shiftproof.files import cache_folder, write_whole
from shiftproof.metrics.wording import count, images
from shiftproof.reports.packing import SHORT, Packing, packed, unpacked
from shiftproof.reports.page import Page
from shiftproof.reports.pictures import OpenImage
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.reports.words import moment
from shiftproof.types import Results


def chart_script() -> str:
    """Vega, Vega-Lite and vega-embed as one JavaScript module without imports; sets ``window.vegaEmbed``.

    It is cached, because bundling it takes over a second.
    """
    path = cache_folder() / f"charts-{version('vl-convert-python')}.js"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = _make_script()
    # a cache that cannot be written costs a second next time, nothing more
    with contextlib.suppress(StoreError, OSError):
        write_whole(path, script.encode())
    return script


def _make_script() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # the argument has a default that its stub leaves out


POLICY = "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; form-action 'none'; base-uri 'none'"
"""Content security policy of a report: only the scripts and styles that we wrote into it, by their digests.

Neither a script that got in by a name nor a `style` attribute counts; charts are interpreted and never made into code. The
library that draws them is in the page compressed: our own script unpacks it into an inline script, which runs because the
policy has the digest of its whole text.
"""


def build_report(results: Results, *, open_image: OpenImage | None = None, title: str | None = None) -> str:
    """The report as HTML text; without `open_image` galleries keep their captions and show no pictures."""
    page, packing = Page(results, open_image), Packing()
    # the body first: it says which looks and which data there are
    body = (
        _environment()
        .get_template("body.html")
        .render(
            title=title or page.title,
            subtitle=subtitle(page),
            summary=summarise(page),
            sections=draw_sections(page),
            packing=packing,
            look=packing.look,
            short=SHORT,
        )
    )
    library = f"{chart_script()}\n{DRAWN_BY}"
    # our own files, without an end of script
    script = Markup(_static("report.js"))  # noqa: S704
    styles = [Markup(text) for text in (_static("report.css"), _static("verdict.css"), packing.css())]  # noqa: S704
    policy = POLICY.format(scripts=" ".join(map(_digest, (library, script))), styles=" ".join(map(_digest, styles)))
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title or page.title,
            policy=Markup(policy),  # noqa: S704 -- our own words and digests
            styles=styles,
            body=Markup(body),  # noqa: S704 -- escaped when it was rendered
            data=packing.text(),
            results=packed(results.to_json()),
            library=packed(library),
            script=script,
        )
    )


DRAWN_BY = 'dispatchEvent(new Event("charts"));'
"""What the library of charts ends with: a script that is put into a page later tells nobody when it has run."""


def _digest(text: str) -> str:
    """The source of a script or a style in a content security policy: its SHA-256 digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def save_report(
    path: str | os.PathLike[str], results: Results, *, open_image: OpenImage | None = None, title: str | None = None
) -> Path:
    """Writes the report and gives its path; the file appears whole or not at all."""
    path = Path(path)
    text = build_report(results, open_image=open_image, title=title)
    # file names may hold bytes that are no text; they show as question marks
    write_whole(path, text.encode("utf-8", "replace"))
    return path


def results_of(html: str) -> Results:
    """The results that a report was made of."""
    return Results.from_json(unpacked(html, "results"))


def subtitle(page: Page) -> str:
    """How many images, and when."""
    cards = page.results.datasets
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


def _static(name: str) -> str:
    return files("shiftproof.reports").joinpath("static", name).read_text(encoding="utf-8")
