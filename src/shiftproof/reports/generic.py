"""The section of studies that have none of their own: a table for every metric, lines for every curve, every gallery."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.meanings import Unit, meaning_of
from shiftproof.reports import charts
from shiftproof.reports.page import Page, curves_named, galleries_named, named
from shiftproof.reports.parts import Chart, Part, Section, Table
from shiftproof.reports.tables import curve_table, measurement_table
from shiftproof.reports.words import count, evidence, figure, images
from shiftproof.types import Curve, Finding, Gallery, Measurement

MOST_DOTS = 30
"""More rows than this are read better in a table alone."""


def draw_rest(findings: Sequence[Finding], page: Page) -> Section:
    """Whatever no other section has asked for."""
    metrics = dict.fromkeys(found.metric for found in findings if isinstance(found, Measurement))
    curves = dict.fromkeys(found.name for found in findings if isinstance(found, Curve))
    galleries = dict.fromkeys(found.name for found in findings if isinstance(found, Gallery))
    parts = [
        *(metric_part(named(findings, name), page) for name in metrics),
        *(curve_chart(curves_named(findings, name), page) for name in curves),
        *(page.pictures(gallery) for name in galleries for gallery in galleries_named(findings, name)),
    ]
    return Section("more", "More measurements", "", parts)


def metric_part(found: Sequence[Measurement], page: Page) -> Part:
    """A dot-and-interval chart where there are few enough rows, else a table."""
    title = meaning_of(found[0].metric).title
    table = measurement_table(title, found, value_title=title)
    if not 1 < len(found) <= MOST_DOTS:
        return table
    labels, series = _labels_and_series(found, page)
    return dot_chart(title, found, table, x_title=title.lower(), labels=labels, series=series)


def _labels_and_series(found: Sequence[Measurement], page: Page) -> tuple[list[str], list[str]]:
    """Subjects as series and the rest as labels, where there are few of the one and any of the other; else all as labels."""
    own = [page.own(one.about) for one in found]
    subjects = [page.subject(one.about) for one in found]
    if all(own) and len(set(subjects)) <= len(charts.SHAPES):
        return own, subjects
    return [page.label(one.about) for one in found], [""] * len(found)


def dot_chart(
    title: str,
    found: Sequence[Measurement],
    figures: Table,
    *,
    x_title: str,
    labels: Sequence[str],
    series: Sequence[str] | None = None,
    note: str = "",
    reference: float | None = None,
    ends: tuple[float, float] | None = None,
    half: bool = False,
) -> Chart:
    """Each measurement as a dot with its interval; all are of one unit. Ratios have a `reference`, mostly 1."""
    unit = meaning_of(found[0].metric).unit
    dots = [
        charts.Dot(
            label,
            one.value,
            one.interval,
            figure(one.value, unit),
            _beside(one, unit) if reference is None else figure(one.value, unit),
            _detail(one, unit),
            group,
        )
        for label, one, group in zip(labels, found, series or [""] * len(found), strict=True)
    ]
    described = "; ".join(" ".join(filter(None, [dot.label, dot.series, dot.text])) for dot in dots)
    description = f"{title}: {described}."
    spec = charts.intervals(dots, x_title=x_title, description=description, unit=unit, reference=reference, ends=ends)
    return Chart(title, spec, figures, note, half)


def _beside(found: Measurement, unit: Unit) -> str:
    return f"{figure(found.value, unit)} of {count(found.images)}" if unit == "share" else figure(found.value, unit)


def _detail(found: Measurement, unit: Unit) -> str:
    return f"{figure(found.value, unit)} ({evidence(found)})"


def curve_chart(curves: Sequence[Curve], page: Page) -> Chart:
    """All curves of one name on common axes."""
    title = meaning_of(curves[0].name).title
    names = [page.label(curve.about) or title for curve in curves]
    spec = charts.lines(curves, names, description=f"{title}: {curves[0].y_label} against {curves[0].x_label}.")
    behind = " · ".join(f"{name}: {images(curve.images)}" for name, curve in zip(names, curves, strict=True))
    return Chart(title, spec, curve_table(title, curves, names), behind)
