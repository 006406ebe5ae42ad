"""Accuracy as a model answers more and more images, the surest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, SHARE, Spec, by_series, channel, curve_rows, start
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve


def response_rates(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """A line for each model, with a band for its interval where it has one; the upper axis is as long as it needs to be."""
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = channel("y", curves[0].y_label, {"zero": False, "nice": True}, PERCENT)
    several = len(names) > 1
    colour: Spec = {"color": _line_by_series(names, COLOURS)} if several else {}
    dash: Spec = {"strokeDash": _line_by_series(names, DASHES)} if several else {}
    whose = [{"field": "series"}] if several else []
    tooltip = [*whose, {"field": "x_tip", "title": curves[0].x_label}, {"field": "tip", "title": curves[0].y_label}]
    band = {"type": "area", "opacity": 0.18, "color": COLOURS[0]}
    bands = {"mark": band, "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour}}
    line = {"type": "line", "strokeWidth": 2, "color": COLOURS[0]}
    # drawn to be pointed at, not to be seen
    target = {"type": "point", "filled": True, "size": 120, "opacity": 0}
    return {
        **start(description, [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]),
        "height": 300,
        "layer": [
            *([bands] if any(curve.low and curve.high for curve in curves) else []),
            {"mark": line, "encoding": {"x": x, "y": y, **colour, **dash}},
            {"mark": target, "encoding": {"x": x, "y": y, "tooltip": tooltip}},
        ],
    }


def _line_by_series(names: Sequence[str], values: Sequence[Any]) -> Spec:
    """Series told apart in a legend of short lines."""
    told = by_series(names, values)
    return {**told, "legend": {**told["legend"], "symbolType": "stroke"}}


def _rows(curve: Curve, name: str) -> list[Spec]:
    answered = curve.counts or (curve.images,) * len(curve.x)
    return [
        {**row, "x_tip": f"{figure(row['x'], 'share')} ({count(images)} images)", "tip": figure(row["y"], "share")}
        for row, images in zip(curve_rows(curve, name), answered, strict=True)
    ]
