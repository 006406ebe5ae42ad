"""What boxes come to, in sentences and numbers for the summary."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.detection import around_anchors, at_first_overlap
from shiftproof.reports.page import Page, by_subject, named
from shiftproof.reports.words import evidence, figure, opened
from shiftproof.types import Finding, Measurement


def detection_numbers(findings: Sequence[Finding]) -> list[Measurement]:
    """Mean average precision at the first overlap and, of objects of their class, around the anchors."""
    around = [one for one in around_anchors(findings) if one.about.get("task") == "detection"]
    return [*at_first_overlap(findings), *around]


def detection_headlines(page: Page) -> list[str]:
    """How precise each detector is, on the worst frames around anchors, and under corruption."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        for one in at_first_overlap(found):
            overlap = f"at an overlap of {one.about.get('iou')}"
            said = (
                f"Mean average precision is {figure(one.value, 'share')} {overlap} ({evidence(one)}){_worst_frames(found)}."
            )
            sentences.append(opened(page.subject(one.about), said))
        for one in named(found, "relative_performance_under_corruption"):
            said = f"Corruption leaves {figure(one.value, 'share')} of the mean average precision ({evidence(one)})."
            sentences.append(opened(page.subject(one.about), said))
    return sentences


def _worst_frames(found: Sequence[Finding]) -> str:
    """The precision around the anchors, where it was measured."""
    around = [one for one in detection_numbers(found) if one.metric == "pm_k_average_precision"]
    return "".join(
        f", on the worst frame within {one.about.get('k')} of each anchor {figure(one.value, 'share')}" for one in around
    )
