"""Human and model accuracy on the same images: overall, by difficulty, and for pairs of participants."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.accuracy import SUBSETS
from shiftproof.metrics.wording import count, evidence
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import NUMBER_COLUMNS, dot_chart, measurement_table, number_cells
from shiftproof.reports.words import of_hundred
from shiftproof.types import Finding, Measurement

OVERALL = ("human_accuracy", "human_test_accuracy")
BY_SUBSET = ("subset_accuracy", "human_subset_accuracy")
NAMES = frozenset({*OVERALL, *BY_SUBSET, "subset_share", "both_correct", "class_lookups", "hard_for_people"})

EXPLAINED = {"easy": "easy: correct by all", "middle": "middle: correct by some", "hard": "hard: correct by none"}


def draw_human_test(findings: Sequence[Finding], page: Page) -> Section:
    """Human and model accuracy, pairs of participants, the subsets by difficulty, and images misclassified by all."""
    parts: list[Part] = [
        *_tables(named(findings, "both_correct")),
        *_shares(named(findings, "subset_share")),
        *_by_subset([one for name in BY_SUBSET for one in named(findings, name)]),
        *_lookups(named(findings, "class_lookups")),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "hard_for_people")),
    ]
    lead = "Participants were trained and qualified, then classified each image; models were scored among the same classes."
    main = _overall([one for name in OVERALL for one in named(findings, name)])
    return Section("human-test", "Human and model accuracy", lead, parts, main, human_test_headlines(page))


def human_test_headlines(page: Page) -> list[str]:
    """The accuracy of each participant, in a sentence."""
    return [
        f"{one.about['reviewer']}: {of_hundred(one.value).lower()} images are classified correctly ({evidence(one)})."
        for one in named(page.results.shown, "human_accuracy")
    ]


def who(found: Measurement) -> str:
    """The participant or the model that a number is of."""
    return str(found.about.get("reviewer") or found.about["model"])


def _overall(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    title = "Accuracy on the same images"
    figures = Table(
        title, [Column("Participant or model"), *NUMBER_COLUMNS], [[Cell(who(one)), *number_cells(one)] for one in found]
    )
    series = ["Participants" if "reviewer" in one.about else "Models" for one in found]
    labels = [who(one) for one in found]
    return [dot_chart(title, found, figures, x_title="accuracy", labels=labels, series=series)]


def _tables(found: Sequence[Measurement]) -> list[Part]:
    """A row for every pair of participants: both correct, one alone, neither."""
    pairs: dict[str, list[Measurement]] = {}
    for one in found:
        pairs.setdefault(str(one.about["people"]), []).append(one)
    titles = ("Both correct", "Only the first", "Only the second", "Neither")
    columns = [Column("Participants"), *(Column(title, True) for title in titles), Column("Images", True)]
    rows = [[Cell(people), *map(_count, four), _images(four[0])] for people, four in pairs.items()]
    return [Table("Pairs of participants", columns, rows)] if rows else []


def _shares(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    title = "Difficulty for participants"
    figures = measurement_table(title, found, value_title="Share", keys=["subset"])
    labels = [EXPLAINED[str(one.about["subset"])] for one in found]
    return [dot_chart(title, found, figures, x_title="share of images", labels=labels)]


def _by_subset(found: Sequence[Measurement]) -> list[Part]:
    """Models on each subset; participants where they differ."""
    if not any("model" in one.about for one in found):
        return []
    title = "Accuracy by difficulty for participants"
    ordered = [one for subset in SUBSETS for one in found if one.about["subset"] == subset]
    rows = [[Cell(str(one.about["subset"])), Cell(who(one)), *number_cells(one)] for one in ordered]
    figures = Table(title, [Column("Difficulty"), Column("Participant or model"), *NUMBER_COLUMNS], rows)
    labels, series = [EXPLAINED[str(one.about["subset"])] for one in ordered], [who(one) for one in ordered]
    return [dot_chart(title, ordered, figures, x_title="accuracy", labels=labels, series=series)]


def _lookups(found: Sequence[Measurement]) -> list[Part]:
    columns = [Column("Participant"), Column("Classes looked up", True), Column("Images", True)]
    rows = [[Cell(who(one)), _count(one), _images(one)] for one in found]
    return [Table("Classes looked up during the test", columns, rows)] if rows else []


def _count(found: Measurement) -> Cell:
    return Cell(count(round(found.value)), found.value)


def _images(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)


SECTION = SectionMaker(
    NAMES, draw_human_test, first=True, headlines=human_test_headlines, key_numbers=("human_test_accuracy",)
)
