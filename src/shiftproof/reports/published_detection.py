"""One's own detectors on the worst frames around anchors, beside those that were published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reference import load_table
from shiftproof.reports.page import model_of
from shiftproof.reports.parts import Cell, Column, Part, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.tables import compact_cell
from shiftproof.reports.words import figure
from shiftproof.types import Measurement

COLUMNS = {
    "anchor_average_precision": "map_original",
    "pm_k_average_precision": "map_perturbed",
    "pm_k_precision_drop": "drop",
}
"""Metrics, and the columns of the published table that hold them."""


def beside_published_detectors(found: Sequence[Measurement]) -> list[Part]:
    """Original and perturbed precision of each model and task, one's own first."""
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
    numbers = [Column(meaning_of(metric).title, True) for metric in COLUMNS]
    note = (
        "The published detectors were measured on ImageNet-Vid-Robust: other images of other classes, so the comparison is "
        "rough. Localization asks where objects are and not what they are."
    )
    columns = [Column("Task"), Column("Model"), *numbers, Column("k", True), Column("From")]
    return [Table("On the anchors and on the worst frames around them", columns, [*mine, *published], note)]


def _own(numbers: Mapping[str, Measurement]) -> list[Cell]:
    return [compact_cell(numbers.get(metric)) for metric in COLUMNS]


def _published(row: Mapping[str, str]) -> list[Cell]:
    lost = float(row["drop"]) / 100
    return [*(published_cell(row[name]) for name in ("map_original", "map_perturbed")), Cell(figure(lost, "points"), lost)]
