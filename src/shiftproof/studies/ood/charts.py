"""AUROC by detector with CIs, compared with the baseline and with published numbers; ROC curves; score histograms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure, images
from shiftproof.reports import charts
from shiftproof.reports.charts import (
    COLOURS,
    DASHES,
    NARROW,
    PANEL_HEIGHT,
    PERCENT,
    SHARE,
    LegendEntry,
    Spec,
    by_series,
    channel,
    finite,
    start,
)
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Chart, Column, Folded, Panel, Panels, Part, Table
from shiftproof.reports.tables import compact_cell, dot_chart, measurement_table, order_of
from shiftproof.reports.words import kept_together
from shiftproof.studies.ood.findings import (
    CHANCE,
    FAILURE,
    GOALS,
    SOURCE,
    DetectorFindings,
    detector_of,
    published_aurocs,
    written,
)
from shiftproof.types import Curve, Measurement

CHANCE_LINE = "The dashed line is chance, 50 %."
MOST_SERIES = len(charts.SHAPES)
HERE, PUBLISHED = "here", f"published ({SOURCE})"


def auroc_ends(found: Iterable[Measurement], *, also: Iterable[float] = ()) -> tuple[float, float]:
    """From a round figure below the lowest interval, at most 50 %, to 100 %."""
    values = [end for one in found for end in (one.value, *(one.ends or ()))]
    lowest = min([CHANCE, *(value for value in [*values, *also] if math.isfinite(value))])
    return max(0.0, math.floor(lowest * 10 - 0.2) / 10), 1.0


def detector_dots(
    title: str,
    shown: Sequence[Measurement],
    *,
    x_title: str,
    key: str,
    figures: Sequence[Measurement] = (),
    series: Sequence[str] | None = None,
    note: str = "",
    reference: float | None = None,
    ends: tuple[float, float] | None = None,
    half: bool = True,
) -> Chart:
    """Each measurement as a dot beside its detector; the table has a column for `key`, and more rows where given."""
    table = measurement_table(
        title, figures or shown, value_title=metric_info(shown[0].metric).title, keys=["ood_detector", key]
    )
    labels = [written(detector_of(one)) for one in shown]
    return dot_chart(
        title,
        shown,
        table,
        x_title=x_title,
        labels=labels,
        series=series,
        note=note,
        reference=reference,
        ends=ends,
        half=half,
    )


def _by_goal(title: str, shown: Sequence[Measurement], found: DetectorFindings, **how: Any) -> list[Part]:
    """The numbers of either goal, in the order of the detectors."""
    if not shown:
        return []
    ordered = sorted(shown, key=lambda one: found.detectors.index(detector_of(one)))
    goals = [GOALS.get(str(one.about.get("goal")), "") for one in ordered]
    return [detector_dots(title, ordered, key="goal", series=goals if len(set(goals)) > 1 else None, **how)]


def aurocs_by_goal(found: DetectorFindings) -> list[Part]:
    """Both goals of one model: clean ID images against all OOD images."""
    shown = [one for goal in GOALS if (standing := found.main(goal)) for one in standing.aurocs]
    return _by_goal(
        "AUROC by detector",
        shown,
        found,
        x_title="AUROC",
        note=f"{found.dataset} against {found.ood}. {CHANCE_LINE}",
        reference=CHANCE,
        ends=auroc_ends(shown),
    )


def lead_over_baseline(found: DetectorFindings) -> list[Part]:
    """Difference in AUROC of each detector to the baseline, by goal."""
    cases = [found.main_case(goal)._asdict() for goal in GOALS]
    told = [one for case in cases for one in found.numbers("auroc_difference", **case, versus=found.baseline)]
    return _by_goal(
        f"AUROC difference to {written(found.baseline)}",
        [one for one in told if math.isfinite(one.value)],
        found,
        x_title="points of AUROC",
        note="Above zero: better than the baseline; a CI that covers zero is not significant.",
    )


def answered_at_risk(found: DetectorFindings) -> list[Part]:
    """Coverage at a risk: the share of predictions accepted with at most that error among them."""
    case = found.main_case(FAILURE)
    shown = sorted(found.numbers("coverage_at_risk", id=case.id, ood=case.ood), key=lambda one: -one.value)
    if not shown:
        return []
    title = kept_together(f"Coverage at a risk of {shown[0].about.get('risk', 'a few')}")
    note = f"{found.dataset} and {found.ood} pooled; new classes count as errors."
    return [detector_dots(title, shown, x_title="coverage", key="risk", note=note)]


def aurocs_by_model(models: Sequence[DetectorFindings]) -> list[Part]:
    """A chart for each goal, the models as series."""
    parts: list[Part] = []
    order = list(dict.fromkeys(detector for model in models for detector in model.detectors))
    for goal, name in GOALS.items():
        known = [one for model in models[:MOST_SERIES] if (standing := model.main(goal)) for one in standing.aurocs]
        if known:
            ordered = sorted(known, key=lambda one: order.index(detector_of(one)))
            parts.append(
                detector_dots(
                    f"{name}: AUROC by detector",
                    ordered,
                    x_title="AUROC",
                    key="model",
                    series=[str(one.about.get("model", "")) for one in ordered],
                    note=CHANCE_LINE,
                    reference=CHANCE,
                    ends=auroc_ends(ordered),
                )
            )
    return parts


def beside_published(found: DetectorFindings) -> list[Part]:
    """For each goal the detectors that there are published numbers of."""
    charts_of_goals = [_beside_published(found, goal) for goal in GOALS]
    return [chart for chart in charts_of_goals if chart is not None]


def _beside_published(found: DetectorFindings, goal: str) -> Chart | None:
    standing, published = found.main(goal), published_aurocs(goal)
    own = [one for one in (standing.aurocs if standing else []) if detector_of(one) in published]
    if not own:
        return None
    dots = []
    for one in own:
        known = next(iter(published[detector_of(one)].items()))
        dots += [_own_dot(one), _published_dot(detector_of(one), *known)]
    title = f"{GOALS[goal]}: compared with published numbers"
    described = "; ".join(f"{dot.label} {dot.series} {dot.figure}" for dot in dots)
    spec = charts.intervals(
        dots,
        x_title="AUROC",
        description=f"{title}. {described}.",
        unit="share",
        reference=CHANCE,
        ends=auroc_ends(own, also=[dot.value for dot in dots]),
    )
    note = (
        f"Published: ImageNet against ImageNet-OOD, other networks and other images than here ({found.dataset} "
        f"against {found.ood}): compare the order of the detectors rather than the numbers."
    )
    return Chart(title, spec, _figures(title, own, published), note, half=True)


def _own_dot(found: Measurement) -> charts.Dot:
    value = figure(found.value, "share")
    detail = f"{value} ({evidence(found)})"
    return charts.Dot(written(detector_of(found)), found.value, found.ends, value, value, detail, HERE)


def _published_dot(detector: str, what: str, value: float) -> charts.Dot:
    printed = figure(value, "share")
    return charts.Dot(written(detector), value, None, printed, printed, f"{printed} ({what}; {SOURCE})", PUBLISHED)


def _figures(title: str, own: Sequence[Measurement], published: dict[str, dict[str, float]]) -> Table:
    sets = list(dict.fromkeys(what for one in own for what in published[detector_of(one)]))
    columns = [Column("Detector"), Column("Here", True), *(Column(what, True, over=f"Published, {SOURCE}") for what in sets)]
    rows = [
        [
            Cell(written(detector_of(one))),
            compact_cell(one),
            *(share_cell(published[detector_of(one)].get(what)) for what in sets),
        ]
        for one in own
    ]
    return Table(title, columns, rows, "Published columns name the ID and the OOD dataset.")


def share_cell(value: float | None) -> Cell:
    """A share without an interval, such as a published one."""
    return Cell("–") if value is None else Cell(figure(value, "share"), order_of(value))


FALSE_POSITIVE_RATES = (0.01, 0.05, 0.1, 0.2, 0.5)
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
        curves = _curves(found, "roc", goal=goal, id=case.id, ood=case.ood)
        if not curves:
            continue
        title = f"{name}: ROC curve"
        note = f"{_whose(curves)} The nearer to the upper left corner, the better; the dashed line is chance."
        x_title, y_title = "false-positive rate", "true-positive rate"
        spec = _lines(curves, found.few(goal), x_title, y_title, title=title, diagonal=True)
        heads = [f"at FPR {figure(rate, 'share')}" for rate in FALSE_POSITIVE_RATES]
        figures = _read_off(title, curves, heads, [_tpr_at(curve) for curve in curves], note="True-positive rate.")
        parts.append(Chart(title, spec, figures, note, half=True))
    return parts


def risk_coverage_chart(found: DetectorFindings) -> list[Part]:
    """Risk-coverage curve: the error among the predictions accepted, lowest OOD score first."""
    case = found.main_case(FAILURE)
    curves = _curves(found, "risk_coverage", id=case.id, ood=case.ood)
    if not curves:
        return []
    title = "Risk-coverage curve"
    note = f"{_whose(curves)} From the image of the lowest OOD score to all of them; new classes count as errors."
    spec = _lines(curves, found.few(FAILURE), "coverage", "risk (error among the covered)", title=title)
    heads = [f"at coverage {figure(coverage, 'share')}" for coverage in COVERAGES]
    read_off = [_risk_at(curve) for curve in curves]
    figures = _read_off(title, curves, heads, read_off, note="Risk.")
    return [Chart(title, spec, figures, note, half=True)]


def _curves(found: DetectorFindings, name: str, **about: str) -> list[Curve]:
    curves = [one for one in curves_named(found.findings, name) if about.items() <= one.about.items() and len(one.x)]
    return sorted(curves, key=lambda one: found.detectors.index(detector_of(one)))


def _whose(curves: Sequence[Curve]) -> str:
    about = curves[0].about
    sides = f"{about.get('id', '')} and {about.get('ood', '')}"
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


def _tpr_at(curve: Curve) -> list[float]:
    """The highest true-positive rate at each false-positive rate."""
    return [
        max((y for x, y in zip(curve.x, curve.y, strict=True) if x <= rate), default=0.0) for rate in FALSE_POSITIVE_RATES
    ]


def _risk_at(curve: Curve) -> list[float]:
    """The risk at the first point that reaches each coverage."""
    return [
        next((y for x, y in zip(curve.x, curve.y, strict=True) if x >= coverage - 1e-9), float("nan"))
        for coverage in COVERAGES
    ]


def _read_off(
    title: str, curves: Sequence[Curve], heads: Sequence[str], values: Sequence[Sequence[float]], *, note: str
) -> Table:
    rows = [[Cell(written(detector_of(curve))), *map(share_cell, row)] for curve, row in zip(curves, values, strict=True)]
    return Table(title, [Column("Detector"), *(Column(head, True) for head in heads)], rows, note)


TITLES = {"correct": "correct predictions", "wrong": "misclassifications", "id": "ID images"}
ANSWERED = (TITLES["correct"], TITLES["wrong"])
BY_ANSWER = "score_distribution_by_answer"
MOST_PANELS = 12
"""Covariate-shifted datasets drawn; the curves of all are in the results."""
REFERENCES = ("correct", "id")
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
    """The same of shifted images by whether the prediction is correct: a panel for each dataset, new classes beside."""
    parts = []
    for detector in found.two():
        curves = [one for one in curves_named(found.findings, BY_ANSWER) if detector_of(one) == detector]
        sets = list(dict.fromkeys(str(one.about.get("group")) for one in curves))[:MOST_PANELS]
        if sets:
            shapes = [one for one in curves_named(found.findings, "score_distribution") if detector_of(one) == detector]
            new = next((one for one in shapes if one.about.get("group") in found.ood_sets), None)
            parts.append(_answered_panels(detector, [one for one in curves if one.about.get("group") in sets], new))
    title = "OOD scores of covariate-shifted images, by correctness"
    return [Folded(title, parts)] if parts else []


def _answered_panels(detector: str, curves: Sequence[Curve], new: Curve | None) -> Panels:
    title = f"OOD scores of {written(detector)} on covariate-shifted images"
    top = max(y for curve in [*curves, *([new] if new else [])] for y in curve.y)
    by_set: dict[str, list[Curve]] = {}
    for curve in curves:
        by_set.setdefault(str(curve.about.get("group")), []).append(curve)
    panels = []
    for name, both in by_set.items():
        told = ", ".join(f"{count(one.images)} {_answered(one)}" for one in both)
        series = [(_answered(one), one) for one in both]
        panels.append(Panel(f"{name} ({told})", stepped(series, ANSWERED, top, f"{title}: {name}.", behind=new)))
    legend = legend_of(ANSWERED)
    if new:
        legend.append(LegendEntry(f"{_title(new)}, for comparison", "var(--muted)", " ".join(map(str, DASHES[1]))))
    note = "Correct covariate-shifted images that score like new classes: the detector responds to style."
    figures = figures_of(title, "OOD score", curves, [f"{_title(one)}: {_answered(one)}" for one in curves])
    return Panels(title, panels, legend, figures, note)


def _answered(curve: Curve) -> str:
    return TITLES[str(curve.about.get("answered", "correct"))]


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
    x, y = _axes(series[0][1], top, ticks)
    colour = {"color": {**by_series(names, COLOURS), "legend": None}}
    tooltip = [{"field": "series"}, {"field": "x", "format": ".3g"}, {"field": "tip", "title": "share of images"}]
    rows = [{**row, "series": name} for name, curve in series for row in _steps(curve)]
    area = {"type": "area", "interpolate": "step", "opacity": 0.3, "line": {"strokeWidth": 1.6}}
    return {
        **start(description, rows),
        "height": PANEL_HEIGHT,
        "layer": [
            {"mark": area, "encoding": {"x": x, "y": {**y, "stack": None}, "tooltip": tooltip, **colour}},
            *_dashed(behind, x, {**y, "stack": None}, strokeWidth=1.6, color="gray"),
        ],
    }


def _axes(curve: Curve, top: float, ticks: Mapping[str, Any] | None = None) -> tuple[Spec, Spec]:
    """Axes of a small drawing: the bins, and shares up to the highest of all drawings."""
    bins = {"domain": [curve.x[0], curve.x[-1]], "nice": False}
    x = channel("x", "", bins, {"grid": False, "tickCount": 3, **(ticks or {})})
    y = channel("y", "", {"domain": [0, top], "nice": True}, {**PERCENT, "tickCount": 2})
    for axis in (x["axis"], y["axis"]):
        axis.update({"title": None, "labelFontSize": 11})
    return x, y


def _dashed(curve: Curve | None, x: Spec, y: Spec, **look: Any) -> list[Spec]:
    """A distribution to compare with, where there is one."""
    line = {"type": "line", "interpolate": "step", "strokeDash": DASHES[1], **look}
    return [{"data": {"values": _steps(curve)}, "mark": line, "encoding": {"x": x, "y": y}}] if curve else []


def legend_of(names: Sequence[str]) -> list[LegendEntry]:
    """How `stepped` draws each series."""
    return [LegendEntry(name, COLOURS[place], "1 0") for place, name in enumerate(names)]


def _panels(detector: str, curves: Sequence[Curve]) -> Panels:
    title = f"OOD scores of {written(detector)}"
    reference = next((curve for name in REFERENCES for curve in curves if curve.about.get("group") == name), None)
    top = max((y for curve in curves for y in curve.y), default=1.0)
    panels = [
        Panel(f"{_title(curve)} ({count(curve.images)})", _shape(curve, reference, top, f"{title}: {_title(curve)}."))
        for curve in curves
    ]
    legend = [LegendEntry("the images in a panel's title", COLOURS[1], "1 0")]
    if reference:
        legend.append(LegendEntry(f"{_title(reference)}, for comparison", COLOURS[0], " ".join(map(str, DASHES[1]))))
    note = "Farther right is a higher OOD score. Overlap with the dashed curve: not separable."
    return Panels(title, panels, legend, figures_of(title, "OOD score", curves, list(map(_title, curves))), note)


def _title(curve: Curve) -> str:
    group = str(curve.about.get("group", ""))
    return TITLES.get(group, group)


def _shape(curve: Curve, reference: Curve | None, top: float, description: str) -> Spec:
    x, y = _axes(curve, top)
    itself = reference is None or reference.about == curve.about
    area = {"type": "area", "interpolate": "step", "color": COLOURS[0 if itself and reference else 1], "opacity": 0.55}
    tooltip = [{"field": "x", "title": "OOD score", "format": ".4g"}, {"field": "tip", "title": "share of images"}]
    return {
        **start(f"{description} {images(curve.images)}.", _steps(curve)),
        "height": PANEL_HEIGHT,
        "layer": [
            {"mark": area, "encoding": {"x": x, "y": y, "tooltip": tooltip}},
            *_dashed(None if itself else reference, x, y, color=COLOURS[0], strokeWidth=1.8),
        ],
    }


def _steps(curve: Curve) -> list[Spec]:
    return [
        {"x": round(x, 5), "y": finite(round(y, 5)), "tip": figure(y, "share")}
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def figures_of(title: str, across: str, curves: Sequence[Curve], names: Sequence[str]) -> Table:
    """A row for each bin, a column for each distribution; their bins are the same."""
    columns = [Column(across, True), *(Column(name, True) for name in names)]
    rows = [
        [
            Cell(f"{score:.4g}".replace("-", "−"), score),
            *(share_cell(curve.y[place]) for curve in curves),
        ]
        for place, score in enumerate(curves[0].x)
    ]
    return Table(title, columns, rows)
