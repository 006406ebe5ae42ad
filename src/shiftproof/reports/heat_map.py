"""A heat map of errors: rows in groups under headings, columns in blocks, a figure in every cell."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.reports.charts import NARROW, Spec, between, row_axis, start

ROW_HEIGHT = 24
LONG_NAME = 10
"""Letters that fit over a column in a line."""
LINE = 14
LEVELS = 10
"""Steps of colour between 0 and 1; the page's style has a variable for each."""
GAP = 0.18
"""Between columns that stand apart, as a part of a cell."""


@dataclass(frozen=True)
class Heat:
    """One cell, by the places of its row and column."""

    row: str
    column: str
    value: float  # 0 to 1
    tip: str
    shade: float | None = None  # 0 to 1, how strong the colour is where that is not the value


@dataclass(frozen=True)
class RowGroup:
    heading: str
    rows: Sequence[str]


def heat_map(
    cells: Sequence[Heat], groups: Sequence[RowGroup], blocks: Sequence[Sequence[str]], *, x_title: str, description: str
) -> Spec:
    """Cells coloured by value in the page's own colours; `blocks` are the columns, a gap between each block and the next."""
    lefts = _places(blocks)
    rows = [line for group in groups for line in (group.heading, *group.rows)]
    headings = [{"row": group.heading, "heading": group.heading} for group in groups]
    values = [_cell_row(cell, lefts[cell.column]) for cell in cells if math.isfinite(cell.value)]
    y = {"field": "row", "type": "nominal", "scale": {"domain": rows, "paddingInner": 0.06, "paddingOuter": 0}}
    figures = {"condition": {"test": NARROW, "field": "short"}, "field": "text"}
    across = between((0, max(lefts.values(), default=0.0) + 1))
    x = {"field": "left", "type": "quantitative", "scale": across, "axis": _column_axis(lefts, x_title)}
    return {
        **start(description, [*values, *headings]),
        "height": ROW_HEIGHT * len(rows),
        "encoding": {"y": {**y, "axis": _row_axis([group.heading for group in groups])}},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.left)"}],
                "mark": {"type": "rect", "cornerRadius": 2},
                "encoding": {
                    "x": x,
                    "x2": {"field": "right"},
                    "fill": {"field": "fill", "type": "nominal", "scale": None},
                    "tooltip": [{"field": "row", "title": "what"}, {"field": "column", "title": x_title}, {"field": "tip"}],
                },
            },
            {
                "transform": [{"filter": "isValid(datum.left)"}],
                "mark": {"type": "text", "fontSize": {"expr": f"{NARROW} ? 11 : 12"}},
                "encoding": {
                    "x": {**x, "field": "middle"},
                    "text": figures,
                    "color": {"field": "ink", "type": "nominal", "scale": None},
                },
            },
            {
                "transform": [{"filter": "isValid(datum.heading)"}],
                "mark": {"type": "text", "align": "left", "baseline": "middle", "dy": 4, "fontWeight": 600},
                "encoding": {"x": {"value": 0}, "text": {"field": "heading"}},
            },
        ],
    }


def _places(blocks: Sequence[Sequence[str]]) -> dict[str, float]:
    """The left edge of each column, in cells."""
    columns = [(column, number) for number, block in enumerate(blocks) for column in block]
    return {column: place + GAP * number for place, (column, number) in enumerate(columns)}


def _cell_row(cell: Heat, left: float) -> Spec:
    shade = cell.value if cell.shade is None else cell.shade
    level = min(LEVELS - 1, max(0, int(LEVELS * shade)))
    return {
        "row": cell.row,
        "column": cell.column,
        "left": left,
        "middle": left + 0.48,
        "right": left + 0.96,
        "fill": f"var(--heat-{level})",
        "ink": "var(--ink-on-heat)" if level >= LEVELS // 2 else "var(--ink)",
        "text": f"{100 * cell.value:.1f}",
        "short": f"{100 * cell.value:.0f}",
        "tip": cell.tip,
    }


def _row_axis(headings: Sequence[str]) -> Spec:
    """The names of the rows; headings stand over the cells instead."""
    return {**row_axis(), "labelExpr": f"indexof({json.dumps(list(headings))}, datum.value) >= 0 ? '' : datum.label"}


def _column_axis(lefts: dict[str, float], title: str) -> Spec:
    """Names over the columns: long ones in several lines, on a phone in one that stands upright."""
    wrapped = {column: textwrap.wrap(column, LONG_NAME, break_long_words=False) or [""] for column in lefts}
    lines = max((len(words) for words in wrapped.values()), default=1)
    # empty lines in front: all names end just above the cells
    stacked = {column: json.dumps([""] * (lines - len(words)) + words) for column, words in wrapped.items()}
    names = " : ".join(
        f"abs(datum.value - {left + 0.48:.3f}) < 0.01 ? ({NARROW} ? {json.dumps(column)} : {stacked[column]})"
        for column, left in lefts.items()
    )
    upright = f"{NARROW} && {json.dumps(lines > 1)}"
    return {
        "title": title,
        "titlePadding": 4,
        "orient": "top",
        "values": [round(left + 0.48, 3) for left in lefts.values()],
        "labelExpr": f"{names} : ''",
        "labelOverlap": False,
        "labelAngle": {"expr": f"{upright} ? -90 : 0"},
        "labelAlign": {"expr": f"{upright} ? 'left' : 'center'"},
        "labelBaseline": {"expr": f"{upright} ? 'middle' : 'bottom'"},
        "labelPadding": {"expr": f"{NARROW} ? 2 : {2 + LINE * (lines - 1)}"},
        "grid": False,
        "domain": False,
        "ticks": False,
    }
