"""The report's section on images without labels: the estimated accuracies, and how far such estimates were off."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import evidence, figure
from shiftproof.reports.page import Page, models_of, named
from shiftproof.reports.parts import Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table
from shiftproof.reports.words import opened
from shiftproof.types import Finding

NAMES = frozenset({"estimated_accuracy", "estimate_error", "estimate_coverage"})


def draw_estimate(findings: Sequence[Finding], page: Page) -> Section:
    """Estimates by dataset; then the errors of ours beside those of the published ways."""
    several = ["model"] if len(models_of(findings)) > 1 else []
    found = named(findings, "estimated_accuracy")
    tried = [one for name in ("estimate_error", "estimate_coverage") for one in named(findings, name)]
    details: list[Part] = [columns_table("How far estimates were off", tried, [*several, "estimate"])] if tried else []
    main: list[Part] = [columns_table("Estimated accuracy", found, [*several, "dataset"])] if found else []
    lead = "Accuracy on images that nobody has labelled, estimated from what the model says of them."
    return Section("estimate", "Accuracy without labels", lead, details, main, estimate_headlines(page))


def estimate_headlines(page: Page) -> list[str]:
    """The estimate of each dataset, in a sentence."""
    return [
        opened(page.subject(one.about), f"An estimated {figure(one.value, 'share')} of the unlabelled images of ")
        + f"{one.about.get('dataset')} are classified correctly ({evidence(one)})."
        for one in named(page.results.shown, "estimated_accuracy")
    ]


SECTION = SectionMaker(NAMES, draw_estimate, headlines=estimate_headlines)
