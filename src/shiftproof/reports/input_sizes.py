"""How large the models need their images."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.banded_lines import banded_lines
from shiftproof.reports.by_model import choices
from shiftproof.reports.charts import NARROW, PERCENT, Spec, channel, curve_rows
from shiftproof.reports.object_sentences import best_size
from shiftproof.reports.page import Page, curves_named, model_of, models_of, named, parts_of_each_set
from shiftproof.reports.parts import Cell, Chart, Column, Part, Prose, Section, Table
from shiftproof.reports.published_objects import published_objects
from shiftproof.reports.tables import compact_cell, curve_table, number_cells
from shiftproof.reports.words import count, figure, kept_together
from shiftproof.types import Curve, Finding, Measurement

BY_SIZE = ("input_size_accuracy", "input_size_difference", "input_size_p")
NAMES = frozenset({*BY_SIZE, "best_input_size", "input_size_scale_accuracy", "input_size_curve"})


def draw_input_sizes(findings: Sequence[Finding], page: Page) -> Section:
    """The best size, accuracy by size, the figures with paired differences, and by the size of the objects."""
    parts = parts_of_each_set(findings, lambda found: _parts(found, page))
    lead = "The same images given to the same model in other sizes: how much detail does it need?"
    return Section("input-sizes", "Input sizes", lead, [*parts, *published_objects("imagenet_a_detection_models")])


def _parts(findings: Sequence[Finding], page: Page) -> list[Part]:
    curves, best = curves_named(findings, "input_size_curve"), named(findings, "best_input_size")
    by_size = [one for name in BY_SIZE for one in named(findings, name)]
    scales = named(findings, "input_size_scale_accuracy")
    return [
        *([Prose([kept_together(best_size(one, page)) for one in best])] if best else []),
        *([_chart(curves)] if curves else []),
        *(_size_table([one for one in by_size if model_of(one) == model], by_size) for model in models_of(by_size)),
        *choices("How these numbers were made", by_size),
        *(_scale_table([one for one in scales if model_of(one) == model], scales) for model in models_of(scales)),
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
        "The band is the interval. The model sees the same part of each image at every size.",
    )


def _rows(curve: Curve, name: str) -> list[Spec]:
    return [{**row, "tip": f"{figure(row['y'], 'share')} of {count(curve.images)}"} for row in curve_rows(curve, name)]


def _size_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each size, a column for each number."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    rows: dict[str | int, dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault(one.about["input_size"], {})[one.metric] = one
    versus = dict.fromkeys(_side(one.about["versus"]).text for one in found if "versus" in one.about)
    own = f" The model's own size is {', '.join(versus)}." if versus else ""
    return Table(
        f"Size by size{whose}",
        [Column("Input size", True), *(Column(meaning_of(name).title, True) for name in BY_SIZE), Column("Images", True)],
        [
            [_side(side), *(compact_cell(numbers.get(name)) for name in BY_SIZE), number_cells(numbers[BY_SIZE[0]])[-1]]
            for side, numbers in rows.items()
        ],
        f"Differences are taken image by image.{own}",
    )


def _scale_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each size of input, a column for each size of object."""
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
        [[_side(side), *(compact_cell(numbers.get(factor)) for factor in factors)] for side, numbers in rows.items()],
        " · ".join(f"{factor}: {count(one.images)} images" for factor, one in next(iter(rows.values())).items()),
    )


def _side(size: str | int) -> Cell:
    """A size as a study tells it: the side of a square, or height and width; ordered by its pixels."""
    height, _, width = str(size).partition(" x ")
    return Cell(f"{height} × {width or height}", int(height) * int(width or height))
