"""AUROC by detector as dots with intervals, beside the baseline's and beside published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports import charts
from shiftproof.reports.detector_findings import BLIND, FAILURE, GOALS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.published_detectors import SOURCE, published_aurocs
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import compact_cell, measurement_table, order_of
from shiftproof.reports.words import evidence, figure, kept_together
from shiftproof.types import Measurement

BLIND_LINE = "The dashed line is a blind detector's 50 %."
MOST_SERIES = len(charts.SHAPES)
HERE, PUBLISHED = "here", f"published ({SOURCE})"


def auroc_ends(found: Iterable[Measurement], *, also: Iterable[float] = ()) -> tuple[float, float]:
    """From a round figure below the lowest interval, at most 50 %, to 100 %."""
    values = [end for one in found for end in (one.value, *(one.interval or ()))]
    lowest = min([BLIND, *(value for value in [*values, *also] if math.isfinite(value))])
    return max(0.0, math.floor(lowest * 10 - 0.2) / 10), 1.0


def aurocs_by_goal(found: DetectorFindings) -> list[Part]:
    """Both goals of one model: unchanged images against everything foreign."""
    shown = [one for goal in GOALS if (standing := found.main(goal)) for one in standing.aurocs]
    if not shown:
        return []
    ordered = sorted(shown, key=lambda one: found.detectors.index(detector_of(one)))
    goals = [GOALS.get(str(one.about.get("goal")), "") for one in ordered]
    title = "How well each detector separates"
    return [
        dot_chart(
            title,
            ordered,
            measurement_table(title, ordered, value_title="AUROC", keys=["detector", "goal"]),
            x_title="AUROC",
            labels=[written(detector_of(one)) for one in ordered],
            series=goals if len(set(goals)) > 1 else None,
            note=f"{set_title(found.image_set)} against {set_title(found.outside)}. {BLIND_LINE}",
            reference=BLIND,
            ends=auroc_ends(ordered),
            half=True,
        )
    ]


def lead_over_baseline(found: DetectorFindings) -> list[Part]:
    """How far each detector is ahead of the baseline or behind it, by goal."""
    cases = [found.main_case(goal) for goal in GOALS]
    shown = [
        one
        for case in cases
        for one in found.numbers("auroc_difference", **case._asdict(), versus=found.baseline)
        if math.isfinite(one.value)
    ]
    if not shown:
        return []
    ordered = sorted(shown, key=lambda one: found.detectors.index(detector_of(one)))
    goals = [GOALS.get(str(one.about.get("goal")), "") for one in ordered]
    title = f"Ahead of {written(found.baseline)}, or behind it"
    return [
        dot_chart(
            title,
            ordered,
            measurement_table(title, ordered, value_title=meaning_of("auroc_difference").title, keys=["detector", "goal"]),
            x_title="points of AUROC",
            labels=[written(detector_of(one)) for one in ordered],
            series=goals if len(set(goals)) > 1 else None,
            note="Right of zero a detector is ahead; an interval that covers zero settles nothing.",
            half=True,
        )
    ]


def answered_at_risk(found: DetectorFindings) -> list[Part]:
    """How much could be answered if only so many of the answers may be wrong."""
    case = found.main_case(FAILURE)
    shown = found.numbers("coverage_at_risk", inside=case.inside, outside=case.outside)
    if not shown:
        return []
    ordered = sorted(shown, key=lambda one: -one.value)
    title = kept_together(f"Answered when {shown[0].about.get('risk', 'a few')} may be wrong")
    return [
        dot_chart(
            title,
            ordered,
            measurement_table(title, ordered, value_title=meaning_of("coverage_at_risk").title, keys=["detector", "risk"]),
            x_title="share of images answered",
            labels=[written(detector_of(one)) for one in ordered],
            note=f"{set_title(found.image_set)} and {set_title(found.outside)} together; new classes count as wrong.",
            half=True,
        )
    ]


def aurocs_by_model(models: Sequence[DetectorFindings]) -> list[Part]:
    """A chart for each goal, the models as series."""
    parts: list[Part] = []
    order = list(dict.fromkeys(detector for model in models for detector in model.detectors))
    for goal, name in GOALS.items():
        known = [one for model in models[:MOST_SERIES] if (standing := model.main(goal)) for one in standing.aurocs]
        if not known:
            continue
        ordered = sorted(known, key=lambda one: order.index(detector_of(one)))
        title = f"{name}: how well each detector separates"
        parts.append(
            dot_chart(
                title,
                ordered,
                measurement_table(title, ordered, value_title="AUROC", keys=["detector", "model"]),
                x_title="AUROC",
                labels=[written(detector_of(one)) for one in ordered],
                series=[str(one.about.get("model", "")) for one in ordered],
                note=BLIND_LINE,
                reference=BLIND,
                ends=auroc_ends(ordered),
                half=True,
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
    title = f"{GOALS[goal]}: beside published numbers"
    described = "; ".join(f"{dot.label} {dot.series} {dot.figure}" for dot in dots)
    spec = charts.intervals(
        dots,
        x_title="AUROC",
        description=f"{title}. {described}.",
        unit="share",
        reference=BLIND,
        ends=auroc_ends(own, also=[dot.value for dot in dots]),
    )
    note = (
        f"Published: ImageNet against ImageNet-OOD, other networks and other images than here ({set_title(found.image_set)} "
        f"against {set_title(found.outside)}): compare the order of the detectors rather than the numbers."
    )
    return Chart(title, spec, _figures(title, own, published), note, half=True)


def _own_dot(found: Measurement) -> charts.Dot:
    value = figure(found.value, "share")
    detail = f"{value} ({evidence(found)})"
    return charts.Dot(written(detector_of(found)), found.value, found.interval, value, value, detail, HERE)


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
            *(_published_cell(published[detector_of(one)].get(what)) for what in sets),
        ]
        for one in own
    ]
    return Table(title, columns, rows, "Published columns name the inside and the outside set.")


def _published_cell(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(figure(value, "share"), order_of(value))
