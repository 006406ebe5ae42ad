"""Whether the models are right as often as they say they are."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports import charts
from shiftproof.reports.page import Page, by_images, curves_named
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.tables import curve_table, number_table
from shiftproof.reports.words import images
from shiftproof.types import Curve, Finding, Measurement

NAMES = frozenset(
    {
        "rms_calibration_error",
        "chance_calibration_error",
        "expected_calibration_error",
        "overconfidence",
        "brier_score",
        "mean_confidence",
        "reliability",
        "confidence_histogram",
    }
)


def draw_calibration(findings: Sequence[Finding], page: Page) -> Section:
    """The diagrams, then every number that sums them up."""
    together = list(by_images(curves_named(findings, "reliability")).values())
    parts: list[Part] = [
        *(_reliability(curves, page) for curves in together),
        *(_histogram(curve, page) for curve in curves_named(findings, "confidence_histogram")),
        *_numbers([found for found in findings if isinstance(found, Measurement)], page),
    ]
    lead = "A model that says it is 80 % sure should be right 80 times of 100; where it is not, its confidence misleads."
    return Section("calibration", "Confidence", lead, parts)


def _reliability(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('image_set')}" if len(page.image_sets) > 1 else ""
    description = f"Reliability diagram{on}: share right against confidence for {', '.join(_names(curves, page))}."
    note = f"Below the dashed line confidence is too high, above it too low. Bars: intervals; {images(curves[0].images)}."
    spec = charts.reliability(curves, _names(curves, page), description=description)
    figures = curve_table(f"Reliability{on}", curves, _names(curves, page))
    return Chart(f"Reliability{on}", spec, figures, note, half=True)


def _histogram(curve: Curve, page: Page) -> Chart:
    title = f"How sure {page.subject(curve.about) or 'the model'} is"
    note = f"{images(curve.images)} by the confidence in their first answer."
    spec = charts.histogram(curve, description=f"{title}: a histogram of confidence.")
    return Chart(title, spec, curve_table(title, [curve], _names([curve], page)), note, half=True)


def _numbers(found: Sequence[Measurement], page: Page) -> list[Part]:
    return [number_table("Confidence in numbers", found, page)] if found else []


def _names(curves: Sequence[Curve], page: Page) -> list[str]:
    return [page.subject(curve.about) or str(curve.about.get("model", "the model")) for curve in curves]
