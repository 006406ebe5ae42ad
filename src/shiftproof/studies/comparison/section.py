"""Models against each other on the same images; a model is called better only where a paired test is significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Prose, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, dot_chart, number_cells
from shiftproof.reports.words import kept_together
from shiftproof.studies.evidence import verdicts
from shiftproof.types import Finding, Measurement

MOST_VERDICTS = 3

NAMES = frozenset({"accuracy_difference", "accuracy_difference_p", "shared_errors", "agreement", "disagreements"})


def draw_comparison(findings: Sequence[Finding], page: Page) -> Section:
    """What can be said of each pair, how far apart they are, and images on which they differ."""
    found = [finding for finding in findings if isinstance(finding, Measurement)]
    differences = named(findings, "accuracy_difference")
    told = [kept_together(f"{verdict.text}.") for verdict in verdicts(found)] if differences else []
    main: list[Part] = [_chart(differences, _pairs(found, page), page)] if differences else []
    details: list[Part] = [
        *([Prose(told)] if len(told) > MOST_VERDICTS else []),
        *([_pairs(found, page)] if found and not differences else []),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "disagreements")),
    ]
    lead = "Pairs of models on the same images. A model is called better only where the difference is significant."
    answer = (
        told if len(told) <= MOST_VERDICTS else [*told[:MOST_VERDICTS], f"{count(len(told))} pairs are compared in all."]
    )
    return Section("comparison", "Comparison", lead, details, main, answer)


def _chart(differences: Sequence[Measurement], figures: Table, page: Page) -> Part:
    labels = [_pair_name(one, page) for one in differences]
    note = "Above zero the first model is better; a CI that covers zero is not significant."
    return dot_chart("Differences in accuracy", differences, figures, x_title="points of accuracy", labels=labels, note=note)


def _pair_name(found: Measurement, page: Page) -> str:
    on = f" on {found.about['dataset']}" if len(page.datasets) > 1 else ""
    return f"{found.about['model']} − {found.about['versus']}{on}"


def _pairs(found: Sequence[Measurement], page: Page) -> Table:
    """A row for each pair of models, a column for each number."""
    pairs: dict[str, dict[str, Measurement]] = {}
    for one in found:
        pairs.setdefault(_pair_name(one, page), {})[one.metric] = one
    metrics = list(dict.fromkeys(one.metric for one in found))
    columns = [Column("Pair"), *(Column(metric_info(metric).title, True) for metric in metrics), Column("Images", True)]
    rows = [
        [Cell(name), *(compact_cell(numbers.get(metric)) for metric in metrics), _images(numbers)]
        for name, numbers in pairs.items()
    ]
    return Table("Pair by pair", columns, rows)


def _images(numbers: Mapping[str, Measurement]) -> Cell:
    return number_cells(next(iter(numbers.values())))[-1]


def comparison_verdicts(page: Page) -> list[str]:
    """Which of two models is better, for the first pairs."""
    sentences = [f"{verdict.text}." for verdict in verdicts(page.results.measurements)]
    more = [f"{len(sentences) - MOST_VERDICTS} more pairs are compared below."] if len(sentences) > MOST_VERDICTS else []
    return [*sentences[:MOST_VERDICTS], *more]


SECTION = SectionMaker(NAMES, draw_comparison, first=True, verdicts=comparison_verdicts)
