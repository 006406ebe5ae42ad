"""What was published about objects and their background on ImageNet-A: other images, for scale."""

from __future__ import annotations

from shiftproof.reference import load_table, source_of
from shiftproof.reports.parts import Cell, Column, Part, Table
from shiftproof.reports.published import published_cell

TABLES = {
    "imagenet_a_crop_models": (
        "Published: ImageNet-A cropped to its objects",
        {"imagenet_a": "Whole photo", "imagenet_a_crop": "Cropped"},
    ),
    "imagenet_a_plus_models": (
        "Published: ImageNet-A-Plus",
        {"imagenet_a": "ImageNet-A", "imagenet_a_plus": "ImageNet-A-Plus"},
    ),
    "imagenet_a_detection_models": (
        "Published: larger inputs, and detectors instead of classifiers, on ImageNet-A",
        {"imagenet_a_accuracy": "ImageNet-A"},
    ),
}
"""Published tables: their titles, and the columns that hold accuracies."""


def published_objects(*names: str) -> list[Part]:
    """Some of the published tables, folded."""
    return [_table(name) for name in names]


def _table(name: str) -> Table:
    title, columns = TABLES[name]
    rows = [
        [Cell(row.get("model") or row["method"]), *(published_cell(row[column]) for column in columns)]
        for row in load_table(name)
    ]
    source = source_of(name)
    note = f"{source[:1].upper()}{source[1:]}. These are other images than those of this report."
    heads = [Column("Model"), *(Column(heading, True) for heading in columns.values())]
    return Table(title, heads, rows, note, folded=True)
