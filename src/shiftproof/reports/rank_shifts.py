"""Which images a detector moves up or down in the order of foreignness, beside the baseline."""

from __future__ import annotations

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import written
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.parts import Part
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import measurement_table

GROUPS = {"correct": "right answers", "wrong": "wrong answers", "outside": "new classes"}


def rank_shifts(found: DetectorFindings) -> list[Part]:
    """The best detectors as dots, one for each group of images; all of them in the figures."""
    shifts = found.numbers("rank_shift", outside=found.outside)
    if not shifts:
        return []
    few = [name for name in found.few() if name != found.baseline]
    shown = [one for one in shifts if detector_of(one) in few] or shifts
    title = f"Moved in the order of foreignness, beside {written(found.baseline)}"
    return [
        dot_chart(
            title,
            shown,
            measurement_table(title, shifts, value_title=meaning_of("rank_shift").title, keys=["detector", "group"]),
            x_title="places, in percent of all images",
            labels=[written(detector_of(one)) for one in shown],
            series=[GROUPS.get(str(one.about.get("group")), str(one.about.get("group", ""))) for one in shown],
            note="Right of zero a group looks more foreign than it does to the baseline, left of it less. "
            "New classes to the right and right answers to the left are what one wants.",
        )
    ]
