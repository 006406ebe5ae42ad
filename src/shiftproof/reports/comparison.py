"""Models against each other on the same images; the word better only where a paired test bears it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Prose, Section, Table
from shiftproof.reports.tables import compact_cell, number_cells
from shiftproof.reports.words import kept_together
from shiftproof.studies.verdicts import verdicts
from shiftproof.types import Finding, Measurement

NAMES = frozenset({"accuracy_difference", "accuracy_difference_p", "shared_mistakes", "agreement", "disagreements"})


def draw_comparison(findings: Sequence[Finding], page: Page) -> Section:
    """What can be said of each pair, how far apart they are, and images on which they differ."""
    found = [finding for finding in findings if isinstance(finding, Measurement)]
    differences = named(findings, "accuracy_difference")
    parts: list[Part] = []
    if differences:
        parts += [
            Prose([kept_together(f"{verdict.text}.") for verdict in verdicts(found)]),
            _chart(differences, _pairs(found, page), page),
        ]
    elif found:
        parts.append(_pairs(found, page))
    parts += [page.pictures(gallery) for gallery in galleries_named(findings, "disagreements")]
    lead = "Pairs of models on the same images. Better is only said where chance is an unlikely explanation."
    return Section("comparison", "Comparison", lead, parts)


def _chart(differences: Sequence[Measurement], figures: Table, page: Page) -> Part:
    labels = [_pair_name(one, page) for one in differences]
    note = "Right of zero the first model of the pair is ahead; an interval that covers zero settles nothing."
    return dot_chart("Differences in accuracy", differences, figures, x_title="points of accuracy", labels=labels, note=note)


def _pair_name(found: Measurement, page: Page) -> str:
    on = f" on {found.about['image_set']}" if len(page.image_sets) > 1 else ""
    return f"{found.about['model']} − {found.about['versus']}{on}"


def _pairs(found: Sequence[Measurement], page: Page) -> Table:
    """A row for each pair of models, a column for each number."""
    pairs: dict[str, dict[str, Measurement]] = {}
    for one in found:
        pairs.setdefault(_pair_name(one, page), {})[one.metric] = one
    metrics = list(dict.fromkeys(one.metric for one in found))
    columns = [Column("Pair"), *(Column(meaning_of(metric).title, True) for metric in metrics), Column("Images", True)]
    rows = [
        [Cell(name), *(compact_cell(numbers.get(metric)) for metric in metrics), _images(numbers)]
        for name, numbers in pairs.items()
    ]
    return Table("Pair by pair", columns, rows)


def _images(numbers: Mapping[str, Measurement]) -> Cell:
    return number_cells(next(iter(numbers.values())))[-1]
