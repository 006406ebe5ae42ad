"""Named points on two axes of shares: published models in grey, one's own emphasised, every label where there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.reports.charts import COLOURS, NARROW, PERCENT, SHAPES, Spec, channel, finite, start
from shiftproof.reports.words import figure

HEIGHT = 420
PLOT_WIDTHS = {"wide": 780, "narrow": 270}
"""Where labels are tried out; they keep clear of each other on any plot at least as wide."""
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
STEP = 0.05
"""Axes end on a multiple of this."""


@dataclass(frozen=True)
class Place:
    """One model: where it stands, how sure that is, and whether it is one's own."""

    name: str
    x: float
    y: float
    detail: str
    own: bool = False
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


def landscape(
    places: Sequence[Place], *, x_title: str, y_title: str, description: str, x_marks: Sequence[Place] = ()
) -> Spec:
    """A scatter plot; `x_marks` are models of which only the first number is known, drawn as upright lines."""
    known = [place for place in places if math.isfinite(place.x) and math.isfinite(place.y)]
    axes = (
        _ends([end for one in (*known, *x_marks) for end in (one.x, *(one.x_interval or ()))]),
        _ends([end for one in known for end in (one.y, *(one.y_interval or ()))]),
    )
    sides = {size: label_sides(known, *axes, width=width) for size, width in PLOT_WIDTHS.items()}
    x = channel("x", x_title, {"domain": list(axes[0]), "nice": False}, PERCENT)
    y = channel("y", y_title, {"domain": list(axes[1]), "nice": False}, PERCENT)
    tooltip = [{"field": "name", "title": "model"}, {"field": "tip", "title": "published" if not x_marks else "numbers"}]
    rows = [_row(place, {size: found.get(place, "") for size, found in sides.items()}) for place in known]
    own = [place.name for place in known if place.own]
    look = {
        "color": {"field": "name", "type": "nominal", "scale": _scale(own, COLOURS), "legend": None},
        "shape": {"field": "name", "type": "nominal", "scale": _scale(own, SHAPES[1:]), "legend": None},
    }
    colour = {"color": look["color"]}
    mine = [{"filter": "datum.own"}]
    return {
        **start(description, rows),
        "height": HEIGHT,
        "layer": [
            *_upright_lines(x_marks, x),
            {
                "transform": [{"filter": "!datum.own"}],
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.75, "color": "var(--muted)"},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "transform": mine,
                "mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.35},
                "encoding": {"x": x, "y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}, **colour},
            },
            {
                "transform": mine,
                "mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.35},
                "encoding": {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y, **colour},
            },
            {
                "transform": mine,
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 150,
                    "opacity": 1,
                    "stroke": "var(--card)",
                    "strokeWidth": 1,
                },
                "encoding": {"x": x, "y": y, "tooltip": tooltip, **look},
            },
            *(_labels(side, x, y, own=own) for side in SIDES for own in (False, True)),
        ],
    }


def label_sides(
    places: Sequence[Place],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    *,
    width: float,
    height: float = HEIGHT,
) -> dict[Place, str]:
    """On which side of its point each name finds room, one's own first; a published name that finds none is left out."""
    centres = {place: (_along(place.x, x_ends) * width, (1 - _along(place.y, y_ends)) * height) for place in places}
    taken = [(across - 5, down - 5, across + 5, down + 5) for across, down in centres.values()]
    for place in places:
        left, right = (_along(end, x_ends) * width for end in place.x_interval or (place.x, place.x))
        low, high = ((1 - _along(end, y_ends)) * height for end in place.y_interval or (place.y, place.y))
        across, down = centres[place]
        taken += [(left, down - 2, right, down + 2), (across - 2, high, across + 2, low)]
    chosen: dict[Place, str] = {}
    for place in sorted(places, key=lambda one: not one.own):
        for side in SIDES:
            box = _box(centres[place], len(place.name) * LETTER_WIDTH * (1.1 if place.own else 1.0), side)
            inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
            if inside and not any(_overlap(box, other) for other in taken):
                chosen[place] = side
                taken.append(box)
                break
        else:
            if place.own:
                chosen[place] = "upper right"
    return chosen


def _along(value: float, ends: tuple[float, float]) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])


def _box(centre: tuple[float, float], width: float, side: str) -> tuple[float, float, float, float]:
    sideways, _ = SIDES[side]
    left = centre[0] + _offset(side)[0] + (sideways - 1) / 2 * width
    top = centre[1] + _offset(side)[1] - LINE_HEIGHT / 2
    return left, top, left + width, top + LINE_HEIGHT


def _offset(side: str) -> tuple[float, float]:
    """From a point to the near end of the middle line of its label."""
    sideways, downwards = SIDES[side]
    away = AWAY if not downwards else AWAY / 2
    return sideways * away, downwards * ((AWAY if not sideways else AWAY / 2) + LINE_HEIGHT / 2)


def _overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values need, on round figures."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = math.floor(min(known) / STEP - 0.4) * STEP, math.ceil(max(known) / STEP + 0.4) * STEP
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
    dx, dy = _offset(side)
    mark |= {"align": {1: "left", 0: "center", -1: "right"}[sideways], "dx": dx, "dy": dy}
    here = f"({NARROW} ? datum.narrow : datum.wide) == '{side}'"
    text = {"condition": {"test": here, "field": "name"}, "value": ""}
    wanted = "datum.own" if own else "!datum.own"
    return {"transform": [{"filter": wanted}], "mark": mark, "encoding": {"x": x, "y": y, "text": text}}


def _upright_lines(marks: Sequence[Place], x: Spec) -> list[Spec]:
    if not marks:
        return []
    rows = [{"name": mark.name, "x": mark.x, "label": f"{mark.name}: {figure(mark.x, 'share')}"} for mark in marks]
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "color": COLOURS[0], "strokeDash": [5, 3], "strokeWidth": 1.5},
            "encoding": {"x": x, "tooltip": [{"field": "label", "title": "clean error"}]},
        },
        {
            "data": {"values": [{**row, "line": place} for place, row in enumerate(rows)]},
            "mark": {"type": "text", "align": "left", "dx": 5, "dy": 8, "baseline": "top", "fontWeight": 650},
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label"}},
        },
    ]
