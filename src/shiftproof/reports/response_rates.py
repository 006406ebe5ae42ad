"""Accuracy as a model answers more and more images, the surest first."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.banded_lines import banded_lines
from shiftproof.reports.charts import PERCENT, SHARE, Spec, channel, curve_rows
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve


def response_rates(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """A line for each model, with a band for its interval where it has one; the upper axis is as long as it needs to be."""
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = channel("y", curves[0].y_label, {"zero": False, "nice": True}, PERCENT)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]
    return banded_lines(rows, names, x, y, description=description)


def _rows(curve: Curve, name: str) -> list[Spec]:
    answered = curve.counts or (curve.images,) * len(curve.x)
    return [
        {**row, "x_tip": f"{figure(row['x'], 'share')} ({count(images)} images)", "tip": figure(row["y"], "share")}
        for row, images in zip(curve_rows(curve, name), answered, strict=True)
    ]
