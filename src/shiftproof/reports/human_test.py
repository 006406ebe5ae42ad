"""How well people name the images, and models beside them: overall, where people differ, and where nobody was right."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.difficulty import SUBSETS
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Section, Table
from shiftproof.reports.tables import NUMBER_COLUMNS, measurement_table, number_cells
from shiftproof.reports.words import count, evidence, of_hundred
from shiftproof.types import Finding, Measurement

OVERALL = ("human_accuracy", "accuracy_beside_people")
BY_SUBSET = ("subset_accuracy", "human_subset_accuracy")
NAMES = frozenset({*OVERALL, *BY_SUBSET, "subset_share", "right_together", "class_lookups", "hard_for_people"})

EXPLAINED = {"easy": "easy: all right", "middle": "middle: some right", "hard": "hard: none right"}


def draw_human_test(findings: Sequence[Finding], page: Page) -> Section:
    """People and models side by side, two people against each other, the subsets, and what nobody named."""
    parts: list[Part] = [
        *_overall([one for name in OVERALL for one in named(findings, name)]),
        *_tables(named(findings, "right_together")),
        *_shares(named(findings, "subset_share")),
        *_by_subset([one for name in BY_SUBSET for one in named(findings, name)]),
        *_lookups(named(findings, "class_lookups")),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "hard_for_people")),
    ]
    lead = "People were trained, qualified, and named each image by one of the classes; models were scored among the same."
    return Section("human-test", "People beside models", lead, parts)


def human_test_headlines(page: Page) -> list[str]:
    """How often each person was right, in a sentence."""
    return [
        f"{one.about['reviewer']}: {of_hundred(one.value).lower()} images are named right ({evidence(one)})."
        for one in named(page.results.findings, "human_accuracy")
    ]


def who(found: Measurement) -> str:
    """The person or the model that a number is of."""
    return str(found.about.get("reviewer") or found.about["model"])


def _overall(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    title = "People and models on the same images"
    figures = Table(title, [Column("Who"), *NUMBER_COLUMNS], [[Cell(who(one)), *number_cells(one)] for one in found])
    series = ["People" if "reviewer" in one.about else "Models" for one in found]
    labels = [who(one) for one in found]
    return [dot_chart(title, found, figures, x_title="share of images right", labels=labels, series=series)]


def _tables(found: Sequence[Measurement]) -> list[Part]:
    """A row for every two people: both right, one alone, neither."""
    pairs: dict[str, list[Measurement]] = {}
    for one in found:
        pairs.setdefault(str(one.about["people"]), []).append(one)
    titles = ("Both right", "Only the first", "Only the second", "Neither")
    columns = [Column("People"), *(Column(title, True) for title in titles), Column("Images", True)]
    rows = [[Cell(people), *map(_count, four), _images(four[0])] for people, four in pairs.items()]
    return [Table("Two people at a time", columns, rows)] if rows else []


def _shares(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    title = "How hard the images are for people"
    figures = measurement_table(title, found, value_title="Share", keys=["subset"])
    labels = [EXPLAINED[str(one.about["subset"])] for one in found]
    return [dot_chart(title, found, figures, x_title="share of images", labels=labels)]


def _by_subset(found: Sequence[Measurement]) -> list[Part]:
    """Models on what is easy and hard for people; people themselves where they differ."""
    if not any("model" in one.about for one in found):
        return []
    title = "Accuracy by difficulty for people"
    ordered = [one for subset in SUBSETS for one in found if one.about["subset"] == subset]
    rows = [[Cell(str(one.about["subset"])), Cell(who(one)), *number_cells(one)] for one in ordered]
    figures = Table(title, [Column("Images"), Column("Who"), *NUMBER_COLUMNS], rows)
    labels, series = [EXPLAINED[str(one.about["subset"])] for one in ordered], [who(one) for one in ordered]
    return [dot_chart(title, ordered, figures, x_title="share of images right", labels=labels, series=series)]


def _lookups(found: Sequence[Measurement]) -> list[Part]:
    columns = [Column("Person"), Column("Classes looked up", True), Column("Images", True)]
    rows = [[Cell(who(one)), _count(one), _images(one)] for one in found]
    return [Table("Classes looked up during the test", columns, rows)] if rows else []


def _count(found: Measurement) -> Cell:
    return Cell(count(round(found.value)), found.value)


def _images(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)
