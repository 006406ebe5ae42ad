"""One photo varied step by step: predictions, OOD scores and the pictures themselves."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports import charts
from shiftproof.reports.page import Page, curves_named, galleries_named, named
from shiftproof.reports.parts import Chart, Heading, Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import curve_table
from shiftproof.reports.words import opened
from shiftproof.studies.ood.findings import detector_of, written
from shiftproof.types import Curve, Finding

NAMES = frozenset({"prediction_kept_share", "probe_probability", "probe_confidence", "probe_percentile", "probe_pictures"})

MOST_LINES = 6
"""Lines that one drawing can hold; the rest are in its figures."""

FIRST_DRAWN = ("msp", "energy", "max_cosine", "vim", "mahalanobis", "knn")
"""Detectors of different kinds: by confidence, feature norm, and feature distance."""


def probe_headlines(page: Page) -> list[str]:
    """In how many variations the prediction stays that of the photo."""
    return [
        f"{opened(page.subject(one.about), varied_title(one))}: {round(one.value * one.images)} of {one.images} "
        f"variations are predicted as {one.about.get('class')}, like the photo."
        for one in named(page.results.shown, "prediction_kept_share")
    ]


def varied_title(finding: Finding) -> str:
    """What was varied, as a heading.

    >>> varied_title(Curve("probe_confidence", {"varied": "motion_blur"}, "", "", (), (), 0, {}))
    'Motion blur'
    """
    return str(finding.about.get("varied", "")).replace("_", " ").capitalize()


def draw_probe(findings: Sequence[Finding], page: Page) -> Section:
    """For each variation its pictures, their predictions and the OOD scores."""
    parts: list[Part] = []
    for title in dict.fromkeys(map(varied_title, findings)):
        found = [finding for finding in findings if varied_title(finding) == title]
        parts.append(Heading(title))
        parts += [
            *_answers(curves_named(found, "probe_probability"), curves_named(found, "probe_confidence")),
            *_places(curves_named(found, "probe_percentile")),
            *(page.pictures(gallery) for gallery in galleries_named(found, "probe_pictures")),
        ]
    lead = "The same photo, varied step by step: when does the prediction change, and does an OOD score respond?"
    return Section("probe", "One photo, varied", lead, parts, answer=probe_headlines(page))


def _answers(probabilities: Sequence[Curve], confidences: Sequence[Curve]) -> list[Part]:
    if not probabilities:
        return []
    names = [
        *(f"{curve.about.get('class')} ({curve.about.get('model')})" for curve in probabilities),
        *(f"top-1 confidence ({curve.about.get('model')})" for curve in confidences),
    ]
    note = "Where the lines separate, the prediction changed."
    return [_chart("Confidence", [*probabilities, *confidences], names, note)]


def _places(curves: Sequence[Curve]) -> list[Part]:
    if not curves:
        return []
    curves = sorted(curves, key=lambda curve: _place_in(FIRST_DRAWN, detector_of(curve)))
    names = [written(detector_of(curve)) for curve in curves]
    note = "0 % is below the OOD score of every OOD image, 100 % above all of them."
    return [_chart("Percentile among the OOD images", curves, names, note)]


def _place_in(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _chart(title: str, curves: Sequence[Curve], names: Sequence[str], note: str) -> Chart:
    drawn, told = curves[:MOST_LINES], names[:MOST_LINES]
    if len(curves) > MOST_LINES:
        note += f" {len(curves) - MOST_LINES} more are in the data."
    described = "; ".join(
        f"{name} {', '.join(f'{100 * y:.0f} %' for y in curve.y)}" for curve, name in zip(drawn, told, strict=True)
    )
    spec = charts.lines(drawn, told, description=f"{title} by {curves[0].x_label}: {described}.", shares=True)
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


SECTION = SectionMaker(NAMES, draw_probe, headlines=probe_headlines)
