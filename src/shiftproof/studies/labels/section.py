"""The report's section on labels: the accuracy before and after corrections, and the images whose label is likely wrong."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import evidence, figure
from shiftproof.reports.page import Page, galleries_named, models_of, named
from shiftproof.reports.parts import Part, Prose, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table
from shiftproof.reports.words import opened
from shiftproof.types import Finding

ACCURACIES = ("accuracy_as_labelled", "accuracy_as_corrected", "accuracy_by_correction")
NAMES = frozenset({*ACCURACIES, "contradicted_labels", "confirmed_label_errors", "likely_label_errors"})


def draw_labels(findings: Sequence[Finding], page: Page) -> Section:
    """Accuracies and error rates; then the pictures."""
    several = ["model"] if len(models_of(findings)) > 1 else []

    def table(title: str, *metrics: str) -> list[Part]:
        found = [one for name in metrics for one in named(findings, name)]
        return [columns_table(title, found, [*several, "dataset"])] if found else []

    corrected = named(findings, "accuracy_as_corrected")
    bias = [f"Of the accuracy after the review: {one.convention['bias']}." for one in corrected[:1]]
    main: list[Part] = [
        *table("Accuracy, as labelled and as corrected", *ACCURACIES),
        *table("Wrong labels", "contradicted_labels", "confirmed_label_errors"),
        *([Prose(bias)] if bias else []),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "likely_label_errors")),
    ]
    lead = "Images whose label is likely wrong, the least probable label first, by out-of-sample probabilities."
    return Section("labels", "Likely label errors", lead, [], main, label_headlines(page))


def label_headlines(page: Page) -> list[str]:
    """What the review changed; before it, where to begin."""
    changed = [
        opened(page.subject(one.about), f"Corrected labels change the accuracy by {figure(one.value, 'points')} ")
        + f"({evidence(one)})."
        for one in named(page.results.shown, "accuracy_by_correction")
    ]
    return changed or [
        opened(page.subject(one.about), f"{len(one.items):,} labels are the least probable ones: look at these first.")
        for one in galleries_named(page.results.shown, "likely_label_errors")
    ]


SECTION = SectionMaker(NAMES, draw_labels, headlines=label_headlines)
