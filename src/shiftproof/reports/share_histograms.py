"""How much of their images the objects of one set or two fill, as histograms on common axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, SHARE, Spec, by_series, channel, start
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve


def share_histograms(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """A line of steps for each set, filled, so that both can be seen where they overlap."""
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _steps(curve, name)]
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = {**channel("y", curves[0].y_label, {"zero": True, "nice": True}, PERCENT), "stack": None}
    told = [
        {"field": "series"},
        {"field": "bin", "title": x["axis"]["title"]},
        {"field": "tip", "title": y["axis"]["title"]},
    ]
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    dash = by_series(names, DASHES)
    return {
        **start(description, rows),
        "height": 280,
        "encoding": {"x": x, "y": y, "color": by_series(names, COLOURS), "tooltip": told},
        "layer": [
            {"mark": {"type": "area", "interpolate": "step-after", "opacity": 0.22}},
            {"mark": line, "encoding": {"strokeDash": {**dash, "legend": {**dash["legend"], "symbolType": "stroke"}}}},
        ],
    }


def _steps(curve: Curve, name: str) -> Iterator[Spec]:
    """A point at the lower edge of each bin, and one more at the end of the last."""
    width = 1 / len(curve.x)
    behind = curve.counts or (curve.images,) * len(curve.x)
    for middle, share, objects in zip(curve.x, curve.y, behind, strict=True):
        low, high = (figure(edge, "share") for edge in (middle - width / 2, middle + width / 2))
        tip = f"{figure(share, 'share')}: {count(objects)} of {count(curve.images)}"
        yield {"series": name, "x": middle - width / 2, "y": share, "bin": f"{low} to {high}", "tip": tip}
    yield {"series": name, "x": 1.0, "y": curve.y[-1], "bin": "", "tip": ""}
