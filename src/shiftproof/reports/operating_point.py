"""The threshold that was picked for a detector, and what to expect of it."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.by_model import choices
from shiftproof.reports.page import Page, named
from shiftproof.reports.parts import Part, Section
from shiftproof.reports.tables import measurement_table
from shiftproof.types import Finding

METRICS = ("operating_threshold", "operating_false_alarms", "operating_found", "operating_cost")
NAMES = frozenset(METRICS)


def draw_operating_point(findings: Sequence[Finding], page: Page) -> Section:  # noqa: ARG001 as every section
    """A table for each number, on every set it was judged on, and how they were made."""
    parts: list[Part] = []
    for metric in METRICS:
        found = named(findings, metric)
        if found:
            title = meaning_of(metric).title
            parts.append(measurement_table(title, found, value_title=title))
    parts += choices("How these numbers were made", [one for metric in METRICS for one in named(findings, metric)])
    lead = "Images that score at least the threshold are flagged: how many for nothing, and how many that should be?"
    return Section("threshold", "A threshold", lead, parts)
