"""Results as one HTML file that opens anywhere, offline: styles, scripts, charts and thumbnails inside it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import os
import stat
import zlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from shiftproof import __version__
from shiftproof.errors import StoreError
from shiftproof.files import cache_folder, write_whole
from shiftproof.metrics.wording import count, images
from shiftproof.places import as_path
from shiftproof.reports.packing import SHORT, Packing, packed, unpacked
from shiftproof.reports.page import Page
from shiftproof.reports.pictures import OpenImage
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.reports.words import moment
from shiftproof.types import Results


class ChartLibrary(NamedTuple):
    """What draws the charts, as a page holds it and as its text."""

    packed: bytes  # by gzip
    text: bytes


def chart_library() -> ChartLibrary:
    """Vega, Vega-Lite and vega-embed as one JavaScript module without imports; sets ``window.vegaEmbed``.

    It is cached, because bundling it takes over a second, and compressing it as long as all sections of a small report.
    """
    path = cache_folder() / f"charts-{__version__}-{version('vl-convert-python')}.js.gz"
    with contextlib.suppress(OSError, EOFError, zlib.error):  # not there, or damaged
        stored = path.read_bytes()
        if text := gzip.decompress(stored):
            return ChartLibrary(stored, text)
    text = f"{_make_script()}\n{DRAWN_BY}".encode()
    made = ChartLibrary(gzip.compress(text, mtime=0), text)
    # a cache that cannot be written costs a second next time, nothing more
    with contextlib.suppress(StoreError, OSError):
        write_whole(path, made.packed)
    return made


def _make_script() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # the argument has a default that its stub leaves out


DRAWN_BY = 'dispatchEvent(new Event("charts"));'
"""What the library of charts ends with: a script that is put into a page later tells nobody when it has run."""


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
    library = chart_library()
    # our own files, without an end of script
    script = Markup(_static("report.js"))  # noqa: S704
    styles = [Markup(text) for text in (_static("report.css"), _static("verdict.css"), packing.css())]  # noqa: S704
    policy = POLICY.format(
        scripts=" ".join(map(_digest, (library.text, script.encode()))),
        styles=" ".join(_digest(style.encode()) for style in styles),
    )
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
            library=base64.b64encode(library.packed).decode(),
            script=script,
        )
    )


def _digest(text: bytes) -> str:
    """The source of a script or a style in a content security policy: its SHA-256 digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def save_report(
    path: str | os.PathLike[str], results: Results, *, open_image: OpenImage | None = None, title: str | None = None
) -> Path:
    """Writes the report and gives its path; the file appears whole or not at all."""
    path = as_path(path)
    text = build_report(results, open_image=open_image, title=title)
    # file names may hold bytes that are no text; they show as question marks
    write_whole(path, text.encode("utf-8", "replace"))
    return path


def results_of(html: str) -> Results:
    """The results that a report was made of."""
    return Results.from_json(unpacked(html, "results"))


def subtitle(page: Page) -> str:
    """How many images of what the title names, how many of others, and when; frames made of images are not counted."""
    opened = {card.name: card.images for card in page.results.datasets if card.origin is None}
    counts = [_counted_of(name, page) for name in page.origins if page.results.datasets]
    others = [number for name, number in opened.items() if name not in page.origins]
    if others:
        further = "another dataset" if len(others) == 1 else f"{len(others)} other datasets"
        counts.append(f"beside {images(sum(others))} of {further}")
    return " · ".join([*counts, *([moment(page.results.made)] if page.results.made else [])])


def _counted_of(name: str, page: Page) -> str:
    """How many images of a dataset there are, or the largest part of it that was measured has."""
    named = f" of {name}" if len(page.origins) > 1 else ""
    cards = page.results.datasets
    whole = [card.images for card in cards if card.name == name]
    if whole:
        return f"{images(whole[0])}{named}"
    parts = [
        (card.images, card.origin.images)
        for card in cards
        if card.origin and card.origin.name == name and card.name in page.datasets
    ]
    if not parts:
        return name
    most, every = max(parts)
    return f"{count(most)} of {images(every)}{named}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("shiftproof.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=compiled_templates(),
    )
    environment.filters["count_text"] = count
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return environment


class CompiledTemplates(FileSystemBytecodeCache):
    """Templates as Python compiles them, which takes a tenth of the time of a small report."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):  # a full disk costs time, nothing more
            super().dump_bytecode(bucket)


def compiled_templates() -> CompiledTemplates | None:
    """The cache of compiled templates; None where others could write what would be run, or nobody can."""
    folder = cache_folder() / "templates"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = folder.stat()
    except OSError:
        return None
    if os.name == "posix" and (known.st_uid != os.getuid() or known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return CompiledTemplates(str(folder))


def _static(name: str) -> str:
    return files("shiftproof.reports").joinpath("static", name).read_text(encoding="utf-8")
