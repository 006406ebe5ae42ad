"""Scatter plots of named models: published ones in grey, one's own emphasised, labels where they do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shiftproof.metrics.table import Unit
from shiftproof.metrics.wording import figure
from shiftproof.reports.charts import COLOURS, NARROW, SHAPES, TICKS, Spec, channel, finite, start

LETTER_WIDTH = 6.3
LINE_HEIGHT = 13
AWAY = 9
"""Pixels from a point to its label."""
SIDES = {
    "right": (1, 0),
    "left": (-1, 0),
    "above": (0, -1),
    "below": (0, 1),
    "upper right": (1, -1),
    "lower right": (1, 1),
    "upper left": (-1, -1),
    "lower left": (-1, 1),
}
"""Where a label may stand: right (1) or left (-1) of its point or neither, and below (1) or above it (-1) or neither."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""


@dataclass(frozen=True)
class Place:
    """A model as a point, with its confidence intervals, and whether it is one's own."""

    name: str
    x: float
    y: float
    detail: str
    own: bool = False
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


def label_sides(
    places: Sequence[Place],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    *,
    width: float,
    height: float,
) -> dict[Place, str]:
    """The side of its point on which each label overlaps nothing, one's own first; others may be left out."""
    centres = {place: (_along(place.x, x_ends) * width, (1 - _along(place.y, y_ends)) * height) for place in places}
    taken = [(across - 5, down - 5, across + 5, down + 5) for across, down in centres.values()]
    for place in places:
        left, right = (_along(end, x_ends) * width for end in place.x_interval or (place.x, place.x))
        low, high = ((1 - _along(end, y_ends)) * height for end in place.y_interval or (place.y, place.y))
        across, down = centres[place]
        taken += [(left, down - 2, right, down + 2), (across - 2, high, across + 2, low)]
    chosen: dict[Place, str] = {}
    for place in sorted(places, key=lambda one: not one.own):
        boxes = {
            side: _box(centres[place], len(place.name) * LETTER_WIDTH * (1.1 if place.own else 1.0), side) for side in SIDES
        }
        free = [
            side
            for side, box in boxes.items()
            if _inside(box, width, height) and not any(_overlap(box, one) for one in taken)
        ]
        if free or place.own:
            chosen[place] = (free or ["upper right"])[0]
            taken.append(boxes[chosen[place]])
    return chosen


def _along(value: float, ends: tuple[float, float]) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])


def _box(centre: tuple[float, float], width: float, side: str) -> Box:
    sideways, _ = SIDES[side]
    left = centre[0] + offset_of(side)[0] + (sideways - 1) / 2 * width
    top = centre[1] + offset_of(side)[1] - LINE_HEIGHT / 2
    return left, top, left + width, top + LINE_HEIGHT


def offset_of(side: str) -> tuple[float, float]:
    """From a point to the near end of the middle line of its label."""
    sideways, downwards = SIDES[side]
    away = AWAY if not downwards else AWAY / 2
    return sideways * away, downwards * ((AWAY if not sideways else AWAY / 2) + LINE_HEIGHT / 2)


def _inside(box: Box, width: float, height: float) -> bool:
    return box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height


def _overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


HEIGHT = 420
LINE = 16
PLOT_WIDTHS = {"wide": 640, "narrow": 235}
"""Widths for which labels are placed; they do not overlap on any plot at least as wide."""
STEP = 0.05
"""Axes end on a multiple of this; those of differences, which may be small, on one of the other."""
SIGNED_STEP = 0.01


def scatter_plot(
    places: Sequence[Place],
    *,
    x_title: str,
    y_title: str,
    description: str,
    x_marks: Sequence[Place] = (),
    line: Sequence[tuple[float, float]] = (),
    what: str = "model",
    unit: Unit = "share",
) -> Spec:
    """A scatter plot; `x_marks` are models of which only the first number is known, drawn as upright lines.

    A `line` is drawn behind the points, from one of its ends to the other. Axes of points, which are differences of shares,
    show where both are zero.
    """
    signed = unit != "share"
    zero = [0.0] if signed else []
    known = [place for place in places if math.isfinite(place.x) and math.isfinite(place.y)]
    axes = (
        _ends([*zero, *(end for one in (*known, *x_marks) for end in (one.x, *(one.x_interval or ())))], signed=signed),
        _ends(
            [*zero, *(end for one in known for end in (one.y, *(one.y_interval or ())))],
            lines_above=len(x_marks),
            signed=signed,
        ),
    )
    sides = {size: label_sides(known, *axes, width=width, height=HEIGHT) for size, width in PLOT_WIDTHS.items()}
    x = channel("x", x_title, {"domain": list(axes[0]), "nice": False}, TICKS[unit])
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    y = channel("y", y_title, {"domain": list(axes[1]), "nice": False}, TICKS[unit])
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
            *(_straight(ends, x, y) for ends in (_zeros(*axes) if zero else ())),
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


def _ends(values: Sequence[float], *, lines_above: int = 0, signed: bool = False) -> tuple[float, float]:
    """A little more than the values need, on round figures, with room for lines of text at the upper end.

    What is not `signed` never goes below zero where no value does.

    >>> _ends([0.01, 0.91]), _ends([0.0, -0.041, 0.013], signed=True), _ends([0.0, 0.0], signed=True)
    ((0.0, 0.95), (-0.05, 0.02), (-0.01, 0.01))
    """
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    above = lines_above * LINE * (max(known) - min(known)) / HEIGHT
    step = SIGNED_STEP if signed else STEP
    low, high = math.floor(min(known) / step - 0.4) * step, math.ceil((max(known) + above) / step + 0.4) * step
    return (round(low, 4) if signed or min(known) < 0 else max(0.0, round(low, 4))), round(high, 4)


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


def _zeros(x: tuple[float, float], y: tuple[float, float]) -> list[list[tuple[float, float]]]:
    """Both lines on which one of the numbers is zero."""
    return [[(x[0], 0.0), (x[1], 0.0)], [(0.0, y[0]), (0.0, y[1])]]


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
