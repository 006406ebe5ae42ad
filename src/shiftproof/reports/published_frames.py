"""One's own models among those that were published with their accuracy around anchor frames, and the line through these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shiftproof.metrics.meanings import meaning_of
from shiftproof.metrics.trends import Line, fit_line
from shiftproof.reference import load_table
from shiftproof.reports.label_places import Place
from shiftproof.reports.landscape import landscape
from shiftproof.reports.page import model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.tables import compact_cell
from shiftproof.reports.words import count, figure, in_a_line, kept_together, spoken
from shiftproof.studies.temporal import PUBLISHED_TABLES
from shiftproof.types import Measurement

COLUMNS = {"anchor_accuracy": "original", "pm_k_accuracy": "perturbed"}
"""Metrics, and the columns of the published tables that hold them."""


def among_published_frames(overall: Sequence[Measurement]) -> list[Part]:
    """Accuracy on anchors against accuracy around them, if the study measured from a published line."""
    robustness = named(overall, "effective_robustness")
    table = _table_of(robustness[0].convention.get("published", "")) if robustness else None
    own = {model: {one.metric: one for one in overall if model_of(one) == model} for model in models_of(overall)}
    placed = {model: numbers for model, numbers in own.items() if set(COLUMNS) <= set(numbers)}
    return [_chart(table, placed)] if table and placed else []


def _table_of(published: str) -> str | None:
    """The table that a convention speaks of."""
    return next((table for table, title in PUBLISHED_TABLES.items() if published.startswith((table, title))), None)


def _chart(table: str, own: Mapping[str, Mapping[str, Measurement]]) -> Chart:
    title = "Among published models: frames around frames"
    others = [_published(row) for row in load_table(table)]
    places = [*others, *(_own(model, numbers) for model, numbers in own.items())]
    line = fit_line(np.array([one.x for one in others]), np.array([one.y for one in others]))
    spec = landscape(
        places,
        x_title=in_a_line(meaning_of("anchor_accuracy").title),
        y_title=in_a_line(meaning_of("pm_k_accuracy").title),
        line=_ends_of(line, places),
        description=f"{title}. {'; '.join(f'{one.name}: {one.detail}' for one in places if one.own)}.",
    )
    return Chart(title, spec, _figures(title, table, own), kept_together(f"{_note(table, own)}{_beyond(places)}"))


def _published(row: Mapping[str, str]) -> Place:
    original, perturbed = (float(row[column]) / 100 for column in COLUMNS.values())
    return Place(spoken(row["model"]), original, perturbed, _said(original, perturbed))


def _own(model: str, numbers: Mapping[str, Measurement]) -> Place:
    anchor, around = (numbers[metric] for metric in COLUMNS)
    said = _said(anchor.value, around.value)
    return Place(model, anchor.value, around.value, said, True, anchor.interval, around.interval)


def _said(original: float, perturbed: float) -> str:
    return f"{figure(original, 'share')} on anchors, {figure(perturbed, 'share')} around them"


def _ends_of(line: Line, places: Sequence[Place]) -> list[tuple[float, float]]:
    """The line from the least to the most accurate of all models."""
    ends = np.array([min(one.x for one in places), max(one.x for one in places)])
    return list(zip(ends.tolist(), line.at(ends).tolist(), strict=True))


def _note(table: str, own: Mapping[str, Mapping[str, Measurement]]) -> str:
    around = next(iter(own.values()))["pm_k_accuracy"]
    return (
        f"Published: {PUBLISHED_TABLES[table]}. Here: {count(around.images)} anchors, k = {around.about.get('k')}. "
        "The published numbers are of other images, so the comparison is rough. The line goes through the published models: "
        "above it a model loses less around the anchors than others of its accuracy."
    )


def _beyond(places: Sequence[Place]) -> str:
    """Which models are more or less accurate than all published ones, so that the line tells little about them."""
    published = [place.x for place in places if not place.own]
    outside = [place.name for place in places if place.own and not min(published) <= place.x <= max(published)]
    return f" Beyond the published models the line is a guess: {', '.join(outside)}." if outside else ""


def _figures(title: str, table: str, own: Mapping[str, Mapping[str, Measurement]]) -> Table:
    """One's own models first."""
    mine = [
        [Cell(model), *(compact_cell(numbers[metric]) for metric in COLUMNS), Cell("this report")]
        for model, numbers in own.items()
    ]
    published = [
        [Cell(spoken(row["model"])), *(published_cell(row[column]) for column in COLUMNS.values()), Cell("published")]
        for row in load_table(table)
    ]
    heads = [Column("Model"), *(Column(meaning_of(metric).title, True) for metric in COLUMNS), Column("From")]
    return Table(title, heads, [*mine, *published])
