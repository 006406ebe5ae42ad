"""Which images a detector moves up or down in the order of foreignness, beside the baseline."""

from __future__ import annotations

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import written
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Folded, Panel, Panels, Part
from shiftproof.reports.score_shapes import figures_of, legend_of, stepped
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import measurement_table
from shiftproof.types import Curve, Measurement

DISTRIBUTION = "rank_shift_distribution"
SHARES = {"format": ".0%"}
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
            series=list(map(_group, shown)),
            note="Right of zero a group looks more foreign than it does to the baseline, left of it less. "
            "New classes to the right and right answers to the left are what one wants.",
        )
    ]


def rank_shift_shapes(found: DetectorFindings) -> list[Part]:
    """How the shifts of single images are spread about those means: a drawing for each of the best detectors."""
    few = [name for name in found.few() if name != found.baseline]
    curves = [one for one in curves_named(found.findings, DISTRIBUTION) if detector_of(one) in few]
    if not curves:
        return []
    title = f"Places moved beside {written(found.baseline)}, image by image"
    top = max(y for curve in curves for y in curve.y)
    names = list(GROUPS.values())
    of_each = {name: [one for one in curves if detector_of(one) == name] for name in few}
    panels = [
        Panel(
            written(name),
            stepped([(_group(one), one) for one in own], names, top, f"{title}: {written(name)}.", ticks=SHARES),
        )
        for name, own in of_each.items()
        if own
    ]
    columns = [f"{written(detector_of(one))}: {_group(one)}" for one in curves]
    note = "Right of zero an image looks more foreign than it does to the baseline. Places are in percent of all images."
    figures = figures_of(title, "Places moved", curves, columns)
    return [Folded(title, [Panels("Shifts of rank", panels, legend_of(names), figures, note)])]


def _group(found: Curve | Measurement) -> str:
    return GROUPS.get(str(found.about.get("group")), str(found.about.get("group", "")))
