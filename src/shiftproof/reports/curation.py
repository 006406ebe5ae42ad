"""How a set was made: what every step left, how far people agreed, and pictures of what they kept and rejected."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.boxed_pictures import boxed_pictures
from shiftproof.reports.funnels import funnel
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.tables import compact_cell, measurement_table, number_table
from shiftproof.reports.words import count, evidence, of_hundred
from shiftproof.types import Finding, Measurement

AGREEMENT = (
    "kept_share",
    "percent_agreement",
    "fleiss_kappa",
    "krippendorff_alpha",
    "votes_with_verification",
    "votes_of_everybody",
)
OF_PEOPLE = {
    "agreement_with_others": "As others",
    "known_answers_right": "Known answers right",
    "seconds_to_answer": "Seconds",
}
NAMES = frozenset(
    {
        "left_after_step",
        *AGREEMENT,
        *OF_PEOPLE,
        "rejection_share",
        "failure_mode_share",
        "kept_items",
        "rejected_items",
    }
)


def draw_curation(findings: Sequence[Finding], page: Page) -> Section:
    """The funnel, agreement, reasons, failure modes, reviewers, and both galleries."""
    numbers = [one for name in AGREEMENT for one in named(findings, name)]
    galleries = [gallery for name in ("kept_items", "rejected_items") for gallery in galleries_named(findings, name)]
    parts: list[Part] = [
        *_funnel(named(findings, "left_after_step")),
        *([number_table("What people agreed on", numbers, page)] if numbers else []),
        *_shares("Why they rejected it", named(findings, "rejection_share"), "reason", "of what was rejected"),
        *_shares("Why models fail", named(findings, "failure_mode_share"), "failure_mode", "of what was looked at"),
        *_people([one for name in OF_PEOPLE for one in named(findings, name)]),
        *(boxed_pictures(gallery, page, abreast=int(gallery.about["abreast"])) for gallery in galleries),
    ]
    lead = "From everything there was to what people kept. Votes are blind; more than half of who judge an item keep it."
    return Section("curation", "How the set was made", lead, parts)


def curation_headlines(page: Page) -> list[str]:
    """What people did with what they were asked about, in a sentence."""
    kept = named(page.results.findings, "kept_share")
    agreed = named(page.results.findings, "percent_agreement")
    sentences = [f"{of_hundred(one.value)} images that people decided about were kept ({evidence(one)})." for one in kept]
    return sentences + [
        f"{of_hundred(one.value)} pairs of first votes on the same item agree ({count(one.images)} items)." for one in agreed
    ]


def _funnel(steps: Sequence[Measurement]) -> list[Chart]:
    if not steps:
        return []
    title = "What every step left"
    rows = [[Cell(str(one.about["step"])), Cell(count(round(one.value)), one.value)] for one in steps]
    told = "; ".join(f"{one.about['step']} {count(round(one.value))}" for one in steps)
    spec = funnel(steps, description=f"{title}: {told}.")
    return [Chart(title, spec, Table(title, [Column("Step"), Column("Left", True)], rows))]


def _shares(title: str, found: Sequence[Measurement], key: str, of_what: str) -> list[Part]:
    if not found:
        return []
    figures = measurement_table(title, found, value_title="Share", keys=[key])
    labels = [str(one.about[key]) for one in found]
    return [dot_chart(title, found, figures, x_title=f"share {of_what}", labels=labels)]


def _people(found: Sequence[Measurement]) -> list[Table]:
    """A row for each reviewer, a column for each number."""
    by_person: dict[str, dict[str, Measurement]] = {}
    for one in found:
        by_person.setdefault(str(one.about["reviewer"]), {})[one.metric] = one
    columns = [Column("Reviewer"), *(Column(title, True) for title in OF_PEOPLE.values()), Column("Answers", True)]
    rows = [
        [Cell(name), *(compact_cell(numbers.get(metric)) for metric in OF_PEOPLE), _answers(numbers)]
        for name, numbers in sorted(by_person.items())
    ]
    return [Table("How each person worked", columns, rows)] if rows else []


def _answers(numbers: dict[str, Measurement]) -> Cell:
    most = max(one.images for one in numbers.values())
    return Cell(count(most), most)
