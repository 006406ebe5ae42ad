"""Whether the models go by an object or by its background, and how large they need it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.boxed_pictures import boxed_pictures
from shiftproof.reports.by_model import choices
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import (
    Page,
    curves_named,
    galleries_named,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published_objects import published_objects
from shiftproof.reports.share_histograms import share_histograms
from shiftproof.reports.tables import compact_cell, curve_table, measurement_table, number_cells, order_of
from shiftproof.reports.words import count, figure
from shiftproof.types import Curve, Finding, Measurement

SCALED = ("scaled_crop_accuracy", "scaled_crop_total")
GALLERIES = ("right_only_enlarged", "right_only_in_image")
NAMES = frozenset(
    {
        "object_accuracy",
        "object_difference",
        "object_difference_p",
        "scale_factor_accuracy",
        *SCALED,
        "class_object_share",
        "object_share_overlap",
        "object_shares",
        *GALLERIES,
    }
)
LOOKS = {
    "image": "in the whole image",
    "crop": "cut out",
    "alone": "alone, background removed",
    "enlarged": "alone and enlarged",
}
"""Looks of an object, as a report calls them."""

PAIRS = "Each object in its image, and beside that alone and enlarged."
ALL = "all"
CROPS = Column("Crops", True)
MOST_OPEN = 12
"""Rows of classes; a longer table is folded."""


def draw_objects(findings: Sequence[Finding], page: Page) -> Section:
    """The looks, what each change does, objects by their size, how much of the image they fill, and examples."""
    parts = parts_of_each_set(findings, lambda found: _parts(found, page))
    lead = "The same objects in their photos, without background, and enlarged: what does the answer hang on?"
    published = published_objects("imagenet_a_crop_models", "imagenet_a_crop_scale_factors", "imagenet_a_plus_models")
    return Section("objects", "Object and background", lead, [*parts, *published])


def _parts(findings: Sequence[Finding], page: Page) -> list[Part]:
    accuracies, effects = named(findings, "object_accuracy"), named(findings, "object_difference")
    scales = named(findings, "scale_factor_accuracy")
    scaled = [one for name in SCALED for one in named(findings, name)]
    return [
        *([_looks_chart(accuracies)] if accuracies else []),
        *([_effects_chart(effects, named(findings, "object_difference_p"))] if effects else []),
        *choices("How these numbers were made", [*accuracies, *effects, *scales]),
        *(_scale_table([one for one in scales if model_of(one) == model], scales) for model in models_of(scales)),
        *(_scaled_table([one for one in scaled if model_of(one) == model], scaled) for model in models_of(scaled)),
        *choices("How crops were shown at their scale", scaled),
        *_share_parts(findings),
        *(boxed_pictures(one, page, abreast=2, note=PAIRS) for name in GALLERIES for one in galleries_named(findings, name)),
    ]


def _looks_chart(found: Sequence[Measurement]) -> Chart:
    title = "Named right in each look"
    return dot_chart(
        title,
        found,
        _named_table(title, found, "look", value_title=meaning_of("object_accuracy").title),
        x_title="share of the objects",
        labels=[LOOKS.get(str(one.about["look"]), str(one.about["look"])) for one in found],
        series=_series(found),
        note="Alone: all but the object is a neutral grey, and it keeps its size. Enlarged: as large as its image allows.",
    )


def _effects_chart(found: Sequence[Measurement], chances: Sequence[Measurement]) -> Chart:
    title = "What each change does, object by object"
    table = _named_table(title, found, "effect", value_title=meaning_of("object_difference").title)
    p_values = {(model_of(one), one.about["effect"]): one.value for one in chances}
    tested = [
        [*row, _chance(p_values.get((model_of(one), one.about["effect"])))]
        for row, one in zip(table.rows, found, strict=True)
    ]
    figures = dataclasses.replace(table, columns=[*table.columns, Column("p", True)], rows=tested)
    note = "Right of zero more objects are named right after the change. An interval that covers zero settles nothing."
    labels = [str(one.about["effect"]) for one in found]
    series = _series(found)
    return dot_chart(title, found, figures, x_title="points of accuracy", labels=labels, series=series, note=note)


def _chance(p_value: float | None) -> Cell:
    return Cell("–") if p_value is None else Cell(figure(p_value, "number"), order_of(p_value))


def _named_table(title: str, found: Sequence[Measurement], key: str, *, value_title: str) -> Table:
    whose = ["model"] if len(models_of(found)) > 1 else []
    columns = [
        *map(_heading, whose),
        _heading(key),
        Column(value_title, True),
        Column("Interval", True),
        Column("Objects", True),
    ]
    rows = [[*(Cell(_said(one, name)) for name in (*whose, key)), *number_cells(one)] for one in found]
    return Table(title, columns, rows)


def _heading(key: str) -> Column:
    return Column(key.capitalize())


def _said(found: Measurement, key: str) -> str:
    value = str(found.about.get(key, ""))
    return LOOKS.get(value, value) if key == "look" else value


def _series(found: Sequence[Measurement]) -> list[str] | None:
    return [model_of(one) for one in found] if len(models_of(found)) > 1 else None


def _scale_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each scale factor, a column for each look."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    looks = list(dict.fromkeys(str(one.about["look"]) for one in found))
    rows: dict[tuple[str, int], dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault((str(one.about["scale_factor"]), int(one.about["kept_at"])), {})[str(one.about["look"])] = one
    return Table(
        f"By scale factor{whose}",
        [
            Column("Scale factor"),
            Column("Fits into", True),
            *(Column(look, True, over="Named right") for look in looks),
            Column("Objects", True),
        ],
        [
            [
                Cell(factor),
                Cell(f"{side} × {side}", side),
                *(compact_cell(numbers.get(look)) for look in looks),
                number_cells(next(iter(numbers.values())))[-1],
            ]
            for (factor, side), numbers in rows.items()
        ],
        "The larger side of the object as a share of the image's, up to the next power of two: with the image scaled to "
        "224 × 224, an object under 1/2 is longer than 56 and at most 112 pixels, and fits into 112 × 112.",
    )


def _scaled_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each scale factor and one for all crops, a column for each side that the factor is multiplied with."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    sides = list(dict.fromkeys(int(one.about["times"]) for one in found))
    rows: dict[str, dict[int, Measurement]] = {}
    for one in found:
        rows.setdefault(str(one.about.get("scale_factor", ALL)), {})[int(one.about["times"])] = one
    return Table(
        f"Crops at their scale{whose}",
        [Column("Scale factor"), *(Column(f"SF × {side}", True, over="Named right at") for side in sides), CROPS],
        [
            [
                Cell(factor),
                *(compact_cell(numbers.get(side)) for side in sides),
                number_cells(next(iter(numbers.values())))[-1],
            ]
            for factor, numbers in rows.items()
        ],
        "Each object cut out and resized to a square of its scale factor (SF) times the side: with 224, an object under 1/2 "
        f"is shown at 112 × 112.{' The last row counts all crops alike.' if ALL in rows else ''}",
    )


def _share_parts(findings: Sequence[Finding]) -> list[Part]:
    """The histogram of all objects, beside that of another set where there is one, and the mean of each class."""
    curves, classes = curves_named(findings, "object_shares"), named(findings, "class_object_share")
    ordered = sorted(classes, key=lambda one: one.value)
    title = meaning_of("class_object_share").title
    by_class = measurement_table(f"{title}: smallest first", ordered, value_title="Mean share", keys=["class"])
    return [
        *([_histogram(curves, named(findings, "object_share_overlap"))] if curves else []),
        *([dataclasses.replace(by_class, folded=len(classes) > MOST_OPEN)] if classes else []),
    ]


def _histogram(curves: Sequence[Curve], overlap: Sequence[Measurement]) -> Chart:
    title = "How much of their images the objects fill"
    names = [f"{curve.about['objects_of']} ({count(curve.images)} objects)" for curve in curves]
    said = "".join(f" The two overlap by {figure(one.value, 'share')}; spread alike it would be all." for one in overlap[:1])
    spec = share_histograms(curves, names, description=f"{title}: {', '.join(names)}.{said}")
    return Chart(title, spec, curve_table(title, curves, names), f"Area of the box over that of the image.{said}")
