"""The first screen of a report: what a manager should know, in sentences, and the numbers worth remembering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.reports.page import SUBJECT, Page, by_subject, name_of
from shiftproof.reports.parts import Cell, Column, Table
from shiftproof.reports.tables import order_of
from shiftproof.reports.words import count, evidence, figure, images, metric_of, of_hundred, span
from shiftproof.studies.verdicts import verdicts
from shiftproof.types import Finding, Measurement

MOST_HEADLINES = 4


@dataclass(frozen=True)
class Tile:
    """One number in large type, and what stands behind it."""

    title: str
    value: str
    detail: str


@dataclass(frozen=True)
class Summary:
    headlines: Sequence[str]
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    table: Table | None  # in place of tiles where there are several models or image sets
    warnings: Sequence[str]
    not_measured: Sequence[str]


def summarise(page: Page) -> Summary:
    """What the results come to."""
    measurements = page.results.measurements
    overall = [found for found in measurements if set(found.about) <= set(SUBJECT)]
    subjects = by_subject(overall)
    return Summary(
        headlines=_headlines(overall, page),
        sentences=[*_weakest(measurements, page), *_confidence(overall, page), *_verdicts(measurements)],
        tiles=_tiles(overall, page) if len(subjects) == 1 else [],
        table=_side_by_side(overall, page) if len(subjects) > 1 else None,
        warnings=_warnings(page),
        not_measured=page.results.skipped,
    )


def _headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    found = [one for one in overall if one.metric == "top1_accuracy"]
    if not found:
        return [
            f"{count(len(page.results.measurements))} measurements of {_listed(page.models)} on {_listed(page.image_sets)}."
        ]
    return [_headline(one, page) for one in found[:MOST_HEADLINES]]


def _headline(found: Measurement, page: Page) -> str:
    subject = page.subject(found.about)
    share = of_hundred(found.value)
    opening = f"{subject}: {share[0].lower()}{share[1:]}" if subject else share
    return f"{opening} images are named right ({evidence(found)})."


def _weakest(measurements: Sequence[Measurement], page: Page) -> list[str]:
    return [
        f"{_opening(one, page)}Weakest group: {str(one.about['fact']).replace('_', ' ')} {one.about['group']}, "
        f"{figure(one.value, 'share')} right ({evidence(one)})."
        for one in measurements
        if one.metric == "worst_group_accuracy"
    ]


def _confidence(overall: Sequence[Measurement], page: Page) -> list[str]:
    return [
        f"{_opening(one, page)}{_trust(one)} ({evidence(one)})."
        for one in overall
        if one.metric == "overconfidence" and one.interval
    ]


def _trust(found: Measurement) -> str:
    low, high = found.interval or (-1.0, 1.0)
    gap = figure(abs(found.value), "points").lstrip("+")
    if low > 0:
        return f"Confidence is too high, on average by {gap}"
    if high < 0:
        return f"Confidence is too low, on average by {gap}"
    return f"On average confidence is neither surely too high nor too low: {figure(found.value, 'points')}"


def _opening(found: Measurement, page: Page) -> str:
    subject = page.subject(found.about)
    return f"{subject}: " if subject else ""


def _verdicts(measurements: Sequence[Measurement]) -> list[str]:
    return [f"{verdict.text}." for verdict in verdicts(measurements)]


def _tiles(overall: Sequence[Measurement], page: Page) -> list[Tile]:
    tiles = [
        Tile(metric_of(one.metric).title, figure(one.value, metric_of(one.metric).unit), _behind(one)) for one in overall
    ]
    return [*tiles[:7], *_image_tile(page)]


def _behind(found: Measurement) -> str:
    bounds = f"{span(found.interval, metric_of(found.metric).unit)} · " if found.interval else ""
    return bounds + images(found.images)


def _image_tile(page: Page) -> list[Tile]:
    return [
        Tile(
            "Images",
            count(card.images - len(card.set_aside)),
            f"{count(card.labelled)} labelled, {count(len(card.set_aside))} set aside",
        )
        for card in page.results.image_sets
    ]


def _side_by_side(overall: Sequence[Measurement], page: Page) -> Table:
    """A row for each model, image set and condition; a column for each number that all of its images stand behind."""
    metrics = list(dict.fromkeys(one.metric for one in overall))
    columns = [Column(""), *(Column(metric_of(metric).title, True) for metric in metrics), Column("Images", True)]
    rows = [_row(found, metrics, page) for found in by_subject(overall).values()]
    return Table("Side by side", columns, rows)


def _row(found: Sequence[Finding], metrics: Sequence[str], page: Page) -> list[Cell]:
    numbers = {name_of(one): one for one in found if isinstance(one, Measurement)}
    most = max(one.images for one in numbers.values())
    cells = [_cell(numbers[metric]) if metric in numbers else Cell("–") for metric in metrics]
    return [Cell(page.subject(found[0].about) or "clean"), *cells, Cell(count(most), most)]


def _cell(found: Measurement) -> Cell:
    unit = metric_of(found.metric).unit
    bounds = f" ({span(found.interval, unit)})" if found.interval else ""
    return Cell(figure(found.value, unit) + bounds, order_of(found.value))


def _warnings(page: Page) -> list[str]:
    aside = [
        f"{count(len(card.set_aside))} of {images(card.images)} of {card.name} could not be read; "
        "they are part of no number and are listed below."
        for card in page.results.image_sets
        if card.set_aside
    ]
    return [*page.results.warnings, *aside]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{len(names)} of them"
