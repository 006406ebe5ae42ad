"""Every metric that a study or a review measures: title, unit, direction and description, from table.csv or a plug-in."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from shiftproof.catalog import METRICS

Unit = Literal["share", "points", "loss", "number", "count"]
"""How a value is read: a share of 0 to 1, a difference of two shares, one that is a loss, a number, or how many."""


@dataclass(frozen=True)
class MetricInfo:
    """Title, unit, direction and description of a metric; a plug-in registers one under the metric's name."""

    title: str
    description: str  # what it is the share or mean of, in one sentence
    unit: Unit = "share"
    direction: Literal["high", "low"] | None = None  # which end is better; None where neither is
    interval: bool = True  # False for counts, p-values, thresholds, and those that say why they have no confidence interval
    headline: Literal["always", "never"] | None = None  # among what the command prints; None: where it is of a whole dataset
    unseen: bool = False  # a mean without the corruptions that a model declares as augmentations of its training

    @property
    def in_a_line(self) -> str:
        """All of it for people.

        >>> metric_info("top1_accuracy").in_a_line
        'Top-1 accuracy (share, higher is better): Share of images whose top-1 prediction is correct.'
        """
        better = {"high": ", higher is better", "low": ", lower is better", None: ""}[self.direction]
        return f"{self.title} ({self.unit}{better}): {self.description}"


def unseen(metric: str) -> str:
    """What a mean is called once the corruptions that a model declares as augmentations of its training are left out."""
    return f"unseen_{metric}"


def with_unseen(*metrics: str) -> tuple[str, ...]:
    """Each metric, and behind it its mean over unseen corruptions only, where there is one.

    >>> with_unseen("clean_error", "mean_flip_rate")
    ('clean_error', 'mean_flip_rate', 'unseen_mean_flip_rate')
    """
    return tuple(name for metric in metrics for name in (metric, unseen(metric)) if name == metric or name in METRICS)


@cache
def metric_info(metric: str) -> MetricInfo:
    """The entry of a metric; one that nobody registered goes by its name, whose last word tells a share.

    >>> metric_info("top1_accuracy").title
    'Top-1 accuracy'
    >>> metric_info("recovery_rate").title, metric_info("recovery_rate").unit
    ('Recovery rate', 'share')
    """
    if metric in METRICS:
        entry: MetricInfo = METRICS.load(metric)
        return entry
    title = metric.replace("_", " ")
    is_share = title.rpartition(" ")[2] in {"accuracy", "confidence", "error", "rate", "share"}
    return MetricInfo(title[:1].upper() + title[1:], "", "share" if is_share else "number")


@cache
def _table() -> Mapping[str, MetricInfo]:
    known: dict[str, MetricInfo] = {}
    left_out = "Corruptions that the model declares as augmentations of its training are left out."
    with Path(__file__).with_name("table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        known[row["name"]] = _entry(row)
    for row in rows:
        if row["unseen"]:
            info = known[row["name"]]
            known[unseen(row["name"])] = replace(
                info,
                title=f"{info.title}, unseen corruptions only",
                description=f"{info.description} {left_out}",
                unseen=True,
            )
    return known


def _entry(row: Mapping[str, Any]) -> MetricInfo:
    return MetricInfo(
        row["title"],
        row["description"],
        row["unit"],
        row["direction"] or None,
        interval=bool(row["interval"]),
        headline=row["headline"] or None,
    )


def __getattr__(name: str) -> Any:
    """`BUILT_IN` for the catalog, and each entry of the table as an attribute called after its metric."""
    if name == "BUILT_IN":
        return {metric: f"{__name__}:{metric}" for metric in _table()}
    if name in _table():
        return _table()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
