"""Named points on two axes of shares: published models in grey, one's own emphasised, every label where there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, NARROW, PERCENT, SHAPES, Spec, channel, finite, start
from shiftproof.reports.label_places import SIDES, Place, label_sides, offset_of
from shiftproof.reports.words import figure

HEIGHT = 420
LINE = 16
PLOT_WIDTHS = {"wide": 640, "narrow": 235}
"""Where labels are tried out; they keep clear of each other on any plot at least as wide."""
STEP = 0.05
"""Axes end on a multiple of this."""


def landscape(
    places: Sequence[Place],
    *,
    x_title: str,
    y_title: str,
    description: str,
    x_marks: Sequence[Place] = (),
    line: Sequence[tuple[float, float]] = (),
    what: str = "model",
) -> Spec:
    """A scatter plot; `x_marks` are models of which only the first number is known, drawn as upright lines.

    A `line` is drawn behind the points, from one of its ends to the other.
    """
    known = [place for place in places if math.isfinite(place.x) and math.isfinite(place.y)]
    axes = (
        _ends([end for one in (*known, *x_marks) for end in (one.x, *(one.x_interval or ()))]),
        _ends([end for one in known for end in (one.y, *(one.y_interval or ()))], lines_above=len(x_marks)),
    )
    sides = {size: label_sides(known, *axes, width=width, height=HEIGHT) for size, width in PLOT_WIDTHS.items()}
    x = channel("x", x_title, {"domain": list(axes[0]), "nice": False}, PERCENT)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    y = channel("y", y_title, {"domain": list(axes[1]), "nice": False}, PERCENT)
    tooltip = [{"field": "name", "title": what}, {"field": "tip", "title": "numbers"}]
    rows = [_row(place, {size: found.get(place, "") for size, found in sides.items()}) for place in known]
    own = [place.name for place in known if place.own]
    look = {
        "color": {"field": "name", "type": "nominal", "scale": _scale(own, COLOURS), "legend": None},
        "shape": {"field": "name", "type": "nominal", "scale": _scale(own, SHAPES[1:]), "legend": None},
    }
    colour = {"color": look["color"]}
    mine, rule = [{"filter": "datum.own"}], {"type": "rule", "strokeWidth": 4, "opacity": 0.35}
    return {
        **start(description, rows),
        "height": HEIGHT,
        "layer": [
            *([_straight(line, x, y)] if line else []),
            *_upright_lines(x_marks, x),
            {
                "transform": [{"filter": "!datum.own"}],
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.75, "color": "var(--muted)"},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "transform": mine,
                "mark": rule,
                "encoding": {"x": x, "y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}, **colour},
            },
            {
                "transform": mine,
                "mark": rule,
                "encoding": {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y, **colour},
            },
            {
                "transform": mine,
                "mark": {"type": "point", "filled": True, "size": 150, "opacity": 1, "stroke": "var(--card)"},
                "encoding": {"x": x, "y": y, "tooltip": tooltip, **look},
            },
            *(_labels(side, x, y, own=own) for side in SIDES for own in (False, True)),
        ],
    }


def _ends(values: Sequence[float], *, lines_above: int = 0) -> tuple[float, float]:
    """A little more than the values need, on round figures, with room for lines of text at the upper end."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    above = lines_above * LINE * (max(known) - min(known)) / HEIGHT
    low, high = math.floor(min(known) / STEP - 0.4) * STEP, math.ceil((max(known) + above) / STEP + 0.4) * STEP
    return max(0.0, round(low, 4)), round(high, 4)


def _scale(own: Sequence[str], values: Sequence[str]) -> Spec:
    return {"domain": list(own), "range": [values[place % len(values)] for place in range(len(own))]}


def _row(place: Place, sides: dict[str, str]) -> Spec:
    row: Spec = {"name": place.name, "x": place.x, "y": place.y, "own": place.own, "tip": place.detail, **sides}
    for axis, interval in (("x", place.x_interval), ("y", place.y_interval)):
        row |= {f"{axis}_low": finite(interval[0]), f"{axis}_high": finite(interval[1])} if interval else {}
    return row


def _labels(side: str, x: Spec, y: Spec, *, own: bool) -> Spec:
    mark: Spec = {"type": "text", "fontSize": 12 if own else 11, "fontWeight": 650 if own else 400}
    mark |= {"color": "var(--ink)" if own else "var(--muted)"}
    sideways, _ = SIDES[side]
    dx, dy = offset_of(side)
    mark |= {"align": {1: "left", 0: "center", -1: "right"}[sideways], "dx": dx, "dy": dy}
    here = f"({NARROW} ? datum.narrow : datum.wide) == '{side}'"
    text = {"condition": {"test": here, "field": "name"}, "value": ""}
    wanted = "datum.own" if own else "!datum.own"
    return {"transform": [{"filter": wanted}], "mark": mark, "encoding": {"x": x, "y": y, "text": text}}


def _straight(ends: Sequence[tuple[float, float]], x: Spec, y: Spec) -> Spec:
    return {
        "data": {"values": [{"x": across, "y": up} for across, up in ends]},
        "mark": {"type": "line", "color": "var(--rule)", "strokeWidth": 1.5, "clip": True},
        "encoding": {"x": x, "y": y},
    }


def _upright_lines(marks: Sequence[Place], x: Spec) -> list[Spec]:
    """A dashed line for each, its name at the top, each a line lower than the one before."""
    layers: list[Spec] = []
    for line, mark in enumerate(marks):
        data = {"values": [{"x": mark.x, "label": f"{mark.name}: {figure(mark.x, 'share')}"}]}
        dashed = {"type": "rule", "color": COLOURS[line % len(COLOURS)], "strokeDash": [5, 3], "strokeWidth": 1.5}
        inwards = -1 if mark.x > sum(x["scale"]["domain"]) / 2 else 1
        name = {"type": "text", "align": "left" if inwards > 0 else "right", "dx": 5 * inwards, "fontWeight": 650}
        name |= {"baseline": "top", "dy": 6 + LINE * line}
        layers += [
            {"data": data, "mark": dashed, "encoding": {"x": x}},
            {"data": data, "mark": name, "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label"}}},
        ]
    return layers
