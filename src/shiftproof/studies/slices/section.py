"""The report's section on slices: which groups of images go wrong together, by how much, and pictures of them."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import evidence
from shiftproof.reports.page import Page, galleries_named, models_of, named
from shiftproof.reports.parts import Part, Prose, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table
from shiftproof.types import Finding, Measurement

NAMES = frozenset({"confirmed_slices", "slice_accuracy", "slice_gap", "slice_gap_p", "slice_examples"})


def draw_slices(findings: Sequence[Finding], page: Page) -> Section:
    """The slices in a table, what each has in common and how the gate names it; then their pictures."""
    several = ["model"] if len(models_of(findings)) > 1 else []
    gaps = named(findings, "slice_gap")
    numbers = [one for name in ("slice_accuracy", "slice_gap", "slice_gap_p") for one in named(findings, name)]
    table: list[Part] = (
        [columns_table("Slices, confirmed on held-out images", numbers, [*several, "slice", "found by"])] if numbers else []
    )
    told = [_tried(one) for one in named(findings, "confirmed_slices")]
    common = [f"{_name(one)}: {one.convention['in common']}." for one in gaps if "in common" in one.convention]
    rules = [f"{_name(one)}: {one.convention['gate rule']}" for one in gaps]
    pictures = [page.pictures(gallery) for gallery in galleries_named(findings, "slice_examples")]
    details: list[Part] = [
        *([Prose(["Over-represented in each slice:", *common])] if common else []),
        *(
            [Prose(["As rules of the gate, on the manifest that shiftproof slices --manifest writes:", *rules])]
            if rules
            else []
        ),
    ]
    lead = (
        "Groups of images with a high error rate: by facts (metadata) and pairs of them, class, WordNet, pixels, features."
    )
    return Section("slices", "Slices", lead, details, [*table, Prose(told), *pictures], slice_headlines(page))


def _tried(one: Measurement) -> str:
    return f"{int(one.value)} confirmed: {one.convention['tried']}; {one.convention['test']}."


def _name(one: Measurement) -> str:
    words = str(one.about["slice"])
    return f"{words[:1].upper()}{words[1:]}"


def slice_headlines(page: Page) -> list[str]:
    """The worst slice of each model, in a sentence."""
    worst: dict[tuple[str, str], Measurement] = {}
    for one in named(page.results.shown, "slice_gap"):
        worst.setdefault((str(one.about["model"]), str(one.about["dataset"])), one)
    return [
        f"{_name(one)}: {100 * one.value:.1f} points less accurate than the other images ({evidence(one)})."
        for one in worst.values()
    ]


SECTION = SectionMaker(NAMES, draw_slices, headlines=slice_headlines)
