"""What calibration says of a model: how far its confidence is from its accuracy, and on which side."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Candidate, Judge, Judged, Said, rule
from shiftproof.metrics.wording import points
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "calibration"
ALLOWED = 0.05
"""How far mean confidence may lie above accuracy."""


def axes(judged: Judged) -> Iterator[Axis]:
    standard = rule("rms_calibration_error", weak=0.10, good=ALLOWED, worse="above")
    for found in judged.overall("rms_calibration_error"):
        yield Axis("calibration", "Calibration error (RMS)", found, SECTION, standard)


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Confidence above accuracy on all images, and below it."""
    over = Standard("rule: mean confidence at most 5 points above accuracy", ALLOWED, worse="above")
    under = Standard("rule: mean confidence at most 5 points below accuracy", -ALLOWED, worse="below")
    for found in judged.overall("overconfidence"):
        yield Candidate(found, over, "confidence", "over", SECTION, _say)
        yield Candidate(found, under, "confidence", "under", SECTION, _say)


def _say(judged: Judged, found: Measurement) -> Said:
    told = "Fit a temperature on held-out images; this shows what it would mend."
    step = NextStep(told, {"calibration": {"thorough_calibration": True}}, "calibration.html")
    if found.value < 0:
        return Said(f"Under-confident by {points(found.value)}", step)
    return Said(f"Over-confident by {points(found.value)}", step, judged.example(found, {"shows": "overconfidence"}))


JUDGE = Judge(axes, candidates)
