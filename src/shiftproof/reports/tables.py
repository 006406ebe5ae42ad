"""Measurements as rows: what each is about, its value, its CI and its number of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shiftproof import catalog
from shiftproof.metrics.table import Unit, metric_info
from shiftproof.metrics.wording import clusters, count, evidence, figure, has_too_few, images, span
from shiftproof.reports import charts
from shiftproof.reports.confusion_matrix import confusion_parts
from shiftproof.reports.page import Page, by_subject, curves_named, galleries_named, in_columns, model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.words import in_a_line, spoken
from shiftproof.types import ConfusionMatrix, Curve, Finding, Gallery, Measurement

NUMBER_COLUMNS = (Column("Value", True), Column("95 % CI", True, exact=False), Column("Images", True))
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
    columns = [*whose, Column("Metric"), *NUMBER_COLUMNS]
    rows = [
        [*(Cell(subject) for _ in whose), Cell(metric_info(one.metric).title), *number_cells(one)]
        for subject, one in zip(subjects, found, strict=True)
    ]
    return Table(title, columns, rows)


def number_cells(found: Measurement) -> list[Cell]:
    """Value, CI and image count of one measurement."""
    unit = metric_info(found.metric).unit
    return [
        Cell(figure(found.value, unit), order_of(found.value)),
        interval_cell(found, unit),
        images_cell(found),
    ]


def interval_cell(found: Measurement, unit: Unit) -> Cell:
    """The confidence interval, or that there are too few clusters for one."""
    if has_too_few(found):
        return Cell("too few clusters")
    return Cell(span(found.ends, unit), order_of(found.ends[0]) if found.ends else "", bar=_bar(found, unit))


def images_cell(found: Measurement) -> Cell:
    """How many images, and below it how many clusters where these are fewer."""
    fewer = found.clusters is not None and found.clusters < found.images
    return Cell(count(found.images), found.images, below=clusters(found.clusters or 0) if fewer else "")


def compact_cell(found: Measurement | None) -> Cell:
    """A value with its CI below it, for tables that have a column for each metric."""
    if found is None:
        return Cell("–")
    unit = metric_info(found.metric).unit
    missing = "too few clusters" if has_too_few(found) else ""
    below = span(found.ends, unit) if found.ends else missing
    return Cell(figure(found.value, unit), order_of(found.value), below=below)


def with_column(
    table: Table, title: str, rows: Sequence[Measurement], found: Sequence[Measurement], keys: Sequence[str]
) -> Table:
    """A further column for a table with a row for each of `rows`: what was found for the same keys of `about`."""
    by_keys = {tuple(one.about.get(key) for key in keys): one for one in found}
    if not by_keys:
        return table
    cells = [compact_cell(by_keys.get(tuple(one.about.get(key) for key in keys))) for one in rows]
    wider = [[*row, cell] for row, cell in zip(table.rows, cells, strict=True)]
    return replace(table, columns=[*table.columns, Column(title, True)], rows=wider)


def side_by_side(title: str, found: Sequence[Measurement], metrics: Sequence[str], page: Page) -> Table:
    """A row for each model, dataset and condition that has any of these numbers, a column for each number."""
    numbers = [Column(metric_info(metric).title, True) for metric in metrics]
    told = [group for group in by_subject(found).values() if any(one.metric in metrics for one in group)]
    rows = [
        _metric_cells([page.subject(group[0].about) or model_of(group[0])], {one.metric: one for one in group}, metrics)
        for group in told
    ]
    return Table(title, [Column(page.subject_title), *numbers, Column("Images", True)], rows)


def _metric_cells(heads: Sequence[str], numbers: Mapping[str, Measurement], metrics: Sequence[str]) -> list[Cell]:
    """The heads of a row, a number for each metric, and the most images behind any of them."""
    most = max(one.images for one in numbers.values())
    return [*map(Cell, heads), *(compact_cell(numbers.get(metric)) for metric in metrics), Cell(count(most), most)]


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


TITLES = {
    "id": "ID dataset",
    "ood": "OOD dataset",
    "ood_detector": "OOD detector",
    "output": "Encoding",
    "positive": "Positive class",
    "tpr": "True positive rate",
}


def key_title(key: str) -> str:
    """A key of `about` or of a convention as a heading.

    >>> key_title("dataset")
    'Dataset'
    """
    return TITLES.get(key) or key.replace("_", " ").capitalize()


def order_of(value: float) -> float | str:
    """What a cell sorts by; unknown values sort last."""
    return value if math.isfinite(value) else ""


def _bar(found: Measurement, unit: Unit) -> tuple[float, float, float] | None:
    if unit != "share" or found.ends is None or not math.isfinite(found.value):
        return None
    low, high = found.ends
    # a few errors, such as ratios to a baseline, exceed 1; the bar ends there, the figure does not
    return max(0.0, low), min(1.0, max(0.0, found.value)), min(1.0, high)


MOST_DOTS = 30
"""More rows than this are read better in a table alone."""


def draw_rest(findings: Sequence[Finding], page: Page) -> Section:
    """Whatever no other section has asked for: a table or chart for every metric and curve, and every gallery."""
    metrics = dict.fromkeys(found.metric for found in findings if isinstance(found, Measurement))
    curves = dict.fromkeys(found.name for found in findings if isinstance(found, Curve))
    galleries = dict.fromkeys(found.name for found in findings if isinstance(found, Gallery))
    matrices = [found for found in findings if isinstance(found, ConfusionMatrix)]
    parts = [
        *(metric_part(named(findings, name), page) for name in metrics),
        *(curve_chart(curves_named(findings, name), page) for name in curves),
        *(part for matrix in matrices for part in confusion_parts(matrix)),
        *(page.pictures(gallery) for name in galleries for gallery in galleries_named(findings, name)),
    ]
    return Section("more", "More measurements", "", parts)


def metric_part(found: Sequence[Measurement], page: Page) -> Part:
    """A dot-and-interval chart where there are few enough rows, else a table."""
    title = metric_info(found[0].metric).title
    table = measurement_table(title, found, value_title=title)
    if not 1 < len(found) <= MOST_DOTS:
        return table
    labels, series = _labels_and_series(found, page)
    return dot_chart(title, found, table, x_title=in_a_line(title), labels=labels, series=series)


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
    """Each measurement as a dot with its CI; all are of one unit. Ratios have a `reference`, mostly 1."""
    unit = metric_info(found[0].metric).unit
    dots = [
        charts.Dot(
            label,
            one.value,
            one.ends,
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
    title = metric_info(curves[0].name).title
    names = [page.label(curve.about) or title for curve in curves]
    spec = charts.lines(curves, names, description=f"{title}: {curves[0].y_label} against {curves[0].x_label}.")
    behind = " · ".join(f"{name}: {images(curve.images)}" for name, curve in zip(names, curves, strict=True))
    return Chart(title, spec, curve_table(title, curves, names), behind)


def headline_numbers(title: str, overall: Sequence[Measurement], page: Page) -> list[Part]:
    """The numbers of one model below each other, of several side by side."""
    if len(models_of(overall)) > 1:
        return [side_by_side(title, overall, list(dict.fromkeys(one.metric for one in overall)), page)]
    return [number_table(title, overall, page)] if overall else []


def chart_of_each_model(
    title: str, findings: Sequence[Finding], metric: str, draw: Callable[[Sequence[Finding], str], Chart]
) -> list[Part]:
    """A chart for each model that has this metric; several stand side by side, each named with its model."""
    models = models_of(named(findings, metric))
    several = len(models) > 1
    return in_columns(
        {
            model: [
                draw(
                    [finding for finding in findings if model_of(finding) == model],
                    f"{title}: {model}" if several else title,
                )
            ]
            for model in models
        }
    )


IN_WORDS = {
    ("output", "raw"): "raw: corrupted pixels, not re-encoded",
    ("output", "jpeg85"): "jpeg85: saved as JPEG of quality 85, as the published files were",
    ("picture", "whole"): "whole: the image as stored, resized to the model's input without a crop",
    ("picture", "model-size"): "model-size: the image after the model's own resize and crop",
}


def in_words(choice: str, taken: str) -> str:
    """A convention as a report prints it.

    >>> in_words("picture", "imagenet-224")
    'imagenet-224: shorter side to 256, centre 224'
    """
    if choice == "picture" and taken in catalog.EDITIONS:
        return f"{taken}: {catalog.EDITIONS.load(taken).about}"
    return IN_WORDS.get((choice, taken), taken)


def conventions_of(found: Finding) -> dict[str, str]:
    """Those of a finding, and of its interval."""
    if isinstance(found, Gallery):
        return {}
    told = dict(found.convention)
    if isinstance(found, Measurement):
        told |= {"confidence interval": found.how_sure, "clusters": found.interval.cases if found.interval else ""}
    return {key: value for key, value in told.items() if value}


def bars(
    title: str,
    found: Sequence[Measurement],
    key: str,
    *,
    x_title: str,
    figures: Table | None = None,
    note: str = "",
    reference: float | None = None,
    half: bool = False,
) -> Chart:
    """A row for each value of `about[key]`, the first model's highest on top."""
    models = models_of(found)
    ordered = sorted(found, key=lambda one: (models.index(model_of(one)), -one.value))
    keys = [key, *(["model"] if len(models) > 1 else [])]
    return dot_chart(
        title,
        ordered,
        figures or measurement_table(title, ordered, value_title=metric_info(found[0].metric).title, keys=keys),
        x_title=x_title,
        labels=[spoken(str(one.about.get(key, ""))) for one in ordered],
        series=[model_of(one) for one in ordered] if len(models) > 1 else None,
        note=note,
        reference=reference,
        half=half,
    )


def columns_table(title: str, found: Sequence[Measurement], keys: Sequence[str]) -> Table:
    """A row for each combination of these keys of `about`, a column for each metric."""
    rows: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault(tuple(str(one.about.get(key, "")) for key in keys), {})[one.metric] = one
    metrics = list(dict.fromkeys(one.metric for one in found))
    titles = [Column(metric_info(metric).title, True) for metric in metrics]
    return Table(
        title,
        [*(Column(key_title(key)) for key in keys), *titles, Column("Images", True)],
        [_metric_cells(values, numbers, metrics) for values, numbers in rows.items()],
    )
