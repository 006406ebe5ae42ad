"""Parts that show several models together: one series each where there are several, none where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shiftproof import catalog
from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Definitions, Part, Table
from shiftproof.reports.tables import compact_cell, key_title, measurement_table, number_table, side_by_side
from shiftproof.reports.words import count, in_a_line, kept_together, spoken
from shiftproof.types import Finding, Measurement


def headline_numbers(title: str, overall: Sequence[Measurement], page: Page) -> list[Part]:
    """The numbers of one model below each other, of several side by side."""
    if len(models_of(overall)) > 1:
        return [side_by_side(title, overall, list(dict.fromkeys(one.metric for one in overall)), page)]
    return [number_table(title, overall, page)] if overall else []


def chart_of_each_model(
    title: str, findings: Sequence[Finding], metric: str, draw: Callable[[Sequence[Finding], str, bool], Chart]
) -> list[Part]:
    """A chart for each model that has this metric; of several, named with its model and half as wide."""
    models = models_of(named(findings, metric))
    several = len(models) > 1
    return [
        draw(
            [finding for finding in findings if model_of(finding) == model],
            f"{title}: {model}" if several else title,
            several,
        )
        for model in models
    ]


IN_WORDS = {
    ("output", "raw"): "raw: pixels as they come out of the change",
    ("output", "jpeg85"): "jpeg85: saved as JPEG of quality 85, as the published files were",
    ("picture", "whole"): "whole: the stored image, then resized whole to the model's size",
    ("picture", "model-size"): "model-size: what the model's own resize and crop leave",
}


def in_words(choice: str, taken: str) -> str:
    """A convention as a report prints it.

    >>> in_words("picture", "imagenet-224")
    'imagenet-224: shorter side to 256, centre 224'
    """
    if choice == "picture" and taken in catalog.EDITIONS:
        return f"{taken}: {catalog.EDITIONS.load(taken).about}"
    return IN_WORDS.get((choice, taken), taken)


def choices(title: str, found: Sequence[Measurement]) -> list[Part]:
    """The conventions behind some numbers in words; where one has several values, with the numbers each holds for."""
    taken: dict[str, dict[str, dict[str, None]]] = {}
    for one in found:
        for key, value in one.convention.items():
            values = taken.setdefault(key_title(key), {})
            values.setdefault(kept_together(in_words(key, value)), {})[in_a_line(meaning_of(one.metric).title)] = None
    entries = {key: _told(values) for key, values in taken.items()}
    return [Definitions(title, entries)] if entries else []


def _told(values: Mapping[str, Iterable[str]]) -> str | list[str]:
    """Which numbers a value holds for is left out where every value holds for some of each."""
    if len(values) == 1:
        return next(iter(values))
    if len({frozenset(numbers) for numbers in values.values()}) == 1:
        return list(values)
    return [f"{value} ({', '.join(numbers)})" for value, numbers in values.items()]


def bars(
    title: str,
    found: Sequence[Measurement],
    key: str,
    *,
    x_title: str,
    figures: Table | None = None,
    note: str = "",
    reference: float | None = None,
    half: bool = False,
) -> Chart:
    """A row for each value of `about[key]`, the first model's highest on top."""
    models = models_of(found)
    ordered = sorted(found, key=lambda one: (models.index(model_of(one)), -one.value))
    keys = [key, *(["model"] if len(models) > 1 else [])]
    return dot_chart(
        title,
        ordered,
        figures or measurement_table(title, ordered, value_title=meaning_of(found[0].metric).title, keys=keys),
        x_title=x_title,
        labels=[spoken(str(one.about.get(key, ""))) for one in ordered],
        series=[model_of(one) for one in ordered] if len(models) > 1 else None,
        note=note,
        reference=reference,
        half=half,
    )


def columns_table(title: str, found: Sequence[Measurement], keys: Sequence[str]) -> Table:
    """A row for each combination of these keys of `about`, a column for each metric."""
    rows: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for one in found:
        rows.setdefault(tuple(str(one.about.get(key, "")) for key in keys), {})[one.metric] = one
    metrics = list(dict.fromkeys(one.metric for one in found))
    titles = [Column(meaning_of(metric).title, True) for metric in metrics]
    return Table(
        title,
        [*(Column(key_title(key)) for key in keys), *titles, Column("Images", True)],
        [
            [
                *(Cell(value) for value in values),
                *(compact_cell(numbers.get(metric)) for metric in metrics),
                _images(numbers),
            ]
            for values, numbers in rows.items()
        ],
    )


def _images(numbers: Mapping[str, Measurement]) -> Cell:
    most = max(one.images for one in numbers.values())
    return Cell(count(most), most)
