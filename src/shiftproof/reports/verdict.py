"""The verdict as the first page of a report shows it: a scorecard of all models, and the weaknesses of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from shiftproof.judging import profile
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import (
    axis_key,
    evidence,
    evidence_told,
    figure,
    mark_told,
    marks_summed_up,
    next_command,
    none_told,
    some_told,
)
from shiftproof.reports.galleries import picture_under
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Picture
from shiftproof.reports.words import kept_together
from shiftproof.types import Axis, Mark, Profile, Weakness

SIDE = 240
"""Pixels of an example's longer side."""
MOST_TICKS = 60
"""Published models in a small picture; of more, as many spread evenly over them."""


@dataclass(frozen=True)
class Strip:
    """Where published models lie, and where this one does, as shares of the width of a small picture."""

    ticks: Sequence[float]
    low: float
    at: float
    high: float
    weak: tuple[float, float]
    good: tuple[float, float]
    told: str


@dataclass(frozen=True)
class Score:
    """One model's number on one axis."""

    value: str
    evidence: str  # its CI, and how many images
    mark: str
    kinds: tuple[Mark, ...]  # the marks that its interval allows
    strip: Strip | None


@dataclass(frozen=True)
class Line:
    """One axis of the scorecard; None for a model that has no such number."""

    title: str
    dataset: str
    section: str
    standard: str
    scores: Sequence[Score | None]


@dataclass(frozen=True)
class Shown:
    """One weakness, as it is shown."""

    sentence: str
    evidence: str
    section: str
    picture: Picture | None
    told: str
    command: str
    more: str


@dataclass(frozen=True)
class Verdict:
    """The weaknesses of one model."""

    model: str
    opening: str
    remark: str
    weaknesses: Sequence[Shown]


@dataclass(frozen=True)
class FirstPage:
    models: Sequence[str]
    lines: Sequence[Line]
    verdicts: Sequence[Verdict]

    @property
    def has_strips(self) -> bool:
        return any(score.strip for line in self.lines for score in line.scores if score)


def first_page(page: Page) -> FirstPage | None:
    """The verdict on every model of the results; None where there is nothing to judge."""
    judged = [one for one in page.results.profiles or profile(page.results) if one.axes]
    if not judged:
        return None
    return FirstPage([one.model for one in judged], _lines(judged, page), [_verdict(one, page) for one in judged])


def _lines(judged: Sequence[Profile], page: Page) -> list[Line]:
    """Datasets are named where there are several; of a part of one the number of images tells."""
    several = len({page.results.origin_of(name) for one in judged for name in one.datasets}) > 1
    axes = {(one.model, axis_key(axis)): axis for one in judged for axis in one.axes}
    keys = dict.fromkeys(key for _, key in axes)
    first = {key: next(axis for (_, other), axis in axes.items() if other == key) for key in keys}
    return [
        Line(
            axis.title,
            str(axis.found.about.get("dataset", "")) if several else "",
            axis.section,
            axis.standard.told if axis.standard else "nothing: no standard for these classes and images",
            [_score(axes.get((one.model, key))) for one in judged],
        )
        for key, axis in first.items()
    ]


def _score(axis: Axis | None) -> Score | None:
    if axis is None:
        return None
    found, unit = axis.found, metric_info(axis.found.metric).unit
    return Score(figure(found.value, unit), evidence(found), mark_told(axis), axis.marks, _strip(axis))


def _strip(axis: Axis) -> Strip | None:
    standard = axis.standard
    if standard is None or not standard.published or standard.good is None:
        return None
    known, (low, high) = standard.published, axis.found.ends or (axis.found.value, axis.found.value)
    least, most = min(known[0], low), max(known[-1], high)
    room = (most - least) * 0.04 or 0.01
    least, most = least - room, most + room

    def place(value: float) -> float:
        return (value - least) / (most - least)

    few = [known[round(step * (len(known) - 1) / (MOST_TICKS - 1))] for step in range(MOST_TICKS)]
    weak, good = (0.0, place(standard.weak)), (place(standard.good), 1.0)
    if standard.worse == "above":
        weak, good = (place(standard.weak), 1.0), (0.0, place(standard.good))
    unit = metric_info(axis.found.metric).unit
    told = (
        f"{axis.title}: {figure(axis.found.value, unit)}; the middle half of published models lies between "
        f"{figure(min(standard.weak, standard.good), unit)} and {figure(max(standard.weak, standard.good), unit)}"
    )
    ticks = [place(value) for value in (known if len(known) <= MOST_TICKS else few)]
    return Strip(ticks, place(low), place(axis.found.value), place(high), weak, good, told)


def _verdict(judged: Profile, page: Page) -> Verdict:
    remark = some_told(judged) if judged.weaknesses else none_told(judged)
    shown = [_shown(one, judged, page) for one in judged.weaknesses]
    return Verdict(judged.model, kept_together(marks_summed_up(judged)), kept_together(remark), shown)


def _shown(weakness: Weakness, judged: Profile, page: Page) -> Shown:
    more = f"{weakness.more} more like this" if weakness.more else ""
    return Shown(
        kept_together(f"{weakness.sentence}."),
        kept_together(evidence_told(weakness, judged.candidates)),
        weakness.section,
        _example(weakness, page),
        weakness.next_step.told,
        next_command(weakness, judged.model, page.results),
        more,
    )


def _example(weakness: Weakness, page: Page) -> Picture | None:
    item, dataset = weakness.example, weakness.dataset
    if item is None or dataset is None:
        return None
    change = None if item.condition is None else partial(picture_under, item.condition, key=item.id)
    shown = page.thumbnail(dataset, item.id, long_side=SIDE, change=change)
    return Picture(item.id, kept_together(item.caption), *shown)
