"""Shares by how many frames lie between a frame and its anchor."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.banded_lines import banded_lines
from shiftproof.reports.charts import NARROW, PERCENT, Spec, channel, curve_rows
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve

MOST_TICKS = 10


def frame_distances(curves: Sequence[Curve], names: Sequence[str], *, description: str, scale: Spec) -> Spec:
    """A line for each model over whole numbers of frames, with a band for its interval; `scale` is that of the shares."""
    far = [place for curve in curves for place in curve.x]
    x = channel("x", curves[0].x_label, {"domain": [min(far), max(far)], "nice": False})
    # no half frames: a tick for each where they are few, which tickMinStep alone does not keep to
    few = {"values": list(range(int(min(far)), int(max(far)) + 1))} if max(far) - min(far) <= MOST_TICKS else {}
    x["axis"] |= {"tickMinStep": 1, "format": "d", "tickCount": {"expr": f"{NARROW} ? 5 : {MOST_TICKS}"}, **few}
    y = channel("y", curves[0].y_label, scale, PERCENT)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]
    return banded_lines(rows, names, x, y, description=description)


def _rows(curve: Curve, name: str) -> list[Spec]:
    behind = dict(zip(curve.x, curve.counts or (curve.images,) * len(curve.x), strict=True))
    return [{**row, "tip": f"{figure(row['y'], 'share')} of {count(behind[row['x']])}"} for row in curve_rows(curve, name)]
