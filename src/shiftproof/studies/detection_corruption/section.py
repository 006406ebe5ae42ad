"""The report's section on object detection under corruption: mAP by corruption and severity, and boxes drawn."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.table import with_unseen
from shiftproof.metrics.wording import evidence, figure, images
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.heat_map import Heat, RowGroup, heat_map
from shiftproof.reports.page import Page, galleries_named, named, parts_of_each_set
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import chart_of_each_model, headline_numbers, measurement_table
from shiftproof.reports.words import spoken
from shiftproof.studies.corruption.section import grouped
from shiftproof.studies.detection.section import ABOVE_THRESHOLD, corruption_of_detection
from shiftproof.types import Finding, Measurement

OVERALL = with_unseen(
    "clean_average_precision", "mean_performance_under_corruption", "relative_performance_under_corruption"
)
NAMES = frozenset({*OVERALL, "corrupted_average_precision", "corruption_mean_precision", "corrupted_boxes"})


def draw_detection_corruption(findings: Sequence[Finding], page: Page) -> Section:
    """The numbers mPC and rPC of all models, mAP by corruption and severity, then one image under each corruption."""
    return Section(
        "detection-corruption",
        "Object detection under corruption",
        "mAP on the same images under noise, blur, weather and digital corruptions.",
        parts_of_each_set(findings, lambda found: _details(found, page)),
        parts_of_each_set(findings, _heat_maps),
        corruption_of_detection(page),
    )


def _heat_maps(findings: Sequence[Finding]) -> list[Part]:
    return chart_of_each_model("mAP by severity", findings, "corrupted_average_precision", _heat_map)


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    overall = [one for name in OVERALL for one in named(findings, name)]
    return [
        *headline_numbers("In short", overall, page),
        *(boxed_pictures(one, page, note=ABOVE_THRESHOLD) for one in galleries_named(findings, "corrupted_boxes")),
    ]


def _heat_map(findings: Sequence[Finding], title: str) -> Chart:
    (clean,), cells = named(findings, "clean_average_precision"), named(findings, "corrupted_average_precision")
    means = named(findings, "corruption_mean_precision")
    names = list(dict.fromkeys(_corruption(one) for one in cells))
    severities = sorted({int(one.about.get("severity", 0)) for one in cells})
    heat = [
        *(_heat(one, str(one.about.get("severity", 0)), clean) for one in cells),
        *(_heat(one, "mean", clean) for one in means),
    ]
    groups = [RowGroup(group.capitalize(), list(map(spoken, members))) for group, members in grouped(names).items()]
    said = "; ".join(f"{spoken(_corruption(one))} {figure(one.value, 'share')}" for one in means)
    spec = heat_map(
        heat,
        groups,
        [[str(severity) for severity in severities], ["mean"]],
        x_title="severity",
        description=f"{title}; on clean images {figure(clean.value, 'share')}; means over severities: {said}.",
    )
    figures = measurement_table(title, [clean, *cells], value_title="mAP", keys=["corruption", "severity"])
    note = (
        f"Mean average precision in percent on {images(clean.images)}, {figure(clean.value, 'share')} when clean; a "
        "stronger colour is a larger loss. CIs: in the data."
    )
    return Chart(title, spec, figures, note)


def _heat(found: Measurement, column: str, clean: Measurement) -> Heat:
    lost = 1 - found.value / clean.value if clean.value > 0 else 0.0
    tip = f"{figure(found.value, 'share')} ({evidence(found)})"
    return Heat(spoken(_corruption(found)), column, found.value, tip, shade=lost)


def _corruption(found: Measurement) -> str:
    return str(found.about.get("corruption", ""))


SECTION = SectionMaker(
    NAMES,
    draw_detection_corruption,
    key_numbers=("mean_performance_under_corruption", "relative_performance_under_corruption"),
)
