"""Charts of a report by themselves, for notebooks and slides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from shiftproof.reports.charts import Spec
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Folded, Part
from shiftproof.reports.sections import draw_sections
from shiftproof.types import Results

WIDTH = 640
"""In pixels; on a report's page a chart is as wide as its place."""


@dataclass(frozen=True)
class DrawnChart:
    """A chart of a report with its title and the key of its section; a notebook draws it."""

    section: str
    title: str
    spec: Spec = field(repr=False)  # Vega-Lite, in the colours of the report's stylesheet

    def to_svg(self, *, width: int = WIDTH) -> str:
        """The chart as an SVG file, on white."""
        import vl_convert

        spec = json.loads(_in_light_colours(json.dumps(self.spec)))
        return str(vl_convert.vegalite_to_svg({**spec, "width": width, "background": "white"}))

    def _repr_svg_(self) -> str:
        return self.to_svg()


def charts(results: Results) -> list[DrawnChart]:
    """The charts that a report of these results draws, in its order; in a notebook, each as the last line of a cell."""
    return [
        DrawnChart(section.key, chart.title, chart.spec)
        for section in draw_sections(Page(results))
        for chart in _charts_in(section.parts)
    ]


def _charts_in(parts: Sequence[Part]) -> Iterator[Chart]:
    for part in parts:
        if isinstance(part, Chart):
            yield part
        elif isinstance(part, Folded):
            yield from _charts_in(part.parts)


@cache
def _light_colours() -> dict[str, str]:
    css = files("shiftproof.reports").joinpath("static", "report.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): light-dark\((#\w+),", css))


def _in_light_colours(spec: str) -> str:
    """The specification with colours instead of the names that a stylesheet gives them."""
    return re.sub(r"var\(--([\w-]+)\)", lambda named: _light_colours()[named[1]], spec)
