"""Whether the models are right as often as they say they are, and surest where they are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports import charts
from shiftproof.reports.page import Page, by_images, curves_named, subject_key
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.response_rates import response_rates
from shiftproof.reports.tables import compact_cell, curve_table, number_table
from shiftproof.reports.words import count, images, kept_together
from shiftproof.studies.temperature_scaling import AFTER, BEFORE
from shiftproof.types import Curve, Finding, Measurement

NAMES = frozenset(
    {
        "rms_calibration_error",
        "chance_calibration_error",
        "expected_calibration_error",
        "overconfidence",
        "brier_score",
        "negative_log_likelihood",
        "debiased_calibration_error",
        "temperature",
        "aurra",
        "mean_confidence",
        "reliability",
        "confidence_histogram",
        "response_rate_accuracy",
    }
)


def draw_calibration(findings: Sequence[Finding], page: Page) -> Section:
    """The diagrams, then every number that sums them up, and what a temperature would change."""
    numbers = [found for found in findings if isinstance(found, Measurement)]
    parts: list[Part] = [
        *(_reliability(curves, page) for curves in _together(findings, "reliability")),
        *(_response_rates(curves, page) for curves in _together(findings, "response_rate_accuracy")),
        *(_histogram(curve, page) for curve in curves_named(findings, "confidence_histogram")),
        *_numbers([found for found in numbers if "scaling" not in found.about], page),
        *_before_and_after([found for found in numbers if "scaling" in found.about], page),
    ]
    lead = "A model that says it is 80 % sure should be right 80 times of 100; where it is not, its confidence misleads."
    return Section("calibration", "Confidence", lead, parts)


def _together(findings: Sequence[Finding], name: str) -> list[list[Curve]]:
    """The curves of one name that share a chart."""
    return list(by_images(curves_named(findings, name)).values())


def _reliability(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('image_set')}" if len(page.image_sets) > 1 else ""
    description = f"Reliability diagram{on}: share right against confidence for {', '.join(_names(curves, page))}."
    note = f"Below the dashed line confidence is too high, above it too low. Bars: intervals; {images(curves[0].images)}."
    spec = charts.reliability(curves, _names(curves, page), description=description)
    figures = curve_table(f"Reliability{on}", curves, _names(curves, page))
    return Chart(f"Reliability{on}", spec, figures, note, half=True)


def _response_rates(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('image_set')}" if len(page.image_sets) > 1 else ""
    names = _names(curves, page)
    title = f"Accuracy on the surest answers{on}"
    note = f"From the surest images alone to all {count(curves[0].images)}. Flat: confidence does not tell right from wrong."
    spec = response_rates(
        curves, names, description=f"{title}, against the share of images answered, of {', '.join(names)}."
    )
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


def _histogram(curve: Curve, page: Page) -> Chart:
    title = f"How sure {page.subject(curve.about) or 'the model'} is"
    note = f"{images(curve.images)} by the confidence in their first answer."
    spec = charts.histogram(curve, description=f"{title}: a histogram of confidence.")
    return Chart(title, spec, curve_table(title, [curve], _names([curve], page)), note, half=True)


def _numbers(found: Sequence[Measurement], page: Page) -> list[Part]:
    return [number_table("Confidence in numbers", found, page)] if found else []


def _before_and_after(found: Sequence[Measurement], page: Page) -> list[Part]:
    """A row for each number of each model on the images that its temperature was not fitted on."""
    if not found:
        return []
    pairs: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for one in found:
        pairs.setdefault((*subject_key(one.about), one.metric), {})[str(one.about["scaling"])] = one
    whose = [Column(page.subject_title)] if any(page.subject(one.about) for one in found) else []
    numbers = [Column("Number"), Column("As it is", True), Column("Scaled", True), Column("Images", True)]
    rows = [_pair_row(pair, page, told=bool(whose)) for pair in pairs.values()]
    used = {page.subject(one.about): one.convention.get("temperature", "") for one in found}
    temperatures = "; ".join(f"{subject} {told}".strip() for subject, told in used.items())
    note = f"Logits divided by a temperature; only images that it was not fitted on. Temperature: {temperatures}."
    return [Table("What a temperature would mend", [*whose, *numbers], rows, kept_together(note))]


def _pair_row(pair: Mapping[str, Measurement], page: Page, *, told: bool) -> list[Cell]:
    one = next(iter(pair.values()))
    subject = [Cell(page.subject(one.about))] if told else []
    number = Cell(meaning_of(one.metric).title)
    return [
        *subject,
        number,
        *(compact_cell(pair.get(when)) for when in (BEFORE, AFTER)),
        Cell(count(one.images), one.images),
    ]


def _names(curves: Sequence[Curve], page: Page) -> list[str]:
    return [page.subject(curve.about) or str(curve.about.get("model", "the model")) for curve in curves]
