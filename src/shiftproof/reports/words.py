"""Numbers in the words and figures of a report; nothing is computed here beyond rounding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shiftproof.types import Measurement

Unit = Literal["share", "points", "number"]
"""How a value is written: 0.887 as 88.7 %, 0.021 as +2.1 points, or as it is."""

GAP = "\u202f"  # a narrow space that no line breaks at


@dataclass(frozen=True)
class Metric:
    """How a metric is called and written."""

    title: str
    unit: Unit


METRICS: Mapping[str, Metric] = {
    "top1_accuracy": Metric("Top-1 accuracy", "share"),
    "top5_accuracy": Metric("Top-5 accuracy", "share"),
    "group_accuracy": Metric("Accuracy of a group", "share"),
    "worst_group_accuracy": Metric("Accuracy of the worst group", "share"),
    "class_accuracy": Metric("Accuracy of a class", "share"),
    "rms_calibration_error": Metric("RMS calibration error", "share"),
    "overconfidence": Metric("Overconfidence", "points"),
    "accuracy_difference": Metric("Difference in accuracy", "points"),
    "mcnemar_p": Metric("p (McNemar)", "number"),
    "shared_mistakes": Metric("Shared mistakes", "share"),
    "agreement": Metric("Same answer", "share"),
}
"""Metrics whose name does not tell enough."""


def metric_of(name: str) -> Metric:
    """How to call and write a metric; unless listed, accuracies, rates, errors and shares are percentages.

    >>> metric_of("mean_flip_rate")
    Metric(title='Mean flip rate', unit='share')
    """
    if name in METRICS:
        return METRICS[name]
    title = name.replace("_", " ")
    is_share = title.rpartition(" ")[2] in {"accuracy", "rate", "share", "confidence", "error", "probability"}
    return Metric(title[:1].upper() + title[1:], "share" if is_share else "number")


def figure(value: float, unit: Unit) -> str:
    r"""A value as it is printed.

    >>> figure(0.8871, "share"), figure(-0.0213, "points"), figure(1.23456, "number"), figure(float("nan"), "share")
    ('88.7\u202f%', '−2.1 points', '1.235', 'not known')
    """
    if not math.isfinite(value):
        return "not known"
    if unit == "share":
        return f"{100 * value:.1f}{GAP}%"
    if unit == "points":
        return f"{100 * value:+.1f} points".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def span(interval: tuple[float, float] | None, unit: Unit) -> str:
    r"""An interval as it is printed, the unit said once.

    >>> span((0.866, 0.906), "share")
    '86.6 to 90.6\u202f%'
    """
    if interval is None or not all(map(math.isfinite, interval)):
        return "no interval"
    low, high = (figure(bound, unit) for bound in interval)
    tail = {"share": f"{GAP}%", "points": " points", "number": ""}[unit]
    return f"{low.removesuffix(tail)} to {high}"


def count(number: int) -> str:
    """A whole number with its thousands apart.

    >>> count(50000)
    '50,000'
    """
    return f"{number:,}"


def images(number: int) -> str:
    """A number of images.

    >>> images(1), images(1000)
    ('1 image', '1,000 images')
    """
    return "1 image" if number == 1 else f"{count(number)} images"


def of_hundred(value: float) -> str:
    """A share as people say it.

    >>> of_hundred(0.887), of_hundred(0.998), of_hundred(0.002)
    ('About 89 of 100', 'More than 99 of 100', 'Fewer than 1 of 100')
    """
    if value in (0.0, 1.0):
        return "All" if value else "None"
    whole = round(100 * value)
    if whole == 100:
        return "More than 99 of 100"
    return "Fewer than 1 of 100" if whole == 0 else f"About {whole} of 100"


def evidence(found: Measurement) -> str:
    r"""What stands behind a number: its interval, how sure that is, and how many images.

    >>> evidence(Measurement("top1_accuracy", 0.9, {}, 50, {"interval": "95 %, Clopper-Pearson"}, (0.78, 0.97)))
    '78.0 to 97.0\u202f% with 95\u202f% confidence, 50 images'
    """
    bounds = span(found.interval, metric_of(found.metric).unit)
    # a convention begins with the level: "95 %, Clopper-Pearson" or "95 % for all groups together, ..."
    level = found.convention.get("interval", "").partition(",")[0].replace(" %", f"{GAP}% confidence", 1)
    return ", ".join([f"{bounds} with {level}" if found.interval and level else bounds, images(found.images)])
