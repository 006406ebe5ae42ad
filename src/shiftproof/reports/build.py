"""Results as one HTML file that opens anywhere, offline: styles, scripts, charts and thumbnails inside it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import math
import os
import re
import stat
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from shiftproof import __version__
from shiftproof.errors import BadInput, StoreError
from shiftproof.files import cache_folder, write_whole
from shiftproof.metrics.wording import count, images
from shiftproof.places import as_path
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Cell, Table
from shiftproof.reports.pictures import OpenImage
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.reports.words import moment
from shiftproof.types import Results

SHORT = 12
"""Rows of a table that is written out; of a longer one the page holds compressed data and builds the rows."""
LONGEST_SLUG = 60


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
