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

NAMES = frozenset(
    {"estimated_accuracy", "estimated_group_accuracy", "published_estimate", "estimate_error", "estimate_coverage"}
)


def draw_estimate(findings: Sequence[Finding], page: Page) -> Section:
    """Estimates by dataset and slice; then the errors of ours beside those of the published ways."""
    several = ["model"] if len(models_of(findings)) > 1 else []

    def table(title: str, keys: Sequence[str], *metrics: str) -> list[Part]:
        found = [one for name in metrics for one in named(findings, name)]
        return [columns_table(title, found, [*several, *keys])] if found else []

    main = table("Estimated accuracy", ["dataset"], "estimated_accuracy")
    details = [
        *table("By slice", ["dataset", "fact", "group"], "estimated_group_accuracy"),
        *table("By published estimators", ["dataset", "estimate"], "published_estimate"),
        *table("Error of the estimators on held-out shifts", ["dataset", "estimate"], "estimate_error", "estimate_coverage"),
    ]
    lead = "Accuracy on unlabelled images, estimated from the model's predictions."
    return Section("estimate", "Accuracy without labels", lead, details, main, estimate_headlines(page))


def estimate_headlines(page: Page) -> list[str]:
    """The estimate of each dataset, in a sentence."""
    return [
        opened(page.subject(one.about), f"An estimated {figure(one.value, 'share')} of the unlabelled images ")
        + f"are classified correctly ({evidence(one)})."
        for one in named(page.results.shown, "estimated_accuracy")
    ]


SECTION = SectionMaker(NAMES, draw_estimate, headlines=estimate_headlines)
