"""The report's section on a detection threshold: its false-positive and true-positive rate, and cost."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.reports.page import Page, named
from shiftproof.reports.parts import Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import measurement_table
from shiftproof.types import Finding

METRICS = ("operating_threshold", "operating_fpr", "operating_tpr", "operating_cost")
NAMES = frozenset(METRICS)


def draw_operating_point(findings: Sequence[Finding], page: Page) -> Section:  # noqa: ARG001 as every section
    """A table for each metric, on every dataset it was evaluated on, and how they were made."""
    parts: list[Part] = []
    for metric in METRICS:
        found = named(findings, metric)
        if found:
            title = metric_info(metric).title
            parts.append(measurement_table(title, found, value_title=title))
    lead = "Images whose OOD score is at least the threshold are flagged: false-positive and true-positive rate."
    return Section("threshold", "Detection threshold", lead, parts[1:], parts[:1])


SECTION = SectionMaker(NAMES, draw_operating_point)
