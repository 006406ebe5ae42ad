"""Lines with a band for their interval: one for each series, points found by pointing at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftproof.reports.charts import COLOURS, DASHES, Spec, by_series, start


def banded_lines(rows: list[Spec], names: Sequence[str], x: Spec, y: Spec, *, description: str, steps: bool = False) -> Spec:
    """The rows of some curves on common axes, as lines or as stairs; bands are drawn where any row has an interval."""
    several = len(names) > 1
    colour: Spec = {"color": _line_by_series(names, COLOURS)} if several else {}
    dash: Spec = {"strokeDash": _line_by_series(names, DASHES)} if several else {}
    whose = [{"field": "series"}] if several else []
    tooltip = [
        *whose,
        {"field": "x_tip", "title": x["axis"]["title"]},
        {"field": "tip", "title": y["axis"]["title"]},
    ]
    band = {"type": "area", "opacity": 0.18, "color": COLOURS[0]}
    bands = {"mark": band, "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour}}
    line = {"type": "line", "strokeWidth": 2, "color": COLOURS[0], "interpolate": "step-after" if steps else "linear"}
    # drawn to be pointed at, not to be seen
    target = {"type": "point", "filled": True, "size": 120, "opacity": 0}
    return {
        **start(description, rows),
        "height": 300,
        "layer": [
            *([bands] if any(row["low"] is not None for row in rows) else []),
            {"mark": line, "encoding": {"x": x, "y": y, **colour, **dash}},
            {"mark": target, "encoding": {"x": x, "y": y, "tooltip": tooltip}},
        ],
    }


def _line_by_series(names: Sequence[str], values: Sequence[Any]) -> Spec:
    """Series told apart in a legend of short lines."""
    told = by_series(names, values)
    return {**told, "legend": {**told["legend"], "symbolType": "stroke"}}
