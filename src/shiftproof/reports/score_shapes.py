"""How a detector's scores are spread over right and wrong answers, shifted and outside images: small multiples."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, Spec, channel, finite, start
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.multiples import PANEL_HEIGHT
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Column, LegendEntry, Panel, Panels, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import order_of
from shiftproof.reports.words import count, figure, images
from shiftproof.types import Curve

TITLES = {"correct": "right answers", "wrong": "wrong answers", "inside": "inside"}
REFERENCES = ("correct", "inside")
"""The group that stands in every drawing, where it is there."""


def score_shapes(found: DetectorFindings) -> list[Part]:
    """The best detector and the baseline, a drawing for each group of images."""
    parts: list[Part] = []
    for detector in found.two():
        curves = [one for one in curves_named(found.findings, "score_distribution") if detector_of(one) == detector]
        if curves:
            parts.append(_panels(detector, curves))
    return parts


def _panels(detector: str, curves: Sequence[Curve]) -> Panels:
    title = f"Scores of {written(detector)}"
    reference = next((curve for name in REFERENCES for curve in curves if curve.about.get("group") == name), None)
    top = max((y for curve in curves for y in curve.y), default=1.0)
    panels = [
        Panel(f"{_title(curve)} ({count(curve.images)})", _shape(curve, reference, top, f"{title}: {_title(curve)}."))
        for curve in curves
    ]
    legend = [LegendEntry("the images named above a drawing", COLOURS[1], "1 0")]
    if reference:
        legend.append(LegendEntry(f"{_title(reference)}, for comparison", COLOURS[0], " ".join(map(str, DASHES[1]))))
    note = (
        "The farther to the right, the more foreign an image looks. What lies over the dashed line cannot be told from it."
    )
    return Panels(title, panels, legend, _figures(title, curves), note)


def _title(curve: Curve) -> str:
    group = str(curve.about.get("group", ""))
    return TITLES.get(group, set_title(group))


def _shape(curve: Curve, reference: Curve | None, top: float, description: str) -> Spec:
    x = channel("x", "", {"domain": [curve.x[0], curve.x[-1]], "nice": False}, {"grid": False, "tickCount": 3})
    y = channel("y", "", {"domain": [0, top], "nice": True}, {**PERCENT, "tickCount": 2})
    for axis in (x["axis"], y["axis"]):
        axis.update({"title": None, "labelFontSize": 11})
    itself = reference is None or reference.about == curve.about
    area = {"type": "area", "interpolate": "step", "color": COLOURS[0 if itself and reference else 1], "opacity": 0.55}
    line = {"type": "line", "interpolate": "step", "color": COLOURS[0], "strokeWidth": 1.8, "strokeDash": DASHES[1]}
    behind = (
        []
        if itself or reference is None
        else [{"data": {"values": _rows(reference)}, "mark": line, "encoding": {"x": x, "y": y}}]
    )
    tooltip = [{"field": "x", "title": "score", "format": ".4g"}, {"field": "tip", "title": "share of images"}]
    return {
        **start(f"{description} {images(curve.images)}.", _rows(curve)),
        "height": PANEL_HEIGHT,
        "layer": [{"mark": area, "encoding": {"x": x, "y": y, "tooltip": tooltip}}, *behind],
    }


def _rows(curve: Curve) -> list[Spec]:
    return [
        {"x": round(x, 5), "y": finite(round(y, 5)), "tip": figure(y, "share")}
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def _figures(title: str, curves: Sequence[Curve]) -> Table:
    """A row for each score, a column for each group; their bins are the same."""
    columns = [Column("Score", True), *(Column(_title(curve), True) for curve in curves)]
    rows = [
        [
            Cell(f"{score:.4g}".replace("-", "−"), score),
            *(Cell(figure(curve.y[place], "share"), order_of(curve.y[place])) for curve in curves),
        ]
        for place, score in enumerate(curves[0].x)
    ]
    return Table(title, columns, rows)
