"""Small multiples: the same axes many times over, one drawing for each thing compared, a line for each series."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, SHARE, Spec, by_series, channel, curve_rows, start
from shiftproof.reports.parts import LegendEntry
from shiftproof.reports.words import figure
from shiftproof.types import Curve

PANEL_HEIGHT = 96


def small_lines(curves: Sequence[Curve], names: Sequence[str], series: Sequence[str], *, description: str) -> Spec:
    """Shares from 0 to 1 against steps, with bands for the intervals; `series` are all that any panel may show."""
    steps = sorted({int(x) for curve in curves for x in curve.x})
    ticks = {"values": steps, "tickCount": len(steps), "format": "d", "grid": False}
    x = channel("x", "", {"domain": [steps[0], steps[-1]], "nice": False}, ticks)
    y = channel("y", "", SHARE, {**PERCENT, "values": [0, 0.5, 1]})
    for axis in (x["axis"], y["axis"]):
        axis.update({"title": None, "labelFontSize": 11})
    several = len(series) > 1
    colour = {"color": {**by_series(series, COLOURS), "legend": None}} if several else {}
    dash = {"strokeDash": {**by_series(series, DASHES), "legend": None}} if several else {}
    whose = [{"field": "series"}] if several else []
    tooltip = [*whose, {"field": "x_tip", "title": curves[0].x_label}, {"field": "tip", "title": curves[0].y_label}]
    bands = {
        "mark": {"type": "area", "opacity": 0.22, "color": COLOURS[0]},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour, **_detail()},
    }
    rows = [row for curve, name in zip(curves, names, strict=True) for row in curve_rows(curve, name)]
    return {
        **start(description, [{**row, "tip": figure(row["y"], "share")} for row in rows]),
        "height": PANEL_HEIGHT,
        "layer": [
            *([bands] if any(curve.low and curve.high for curve in curves) else []),
            {
                "mark": {"type": "line", "strokeWidth": 1.8, "color": COLOURS[0]},
                "encoding": {"x": x, "y": y, **colour, **dash, **_detail()},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 22, "opacity": 1, "color": COLOURS[0]},
                "encoding": {"x": x, "y": y, "tooltip": tooltip, **colour},
            },
        ],
    }


def legend(series: Sequence[str]) -> list[LegendEntry]:
    """How `small_lines` draws each series; nothing where there is but one."""
    if len(series) < 2:
        return []
    return [
        LegendEntry(name, COLOURS[place % len(COLOURS)], " ".join(str(part) for part in DASHES[place % len(DASHES)]))
        for place, name in enumerate(series)
    ]


def _detail() -> Spec:
    return {"detail": {"field": "series", "type": "nominal"}}
