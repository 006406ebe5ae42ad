"""Measurements as rows: what each is about, its value, its interval and the images behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.metrics.meanings import Unit, meaning_of
from shiftproof.reports.page import Page, by_subject, name_of
from shiftproof.reports.parts import Cell, Column, Table
from shiftproof.reports.words import cases, count, figure, has_too_few, span
from shiftproof.types import Curve, Finding, Measurement

NUMBER_COLUMNS = (Column("Value", True), Column("95 % CI", True), Column("Images", True))
"""What `number_cells` fills."""


def measurement_table(
    title: str, found: Sequence[Measurement], *, value_title: str, keys: Sequence[str] | None = None, note: str = ""
) -> Table:
    """A row for each measurement; by default a column for every key of `about` that tells rows apart."""
    keys = telling_keys(found) if keys is None else keys
    columns = [*(Column(key_title(key)) for key in keys), Column(value_title, True), *NUMBER_COLUMNS[1:]]
    rows = [[*(Cell(str(one.about.get(key, ""))) for key in keys), *number_cells(one)] for one in found]
    return Table(title, columns, rows, note)


def number_table(title: str, found: Sequence[Measurement], page: Page) -> Table:
    """A row for each measurement under the name of its metric, behind whose it is where the page has several."""
    subjects = [page.subject(one.about) for one in found]
    whose = [Column(page.subject_title)] if any(subjects) else []
    columns = [*whose, Column("Number"), *NUMBER_COLUMNS]
    rows = [
        [*(Cell(subject) for _ in whose), Cell(meaning_of(one.metric).title), *number_cells(one)]
        for subject, one in zip(subjects, found, strict=True)
    ]
    return Table(title, columns, rows)


def number_cells(found: Measurement) -> list[Cell]:
    """Value, interval and image count of one measurement."""
    unit = meaning_of(found.metric).unit
    return [
        Cell(figure(found.value, unit), order_of(found.value)),
        interval_cell(found, unit),
        images_cell(found),
    ]


def interval_cell(found: Measurement, unit: Unit) -> Cell:
    """The confidence interval, or that there are too few cases for one."""
    if has_too_few(found):
        return Cell("too few cases")
    return Cell(span(found.interval, unit), order_of(found.interval[0]) if found.interval else "", bar=_bar(found, unit))


def images_cell(found: Measurement) -> Cell:
    """How many images, and below it how many cases where these are fewer."""
    fewer = found.clusters is not None and found.clusters < found.images
    return Cell(count(found.images), found.images, below=cases(found.clusters or 0) if fewer else "")


def compact_cell(found: Measurement | None) -> Cell:
    """A value with its interval below it, for tables that have a column for each metric."""
    if found is None:
        return Cell("–")
    unit = meaning_of(found.metric).unit
    missing = "too few cases" if has_too_few(found) else ""
    below = span(found.interval, unit) if found.interval else missing
    return Cell(figure(found.value, unit), order_of(found.value), below=below)


def side_by_side(title: str, found: Sequence[Measurement], metrics: Sequence[str], page: Page) -> Table:
    """A row for each model, image set and condition that has any of these numbers, a column for each number."""
    numbers = [Column(meaning_of(metric).title, True) for metric in metrics]
    told = [group for group in by_subject(found).values() if any(name_of(one) in metrics for one in group)]
    rows = [_side_by_side_row(group, metrics, page) for group in told]
    return Table(title, [Column(page.subject_title), *numbers, Column("Images", True)], rows)


def _side_by_side_row(found: Sequence[Finding], metrics: Sequence[str], page: Page) -> list[Cell]:
    numbers = {name_of(one): one for one in found if isinstance(one, Measurement)}
    most = max(one.images for one in numbers.values())
    cells = [compact_cell(numbers.get(metric)) for metric in metrics]
    return [Cell(page.subject(found[0].about) or str(found[0].about.get("model", ""))), *cells, Cell(count(most), most)]


def curve_table(title: str, curves: Sequence[Curve], names: Sequence[str]) -> Table:
    """The points of some curves that share their axes, a row each."""
    axes = [Column(curves[0].x_label, True), Column(curves[0].y_label, True)]
    columns = [Column("Series"), *axes, *NUMBER_COLUMNS[1:]]
    rows = [
        _point_cells(curve, name, place) for curve, name in zip(curves, names, strict=True) for place in range(len(curve.x))
    ]
    return Table(title, columns, rows)


def _point_cells(curve: Curve, name: str, place: int) -> list[Cell]:
    x, y = curve.x[place], curve.y[place]
    bounds = (curve.low[place], curve.high[place]) if curve.low and curve.high else None
    behind = curve.counts[place] if curve.counts else curve.images
    return [
        Cell(name),
        Cell(figure(x, "number"), order_of(x)),
        Cell(figure(y, "number"), order_of(y)),
        Cell(span(bounds, "number"), order_of(bounds[0]) if bounds else ""),
        Cell(count(behind), behind),
    ]


def telling_keys(found: Sequence[Measurement]) -> list[str]:
    """The keys of `about` whose values differ from row to row, in the order they first come; of one row, all of them."""
    keys = dict.fromkeys(key for one in found for key in one.about)
    if len(found) == 1:
        return list(keys)
    return [key for key in keys if len({one.about.get(key) for one in found}) > 1]


def key_title(key: str) -> str:
    """A key of `about` as a heading.

    >>> key_title("image_set")
    'Image set'
    """
    return key.replace("_", " ").capitalize()


def order_of(value: float) -> float | str:
    """What a cell sorts by; unknown values sort last."""
    return value if math.isfinite(value) else ""


def _bar(found: Measurement, unit: Unit) -> tuple[float, float, float] | None:
    if unit != "share" or found.interval is None or not math.isfinite(found.value):
        return None
    low, high = found.interval
    # a few errors, such as ratios to a baseline, exceed 1; the bar ends there, the figure does not
    return max(0.0, low), min(1.0, max(0.0, found.value)), min(1.0, high)
