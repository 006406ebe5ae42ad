"""Names beside points: on which side of its point each finds room, so that no two lie over each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
    """One model: where it stands, how sure that is, and whether it is one's own."""

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
