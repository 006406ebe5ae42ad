"""How well detectors find objects, and whether they still do on the frames around a frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.banded_lines import banded_lines
from shiftproof.reports.boxed_pictures import boxed_pictures
from shiftproof.reports.by_model import choices, columns_table
from shiftproof.reports.charts import PERCENT, SHARE, channel, curve_rows
from shiftproof.reports.frame_distances import frame_distances
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published_detection import COLUMNS, beside_published_detectors
from shiftproof.reports.tables import compact_cell, curve_table
from shiftproof.reports.temporal import subset_tables
from shiftproof.reports.words import count
from shiftproof.types import Curve, Finding, Measurement

AT_FIRST_OVERLAP = ("size_average_precision", "localization_precision")
COUNTS = ("objects_to_find", "objects_left_out", "boxes_found")
NAMES = frozenset(
    {
        "mean_average_precision",
        "mean_average_recall",
        *AT_FIRST_OVERLAP,
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
FAIRLY_SURE = "Boxes of which the detector is less than fairly sure are neither drawn nor counted here."
MOST_CURVES = 6
"""Lines that can be told apart."""


def draw_detection(findings: Sequence[Finding], page: Page) -> Section:
    """Numbers by overlap, frames around frames, precision over recall, classes, then images with boxes drawn."""
    parts = parts_of_each_set(findings, lambda found: _parts(found, page))
    lead = "Boxes around objects: how many are right, how many objects they find, and where the detector goes wrong."
    return Section("detection", "Object detection", lead, parts)


def at_first_overlap(findings: Sequence[Finding]) -> list[Measurement]:
    """Of each model and image set the mean average precision at the first overlap it was asked for."""
    groups = by_subject(named(findings, "mean_average_precision")).values()
    return [named(group, "mean_average_precision")[0] for group in groups]


def around_anchors(findings: Sequence[Finding]) -> list[Measurement]:
    """Precision on the anchors, at the largest k and what is lost between, of each model and task."""
    around = named(findings, "pm_k_average_precision")
    largest = max((int(one.about.get("k", 0)) for one in around), default=0)
    at_largest = [one for one in around if one.about.get("k") == largest]
    return [*named(findings, "anchor_average_precision"), *at_largest, *named(findings, "pm_k_precision_drop")]


def _parts(findings: Sequence[Finding], page: Page) -> list[Part]:
    overall = named(findings, "mean_average_precision")
    frames = around_anchors(findings)
    counted = [one for name in COUNTS for one in named(findings, name)]
    return [
        *_overlap_tables(findings),
        *([columns_table("What was looked at", counted, ["model"])] if counted else []),
        *choices("How these numbers were made", [*overall, *frames] or counted),
        *beside_published_detectors(frames),
        *_distances(curves_named(findings, "pm_k_precision_curve")),
        *subset_tables(named(findings, "pm_k_subset_precision")),
        *_recall_charts(curves_named(findings, "precision_recall")),
        *_class_charts(findings),
        *_found_classes(named(findings, "class_boxes")),
        *_pictures(findings, page),
    ]


def _overlap_tables(findings: Sequence[Finding]) -> list[Part]:
    """A row for each number of each model, a column for each overlap."""
    overall = named(findings, "mean_average_precision")
    if not overall:
        return []
    overlaps = list(dict.fromkeys(str(one.about.get("iou", "")) for one in overall))
    rows: dict[tuple[str, str], dict[str, Measurement]] = {}
    for name in ("mean_average_precision", *AT_FIRST_OVERLAP, "mean_average_recall"):
        for one in named(findings, name):
            size = f", {one.about['size']} objects" if "size" in one.about else ""
            rows.setdefault((model_of(one), f"{_title(name)}{size}"), {})[str(one.about.get("iou", overlaps[0]))] = one
    several = len(models_of(overall)) > 1
    return [
        Table(
            "Average precision and recall",
            [
                *([Column("Model")] if several else []),
                Column("Number"),
                *(Column(overlap, True, over="overlap that counts as found (IoU)") for overlap in overlaps),
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
            "Small objects are under 32 x 32 pixels, large ones over 96 x 96. Localization asks where they are, not what.",
        )
    ]


def _title(metric: str) -> str:
    return "mAP" if metric in ("mean_average_precision", "size_average_precision") else meaning_of(metric).title


def _images(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)


def _distances(curves: Sequence[Curve]) -> list[Part]:
    """Precision as more frames around the anchors may be the worst, a line for each model and task."""
    if not curves:
        return []
    several = len(models_of(curves)) > 1
    names = [" · ".join([*([model_of(one)] if several else []), str(one.about.get("task", ""))]) for one in curves]
    title = "On the worst frame at most k away"
    said = f"{title}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    spec = frame_distances(curves, names, description=said, scale=SHARE)
    note = "k = 0 is the anchor alone. Bands: intervals, drawing anchors again."
    return [Chart(title, spec, curve_table(title, curves, names), note)]


def _recall_charts(curves: Sequence[Curve]) -> list[Part]:
    """All classes together and those with the most objects; of several models together only the first."""
    overall = [one for one in curves if "class" not in one.about]
    if len(overall) < 2:
        names = [str(one.about.get("class", "all classes")) for one in curves]
        return [_recall_chart("Precision over recall", curves, names)] if curves else []
    together = _recall_chart("Precision over recall: all classes", overall, list(map(model_of, overall)))
    by_class = [[one for one in curves if model_of(one) == model and "class" in one.about] for model in models_of(overall)]
    return [
        together,
        *(
            _recall_chart(
                f"Precision over recall: {model_of(some[0])}", some, [str(one.about["class"]) for one in some], half=True
            )
            for some in by_class
            if some
        ),
    ]


def _recall_chart(title: str, curves: Sequence[Curve], names: Sequence[str], *, half: bool = False) -> Chart:
    shown, shown_names = curves[:MOST_CURVES], names[:MOST_CURVES]
    x, y = (channel(axis, label, SHARE, PERCENT) for axis, label in (("x", "recall"), ("y", "precision")))
    rows = [row for curve, name in zip(shown, shown_names, strict=True) for row in curve_rows(curve, name)]
    spec = banded_lines(rows, shown_names, x, y, description=f"{title}: {', '.join(shown_names)}.")
    note = "The share of boxes that are right when so many objects are found; the area under a line is average precision."
    return Chart(title, spec, curve_table(title, curves, names), note, half)


def _class_charts(findings: Sequence[Finding]) -> list[Part]:
    """The worst classes of each model, with their objects in the figures."""
    parts: list[Part] = []
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
        note = "Average precision, the worst class first; in brackets how many objects of it there are."
        parts.append(dot_chart(title, shown, figures, x_title="average precision", labels=labels, note=note))
    return parts


def _found_classes(found: Sequence[Measurement]) -> list[Part]:
    """What is found where nobody says what is there."""
    if not found:
        return []
    keys = [*(["model"] if len(models_of(found)) > 1 else []), "class"]
    most_first = sorted(found, key=lambda one: (models_of(found).index(model_of(one)), -one.value))
    note = f"Boxes: {found[0].convention.get('boxes', 'all')}. Nobody says which of them are right."
    return [dataclasses.replace(columns_table("What it finds", most_first, keys), note=note)]


def _pictures(findings: Sequence[Finding], page: Page) -> list[Part]:
    """Pairs of frames first, then the worst and the best of the images, or whatever was found."""
    pairs = galleries_named(findings, "worst_frames")
    singles = [one for name in ("worst_found", "best_found", "found_boxes") for one in galleries_named(findings, name)]
    return [
        *(boxed_pictures(one, page, abreast=2, note=FAIRLY_SURE) for one in pairs),
        *(boxed_pictures(one, page, note=FAIRLY_SURE) for one in singles),
    ]
