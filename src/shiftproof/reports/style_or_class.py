"""New classes or only new styles: what becomes of the AUROC when images of known classes in new styles are inside."""

from __future__ import annotations

from shiftproof.reports.charts import SHAPES
from shiftproof.reports.detector_charts import auroc_ends
from shiftproof.reports.detector_findings import BLIND, NEW_CLASS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.parts import Part
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import measurement_table


def with_styles_inside(found: DetectorFindings) -> list[Part]:
    """The AUROC of new classes among unchanged and among shifted images, for the best detectors and the baseline."""
    insides = [*found.insides[:1], *found.styles]
    told = found.numbers("auroc", goal=NEW_CLASS, outside=found.outside)
    numbers = [one for one in told if one.about.get("inside") in insides]
    if len(insides) < 2 or not numbers:
        return []
    few, drawn = found.few(), insides[: len(SHAPES)]
    ordered = sorted(numbers, key=lambda one: insides.index(str(one.about.get("inside", ""))))
    shown = [one for one in ordered if detector_of(one) in few and one.about.get("inside") in drawn]
    shown.sort(key=lambda one: few.index(detector_of(one)))
    title = "New classes among images in new styles"
    left_out = f" {len(insides) - len(drawn)} more sets are in the figures." if len(insides) > len(drawn) else ""
    return [
        dot_chart(
            title,
            shown,
            measurement_table(title, ordered, value_title="AUROC", keys=["detector", "inside"]),
            x_title=f"AUROC of {set_title(found.outside)}",
            labels=[written(detector_of(one)) for one in shown],
            series=[set_title(str(one.about.get("inside", ""))) for one in shown],
            note="Known classes under a shift are inside. Where a dot falls to the dashed line, new styles look as foreign "
            f"as new classes; left of it, more so.{left_out}",
            reference=BLIND,
            ends=auroc_ends(shown),
        )
    ]
