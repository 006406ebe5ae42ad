"""The page of a watched stream: has the OOD score drifted, how often does the guard abstain, what are scores like."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import count, figure, images, span
from shiftproof.reports import charts
from shiftproof.reports.page import Page, curves_named, named
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import curve_table, number_table
from shiftproof.types import Curve, Finding, Gallery

EVIDENCE, ABSTAINED = "drift_evidence_so_far", "abstained_by_window"
SCORES, REFUSED = "stream_scores", "abstained_images"
NUMBERS = ("abstained_share", "drift_evidence", "drift_alarm", "drift_start")
NAMES = frozenset({EVIDENCE, ABSTAINED, SCORES, REFUSED, *NUMBERS})
LEVEL = "evidence at which drift is reported"
"""Convention of a stream's numbers."""


def draw_watch(findings: Sequence[Finding], page: Page) -> Section:
    """The verdict, the evidence over time, shares by window, distributions of scores, and what was abstained on."""
    numbers = [one for metric in NUMBERS for one in named(findings, metric)]
    drawn = {
        EVIDENCE: ("Evidence of drift", "Without drift it seldom reaches the level."),
        ABSTAINED: ("Abstained, by window", "Beside the images that the guard was made with."),
        SCORES: ("OOD scores", "Cumulated: a curve to the right is more out-of-distribution."),
    }
    curves = {name: curves_named(findings, name) for name in drawn}
    main: list[Part] = [_chart(title, curves[name], note) for name, (title, note) in drawn.items() if curves[name]]
    galleries = [one for one in findings if isinstance(one, Gallery)]
    pictures: list[Part] = [page.pictures(one) for one in galleries] if page.open_image else []
    lead = "Images as they came, seen through the guard: evidence that OOD scores changed, and the share it abstains on."
    details: list[Part] = [number_table("Numbers", numbers, page)]
    return Section("watch", "The stream", lead, details, [*main, *pictures])


def _chart(title: str, curves: Sequence[Curve], note: str) -> Chart:
    names = [str(curve.about.get("series", title)) for curve in curves]
    shares = curves[0].name != EVIDENCE
    x = charts.channel("x", curves[0].x_label, {"zero": False})
    y = charts.channel("y", curves[0].y_label, {"zero": shares}, charts.PERCENT if shares else None)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in charts.curve_rows(curve, name)]
    description = f"{title}: {curves[0].y_label} against {curves[0].x_label}."
    return Chart(
        title, charts.banded_lines(rows, names, x, y, description=description), curve_table(title, curves, names), note
    )


def _verdict(page: Page) -> list[str]:
    """Whether there is drift, since when, and how often the guard abstains."""
    findings = page.results.shown
    found = {metric: named(findings, metric) for metric in NUMBERS}
    if not found["drift_evidence"]:
        return []
    evidence, share = found["drift_evidence"][0], found["abstained_share"][0]
    drift = f"No drift after {images(evidence.images)}"
    if found["drift_alarm"]:
        at, start = (count(int(found[metric][0].value)) for metric in ("drift_alarm", "drift_start"))
        drift = f"Drift: reported at image {at}, likely begun near image {start}"
    return [
        f"{drift}. The evidence is {evidence.value:.3g}; it is reported at {evidence.convention[LEVEL]}.",
        f"The guard abstained on {figure(share.value, 'share')} ({span(share.ends, 'share')}).",
    ]


SECTION = SectionMaker(NAMES, draw_watch, first=True, headlines=_verdict)
