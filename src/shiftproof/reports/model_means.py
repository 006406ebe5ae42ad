"""The main numbers beside AUROC over several models: means, and how far the models spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.detector_findings import GOALS, NEW_CLASS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.page import named
from shiftproof.reports.parts import Cell, Column, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import order_of
from shiftproof.types import Finding, Measurement


class Place(NamedTuple):
    """Which number of which goal; one that serves no goal alone has none."""

    goal: str
    metric: str


def other_means(models: Sequence[DetectorFindings], findings: Sequence[Finding]) -> list[Part]:
    """A row for each detector, for each goal a column for each number; unchanged images against everything foreign."""
    case = models[0].main_case(NEW_CLASS)
    means, spreads = (
        {
            (detector_of(one), _place(one)): one
            for one in named(findings, metric)
            if (one.about.get("inside"), one.about.get("outside")) == (case.inside, case.outside)
        }
        for metric in ("model_mean", "model_spread")
    )
    places = sorted({place for _, place in means}, key=lambda place: ([*GOALS, ""].index(place.goal), place.metric))
    rows = [
        [Cell(written(name)), *(mean_cell(means.get((name, place)), spreads.get((name, place))) for place in places)]
        for name in dict.fromkeys(name for name, _ in means)
    ]
    columns = [Column(meaning_of(place.metric).title, True, GOALS.get(place.goal, "")) for place in places]
    note = f"{set_title(case.inside)} against {set_title(case.outside)}. Below a mean: the standard deviation over models."
    title = "Other numbers, mean of the models in percent"
    return [Table(title, [Column("Detector"), *columns], rows, note, folded=True)] if rows else []


def mean_cell(mean: Measurement | None, spread: Measurement | None) -> Cell:
    """A mean over models, their standard deviation below it."""
    if mean is None:
        return Cell("–")
    return Cell(f"{100 * mean.value:.1f}", order_of(mean.value), f"± {100 * spread.value:.1f}" if spread else "")


def _place(found: Measurement) -> Place:
    return Place(str(found.about.get("goal", "")), str(found.about.get("of", "")))
