"""What a threshold on the score would do: outside images found against false alarms, risk against answers given."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.reports.charts import COLOURS, DASHES, NARROW, PERCENT, SHARE, Spec, by_series, channel, finite, start
from shiftproof.reports.detector_findings import FAILURE, GOALS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import order_of
from shiftproof.reports.words import figure, images, in_a_line
from shiftproof.types import Curve

FALSE_ALARM_RATES = (0.01, 0.05, 0.1, 0.2, 0.5)
COVERAGES = (0.25, 0.5, 0.75, 0.9, 1.0)
"""Where the curves are read off in the tables."""
THINNED = 60
"""Points of a line that is drawn only when it is asked for."""
MORE = "Show another detector: "


def roc_charts(found: DetectorFindings) -> list[Part]:
    """A chart for each goal: the best detectors and the baseline, any other one by choice."""
    parts: list[Part] = []
    for goal, name in GOALS.items():
        case = found.main_case(goal)
        curves = _curves(found, "roc", goal=goal, inside=case.inside, outside=case.outside)
        if not curves:
            continue
        title = f"{name}: found against false alarms (ROC)"
        note = (
            f"{_whose(curves)} The nearer to the upper left corner, the better; along the dashed line a detector is blind."
        )
        x_title, y_title = "share of false alarms", f"share of {in_a_line(name)} found"
        spec = _lines(curves, found.few(goal), x_title, y_title, title=title, diagonal=True)
        heads = [f"at {figure(rate, 'share')} false alarms" for rate in FALSE_ALARM_RATES]
        figures = _read_off(title, curves, heads, [_found_at(curve) for curve in curves], note="Share found.")
        parts.append(Chart(title, spec, figures, note, half=True))
    return parts


def risk_coverage_chart(found: DetectorFindings) -> list[Part]:
    """The share of wrong answers among those given, the surest first."""
    case = found.main_case(FAILURE)
    curves = _curves(found, "risk_coverage", inside=case.inside, outside=case.outside)
    if not curves:
        return []
    title = "Wrong answers against answers given"
    note = f"{_whose(curves)} From the image that looks least foreign to all of them; new classes count as wrong."
    spec = _lines(curves, found.few(FAILURE), "share answered", "share of these wrong", title=title)
    heads = [f"{figure(coverage, 'share')} answered" for coverage in COVERAGES]
    figures = _read_off(title, curves, heads, [_risk_at(curve) for curve in curves], note="Share of the answers wrong.")
    return [Chart(title, spec, figures, note, half=True)]


def _curves(found: DetectorFindings, name: str, **about: str) -> list[Curve]:
    curves = [one for one in curves_named(found.findings, name) if about.items() <= one.about.items() and len(one.x)]
    return sorted(curves, key=lambda one: found.detectors.index(detector_of(one)))


def _whose(curves: Sequence[Curve]) -> str:
    about = curves[0].about
    sides = f"{set_title(str(about.get('inside', '')))} and {set_title(str(about.get('outside', '')))}"
    return f"{sides}: {images(curves[0].images)}."


def _lines(
    curves: Sequence[Curve], few: Sequence[str], x_title: str, y_title: str, *, title: str, diagonal: bool = False
) -> Spec:
    drawn = [curve for curve in curves if detector_of(curve) in few] or list(curves[:1])
    rest = [curve for curve in curves if curve not in drawn]
    names = [written(detector_of(curve)) for curve in drawn]
    others = [written(detector_of(curve)) for curve in rest]
    x = channel("x", x_title, SHARE, {**PERCENT, "tickCount": {"expr": f"{NARROW} ? 3 : 5"}})
    y = channel("y", y_title, SHARE if diagonal else {"domain": [0, _top(curves)], "nice": True}, PERCENT)
    look = {"color": by_series(names, COLOURS), "strokeDash": by_series(names, DASHES)} if names[1:] else {}
    blind: Spec = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "color": "var(--muted)", "strokeDash": [3, 4], "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y},
    }
    chosen: Spec = {
        "data": {"values": [row for curve in rest for row in _rows(curve, THINNED)]},
        "transform": [{"filter": "datum.series == another"}],
        "mark": {"type": "line", "strokeWidth": 3, "color": "var(--ink)"},
        "encoding": {"x": x, "y": y},
    }
    choice = {"name": "another", "value": "", "bind": {"input": "select", "options": ["", *others], "name": MORE}}
    said = f"{title} of {', '.join(names)}. The table of figures has every detector."
    return {
        **start(said, [row for curve in drawn for row in _rows(curve)]),
        **({"params": [choice]} if rest else {}),
        "height": 300,
        "layer": [
            *([blind] if diagonal else []),
            {"mark": {"type": "line", "strokeWidth": 2, "color": COLOURS[0]}, "encoding": {"x": x, "y": y, **look}},
            *([chosen] if rest else []),
        ],
    }


def _top(curves: Sequence[Curve]) -> float:
    return max((y for curve in curves for y in curve.y if math.isfinite(y)), default=1.0)


def _rows(curve: Curve, most: int | None = None) -> list[Spec]:
    places = range(len(curve.x))
    if most and len(places) > most:
        places = range(0, len(places), -(-len(places) // most))
    ends = [] if places[-1] == len(curve.x) - 1 else [len(curve.x) - 1]
    name = written(detector_of(curve))
    return [
        {"series": name, "x": round(curve.x[place], 4), "y": finite(round(curve.y[place], 4))} for place in [*places, *ends]
    ]


def _found_at(curve: Curve) -> list[float]:
    """The most that is found with no more false alarms than each rate."""
    return [max((y for x, y in zip(curve.x, curve.y, strict=True) if x <= rate), default=0.0) for rate in FALSE_ALARM_RATES]


def _risk_at(curve: Curve) -> list[float]:
    """The risk at the first point that answers each share of the images."""
    return [
        next((y for x, y in zip(curve.x, curve.y, strict=True) if x >= coverage - 1e-9), float("nan"))
        for coverage in COVERAGES
    ]


def _read_off(
    title: str, curves: Sequence[Curve], heads: Sequence[str], values: Sequence[Sequence[float]], *, note: str
) -> Table:
    rows = [
        [Cell(written(detector_of(curve))), *(Cell(figure(value, "share"), order_of(value)) for value in row)]
        for curve, row in zip(curves, values, strict=True)
    ]
    return Table(title, [Column("Detector"), *(Column(head, True) for head in heads)], rows, note)
