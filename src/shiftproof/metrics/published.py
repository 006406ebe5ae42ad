"""Published models: their numbers by metric and dataset, and where a value stands among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.trends import Line, fit_line
from shiftproof.reference import load_table, source_of


class PublishedTable(NamedTuple):
    """A table of published models, and its column for each metric; numbers in it are percent."""

    name: str  # as `load_table` takes it
    columns: Mapping[str, str]


IMAGENET_C = PublishedTable(
    "imagenet_c_models",
    {"clean_error": "clean_error", "mean_corruption_error": "mce", "relative_mean_corruption_error": "relative_mce"},
)
IMAGENET_P = PublishedTable("imagenet_p_models", {"mean_flip_rate": "mfr", "mean_top5_distance_ratio": "mt5d"})
IMAGENET_A_O = PublishedTable(
    "imagenet_a_o_models", {"imagenet_a_accuracy": "imagenet_a_accuracy", "imagenet_o_aupr": "imagenet_o_aupr"}
)
AROUND_FRAMES = {"anchor_accuracy": "original", "pm_k_accuracy": "perturbed"}
SHIFTS = {
    "imagenet": "imagenet",
    "imagenet-real": "real",
    "imagenet-v2": "v2",
    "imagenet-sketch": "sketch",
    "imagenet-a": "a",
    "imagenet-r": "r",
}
"""Published datasets, and their columns in the tables of accuracy under natural shifts."""
SHIFT_TABLES = ("timm_imagenet_shifts", "open_clip_zero_shot_shifts")
SHIFT_METRICS = ("top1_accuracy", "imagenet_a_accuracy")
"""Metrics that these tables hold; on ImageNet-A and -R among the 200 classes of their images."""
FAMILIES = (
    "ImageNet-1k",
    "ImageNet-1k (distilled)",
    "ImageNet-21k",
    "web images",
    "image-text (fine-tuned)",
    "image-text (zero-shot)",
)
"""Training families of these tables, those of fewer images first."""
BASELINE_FAMILY = FAMILIES[0]
"""That of the models that effective robustness is measured from (Taori et al., 2020)."""
KNEES = {"imagenet-a": 0.7613}
"""Accuracy on ImageNet at which a trend bends: ImageNet-A holds what a ResNet-50 of this accuracy misclassifies."""

TABLES: Mapping[str, tuple[PublishedTable, ...]] = {
    "imagenet-c": (IMAGENET_C,),
    "imagenet-p": (IMAGENET_P,),
    "imagenet-o": (IMAGENET_A_O,),
    "vid-robust": (PublishedTable("imagenet_vid_robust_models", AROUND_FRAMES),),
    "ytbb-robust": (PublishedTable("ytbb_robust_models", AROUND_FRAMES),),
    **{
        dataset: tuple(PublishedTable(table, dict.fromkeys(SHIFT_METRICS, column)) for table in SHIFT_TABLES)
        for dataset, column in SHIFTS.items()
    },
}
"""Tables by published dataset."""


@dataclass(frozen=True)
class PublishedModel:
    """One number of a published model; shares are 0 to 1."""

    name: str
    value: float
    family: str = ""  # what it was trained on, where the table says so
    accuracy: float | None = None  # on ImageNet, where the table is of accuracy under natural shifts


class Standing(NamedTuple):
    """A value among those of published models."""

    values: tuple[float, ...]  # of the published models, ascending
    below: float  # share of them that are lower; an equal one counts half
    better_than: float | None  # share of them that are worse; None where neither direction is better
    sources: tuple[str, ...]


@cache
def published_models(metric: str, dataset: str) -> tuple[PublishedModel, ...]:
    """Every published model with this number on a published dataset, such as `top1_accuracy` on ``imagenet-v2``.

    >>> len(published_models("mean_corruption_error", "imagenet-c")), published_models("aurra", "imagenet")
    (15, ())
    """
    return tuple(
        PublishedModel(
            row["model"],
            float(text) / 100,
            row.get("family", ""),
            float(row["imagenet"]) / 100 if "imagenet" in row else None,
        )
        for table in TABLES.get(dataset, ())
        if metric in table.columns
        for row in load_table(table.name)
        if (text := row.get(table.columns[metric]))
    )


def among(metric: str, dataset: str, value: float, *, family: str | None = None) -> Standing | None:
    """Where a value stands among published models, or those of one training family; None where no table has such numbers.

    The caller sees to it that the value was measured as the published ones were.

    >>> found = among("mean_corruption_error", "imagenet-c", 0.767)  # that of ResNet-50
    >>> len(found.values), found.below > 0.5, round(found.below + found.better_than, 6)
    (15, True, 1.0)
    """
    values = sorted(one.value for one in published_models(metric, dataset) if family in (None, one.family))
    if not values:
        return None
    below = sum((one < value) + (one == value) / 2 for one in values) / len(values)
    better = {"high": below, "low": 1 - below, None: None}[metric_info(metric).direction]
    sources = tuple(source_of(table.name) for table in TABLES[dataset] if metric in table.columns)
    return Standing(tuple(values), below, better, sources)


@dataclass(frozen=True)
class Trend:
    """The line through the models of the baseline family on probit axes, for a range of accuracies on ImageNet."""

    line: Line
    models: tuple[PublishedModel, ...]
    low: float
    high: float

    @property
    def points(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Accuracy of its models on ImageNet and under the shift."""
        return np.array([one.accuracy for one in self.models], float), np.array([one.value for one in self.models])

    def at(self, accuracy: NDArray[np.floating]) -> NDArray[np.floating]:
        """Accuracy under the shift that it predicts."""
        return np.asarray(ndtr(self.line.at(ndtri(accuracy))))


@cache
def trends(shift: str) -> tuple[Trend, ...]:
    """The trend of accuracy under a natural shift, in two parts where it has a knee.

    >>> [len(trend.models) for trend in trends("imagenet-v2")], [len(trend.models) for trend in trends("imagenet-a")]
    ([1110], [166, 944])
    """
    baseline = [one for one in published_models("top1_accuracy", shift) if one.family == BASELINE_FAMILY]
    ends = [0.0, *([KNEES[shift]] if shift in KNEES else []), 1.0]
    found = []
    for low, high in pairwise(ends):
        models = tuple(one for one in baseline if one.accuracy is not None and low <= one.accuracy < high)
        across, up = ([one.accuracy for one in models], [one.value for one in models])
        found.append(Trend(fit_line(ndtri(np.array(across)), ndtri(np.array(up))), models, low, high))
    return tuple(found)


def trend_at(shift: str, accuracy: float) -> Trend:
    """The part of the trend for models of this accuracy on ImageNet."""
    return next(trend for trend in reversed(trends(shift)) if accuracy >= trend.low)
