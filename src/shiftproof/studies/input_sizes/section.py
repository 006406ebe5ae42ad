"""The report's section on input sizes: accuracy by size of the input, with paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, figure
from shiftproof.reports.charts import NARROW, PERCENT, Spec, banded_lines, channel, curve_rows
from shiftproof.reports.page import Page, curves_named, grouped, in_columns, model_of, models_of, named, parts_of_each_set
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, curve_table, number_cells
from shiftproof.reports.words import kept_together, opened
from shiftproof.studies.objects.section import published_objects
from shiftproof.types import Curve, Finding, Measurement

BY_SIZE = ("input_size_accuracy", "input_size_difference", "input_size_p")
NAMES = frozenset({*BY_SIZE, "best_input_size", "input_size_scale_accuracy", "input_size_curve"})


def draw_input_sizes(findings: Sequence[Finding], page: Page) -> Section:
    """The best size and accuracy by size; then paired differences, and accuracy by the size of the objects."""
    return Section(
        "input-sizes",
        "Input sizes",
        "Accuracy of the same model on the same images at other input sizes.",
        [*parts_of_each_set(findings, _details), *published_objects("imagenet_a_detection_models")],
        parts_of_each_set(findings, _main),
        input_size_headlines(page),
    )


def _main(findings: Sequence[Finding]) -> list[Part]:
    curves = curves_named(findings, "input_size_curve")
    return [_chart(curves)] if curves else []


def _details(findings: Sequence[Finding]) -> list[Part]:
    by_size = [one for name in BY_SIZE for one in named(findings, name)]
    scales = named(findings, "input_size_scale_accuracy")
    return [
        *in_columns({model: [_size_table(some, by_size)] for model, some in grouped(by_size, model_of).items()}),
        *in_columns({model: [_scale_table(some, scales)] for model, some in grouped(scales, model_of).items()}),
    ]


def _chart(curves: Sequence[Curve]) -> Chart:
    title, names = "Accuracy by input size", [model_of(curve) for curve in curves]
    sides = [side for curve in curves for side in curve.x]
    x = channel("x", curves[0].x_label, {"domain": [min(sides), max(sides)], "nice": False})
    values = sorted(set(map(round, sides)))
    x["axis"] |= {"values": values, "tickCount": {"expr": f"{NARROW} ? 4 : 10"}, "labelOverlap": True}
    y = channel("y", curves[0].y_label, {"zero": False, "nice": True}, PERCENT)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]
    spec = banded_lines(rows, names, x, y, description=f"{title}: {', '.join(names)}.")
    return Chart(
        title,
        spec,
        curve_table(title, curves, names),
        "The band is the 95 % CI. The field of view is the same at every size.",
    )


def _rows(curve: Curve, name: str) -> list[Spec]:
    return [{**row, "tip": f"{figure(row['y'], 'share')} of {count(curve.images)}"} for row in curve_rows(curve, name)]


def _size_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each size, a column for each number."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    rows: dict[str | int, dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault(one.about["input_size"], {})[one.metric] = one
    versus = dict.fromkeys(_size(one.about["versus"]) for one in found if "versus" in one.about)
    own = f" The model's own size is {', '.join(versus)}." if versus else ""
    return Table(
        f"Size by size{whose}",
        [Column("Input size", True), *(Column(metric_info(name).title, True) for name in BY_SIZE), Column("Images", True)],
        [
            [_side(side, place), *(compact_cell(numbers.get(name)) for name in BY_SIZE), _images(numbers[BY_SIZE[0]])]
            for place, (side, numbers) in enumerate(rows.items())
        ],
        f"Differences are paired by image.{own}",
    )


def _scale_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each input size, a column for each scale factor."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    factors = list(dict.fromkeys(str(one.about["scale_factor"]) for one in found))
    rows: dict[str | int, dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault(one.about["input_size"], {})[str(one.about["scale_factor"])] = one
    return Table(
        f"By the size of the largest object{whose}",
        [
            Column("Input size", True),
            *(Column(factor, True, over="Scale factor of the largest object") for factor in factors),
        ],
        [
            [_side(side, place), *(compact_cell(numbers.get(factor)) for factor in factors)]
            for place, (side, numbers) in enumerate(rows.items())
        ],
        " · ".join(f"{factor}: {count(one.images)} images" for factor, one in next(iter(rows.values())).items()),
    )


def _images(found: Measurement) -> Cell:
    return number_cells(found)[-1]


def _side(size: str | int, place: int) -> Cell:
    """A size, ordered by its place: studies give the smallest first."""
    return Cell(_size(size), place)


def _size(size: str | int) -> str:
    """The side of a square, or height and width.

    >>> _size(224), _size("600 x 800")
    ('224 × 224', '600 × 800')
    """
    return f"{size} × {size}" if isinstance(size, int) else size.replace("x", "×")


def input_size_headlines(page: Page) -> list[str]:
    """The input size of the highest accuracy of each model, in a sentence."""
    found = named(page.results.measurements, "best_input_size")
    return [kept_together(best_size(one, page)) for one in found if math.isfinite(one.value)]


def best_size(found: Measurement, page: Page) -> str:
    """The best input size of one model, and whether its lead is significant."""
    size = _size(found.convention["size"])
    return opened(page.subject(found.about), f"Accuracy is highest at {size}: {found.convention['best']}.")


SECTION = SectionMaker(NAMES, draw_input_sizes, headlines=input_size_headlines)
