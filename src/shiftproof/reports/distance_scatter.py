"""AUROC against distance: whether images look foreign because they lie far from the inside, or for their kind."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, SHAPES, Spec, by_series, channel, finite, start
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import compact_cell, curve_table, order_of
from shiftproof.reports.words import figure
from shiftproof.types import Curve, Measurement


def distance_charts(found: DetectorFindings) -> list[Part]:
    """A scatter plot with fitted lines for the best detector and for the baseline, then the lines of all in a table."""
    curves = [one for one in curves_named(found.findings, "distance_auroc") if len(one.x)]
    shown = [name for name in found.two() if any(detector_of(one) == name for one in curves)]
    scatters = [_scatter(name, [one for one in curves if detector_of(one) == name], found) for name in shown]
    return [*scatters, *_lines(found), *_heights(found)]


def _scatter(detector: str, curves: Sequence[Curve], found: DetectorFindings) -> Chart:
    title = f"{written(detector)}: AUROC against distance"
    names = [set_title(_set(one)) for one in curves]
    fits = [_fit(one, found) for one in curves]
    ends = [value for one in curves for value in one.y]
    x = channel("x", curves[0].x_label, {"zero": False, "nice": True})
    low = max(0.0, min([0.5, *ends]) - 0.05)
    y = channel("y", "AUROC against the inside", {"domain": [low, min(1.0, max(ends) + 0.05)], "nice": True}, PERCENT)
    colour = {"color": by_series(names, COLOURS)}
    tooltip = [
        {"field": "series", "title": "set"},
        {"field": "x_tip", "title": "distance"},
        {"field": "tip", "title": "AUROC"},
    ]
    point = {"type": "point", "filled": True, "size": 26, "opacity": 0.65}
    line = {"type": "line", "strokeWidth": 2.2, "clip": True}
    spec: Spec = {
        **start(f"{title}. {' '.join(filter(None, map(_said, fits)))}", [row for one in curves for row in _rows(one)]),
        "height": 320,
        "layer": [
            {"mark": point, "encoding": {"x": x, "y": y, "tooltip": tooltip, **colour, "shape": by_series(names, SHAPES)}},
            {
                "data": {"values": [row for fit in fits for row in _ends_of(fit)]},
                "mark": line,
                "encoding": {"x": x, "y": y, **colour, "strokeDash": by_series(names, DASHES)},
            },
        ],
    }
    note = "A point is a group of images alike in distance. Lines that lie apart: the sets differ in more than distance."
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


Fit = tuple[Curve, Measurement | None, Measurement | None]
"""The points of a set, and the slope and intercept of the line through them."""


def _fit(curve: Curve, found: DetectorFindings) -> Fit:
    where = {"detector": detector_of(curve), "set": _set(curve)}
    slope, start_at = found.numbers("distance_slope", **where), found.numbers("distance_intercept", **where)
    return curve, next(iter(slope), None), next(iter(start_at), None)


def _ends_of(fit: Fit) -> list[Spec]:
    """Where the line enters and leaves the groups of its set."""
    curve, slope, start_at = fit
    if slope is None or start_at is None:
        return []
    return [
        {"series": set_title(_set(curve)), "x": x, "y": finite(start_at.value + slope.value * x)}
        for x in (min(curve.x), max(curve.x))
    ]


def _said(fit: Fit) -> str:
    curve, _, start_at = fit
    return f"{set_title(_set(curve))} starts at {figure(start_at.value, 'share')}." if start_at else ""


def _rows(curve: Curve) -> list[Spec]:
    return [
        {
            "series": set_title(_set(curve)),
            "x": round(x, 5),
            "y": finite(round(y, 5)),
            "x_tip": f"{x:.3g}",
            "tip": figure(y, "share"),
        }
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def _lines(found: DetectorFindings) -> list[Part]:
    """A row for each detector and set: where its line starts and how steep it is, both with intervals."""
    starts = found.numbers("distance_intercept")
    slopes = {(detector_of(one), _set(one)): one for one in found.numbers("distance_slope")}
    rows = [
        [
            Cell(written(detector_of(one))),
            Cell(set_title(_set(one))),
            compact_cell(one),
            compact_cell(slopes.get((detector_of(one), _set(one)))),
        ]
        for one in starts
    ]
    columns = [
        Column("Detector"),
        Column("Set"),
        Column("AUROC at no distance", True),
        Column("Gained per unit of distance", True),
    ]
    note = (
        "Lines through groups of images alike in distance. Sets whose intervals at no distance keep apart "
        "differ in more than distance."
    )
    return [Table("Lines of AUROC against distance", columns, rows, note, folded=True)] if rows else []


def _heights(found: DetectorFindings) -> list[Part]:
    """A row for each detector and pair of a shifted and an outside set: whether their lines begin at other heights."""
    gaps = {_pair(one): one.value for one in found.numbers("distance_intercept_gap")}
    rows = []
    for one in found.numbers("distance_intercept_difference"):
        gap = gaps.get(_pair(one))
        apart = "" if gap is None else f"{'apart' if gap > 0 else 'overlap'} by {figure(abs(gap), 'points').lstrip('+')}"
        names = [written(detector_of(one)), *map(set_title, _pair(one)[1:])]
        rows.append([*map(Cell, names), compact_cell(one), Cell(apart, order_of(gap) if gap is not None else "")])
    columns = [*map(Column, ("Detector", "Shifted", "Outside"))]
    columns += [Column("Shifted begins higher by", True), Column("Intervals at no distance", True)]
    note = "Apart and higher: at equal distance a new style is noticed more than a new class. Overlapping: not settled."
    return [Table("Do the lines of styles and classes begin apart?", columns, rows, note, folded=True)] if rows else []


def _pair(found: Measurement) -> tuple[str, str, str]:
    return detector_of(found), _set(found), str(found.about.get("versus", ""))


def _set(finding: Curve | Measurement) -> str:
    return str(finding.about.get("set", ""))
