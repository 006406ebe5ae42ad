"""How far frames are from their anchors in their pixels: all pairs, those that people found alike, each model's mistakes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from shiftproof.reports.banded_lines import banded_lines
from shiftproof.reports.charts import PERCENT, SHARE, channel, curve_rows
from shiftproof.reports.page import model_of
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve

TITLE = "How far the pixels change"
NOTE = (
    "1 is from black to white in any colour of any pixel. Where the line of a model's mistakes runs beside that of all "
    "pairs, its mistakes do not come from larger changes."
)
SHARES = (0.1, 0.5, 0.9)
"""Of the pairs, where the lines are read off in the table."""


def pixel_distance_charts(curves: Sequence[Curve]) -> list[Part]:
    """A rising line for each group of pairs."""
    if not curves:
        return []
    names = [_name(curve) for curve in curves]
    heads = [f"{figure(share, 'share')} of pairs within" for share in SHARES]
    rows = [
        [Cell(name), *(_cell(_within(curve, share)) for share in SHARES), Cell(count(curve.images), curve.images)]
        for curve, name in zip(curves, names, strict=True)
    ]
    figures = Table(TITLE, [Column("Which"), *(Column(head, True) for head in heads), Column("Pairs", True)], rows)
    x = channel("x", curves[0].x_label, SHARE)
    y = channel("y", curves[0].y_label, SHARE, PERCENT)
    drawn = [row for curve, name in zip(curves, names, strict=True) for row in curve_rows(_whole(curve), name)]
    said = f"{TITLE}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    return [Chart(TITLE, banded_lines(drawn, names, x, y, description=said, steps=True), figures, NOTE)]


def _name(curve: Curve) -> str:
    pairs = curve.about["pairs"]
    which = f"mistakes of {model_of(curve)}" if pairs == "mistakes" else f"{pairs} pairs"
    return f"{which} ({count(curve.images)})"


def _whole(curve: Curve) -> Curve:
    """The same line from one end of the axis to the other."""
    counts = (0, *(curve.counts or ()), curve.images) if curve.counts else None
    return dataclasses.replace(curve, x=(0.0, *curve.x, 1.0), y=(0.0, *curve.y, 1.0), counts=counts)


def _within(curve: Curve, share: float) -> float:
    """The least distance that so large a share of the pairs is within."""
    return curve.x[int(np.searchsorted(curve.y, share))]


def _cell(distance: float) -> Cell:
    return Cell(figure(distance, "number"), distance)
