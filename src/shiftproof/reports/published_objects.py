"""What was published about objects and their background on ImageNet-A: other images, for scale."""

from __future__ import annotations

from shiftproof.reference import load_table, source_of
from shiftproof.reports.parts import Cell, Column, Part, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.words import count

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
        "Published: larger inputs, and detectors instead of classifiers, on ImageNet-A",
        {"imagenet_a_accuracy": "ImageNet-A"},
    ),
}
"""Published tables: their titles, and the columns that hold accuracies."""

HEADS = {"scale_factor": "Scale factor"}
"""What the first column holds where it is no model."""


def published_objects(*names: str) -> list[Part]:
    """Some of the published tables, folded."""
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
