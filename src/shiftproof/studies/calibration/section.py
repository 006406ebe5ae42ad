"""Calibration of the models: whether confidence matches accuracy, and ranks correct predictions first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure, images
from shiftproof.reports import charts
from shiftproof.reports.page import (
    Page,
    by_dataset,
    by_images,
    curves_named,
    in_columns,
    model_of,
    named,
    subject_key,
    whole_numbers,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published import response_rates
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, curve_table, number_table
from shiftproof.reports.words import kept_together, opened
from shiftproof.studies.calibration.study import AFTER, BEFORE
from shiftproof.types import Curve, Finding, Interval, Measurement

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
    """The diagrams, then every number that sums them up, and the effect of temperature scaling."""
    numbers = [found for found in findings if isinstance(found, Measurement)]
    main: list[Part] = [
        *(_reliability(curves, page) for curves in _together(findings, "reliability")),
        *(_response_rates(curves, page) for curves in _together(findings, "response_rate_accuracy")),
    ]
    details = [
        *_histograms(curves_named(findings, "confidence_histogram"), page),
        *_numbers([found for found in numbers if "scaling" not in found.about], page),
        *_before_and_after([found for found in numbers if "scaling" in found.about], page),
    ]
    lead = "A calibrated model with a confidence of 80 % is correct 80 times in 100."
    return Section("calibration", "Calibration", lead, details, main, confidence_details(page))


def _together(findings: Sequence[Finding], name: str) -> list[list[Curve]]:
    """The curves of one name that share a chart."""
    return list(by_images(curves_named(findings, name)).values())


def _reliability(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('dataset')}" if len(page.datasets) > 1 else ""
    description = f"Reliability diagram{on}: accuracy against confidence for {', '.join(_names(curves, page))}."
    note = f"Below the diagonal: overconfident; above: underconfident. Bars: 95 % CI; {images(curves[0].images)}."
    spec = charts.reliability(curves, _names(curves, page), description=description)
    figures = curve_table(f"Reliability{on}", curves, _names(curves, page))
    return Chart(f"Reliability{on}", spec, figures, note, half=True)


def _response_rates(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('dataset')}" if len(page.datasets) > 1 else ""
    names = _names(curves, page)
    title = f"Response-rate accuracy{on}"
    note = (
        f"From the most confident predictions to all {count(curves[0].images)}. "
        "Flat: confidence does not separate correct from wrong predictions."
    )
    spec = response_rates(curves, names, description=f"{title}: accuracy against response rate of {', '.join(names)}.")
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


def _histograms(curves: Sequence[Curve], page: Page) -> list[Part]:
    """Those of several models in columns, a row for each dataset."""
    sets = by_dataset(curves).values()
    return [part for some in sets for part in in_columns({model_of(curve): [_histogram(curve, page)] for curve in some})]


def _histogram(curve: Curve, page: Page) -> Chart:
    title = f"Confidence of {page.subject(curve.about) or 'the model'}"
    note = f"Histogram of the confidence in the predicted class; {images(curve.images)}."
    spec = charts.histogram(curve, description=f"{title}: a histogram of confidence.")
    return Chart(title, spec, curve_table(title, [curve], _names([curve], page)), note, half=True)


def _numbers(found: Sequence[Measurement], page: Page) -> list[Part]:
    return [number_table("Calibration in numbers", found, page)] if found else []


def _before_and_after(found: Sequence[Measurement], page: Page) -> list[Part]:
    """A row for each number of each model on the images that its temperature was not fitted on."""
    if not found:
        return []
    pairs: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for one in found:
        pairs.setdefault((*subject_key(one.about), one.metric), {})[str(one.about["scaling"])] = one
    whose = [Column(page.subject_title)] if any(page.subject(one.about) for one in found) else []
    numbers = [Column("Metric"), Column("Uncalibrated", True), Column("Scaled", True), Column("Images", True)]
    rows = [_pair_row(pair, page, told=bool(whose)) for pair in pairs.values()]
    used = {page.subject(one.about): one.convention.get("temperature", "") for one in found}
    temperatures = "; ".join(f"{subject} {told}".strip() for subject, told in used.items())
    note = f"Logits divided by a temperature; only images that it was not fitted on. Temperature: {temperatures}."
    return [Table("Temperature scaling", [*whose, *numbers], rows, kept_together(note))]


def _pair_row(pair: Mapping[str, Measurement], page: Page, *, told: bool) -> list[Cell]:
    one = next(iter(pair.values()))
    subject = [Cell(page.subject(one.about))] if told else []
    number = Cell(metric_info(one.metric).title)
    return [
        *subject,
        number,
        *(compact_cell(pair.get(when)) for when in (BEFORE, AFTER)),
        Cell(count(one.images), one.images),
    ]


def _names(curves: Sequence[Curve], page: Page) -> list[str]:
    return [page.subject(curve.about) or str(curve.about.get("model", "the model")) for curve in curves]


def confidence_details(page: Page) -> list[str]:
    """Whether the model is overconfident or underconfident."""
    found = [one for one in whole_numbers(page.results.measurements) if one.metric == "overconfidence"]
    return [
        f"{opened(page.subject(one.about), _trust(one, one.interval))} ({evidence(one)})." for one in found if one.interval
    ]


def _trust(found: Measurement, interval: Interval) -> str:
    gap = figure(abs(found.value), "points").lstrip("+")
    if interval.low > 0:
        return f"Overconfident, on average by {gap}"
    if interval.high < 0:
        return f"Underconfident, on average by {gap}"
    return f"No significant over- or underconfidence: {figure(found.value, 'points')} on average"


def by_chance(found: Measurement, page: Page) -> str:
    """How much of an RMS calibration error is within chance."""
    chance = named(whole_numbers(page.results.measurements), "chance_calibration_error")
    if found.metric != "rms_calibration_error" or not chance:
        return ""
    return f"up to {figure(chance[0].value, 'share')} is within chance"


SECTION = SectionMaker(
    NAMES,
    draw_calibration,
    details=confidence_details,
    minor_numbers=("rms_calibration_error", "overconfidence"),
    remark=by_chance,
)
