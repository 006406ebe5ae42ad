"""The report's section on object detection: average precision, pm-k mAP, precision-recall curves, classes, boxes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure
from shiftproof.reference import load_table
from shiftproof.reports.charts import PERCENT, SHARE, banded_lines, channel, curve_rows
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    in_columns,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table, compact_cell, curve_table, dot_chart
from shiftproof.reports.words import opened
from shiftproof.studies.temporal.section import frame_distances, subset_tables
from shiftproof.types import Curve, Finding, Measurement

COLUMNS = {
    "anchor_average_precision": "map_original",
    "pm_k_average_precision": "map_perturbed",
    "pm_k_precision_drop": "drop",
}
"""Metrics and their columns in the published table."""
AT_FIRST_IOU = ("size_average_precision", "localization_precision")
COUNTS = ("objects_to_find", "objects_left_out", "boxes_found")
NAMES = frozenset(
    {
        "mean_average_precision",
        "mean_average_recall",
        *AT_FIRST_IOU,
        *COUNTS,
        *COLUMNS,
        "class_average_precision",
        "class_objects",
        "class_boxes",
        "precision_recall",
        "pm_k_subset_precision",
        "pm_k_precision_curve",
        "worst_found",
        "best_found",
        "found_boxes",
        "worst_frames",
    }
)
WORST_SHOWN = 20
"""Classes in the chart; the figures have them all."""
ABOVE_THRESHOLD = "Boxes below the score threshold of drawings are neither drawn nor counted here."
MOST_CURVES = 6
"""Lines in one chart."""


def draw_detection(findings: Sequence[Finding], page: Page) -> Section:
    """Mean average precision (mAP) by IoU threshold, pm-k mAP, precision-recall curves, classes, then images with boxes."""
    return Section(
        "detection",
        "Object detection",
        "Average precision and recall of the detected boxes, and the images on which they are best and worst.",
        parts_of_each_set(findings, lambda found: _details(found, page)),
        parts_of_each_set(findings, _main),
        precision_of_boxes(page),
    )


def _main(findings: Sequence[Finding]) -> list[Part]:
    return _recall_charts(curves_named(findings, "precision_recall"))[:1]


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    counted = [one for name in COUNTS for one in named(findings, name)]
    return [
        *_iou_tables(findings),
        *([columns_table("Objects and boxes", counted, ["model"])] if counted else []),
        *beside_published_detectors(pm_k_numbers(findings)),
        *_distances(curves_named(findings, "pm_k_precision_curve")),
        *subset_tables(named(findings, "pm_k_subset_precision")),
        *_recall_charts(curves_named(findings, "precision_recall"))[1:],
        *_class_charts(findings),
        *_found_classes(named(findings, "class_boxes")),
        *_pictures(findings, page),
    ]


def _iou_tables(findings: Sequence[Finding]) -> list[Part]:
    """A row for each number of each model, a column for each IoU threshold."""
    overall = named(findings, "mean_average_precision")
    if not overall:
        return []
    overlaps = list(dict.fromkeys(str(one.about.get("iou", "")) for one in overall))
    rows: dict[tuple[str, str], dict[str, Measurement]] = {}
    for name in ("mean_average_precision", *AT_FIRST_IOU, "mean_average_recall"):
        for one in named(findings, name):
            size = f", {one.about['size']} objects" if "size" in one.about else ""
            rows.setdefault((model_of(one), f"{_title(name)}{size}"), {})[str(one.about.get("iou", overlaps[0]))] = one
    several = len(models_of(overall)) > 1
    return [
        Table(
            "Average precision and recall",
            [
                *([Column("Model")] if several else []),
                Column("Metric"),
                *(Column(overlap, True, over="IoU threshold") for overlap in overlaps),
                Column("Images", True),
            ],
            [
                [
                    *([Cell(model)] if several else []),
                    Cell(title),
                    *(compact_cell(numbers.get(overlap)) for overlap in overlaps),
                    _images(next(iter(numbers.values()))),
                ]
                for (model, title), numbers in sorted(rows.items(), key=lambda row: models_of(overall).index(row[0][0]))
            ],
            "Small objects are under 32 x 32 pixels, large ones over 96 x 96. Localization ignores the class.",
        )
    ]


def _title(metric: str) -> str:
    return "mAP" if metric in ("mean_average_precision", "size_average_precision") else metric_info(metric).title


def _images(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)


def at_first_iou(findings: Sequence[Finding]) -> list[Measurement]:
    """Mean average precision (mAP) of each model and dataset at its first IoU threshold."""
    groups = by_subject(named(findings, "mean_average_precision")).values()
    return [named(group, "mean_average_precision")[0] for group in groups]


def pm_k_numbers(findings: Sequence[Finding]) -> list[Measurement]:
    """Mean average precision (mAP) on the anchors, at the largest k and the drop between, of each model and task."""
    around = named(findings, "pm_k_average_precision")
    largest = max((int(one.about.get("k", 0)) for one in around), default=0)
    at_largest = [one for one in around if one.about.get("k") == largest]
    return [*named(findings, "anchor_average_precision"), *at_largest, *named(findings, "pm_k_precision_drop")]


def beside_published_detectors(found: Sequence[Measurement]) -> list[Part]:
    """Mean average precision (mAP) on anchors and worst frames of each model and task, the report's own models first."""
    own: dict[tuple[str, str], dict[str, Measurement]] = {}
    for one in found:
        own.setdefault((str(one.about.get("task", "")), model_of(one)), {})[one.metric] = one
    if not own:
        return []
    k = next((one.about["k"] for one in found if "k" in one.about), 0)
    mine = [
        [Cell(task), Cell(model), *_own(numbers), Cell(str(k), k), Cell("this report")]
        for (task, model), numbers in own.items()
    ]
    published = [
        [Cell(row["task"]), Cell(row["model"]), *_published(row), Cell("10", 10), Cell("published")]
        for row in load_table("imagenet_vid_robust_detection")
    ]
    numbers = [Column(metric_info(metric).title, True) for metric in COLUMNS]
    note = (
        "The published detectors were measured on ImageNet-Vid-Robust: other images of other classes, so the comparison is "
        "rough. Localization ignores the class."
    )
    columns = [Column("Task"), Column("Model"), *numbers, Column("k", True), Column("From")]
    return [Table("mAP on the anchors and on the worst frames around them", columns, [*mine, *published], note)]


def _own(numbers: Mapping[str, Measurement]) -> list[Cell]:
    return [compact_cell(numbers.get(metric)) for metric in COLUMNS]


def _published(row: Mapping[str, str]) -> list[Cell]:
    lost = float(row["drop"]) / 100
    return [*(published_cell(row[name]) for name in ("map_original", "map_perturbed")), Cell(figure(lost, "loss"), lost)]


def _distances(curves: Sequence[Curve]) -> list[Part]:
    """pm-k mAP by k, a line for each model and task."""
    if not curves:
        return []
    several = len(models_of(curves)) > 1
    names = [" · ".join([*([model_of(one)] if several else []), str(one.about.get("task", ""))]) for one in curves]
    title = "pm-k mAP: on the worst frame at most k away"
    said = f"{title}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    spec = frame_distances(curves, names, description=said, scale=SHARE)
    note = "k = 0 is the anchor alone. Bands: 95 % CI, jackknife over anchors."
    return [Chart(title, spec, curve_table(title, curves, names), note)]


def _recall_charts(curves: Sequence[Curve]) -> list[Part]:
    """All classes and those with the most objects; of several models first all classes together."""
    overall = [one for one in curves if "class" not in one.about]
    if len(overall) < 2:
        names = [str(one.about.get("class", "all classes")) for one in curves]
        return [_recall_chart("Precision-recall", curves, names)] if curves else []
    together = _recall_chart("Precision-recall: all classes", overall, list(map(model_of, overall)))
    by_class = {
        model: [one for one in curves if model_of(one) == model and "class" in one.about] for model in models_of(overall)
    }
    return [
        together,
        *in_columns(
            {
                model: [_recall_chart(f"Precision-recall: {model}", some, [str(one.about["class"]) for one in some])]
                for model, some in by_class.items()
                if some
            }
        ),
    ]


def _recall_chart(title: str, curves: Sequence[Curve], names: Sequence[str]) -> Chart:
    shown, shown_names = curves[:MOST_CURVES], names[:MOST_CURVES]
    x, y = (channel(axis, label, SHARE, PERCENT) for axis, label in (("x", "recall"), ("y", "precision")))
    rows = [row for curve, name in zip(shown, shown_names, strict=True) for row in curve_rows(curve, name)]
    spec = banded_lines(rows, shown_names, x, y, description=f"{title}: {', '.join(shown_names)}.")
    note = "The area under a line is average precision."
    return Chart(title, spec, curve_table(title, curves, names), note)


def _class_charts(findings: Sequence[Finding]) -> list[Part]:
    """The classes of each model with the lowest average precision."""
    charts: dict[str, list[Part]] = {}
    found, objects = named(findings, "class_average_precision"), named(findings, "class_objects")
    several = len(models_of(found)) > 1
    for model in models_of(found) if len({one.about["class"] for one in found}) > 1 else []:
        worst_first = sorted([one for one in found if model_of(one) == model], key=lambda one: one.value)
        shown = worst_first[:WORST_SHOWN]
        title = "Every class" if len(shown) == len(worst_first) else f"The {WORST_SHOWN} worst of {len(worst_first)} classes"
        title = f"{title}: {model}" if several else title
        counts = {str(one.about["class"]): int(one.value) for one in objects if model_of(one) == model}
        figures = columns_table(title, [*worst_first, *(one for one in objects if model_of(one) == model)], ["class"])
        labels = [f"{one.about['class']} ({count(counts.get(str(one.about['class']), 0))})" for one in shown]
        note = "Average precision, lowest first; in brackets the number of objects."
        charts[model] = [dot_chart(title, shown, figures, x_title="average precision", labels=labels, note=note)]
    return in_columns(charts)


def _found_classes(found: Sequence[Measurement]) -> list[Part]:
    """Detections of each class where there is no ground truth."""
    if not found:
        return []
    keys = [*(["model"] if len(models_of(found)) > 1 else []), "class"]
    most_first = sorted(found, key=lambda one: (models_of(found).index(model_of(one)), -one.value))
    note = f"Boxes: {found[0].convention.get('boxes', 'all')}. There is no ground truth to compare with."
    return [dataclasses.replace(columns_table("Detections", most_first, keys), note=note)]


def _pictures(findings: Sequence[Finding], page: Page) -> list[Part]:
    """Pairs of frames first, then the images of lowest and highest average precision, or any detections."""
    pairs = galleries_named(findings, "worst_frames")
    singles = [one for name in ("worst_found", "best_found", "found_boxes") for one in galleries_named(findings, name)]
    return [
        *(boxed_pictures(one, page, abreast=2, note=ABOVE_THRESHOLD) for one in pairs),
        *(boxed_pictures(one, page, note=ABOVE_THRESHOLD) for one in singles),
    ]


def detection_numbers(findings: Sequence[Finding]) -> list[Measurement]:
    """Mean average precision (mAP) at the first IoU threshold, and pm-k mAP for detection."""
    around = [one for one in pm_k_numbers(findings) if one.about.get("task") == "detection"]
    return [*at_first_iou(findings), *around]


def detection_headlines(page: Page) -> list[str]:
    """Mean average precision (mAP) of each detector, at pm-k and under corruption, in sentences."""
    return [*precision_of_boxes(page), *corruption_of_detection(page)]


def precision_of_boxes(page: Page) -> list[str]:
    """Mean average precision (mAP) of each detector, and at pm-k."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        for one in at_first_iou(found):
            precision = f"mAP is {figure(one.value, 'share')} at IoU {one.about.get('iou')}"
            said = f"{precision} ({evidence(one)}){_worst_frames(found)}."
            sentences.append(opened(page.subject(one.about), said))
    return sentences


def corruption_of_detection(page: Page) -> list[str]:
    """The share of its mAP that corruption leaves each detector."""
    return [
        opened(page.subject(one.about), f"Corruption leaves {figure(one.value, 'share')} of the mAP ({evidence(one)}).")
        for one in named(page.results.measurements, "relative_performance_under_corruption")
    ]


def _worst_frames(found: Sequence[Finding]) -> str:
    """pm-k mAP, where it was measured."""
    around = [one for one in detection_numbers(found) if one.metric == "pm_k_average_precision"]
    return "".join(
        f", on the worst frame within {one.about.get('k')} of each anchor {figure(one.value, 'share')}" for one in around
    )


SECTION = SectionMaker(
    NAMES,
    draw_detection,
    headlines=detection_headlines,
    key_numbers=("mean_average_precision", "pm_k_average_precision"),
    numbers=detection_numbers,
)
