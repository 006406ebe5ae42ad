"""The report's section on object and background: accuracy by view, scale factor and object proportion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure
from shiftproof.reference import load_table, source_of
from shiftproof.reports.charts import COLOURS, DASHES, PERCENT, SHARE, Spec, by_series, channel, start
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    grouped,
    in_columns,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import (
    compact_cell,
    curve_table,
    dot_chart,
    measurement_table,
    number_cells,
    order_of,
)
from shiftproof.reports.words import of_hundred, opened
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
VIEWS = {
    "image": "in the whole image",
    "crop": "cropped",
    "alone": "alone, background removed",
    "enlarged": "alone and enlarged",
}
"""Titles of the views."""
TOLD = {"alone": "without their background", "enlarged": "enlarged without it"}
"""Views as the headline names them."""
PAIRS = "Each object in its image, beside it without background and enlarged."
ALL = "all"
CROPS = Column("Crops", True)
MOST_OPEN = 12
"""Rows of classes; a longer table is folded."""
TABLES = {
    "imagenet_a_crop_models": (
        "Published: ImageNet-A cropped to its objects",
        {"imagenet_a": "Whole photo", "imagenet_a_crop": "Cropped"},
    ),
    "imagenet_a_crop_scale_factors": (
        "Published: ImageNet-A cropped to its objects, each crop at its scale",
        {"accuracy_at_sf_x_224": "At SF × 224", "accuracy_at_sf_x_448": "At SF × 448"},
    ),
    "imagenet_a_plus_models": (
        "Published: ImageNet-A-Plus",
        {"imagenet_a": "ImageNet-A", "imagenet_a_plus": "ImageNet-A-Plus"},
    ),
    "imagenet_a_detection_models": (
        "Published: larger inputs, and object detectors as classifiers, on ImageNet-A",
        {"imagenet_a_accuracy": "ImageNet-A"},
    ),
}
"""Published tables: titles, and the columns that hold accuracies."""
HEADS = {"scale_factor": "Scale factor"}
"""Titles of first columns that hold no model."""


def draw_objects(findings: Sequence[Finding], page: Page) -> Section:
    """Accuracy by view, paired effects, scale factors, object proportions, and examples."""
    published = published_objects("imagenet_a_crop_models", "imagenet_a_crop_scale_factors", "imagenet_a_plus_models")
    return Section(
        "objects",
        "Object and background",
        "Accuracy on the same objects in their image, without background, and enlarged.",
        [*parts_of_each_set(findings, lambda found: _details(found, page)), *published],
        parts_of_each_set(findings, _main),
        object_headlines(page),
    )


def _main(findings: Sequence[Finding]) -> list[Part]:
    accuracies = named(findings, "object_accuracy")
    return [_views_chart(accuracies)] if accuracies else []


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    effects = named(findings, "object_difference")
    scales = named(findings, "scale_factor_accuracy")
    scaled = [one for name in SCALED for one in named(findings, name)]
    return [
        *([_effects_chart(effects, named(findings, "object_difference_p"))] if effects else []),
        *in_columns({model: [_scale_table(some, scales)] for model, some in grouped(scales, model_of).items()}),
        *in_columns({model: [_scaled_table(some, scaled)] for model, some in grouped(scaled, model_of).items()}),
        *_share_parts(findings),
        *(boxed_pictures(one, page, abreast=2, note=PAIRS) for name in GALLERIES for one in galleries_named(findings, name)),
    ]


def _views_chart(found: Sequence[Measurement]) -> Chart:
    title = "Accuracy in each view"
    return dot_chart(
        title,
        found,
        _named_table(title, found, "view", value_title=metric_info("object_accuracy").title),
        x_title="accuracy",
        labels=[VIEWS.get(str(one.about["view"]), str(one.about["view"])) for one in found],
        series=_series(found),
        note="Alone: the background is a neutral grey, the object keeps its size. Enlarged: as large as its image allows.",
    )


def _effects_chart(found: Sequence[Measurement], chances: Sequence[Measurement]) -> Chart:
    title = "Paired effect of each view"
    table = _named_table(title, found, "effect", value_title=metric_info("object_difference").title)
    p_values = {(model_of(one), one.about["effect"]): one.value for one in chances}
    tested = [
        [*row, _chance(p_values.get((model_of(one), one.about["effect"])))]
        for row, one in zip(table.rows, found, strict=True)
    ]
    figures = dataclasses.replace(table, columns=[*table.columns, Column("p", True)], rows=tested)
    note = "Above zero: higher accuracy after the change. A CI that covers zero is not significant."
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
        Column("95 % CI", True, exact=False),
        Column("Objects", True),
    ]
    rows = [[*(Cell(_said(one, name)) for name in (*whose, key)), *number_cells(one)] for one in found]
    return Table(title, columns, rows)


def _heading(key: str) -> Column:
    return Column(key.capitalize())


def _said(found: Measurement, key: str) -> str:
    value = str(found.about.get(key, ""))
    return VIEWS.get(value, value) if key == "view" else value


def _series(found: Sequence[Measurement]) -> list[str] | None:
    return [model_of(one) for one in found] if len(models_of(found)) > 1 else None


def _scale_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each scale factor, a column for each view."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    views = list(dict.fromkeys(str(one.about["view"]) for one in found))
    rows: dict[tuple[str, int], dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault((str(one.about["scale_factor"]), int(one.about["kept_at"])), {})[str(one.about["view"])] = one
    return Table(
        f"By scale factor{whose}",
        [
            Column("Scale factor"),
            Column("Fits into", True),
            *(Column(view, True, over="Accuracy") for view in views),
            Column("Objects", True),
        ],
        [
            [
                Cell(factor),
                Cell(f"{side} × {side}", side),
                *(compact_cell(numbers.get(view)) for view in views),
                number_cells(next(iter(numbers.values())))[-1],
            ]
            for (factor, side), numbers in rows.items()
        ],
        "The larger side of the object as a share of the image's, up to the next power of two: with the image scaled to "
        "224 × 224, an object under 1/2 is longer than 56 and at most 112 pixels, and fits into 112 × 112.",
    )


def _scaled_table(found: Sequence[Measurement], every: Sequence[Measurement]) -> Table:
    """A row for each scale factor and one for all crops, a column for each side that the factor multiplies."""
    whose = f": {model_of(found[0])}" if len(models_of(every)) > 1 else ""
    sides = list(dict.fromkeys(int(one.about["times"]) for one in found))
    rows: dict[str, dict[int, Measurement]] = {}
    for one in found:
        rows.setdefault(str(one.about.get("scale_factor", ALL)), {})[int(one.about["times"])] = one
    return Table(
        f"Crops at their scale{whose}",
        [Column("Scale factor"), *(Column(f"SF × {side}", True, over="Accuracy at") for side in sides), CROPS],
        [
            [
                Cell(factor),
                *(compact_cell(numbers.get(side)) for side in sides),
                number_cells(next(iter(numbers.values())))[-1],
            ]
            for factor, numbers in rows.items()
        ],
        "Each object cropped and resized to a square of its scale factor (SF) times the side: with 224, an object under 1/2 "
        f"is 112 × 112.{' The last row pools all crops.' if ALL in rows else ''}",
    )


def _share_parts(findings: Sequence[Finding]) -> list[Part]:
    """Histogram of object proportions, with that of another dataset where there is one, and the mean of each class."""
    curves, classes = curves_named(findings, "object_shares"), named(findings, "class_object_share")
    ordered = sorted(classes, key=lambda one: one.value)
    title = metric_info("class_object_share").title
    by_class = measurement_table(f"{title}: smallest first", ordered, value_title="Mean proportion", keys=["class"])
    return [
        *([_histogram(curves, named(findings, "object_share_overlap"))] if curves else []),
        *([dataclasses.replace(by_class, folded=len(classes) > MOST_OPEN)] if classes else []),
    ]


def _histogram(curves: Sequence[Curve], overlap: Sequence[Measurement]) -> Chart:
    title = "Object proportion: box area over image area"
    names = [f"{curve.about['objects_of']} ({count(curve.images)} objects)" for curve in curves]
    said = "".join(f" The two histograms overlap by {figure(one.value, 'share')}." for one in overlap[:1])
    spec = share_histograms(curves, names, description=f"{title}: {', '.join(names)}.{said}")
    return Chart(title, spec, curve_table(title, curves, names), f"Area of the box over that of the image.{said}")


def share_histograms(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """A filled step line for each dataset."""
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _steps(curve, name)]
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = {**channel("y", curves[0].y_label, {"zero": True, "nice": True}, PERCENT), "stack": None}
    told = [
        {"field": "series"},
        {"field": "bin", "title": x["axis"]["title"]},
        {"field": "tip", "title": y["axis"]["title"]},
    ]
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    dash = by_series(names, DASHES)
    return {
        **start(description, rows),
        "height": 280,
        "encoding": {"x": x, "y": y, "color": by_series(names, COLOURS), "tooltip": told},
        "layer": [
            {"mark": {"type": "area", "interpolate": "step-after", "opacity": 0.22}},
            {"mark": line, "encoding": {"strokeDash": {**dash, "legend": {**dash["legend"], "symbolType": "stroke"}}}},
        ],
    }


def _steps(curve: Curve, name: str) -> Iterator[Spec]:
    """A point at the lower edge of each bin, and one at the end of the last."""
    width = 1 / len(curve.x)
    behind = curve.counts or (curve.images,) * len(curve.x)
    for middle, share, objects in zip(curve.x, curve.y, behind, strict=True):
        low, high = (figure(edge, "share") for edge in (middle - width / 2, middle + width / 2))
        tip = f"{figure(share, 'share')}: {count(objects)} of {count(curve.images)}"
        yield {"series": name, "x": middle - width / 2, "y": share, "bin": f"{low} to {high}", "tip": tip}
    yield {"series": name, "x": 1.0, "y": curve.y[-1], "bin": "", "tip": ""}


def published_objects(*names: str) -> list[Part]:
    """Published tables, folded."""
    return [_table(name) for name in names]


def _table(name: str) -> Table:
    title, columns = TABLES[name]
    table = load_table(name)
    first = next(iter(table[0]))
    counted = "images" in table[0]
    rows = [
        [
            Cell(row[first]),
            *(published_cell(row[column]) for column in columns),
            *([Cell(count(int(row["images"])), int(row["images"]))] if counted else []),
        ]
        for row in table
    ]
    source = source_of(name)
    note = f"{source[:1].upper()}{source[1:]}. These are other images than those of this report."
    heads = [Column(HEADS.get(first, "Model")), *(Column(heading, True) for heading in columns.values())]
    return Table(title, [*heads, *([Column("Images", True)] if counted else [])], rows, note, folded=True)


def object_headlines(page: Page) -> list[str]:
    """Accuracy of each model on objects in their image and without background, in a sentence."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        views = {str(one.about["view"]): one for one in named(found, "object_accuracy")}
        if "image" in views:
            whole = views["image"]
            share = opened(page.subject(whole.about), of_hundred(whole.value))
            others = [f"{figure(views[view].value, 'share')} {told}" for view, told in TOLD.items() if view in views]
            told = ", ".join([f"{share} objects are classified correctly in their images ({evidence(whole)})", *others])
            sentences.append(f"{told}.")
    return sentences


SECTION = SectionMaker(NAMES, draw_objects, headlines=object_headlines)
