"""How a dataset was made: items left after each step, inter-annotator agreement, and galleries of both outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import count, evidence, figure
from shiftproof.reports.charts import COLOURS, NARROW, Spec, channel, row_axis, start
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, dot_chart, measurement_table, number_table
from shiftproof.reports.words import of_hundred
from shiftproof.types import Finding, Measurement

BAR_HEIGHT = 30
LABELS = {"expr": f"{NARROW} ? 150 : 340"}
"""Pixels for the name of a step, which may be half a sentence."""


def funnel(steps: Sequence[Measurement], *, description: str) -> Spec:
    """A bar per step, the first at the top, with the number of items left and their share of those before the step."""
    lefts = [round(one.value) for one in steps]
    rows = [
        {
            "step": f"{place}. {one.about['step']}",
            "left": left,
            "text": count(left),
            "tip": count(left)
            if before is None
            else f"{count(left)}, {_share_of(left, before)} of the {count(before)} before",
        }
        for place, (one, left, before) in enumerate(zip(steps, lefts, [None, *lefts], strict=False), 1)
    ]
    x = channel("left", "left", {"zero": True, "nice": True}, {"format": ",d", "tickMinStep": 1})
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    y = {
        "field": "step",
        "type": "nominal",
        "sort": [row["step"] for row in rows],
        "axis": {**row_axis(), "labelLimit": LABELS},
    }
    told = [{"field": "step"}, {"field": "tip", "title": "left"}]
    return {
        **start(description, rows),
        "height": BAR_HEIGHT * len(rows),
        "encoding": {"y": y, "x": x, "tooltip": told},
        "layer": [
            {"mark": {"type": "bar", "color": COLOURS[0], "opacity": 0.75}},
            {"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": {"text": {"field": "text"}}},
        ],
    }


def _share_of(left: int, before: int) -> str:
    return figure(left / before, "share") if before else "none"


AGREEMENT = (
    "kept_share",
    "percent_agreement",
    "fleiss_kappa",
    "krippendorff_alpha",
    "votes_with_verification",
    "votes_of_everybody",
)
OF_PEOPLE = {
    "agreement_with_others": "Agreement with others",
    "gold_accuracy": "Accuracy on gold items",
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
        *([number_table("Inter-annotator agreement", numbers, page)] if numbers else []),
        *_shares("Reasons for rejection", named(findings, "rejection_share"), "reason", "of the rejected items"),
        *_shares("Failure modes", named(findings, "failure_mode_share"), "failure_mode", "of the reviewed images"),
        *_people([one for name in OF_PEOPLE for one in named(findings, name)]),
        *(boxed_pictures(gallery, page, abreast=int(gallery.about["abreast"])) for gallery in galleries),
    ]
    lead = "From the candidates to the kept items. Votes are blind; an item is kept by a majority of its reviewers."
    main = _funnel(named(findings, "left_after_step"))
    return Section("curation", "How the dataset was made", lead, parts, main, curation_headlines(page))


def curation_headlines(page: Page) -> list[str]:
    """The share of kept images and the agreement, in a sentence each."""
    kept = named(page.results.shown, "kept_share")
    agreed = named(page.results.shown, "percent_agreement")
    sentences = [f"{of_hundred(one.value)} reviewed images were kept ({evidence(one)})." for one in kept]
    return sentences + [f"{of_hundred(one.value)} pairs of first votes agree ({count(one.images)} items)." for one in agreed]


def _funnel(steps: Sequence[Measurement]) -> list[Chart]:
    if not steps:
        return []
    title = "Items left after each step"
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
    return [Table("Reviewers", columns, rows)] if rows else []


def _answers(numbers: dict[str, Measurement]) -> Cell:
    most = max(one.images for one in numbers.values())
    return Cell(count(most), most)


SECTION = SectionMaker(NAMES, draw_curation, first=True, headlines=curation_headlines)
