"""Whether the models notice new classes and their own failures: every detector, for both goals."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.detector_charts import (
    answered_at_risk,
    aurocs_by_goal,
    aurocs_by_model,
    beside_published,
    lead_over_baseline,
)
from shiftproof.reports.detector_curves import risk_coverage_chart, roc_charts
from shiftproof.reports.detector_findings import DetectorFindings, by_model
from shiftproof.reports.detector_tables import (
    OTHER_NUMBERS,
    detectors_by_goals,
    differences,
    each_outside_set,
    models_by_goals,
    other_numbers,
    parameters,
)
from shiftproof.reports.generic import draw_rest
from shiftproof.reports.model_means import other_means
from shiftproof.reports.page import Page, parts_of_each_set
from shiftproof.reports.parts import Heading, Part, Section
from shiftproof.reports.score_shapes import BY_ANSWER, answered_shapes, score_shapes
from shiftproof.reports.standings import detector_of
from shiftproof.types import Finding

NAMES = frozenset(
    {
        "auroc",
        *OTHER_NUMBERS,
        "auroc_difference",
        "auroc_difference_p",
        "mean_auroc",
        "auroc_spread",
        "model_mean",
        "model_spread",
        "roc",
        "risk_coverage",
        "score_distribution",
        BY_ANSWER,
    }
)


def draw_out_of_distribution(findings: Sequence[Finding], page: Page) -> Section:
    """All models together first, then each in detail."""
    of_detectors = [one for one in findings if detector_of(one)]
    parts = parts_of_each_set(of_detectors, lambda found: _parts(found, page))
    parts += draw_rest([one for one in findings if not detector_of(one)], page).parts
    lead = "A detector says how foreign an image looks. Does it find classes that the model never learned, and its mistakes?"
    return Section("novelty", "Novelty and failure", lead, parts)


def _parts(findings: Sequence[Finding], page: Page) -> list[Part]:
    models = by_model(findings)
    several = len(models) > 1
    together = [*models_by_goals(models, findings), *aurocs_by_model(models)] if several else []
    together += other_means(models, findings) if several else []
    return [*together, *(part for model in models for part in _details(model, page)), *parameters(models)]


def _details(found: DetectorFindings, page: Page) -> list[Part]:
    subject = page.subject({"model": found.model})
    return [
        *([Heading(subject)] if subject else []),
        *detectors_by_goals(found),
        *aurocs_by_goal(found),
        *lead_over_baseline(found),
        *roc_charts(found),
        *risk_coverage_chart(found),
        *answered_at_risk(found),
        *beside_published(found),
        *score_shapes(found),
        *answered_shapes(found),
        *each_outside_set(found),
        *other_numbers(found),
        *differences(found),
    ]
