"""How a detector's scores are spread over right and wrong answers, shifted and outside images: small multiples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, Spec, by_series, channel, finite, start
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.multiples import PANEL_HEIGHT
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Column, Folded, LegendEntry, Panel, Panels, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import order_of
from shiftproof.reports.words import count, figure, images
from shiftproof.types import Curve

TITLES = {"correct": "right answers", "wrong": "wrong answers", "inside": "inside"}
ANSWERED = (TITLES["correct"], TITLES["wrong"])
BY_ANSWER = "score_distribution_by_answer"
MOST_PANELS = 12
"""Shifted sets drawn; the curves of all are in the results."""
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


def answered_shapes(found: DetectorFindings) -> list[Part]:
    """The same of shifted images, right and wrong answers apart: a drawing for each set, new classes for comparison."""
    parts = []
    for detector in found.two():
        curves = [one for one in curves_named(found.findings, BY_ANSWER) if detector_of(one) == detector]
        sets = list(dict.fromkeys(str(one.about.get("group")) for one in curves))[:MOST_PANELS]
        if sets:
            shapes = [one for one in curves_named(found.findings, "score_distribution") if detector_of(one) == detector]
            new = next((one for one in shapes if one.about.get("group") in found.outsides), None)
            parts.append(_answered_panels(detector, [one for one in curves if one.about.get("group") in sets], new))
    title = "Scores of shifted images, right and wrong answers apart"
    return [Folded(title, parts)] if parts else []


def _answered_panels(detector: str, curves: Sequence[Curve], new: Curve | None) -> Panels:
    title = f"Scores of {written(detector)} on shifted images"
    top = max(y for curve in [*curves, *([new] if new else [])] for y in curve.y)
    by_set: dict[str, list[Curve]] = {}
    for curve in curves:
        by_set.setdefault(str(curve.about.get("group")), []).append(curve)
    panels = []
    for name, both in by_set.items():
        told = ", ".join(f"{count(one.images)} {_answered(one)}" for one in both)
        series = [(_answered(one), one) for one in both]
        panels.append(
            Panel(f"{set_title(name)} ({told})", stepped(series, ANSWERED, top, f"{title}: {set_title(name)}.", behind=new))
        )
    legend = legend_of(ANSWERED)
    if new:
        legend.append(LegendEntry(f"{_title(new)}, for comparison", "var(--muted)", " ".join(map(str, DASHES[1]))))
    note = "Where shifted images that are answered right lie among new classes, the detector goes by style."
    return Panels(title, panels, legend, _answered_figures(title, curves), note)


def _answered(curve: Curve) -> str:
    return TITLES[str(curve.about.get("answered", "correct"))]


def _answered_figures(title: str, curves: Sequence[Curve]) -> Table:
    return figures_of(title, "Score", curves, [f"{_title(one)}: {_answered(one)}" for one in curves])


def stepped(
    series: Sequence[tuple[str, Curve]],
    names: Sequence[str],
    top: float,
    description: str,
    *,
    behind: Curve | None = None,
    ticks: Mapping[str, Any] | None = None,
) -> Spec:
    """Distributions over common bins on the same axes, drawn as filled steps; `names` are all that any panel may show."""
    first = series[0][1]
    x = channel(
        "x", "", {"domain": [first.x[0], first.x[-1]], "nice": False}, {"grid": False, "tickCount": 3, **(ticks or {})}
    )
    y = {**channel("y", "", {"domain": [0, top], "nice": True}, {**PERCENT, "tickCount": 2}), "stack": None}
    for axis in (x["axis"], y["axis"]):
        axis.update({"title": None, "labelFontSize": 11})
    colour = {"color": {**by_series(names, COLOURS), "legend": None}}
    tooltip = [{"field": "series"}, {"field": "x", "format": ".3g"}, {"field": "tip", "title": "share of images"}]
    rows = [{**row, "series": name} for name, curve in series for row in _rows(curve)]
    line = {"type": "line", "interpolate": "step", "strokeWidth": 1.6, "color": "gray", "strokeDash": DASHES[1]}
    dashed = [{"data": {"values": _rows(behind)}, "mark": line, "encoding": {"x": x, "y": y}}] if behind else []
    area = {"type": "area", "interpolate": "step", "opacity": 0.3, "line": {"strokeWidth": 1.6}}
    return {
        **start(description, rows),
        "height": PANEL_HEIGHT,
        "layer": [{"mark": area, "encoding": {"x": x, "y": y, "tooltip": tooltip, **colour}}, *dashed],
    }


def legend_of(names: Sequence[str]) -> list[LegendEntry]:
    """How `stepped` draws each series."""
    return [LegendEntry(name, COLOURS[place], "1 0") for place, name in enumerate(names)]


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
    return figures_of(title, "Score", curves, list(map(_title, curves)))


def figures_of(title: str, across: str, curves: Sequence[Curve], names: Sequence[str]) -> Table:
    """A row for each bin, a column for each distribution; their bins are the same."""
    columns = [Column(across, True), *(Column(name, True) for name in names)]
    rows = [
        [
            Cell(f"{score:.4g}".replace("-", "−"), score),
            *(Cell(figure(curve.y[place], "share"), order_of(curve.y[place])) for curve in curves),
        ]
        for place, score in enumerate(curves[0].x)
    ]
    return Table(title, columns, rows)
