"""The section of studies that have none of their own: a table for every metric, lines for every curve, every gallery."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports import charts
from shiftproof.reports.page import Page, curves_named, galleries_named, named
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.tables import curve_table, measurement_table, telling_keys
from shiftproof.reports.words import Unit, count, evidence, figure, images, metric_of
from shiftproof.types import Curve, Finding, Gallery, Measurement

MOST_DOTS = 30
"""More rows than this are read better in a table alone."""


def draw_rest(findings: Sequence[Finding], page: Page) -> Section:
    """Whatever no other section has asked for."""
    metrics = dict.fromkeys(found.metric for found in findings if isinstance(found, Measurement))
    curves = dict.fromkeys(found.name for found in findings if isinstance(found, Curve))
    galleries = dict.fromkeys(found.name for found in findings if isinstance(found, Gallery))
    parts: list[Part] = []
    for name in metrics:
        parts += metric_parts(named(findings, name))
    for name in curves:
        parts += curve_parts(curves_named(findings, name), page, title=metric_of(name).title)
    for name in galleries:
        parts += [page.pictures(gallery) for gallery in galleries_named(findings, name)]
    return Section("more", "More measurements", "", parts)


def metric_parts(found: Sequence[Measurement]) -> list[Part]:
    """A dot-and-interval chart where there are few enough rows, and the table."""
    title = metric_of(found[0].metric).title
    if not 1 < len(found) <= MOST_DOTS:
        return [measurement_table(title, found, value_title=title)]
    chart = dot_chart(title, found, x_title=title.lower())
    return [chart, measurement_table(f"{title}: the figures", found, value_title=title, folded=True)]


def dot_chart(
    title: str,
    found: Sequence[Measurement],
    *,
    x_title: str,
    keys: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    note: str = "",
    half: bool = False,
) -> Chart:
    """Each measurement of one metric as a dot with its interval, labelled by what tells it apart."""
    unit = metric_of(found[0].metric).unit
    if labels is None:
        keys = telling_keys(found) if keys is None else keys
        labels = [" · ".join(str(one.about[key]) for key in keys if key in one.about) for one in found]
    dots = [
        charts.Dot(label, one.value, one.interval, _beside(one, unit), _detail(one, unit))
        for label, one in zip(labels, found, strict=True)
    ]
    described = "; ".join(f"{dot.label} {dot.text}" for dot in dots)
    spec = charts.intervals(dots, x_title=x_title, description=f"{title}: {described}.", unit=unit)
    return Chart(title, spec, note, half)


def _beside(found: Measurement, unit: Unit) -> str:
    return f"{figure(found.value, unit)} of {count(found.images)}" if unit == "share" else figure(found.value, unit)


def _detail(found: Measurement, unit: Unit) -> str:
    return f"{figure(found.value, unit)} ({evidence(found)})"


def curve_parts(curves: Sequence[Curve], page: Page, *, title: str) -> list[Part]:
    """One chart of all curves that share their axes, and the points as a table."""
    names = [page.label(curve.about) or title for curve in curves]
    spec = charts.lines(curves, names, description=f"{title}: {curves[0].y_label} against {curves[0].x_label}.")
    behind = ", ".join(f"{name}: {images(curve.images)}" for name, curve in zip(names, curves, strict=True))
    return [Chart(title, spec, note=behind), curve_table(f"{title}: the figures", curves, names)]
