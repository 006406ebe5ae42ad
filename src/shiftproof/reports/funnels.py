"""What every step of a choice left, as bars that grow shorter."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, NARROW, Spec, channel, row_axis, start
from shiftproof.reports.words import count, figure
from shiftproof.types import Measurement

BAR_HEIGHT = 30
LABELS = {"expr": f"{NARROW} ? 150 : 340"}
"""Pixels for what a step is called, which may be half a sentence."""


def funnel(steps: Sequence[Measurement], *, description: str) -> Spec:
    """A bar a step, the first at the top, with how many are left and which share of those before the step that is."""
    lefts = [round(one.value) for one in steps]
    rows = [
        {
            "step": f"{place}. {one.about['step']}",
            "left": left,
            "text": count(left),
            "tip": count(left)
            if before is None
            else f"{count(left)}, {_share_of(left, before)} of the {count(before)} before",
        }
        for place, (one, left, before) in enumerate(zip(steps, lefts, [None, *lefts], strict=False), 1)
    ]
    x = channel("left", "left", {"zero": True, "nice": True}, {"format": ",d", "tickMinStep": 1})
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    y = {
        "field": "step",
        "type": "nominal",
        "sort": [row["step"] for row in rows],
        "axis": {**row_axis(), "labelLimit": LABELS},
    }
    told = [{"field": "step"}, {"field": "tip", "title": "left"}]
    return {
        **start(description, rows),
        "height": BAR_HEIGHT * len(rows),
        "encoding": {"y": y, "x": x, "tooltip": told},
        "layer": [
            {"mark": {"type": "bar", "color": COLOURS[0], "opacity": 0.75}},
            {"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": {"text": {"field": "text"}}},
        ],
    }


def _share_of(left: int, before: int) -> str:
    return figure(left / before, "share") if before else "none"
