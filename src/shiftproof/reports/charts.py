"""Charts as Vega-Lite specifications in plain dictionaries.

Colours are the page's own CSS variables, so a drawn chart follows the theme and the printer without being drawn again.
Series differ in shape and dash as well as in colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shiftproof.metrics.table import Unit
from shiftproof.metrics.wording import figure
from shiftproof.types import Curve

Spec: TypeAlias = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = tuple(f"var(--series-{place})" for place in range(1, 7))
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3])

PERCENT = {"labelExpr": "format(datum.value * 100, '~r') + ' %'"}
TICKS: dict[Unit, Spec] = {
    "share": PERCENT,
    "points": {"labelExpr": "datum.value == 0 ? '0' : format(datum.value * 100, '+~r')"},
    "loss": {"labelExpr": "format(datum.value * 100, '~r')"},
    "number": {},
    "count": {"tickMinStep": 1, "format": ",d"},
}
NARROW = "containerSize()[0] < 480"
"""True on a phone, where labels are cut sooner and less stands beside the dots."""
SHARE = {"domain": [0, 1], "nice": False}

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "gridColor": "var(--hairline)",
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
    },
    "legend": {
        "labelColor": "var(--ink)",
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "labelLimit": 260,
        "symbolOpacity": 1,
    },
    "text": {"color": "var(--ink)", "fontSize": 12},
}


@dataclass(frozen=True)
class Dot:
    """One row of a dot-and-interval chart: `text` at its right end, on a phone only `figure`, `detail` in its tooltip."""

    label: str
    value: float
    interval: tuple[float, float] | None
    figure: str
    text: str
    detail: str
    series: str = ""


def intervals(
    dots: Sequence[Dot],
    *,
    x_title: str,
    description: str,
    unit: Unit,
    reference: float | None = None,
    ends: tuple[float, float] | None = None,
) -> Spec:
    """A dot for each value and a bar for its CI, one row each, in the order given.

    Shares are drawn from 0 to 1; other numbers on a scale that reaches zero, which is marked. A `reference` is marked
    instead, and the scale goes as far as the values do, or from one of its `ends` to the other.
    """
    series = list(dict.fromkeys(dot.series for dot in dots))
    labels = list(dict.fromkeys(dot.label for dot in dots))
    bounded = unit == "share" and reference is None
    within = bounded and all(0 <= end <= 1 for dot in dots for end in (dot.value, *(dot.interval or ())))
    scale = between(ends) if ends else SHARE if within else {"zero": True, "nice": True}
    x = channel("value", x_title, scale, TICKS[unit])
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    tooltip = [{"field": "label", "title": "what"}, {"field": "tip", "title": "value"}]
    shared: Spec = {"y": {"field": "label", "type": "nominal", "sort": labels, "axis": row_axis()}, "tooltip": tooltip}
    colour: Spec = {}
    shape: Spec = {}
    if len(series) > 1:
        shared |= {"yOffset": {"field": "series", "sort": series}, "tooltip": [{"field": "series"}, *tooltip]}
        colour, shape = {"color": by_series(series, COLOURS)}, {"shape": by_series(series, SHAPES)}
    bar = {"type": "rule", "strokeWidth": 9, "opacity": 0.35, "color": COLOURS[0]}
    bars = {"mark": bar, "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **colour}}
    point = {"type": "point", "filled": True, "size": 50, "opacity": 1, "color": COLOURS[0]}
    beside = {"condition": {"test": NARROW, "field": "figure"}, "field": "text"}
    return {
        **start(description, [_dot_row(dot) for dot in dots]),
        "height": max(60, len(labels) * max(24, 14 * len(series) + 4)),
        "encoding": shared,
        "layer": [
            *([] if within else [mark_at(reference or 0.0)]),
            *([bars] if any(dot.interval for dot in dots) else []),
            {"mark": point, "encoding": {"x": x, **colour, **shape}},
            {"mark": {"type": "text", "align": "left", "dx": 10}, "encoding": {"x": {"value": "width"}, "text": beside}},
        ],
    }


def reliability(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """A reliability diagram: accuracy by confidence, with the diagonal of perfect calibration."""
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = channel("y", curves[0].y_label, SHARE, PERCENT)
    diagonal: Spec = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "color": "var(--muted)", "strokeDash": [3, 4], "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y},
    }
    return _curve_spec(curves, names, x, y, description, behind=[diagonal])


def lines(curves: Sequence[Curve], names: Sequence[str], *, description: str, shares: bool = False) -> Spec:
    """One line a curve on common axes, with its CI where it has one; `shares` are drawn from 0 to 1."""
    x = channel("x", curves[0].x_label, {"zero": False})
    y = channel("y", curves[0].y_label, SHARE, PERCENT) if shares else channel("y", curves[0].y_label, {"zero": False})
    return _curve_spec(curves, names, x, y, description)


def histogram(curve: Curve, *, description: str) -> Spec:
    """A bar of equal width for each point of the curve, `x` in its middle; both axes are shares."""
    half = 0.5 / max(len(curve.x), 1)
    rows = [
        {"from": x - half, "to": x + half, "y": y, "tip": _with_count(f"{100 * y:.1f} %", curve, place)}
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
        if math.isfinite(y)
    ]
    return {
        **start(description, rows),
        "height": 260,
        "mark": {"type": "bar", "color": COLOURS[0], "binSpacing": 2},
        "encoding": {
            "x": {**channel("from", curve.x_label, SHARE, PERCENT), "bin": "binned"},
            "x2": {"field": "to"},
            "y": channel("y", curve.y_label, {"zero": True}, PERCENT),
            "tooltip": [{"field": "tip", "title": curve.y_label}],
        },
    }


def channel(field: str, title: str, scale: Spec, ticks: Spec | None = None) -> Spec:
    """A number along an axis."""
    axis = {"title": title, "tickCount": 5, **(ticks or {})}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def between(ends: tuple[float, float]) -> Spec:
    """A scale from one end to the other, whether or not zero lies between them."""
    return {"domain": list(ends), "nice": False, "zero": False}


def row_axis() -> Spec:
    """The names of rows, in the ink of the page."""
    return {
        "title": None,
        "labelLimit": {"expr": f"{NARROW} ? 112 : 190"},
        "domain": False,
        "ticks": False,
        "labelPadding": 8,
        "labelColor": "var(--ink)",
    }


def start(description: str, rows: list[Spec]) -> Spec:
    """What every chart begins with; it is as wide as its place on the page."""
    return {
        "$schema": SCHEMA,
        "config": CONFIG,
        "description": description,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
    }


def _curve_spec(
    curves: Sequence[Curve], names: Sequence[str], x: Spec, y: Spec, description: str, behind: Sequence[Spec] = ()
) -> Spec:
    """CIs, lines and points of the curves, in front of `behind`."""
    several = len(names) > 1
    colour: Spec = {"color": by_series(names, COLOURS)} if several else {}
    shape: Spec = {"shape": by_series(names, SHAPES)} if several else {}
    dash: Spec = {"strokeDash": by_series(names, DASHES)} if several else {}
    return _line_chart(
        [row for curve, name in zip(curves, names, strict=True) for row in curve_rows(curve, name)],
        x,
        y,
        description=description,
        behind=behind,
        interval={"type": "rule", "strokeWidth": 3, "opacity": 0.35},
        line={"strokeWidth": 2},
        point={"size": 55, "opacity": 1, "color": COLOURS[0]},
        colour=colour,
        dash=dash,
        told={"tooltip": [{"field": "series"}, *_axis_tooltip(x, y)], **colour, **shape},
    )


def banded_lines(rows: list[Spec], names: Sequence[str], x: Spec, y: Spec, *, description: str, steps: bool = False) -> Spec:
    """The rows of some curves on common axes, as lines or as stairs, with a band for their CI where any has one.

    Points are found by pointing at them.
    """
    several = len(names) > 1
    return _line_chart(
        rows,
        x,
        y,
        description=description,
        interval={"type": "area", "opacity": 0.18},
        line={"strokeWidth": 2, "interpolate": "step-after" if steps else "linear"},
        # drawn to be pointed at, not to be seen
        point={"size": 120, "opacity": 0},
        colour={"color": by_series(names, COLOURS, symbolType="stroke")} if several else {},
        dash={"strokeDash": by_series(names, DASHES, symbolType="stroke")} if several else {},
        told={"tooltip": [*([{"field": "series"}] if several else []), *_axis_tooltip(x, y)]},
    )


PANEL_HEIGHT = 96


def small_lines(curves: Sequence[Curve], names: Sequence[str], series: Sequence[str], *, description: str) -> Spec:
    """A panel of small multiples: shares from 0 to 1 against steps, with bands for the CIs.

    `series` are all that any panel may show.
    """
    steps = sorted({int(x) for curve in curves for x in curve.x})
    ticks = {"values": steps, "tickCount": len(steps), "format": "d", "grid": False}
    x = channel("x", "", {"domain": [steps[0], steps[-1]], "nice": False}, ticks)
    y = channel("y", "", SHARE, {**PERCENT, "values": [0, 0.5, 1]})
    for axis in (x["axis"], y["axis"]):
        axis.update({"title": None, "labelFontSize": 11})
    several = len(series) > 1
    colour: Spec = {"color": {**by_series(series, COLOURS), "legend": None}} if several else {}
    dash: Spec = {"strokeDash": {**by_series(series, DASHES), "legend": None}} if several else {}
    whose = [{"field": "series"}] if several else []
    tooltip = [*whose, {"field": "x_tip", "title": curves[0].x_label}, {"field": "tip", "title": curves[0].y_label}]
    rows = [row for curve, name in zip(curves, names, strict=True) for row in curve_rows(curve, name)]
    return _line_chart(
        [{**row, "tip": figure(row["y"], "share")} for row in rows],
        x,
        y,
        description=description,
        height=PANEL_HEIGHT,
        interval={"type": "area", "opacity": 0.22},
        line={"strokeWidth": 1.8},
        point={"size": 22, "opacity": 1, "color": COLOURS[0]},
        colour={**colour, "detail": {"field": "series", "type": "nominal"}},
        dash=dash,
        told={"tooltip": tooltip, **colour},
    )


def _line_chart(
    rows: list[Spec],
    x: Spec,
    y: Spec,
    *,
    description: str,
    interval: Spec,
    line: Spec,
    point: Spec,
    colour: Spec,
    dash: Spec,
    told: Spec,
    behind: Sequence[Spec] = (),
    height: int = 260,
) -> Spec:
    """Lines through the rows, their CIs behind them, and points with the encodings `told`."""
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    intervals = {"mark": {**interval, "color": COLOURS[0]}, "encoding": {"x": x, **ends, **colour}}
    return {
        **start(description, rows),
        "height": height,
        "layer": [
            *behind,
            *([intervals] if any(row["low"] is not None for row in rows) else []),
            {"mark": {"type": "line", "color": COLOURS[0], **line}, "encoding": {"x": x, "y": y, **colour, **dash}},
            {"mark": {"type": "point", "filled": True, **point}, "encoding": {"x": x, "y": y, **told}},
        ],
    }


def _axis_tooltip(x: Spec, y: Spec) -> list[Spec]:
    return [{"field": "x_tip", "title": x["axis"]["title"]}, {"field": "tip", "title": y["axis"]["title"]}]


@dataclass(frozen=True)
class LegendEntry:
    """How one series is drawn, in CSS."""

    name: str
    colour: str
    dash: str


def legend(series: Sequence[str]) -> list[LegendEntry]:
    """How `small_lines` draws each series; nothing where there is but one."""
    if len(series) < 2:
        return []
    return [
        LegendEntry(name, COLOURS[place % len(COLOURS)], " ".join(str(part) for part in DASHES[place % len(DASHES)]))
        for place, name in enumerate(series)
    ]


def mark_at(value: float) -> Spec:
    """A dashed line across all rows."""
    return {
        "mark": {"type": "rule", "color": "var(--muted)", "strokeDash": [3, 4]},
        "encoding": {"x": {"datum": value, "type": "quantitative"}, "y": None, "yOffset": None, "tooltip": None},
    }


def by_series(names: Sequence[str], values: Sequence[Any], **more: str) -> Spec:
    """A channel that tells series apart by these values; `more` are settings of its legend."""
    chosen = [values[place % len(values)] for place in range(len(names))]
    legend = {"columns": {"expr": f"{NARROW} ? 1 : 0"}, **more}
    return {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": chosen}, "legend": legend}


def _dot_row(dot: Dot) -> Spec:
    return {
        "label": dot.label,
        "series": dot.series,
        "value": finite(dot.value),
        "low": finite(dot.interval[0]) if dot.interval else None,
        "high": finite(dot.interval[1]) if dot.interval else None,
        "figure": dot.figure,
        "text": dot.text,
        "tip": dot.detail,
    }


def curve_rows(curve: Curve, name: str) -> list[Spec]:
    """A row for each point that can be placed."""
    return [
        {
            "series": name,
            "x": curve.x[place],
            "y": curve.y[place],
            "low": finite(curve.low[place]) if curve.low else None,
            "high": finite(curve.high[place]) if curve.high else None,
            "x_tip": f"{curve.x[place]:.4g}",
            "tip": _with_count(f"{curve.y[place]:.4g}", curve, place),
        }
        for place in range(len(curve.x))
        if math.isfinite(curve.x[place]) and math.isfinite(curve.y[place])
    ]


def _with_count(text: str, curve: Curve, place: int) -> str:
    return f"{text} ({curve.counts[place]:,} images)" if curve.counts else text


def finite(value: float | None) -> float | None:
    """The value, or None for what no chart can place."""
    return value if value is not None and math.isfinite(value) else None
