"""The contents of a report: its summary, its sections and the provenance of the numbers.

Studies bring theirs by `StudyKind.section`; those of no study are in `catalog.SECTIONS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof import catalog
from shiftproof.datasets.layout import published_dataset
from shiftproof.errors import BrokenPlugin, listed
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, counted, figure_and_unit, images, labels_missing, span, unit_of_evidence
from shiftproof.reference.citations import cite
from shiftproof.reports.page import Page, by_subject, name_of, whole_numbers
from shiftproof.reports.parts import Cell, Code, Column, Definitions, Folded, Part, Prose, Section, Table
from shiftproof.reports.tables import conventions_of, draw_rest, in_words, key_title, side_by_side
from shiftproof.reports.verdict import FirstPage, first_page
from shiftproof.reports.words import kept_together, moment
from shiftproof.types import EXAMPLES, DatasetCard, Finding, Gallery, Measurement, ModelCard, Results


def _nothing(_: Page) -> list[str]:
    return []


@dataclass(frozen=True)
class SectionMaker:
    """Names of findings, what draws them, and what the summary says of them; the first maker that knows a name gets it."""

    names: frozenset[str]
    draw: Callable[[Sequence[Finding], Page], Section]
    first: bool = False  # before the sections of the other studies
    headlines: Callable[[Page], list[str]] = _nothing  # opening sentences of the summary
    details: Callable[[Page], list[str]] = _nothing  # further sentences, of one model on one dataset
    verdicts: Callable[[Page], list[str]] = _nothing  # further sentences, of several
    key_numbers: tuple[str, ...] = ()  # metrics of the summary's tiles and table
    minor_numbers: tuple[str, ...] = ()  # the same, after the key numbers of all sections
    partial: tuple[str, ...] = ()  # metrics of one group among others, which are no numbers of the summary
    numbers: Callable[[Sequence[Measurement]], list[Measurement]] = lambda _: []  # more numbers for the summary
    tiles: Callable[[Page], list[tuple[str, Measurement]]] = lambda _: []  # numbers for tiles under titles of their own
    remark: Callable[[Measurement, Page], str] = lambda _, __: ""  # a clause in the tile of a number


def section_makers() -> list[SectionMaker]:
    """Every section that there is, in the order of a report."""
    of_studies = catalog.STUDIES.loaded(_section_of)
    found = [maker for _, maker in (*of_studies, *catalog.SECTIONS.loaded()) if maker is not None]
    return sorted(found, key=lambda maker: not maker.first)


def _section_of(kind: Any) -> SectionMaker | None:
    maker = kind.load_section()  # of a StudyKind, which is not known here
    if maker is None or isinstance(maker, SectionMaker):
        return maker
    raise BrokenPlugin(f"study {kind.title!r}", str(kind.section), "its section should be a SectionMaker")


def draw_sections(page: Page) -> list[Section]:
    """Every finding in exactly one section, unknown ones in a general one, and the provenance last."""
    left = [finding for finding in page.results.shown if name_of(finding) != EXAMPLES]
    sections = []
    for maker in section_makers():
        taken = [finding for finding in left if name_of(finding) in maker.names]
        left = [finding for finding in left if name_of(finding) not in maker.names]
        if taken:
            sections.append(maker.draw(taken, page))
    if left:
        sections.append(draw_rest(left, page))
    return [*sections, *draw_origins(page.results)]


MOST_HEADLINES = 4
MOST_TILES = 7


@dataclass(frozen=True)
class Tile:
    """One number in large type, with its CI and its images."""

    title: str
    value: str
    unit: str
    detail: str


@dataclass(frozen=True)
class Summary:
    first: FirstPage | None  # the verdict; None where there is nothing to judge
    headlines: Sequence[str]
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    table: Table | None  # in place of tiles where there are several models or datasets
    evidence: str  # what a CI means, and what one cluster is
    warnings: Sequence[str]
    not_measured: int  # how many things; the section of that name has them


def summarise(page: Page) -> Summary:
    """The summary: of one model on one dataset in sentences and tiles, of several in a table."""
    measurements, makers = page.results.measurements, section_makers()
    partial = {name for maker in makers for name in maker.partial}
    whole = [found for found in whole_numbers(measurements) if found.metric not in partial]
    overall = [*whole, *(found for maker in makers for found in maker.numbers(measurements))]
    alone = len(by_subject(overall)) <= 1
    return Summary(
        first=first_page(page),
        headlines=_headlines(makers, page),
        sentences=[kept_together(told) for maker in makers for told in (maker.details if alone else maker.verdicts)(page)],
        tiles=_tiles(makers, overall, page) if alone else [],
        table=None if alone else _side_by_side(makers, overall, page),
        evidence=unit_of_evidence(page.results) if any(one.interval for one in measurements) else "",
        warnings=_warnings(page),
        not_measured=len(page.results.skipped),
    )


def _headlines(makers: Sequence[SectionMaker], page: Page) -> list[str]:
    """A sentence for each study; of several models only those of the first study, the table has the rest."""
    told = [sentences[:MOST_HEADLINES] for maker in makers if (sentences := maker.headlines(page))]
    if not told:
        return [labels_missing(page.results) or f"{count(len(page.results.measurements))} measurements of {page.title}."]
    return [sentence for sentences in (told[:1] if len(page.models) > 1 else told) for sentence in sentences]


def _key_numbers(makers: Sequence[SectionMaker]) -> list[str]:
    keys = [name for maker in makers for name in maker.key_numbers]
    return [*keys, *(name for maker in makers for name in maker.minor_numbers)]


def _tiles(makers: Sequence[SectionMaker], overall: Sequence[Measurement], page: Page) -> list[Tile]:
    """The key numbers that there are, else the first of the others, and the images behind them."""
    key = [one for name in _key_numbers(makers) for one in overall if one.metric == name]
    titled = [found for maker in makers for found in maker.tiles(page)]
    return [
        *(_tile(found, makers, page) for found in (key or overall)[: MOST_TILES - len(titled)]),
        *(dataclasses.replace(_tile(found, makers, page), title=title) for title, found in titled),
        *(_image_tile(card) for card in (_told_of(page) if overall or titled else [])),
    ]


def _tile(found: Measurement, makers: Sequence[SectionMaker], page: Page) -> Tile:
    info = metric_info(found.metric)
    value, unit = figure_and_unit(found.value, info.unit)
    details = [str(found.about["group"])] if "group" in found.about else []
    if "k" in found.about:
        details.append(f"k = {found.about['k']}")
    if "iou" in found.about:
        details.append(f"IoU {found.about['iou']}")
    if found.ends:
        details.append(span(found.ends, info.unit))
    details += [told for maker in makers if found.metric in maker.names and (told := maker.remark(found, page))]
    return Tile(info.title, value, unit, " · ".join([*details, images(found.images)]))


def _told_of(page: Page) -> list[DatasetCard]:
    """The datasets that numbers are about; others, such as training images, have their cards below."""
    cards = page.results.datasets
    return [card for card in cards if card.name in page.datasets] or list(cards)


def _image_tile(card: DatasetCard) -> Tile:
    aside = count(len(card.skipped_images))
    return Tile(
        "Images", count(card.images - len(card.skipped_images)), "", f"{count(card.labelled)} labelled, {aside} skipped"
    )


def _side_by_side(makers: Sequence[SectionMaker], overall: Sequence[Measurement], page: Page) -> Table:
    """The key numbers, or all where none is there."""
    found = {one.metric for one in overall}
    metrics = [name for name in _key_numbers(makers) if name in found] or list(dict.fromkeys(one.metric for one in overall))
    return side_by_side("Side by side", overall, metrics, page)


def _warnings(page: Page) -> list[str]:
    aside = [
        f"{count(len(card.skipped_images))} of {images(card.images)} of {card.name} could not be read; "
        "they are in no number and are listed below."
        for card in page.results.datasets
        if card.skipped_images
    ]
    judged = any(one.axes for one in page.results.profiles)  # else it is the headline
    missing = filter(None, [labels_missing(page.results) if judged else ""])
    return [*missing, *page.results.warnings, *aside]


def draw_origins(results: Results) -> list[Section]:
    """The sections that close every report."""
    subjects: list[Part] = [
        *(_model(card) for card in results.models),
        *(_dataset(card) for card in results.datasets),
        *_credits(results.datasets),
    ]
    aside = [(card.name, image) for card in results.datasets for image in card.skipped_images]
    sections = [Section("subjects", "Models and datasets", "", subjects)] if subjects else []
    if results.skipped:
        lead = "Each with what it would need."
        told = f"{counted(len(results.skipped), 'thing')} could not be measured."
        sections.append(Section("not-measured", "Not measured", lead, [Prose(results.skipped)], answer=[told]))
    if aside:
        rows = [[Cell(name), Cell(image.id), Cell(image.reason)] for name, image in aside]
        table = Table(f"{count(len(rows))} skipped", [Column("Dataset"), Column("Image"), Column("Reason")], rows)
        lead = "These could not be read. They are in no other number."
        sections.append(Section("skipped-images", "Skipped images", lead, [table]))
    lead = "Numbers are comparable only where these agree."
    if tables := [*_glossary(results), *_conventions(results)]:
        sections.append(Section("conventions", "Conventions", lead, tables))
    return [*sections, _citations(results), Section("origin", "Provenance", "", _origin(results))]


def _citations(results: Results) -> Section:
    """The works behind the numbers, and their BibTeX."""
    works = cite(results)
    named = [(work, dict.fromkeys(map(_cited_for, work.behind))) for work in works]
    rows = [[Cell(work.in_a_line), Cell(listed(behind, most=6))] for work, behind in named if behind]
    bibtex = Folded("BibTeX", [Code("BibTeX", "\n\n".join(work.bibtex for work in works))])
    tables = [Table("Works", [Column("Work"), Column("Used for")], rows)] if rows else []
    return Section("citations", "What to cite", "The works that these numbers stem from, and shiftproof.", [*tables, bibtex])


def _cited_for(entry: str) -> str:
    """An entry as people call it."""
    kind, _, name = entry.partition("/")
    if kind == "metrics":
        return metric_info(name).title
    return published_dataset(name).title if kind == "published" else name.replace("_", " ")


def _model(card: ModelCard) -> Definitions:
    entries = {
        "Companion": card.companion,
        "Gives": card.gives,
        "Classes": "not declared" if card.classes is None else count(card.classes),
        "Preprocessing": [f"{name}: {value}" for name, value in card.preprocessing.items()],
        "Trained on": card.seen.training_data,
        "Augmentations": ", ".join(card.seen.augmentations) or "not declared",
        "Filter model of": ", ".join(card.seen.filtered) or "none declared",
        "Notes": card.notes,
        "Fingerprint": card.fingerprint,
    }
    what = "Companion of a model" if card.companion else "Model"
    return Definitions(f"{what}: {card.name}", {name: value for name, value in entries.items() if value})


def _dataset(card: DatasetCard) -> Definitions:
    entries = {
        "Images": f"{count(card.images)}, {count(card.labelled)} of them labelled",
        "Clusters": counted(card.clusters, card.unit) if card.clusters is not None else "one per image",
        "Skipped": count(len(card.skipped_images)),
        "Classes": "not declared" if card.classes is None else count(card.classes),
        "Location": card.location or "in memory",
        "Notes": card.notes,
        "Fingerprint": card.fingerprint,
    }
    return Definitions(f"Dataset: {card.name}", {name: value for name, value in entries.items() if value})


def _credits(cards: Sequence[DatasetCard]) -> list[Definitions]:
    """Source and licence of the images, once for all datasets that share them."""
    named: dict[tuple[str, ...], list[str]] = {}
    for card in cards:
        named.setdefault(card.credits, []).append(card.name)
    entries = {", ".join(names): told for told, names in named.items() if told}
    return [Definitions("Credits", entries)] if entries else []


def _glossary(results: Results) -> list[Table]:
    """The description of each metric, and which direction is better."""
    infos = [metric_info(name) for name in dict.fromkeys(found.metric for found in results.measurements)]
    better = {"high": "higher", "low": "lower", None: "neither"}
    rows = [[Cell(info.title), Cell(info.description), Cell(better[info.direction])] for info in infos if info.description]
    columns = [Column("Metric"), Column("Description"), Column("Better")]
    return [Table("Metrics", columns, rows)] if rows else []


def _conventions(results: Results) -> list[Table]:
    """A row for each value of each convention, with the metrics it holds for."""
    numbers = [finding for finding in results.shown if not isinstance(finding, Gallery)]
    titles = dict.fromkeys(metric_info(name_of(finding)).title for finding in numbers)
    taken: dict[tuple[str, str], dict[str, None]] = {}
    for finding in numbers:
        for choice in conventions_of(finding).items():
            taken.setdefault(choice, {})[metric_info(name_of(finding)).title] = None
    rows = [
        [
            Cell(key_title(choice)),
            Cell(kept_together(in_words(choice, value))),
            Cell(_some_of(found, titles)),
        ]
        for (choice, value), found in taken.items()
    ]
    return (
        [Table("Conventions of each metric", [Column("Convention"), Column("Value"), Column("Metrics")], rows)]
        if rows
        else []
    )


def _some_of(found: Iterable[str], every: Iterable[str]) -> str:
    """Which of all metrics; of most of them, which not.

    >>> _some_of(["AUROC"], ["AUROC", "AURC", "FPR"]), _some_of(["AUROC", "AURC"], ["AUROC", "AURC", "FPR"])
    ('AUROC', 'all but: FPR')
    """
    these, others = list(found), [one for one in every if one not in set(found)]
    if not others:
        return "all"
    return ", ".join(these) if len(these) <= len(others) else f"all but: {', '.join(others)}"


def _origin(results: Results) -> list[Part]:
    made = {"Made": moment(results.made), **results.versions}
    return [
        *([Code("Command", results.command)] if results.command else []),
        Definitions("Time and versions", {name: value for name, value in made.items() if value}),
    ]
