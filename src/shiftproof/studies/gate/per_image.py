"""What the gate keeps of each image, a bit or two bytes a number, and the metrics that are computed from it.

Numbers of both models pass through the form in which a baseline is stored, so that a model never differs from itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import augrc, aurra, cluster_share_interval, is_correct, top_confidence
from shiftproof.metrics.calibration import brier_scores, to_probabilities
from shiftproof.metrics.intervals import Groups
from shiftproof.metrics.likelihood import negative_log_likelihoods
from shiftproof.metrics.noninferiority import ByInterval, Judged, PairedShares
from shiftproof.metrics.resampling import Shares, cautious_interval, leaving_out, mean_shares, shares_without
from shiftproof.types import Keep, Predictions, richest

Column: TypeAlias = NDArray[np.generic]
"""One number of each image as it is stored, (images,)."""

Columns: TypeAlias = Mapping[str, Column]

MOST_LOG_ODDS = 32.0
"""Beyond these, a confidence is 0 or 1 to every digit."""


@dataclass(frozen=True)
class Kept:
    """A number of each image: how it is found, stored and read again."""

    of: Callable[[Predictions], NDArray[Any]]
    dtype: str  # as stored; bits where it is bool
    store: Callable[[NDArray[np.floating]], Column] = lambda values: values
    read: Callable[[Column], NDArray[np.floating]] = lambda column: column.astype(float)
    keep: Keep = "top5"


def _log_odds(confidence: NDArray[np.floating]) -> Column:
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(confidence) - np.log1p(-confidence), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    return np.asarray(np.round(odds * 1000).astype("<i2"))


def _confidence(predictions: Predictions) -> NDArray[np.floating]:
    found = top_confidence(predictions.top5, predictions.gives)
    if not np.isfinite(found).all():
        raise BadInput("some scores are infinite or not numbers, so the model has no confidence to hold a rule to")
    return found


def _brier(predictions: Predictions) -> NDArray[np.floating]:
    return brier_scores(predictions.labels, to_probabilities(predictions.need_logits(), predictions.gives))


KEPT = {
    "correct": Kept(lambda found: is_correct(found.labels, found.top5.classes), "bool"),
    "top5_correct": Kept(lambda found: is_correct(found.labels, found.top5.classes, k=5), "bool"),
    "confidence": Kept(_confidence, "<i2", _log_odds, lambda column: 1 / (1 + np.exp(-column.astype(float) / 1000))),
    "brier": Kept(
        _brier,
        "<u2",
        lambda values: np.round(np.clip(values, 0, 2) * 32767).astype("<u2"),
        lambda column: column.astype(float) / 32767,
        "logits",
    ),
    "log_loss": Kept(
        lambda found: negative_log_likelihoods(found.labels, found.need_logits(), found.gives),
        "<f2",
        lambda values: np.minimum(values, 60_000).astype("<f2"),
        keep="logits",
    ),
}
"""What can be kept of each image."""


@dataclass(frozen=True)
class GateMetric:
    """How a metric comes from what is kept of each image: the share, the mean or an area; its title is in the table."""

    columns: tuple[str, ...]
    area: Callable[[NDArray[np.floating], NDArray[np.bool_]], float] | None = None  # of confidence and correctness

    @property
    def is_share(self) -> bool:
        return self.columns in (("correct",), ("top5_correct",))

    def value(self, columns: Columns) -> float:
        """The metric of these images."""
        if self.area is not None:
            return self.area(KEPT["confidence"].read(columns["confidence"]), columns["correct"].astype(bool))
        return float(KEPT[self.columns[0]].read(columns[self.columns[0]]).mean())

    def judged(self, columns: Columns, clusters: Groups | None) -> Judged:
        """The metric, to be tested at a least value."""
        if self.area is not None:
            return _jackknifed(lambda rows: self.value(taken(columns, rows)), _groups(columns, clusters))
        values = KEPT[self.columns[0]].read(columns[self.columns[0]])
        if self.is_share:
            return ByInterval(lambda level: cluster_share_interval(values > 0, clusters=clusters, level=level))
        return _by_shares(mean_shares(values, clusters))

    def judged_difference(self, new: Columns, old: Columns, clusters: Groups | None) -> Judged:
        """The metric of a new model minus that of an old one on the same images, to be tested at a margin."""
        column = self.columns[0]
        if self.area is not None:
            groups = _groups(new, clusters)
            return _jackknifed(lambda rows: self.value(taken(new, rows)) - self.value(taken(old, rows)), groups)
        if self.is_share:
            return PairedShares.of(new[column].astype(bool), old[column].astype(bool), clusters=clusters)
        return _by_shares(mean_shares(KEPT[column].read(new[column]) - KEPT[column].read(old[column]), clusters))


def _groups(columns: Columns, clusters: Groups | None) -> Groups:
    return np.arange(len(columns["correct"])) if clusters is None else clusters


def _by_shares(found: tuple[float, Shares] | None) -> ByInterval:
    return ByInterval(lambda level: None if found is None else cautious_interval(*found, level=level))


def _jackknifed(statistic: Callable[[NDArray[np.bool_]], float], clusters: Groups) -> ByInterval:
    found = shares_without(leaving_out(statistic, len(clusters)), clusters)
    return _by_shares(None if found is None else (found[0], found[1][0]))


METRICS = {
    "top1_accuracy": GateMetric(("correct",)),
    "top5_accuracy": GateMetric(("top5_correct",)),
    "aurra": GateMetric(("correct", "confidence"), lambda confidence, correct: aurra(confidence, correct)),
    "augrc": GateMetric(("correct", "confidence"), lambda confidence, correct: augrc(confidence, correct)),
    "brier_score": GateMetric(("brier",)),
    "negative_log_likelihood": GateMetric(("log_loss",)),
}
"""Metrics that rules may be about."""


def columns_of(metrics: Sequence[str]) -> tuple[str, ...]:
    """What must be kept of each image for these metrics; whether it is correct always is."""
    return tuple(dict.fromkeys(["correct", *(column for metric in metrics for column in METRICS[metric].columns)]))


def keep_for(columns: Sequence[str]) -> Keep:
    """What must be stored of each prediction for these columns."""
    return richest([KEPT[column].keep for column in columns])


def kept_of(predictions: Predictions, columns: Sequence[str]) -> dict[str, Column]:
    """The columns of labelled predictions."""
    found = {}
    for name in columns:
        values = KEPT[name].of(predictions)
        found[name] = KEPT[name].store(values) if KEPT[name].dtype != "bool" else values.astype(bool)
    return found


def taken(columns: Columns, rows: NDArray[np.integer] | NDArray[np.bool_]) -> dict[str, Column]:
    """The same for some of the images."""
    return {name: column[rows] for name, column in columns.items()}
