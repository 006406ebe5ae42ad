"""What each measured number is called, what it is the share or mean of, and which way is good: for headings and tooltips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "points", "number"]
"""How a value is read: a share of 0 to 1, a difference of two shares, or a plain number."""


@dataclass(frozen=True)
class Meaning:
    """One metric, for people."""

    title: str
    explanation: str
    unit: Unit
    good: Literal["high", "low"] | None  # None where neither end is better


MEANINGS: Mapping[str, Meaning] = {
    "top1_accuracy": Meaning("Top-1 accuracy", "Share of images whose first class is right.", "share", "high"),
    "top5_accuracy": Meaning("Top-5 accuracy", "Share of images with a right class among the first five.", "share", "high"),
    "class_accuracy": Meaning("Accuracy by class", "Share of the images of one class that are right.", "share", "high"),
    "group_accuracy": Meaning("Accuracy by group", "Share of the images of one group that are right.", "share", "high"),
    "worst_group_accuracy": Meaning(
        "Worst group",
        "Lowest accuracy of all groups large enough to judge; its interval is widened for having looked at all of them.",
        "share",
        "high",
    ),
    "confusion_rate": Meaning(
        "Taken for another class", "Share of the images of one class that are taken for one other class.", "share", "low"
    ),
    "predicted_share": Meaning(
        "Predicted classes", "Share of all images that are given one class, right or not.", "share", None
    ),
    "mean_confidence": Meaning(
        "Mean confidence", "Probability the model gives its first class, averaged over images.", "share", None
    ),
    "overconfidence": Meaning(
        "Overconfidence",
        "Mean confidence minus accuracy: above zero the model promises more than it keeps, below zero less.",
        "points",
        None,
    ),
    "rms_calibration_error": Meaning(
        "RMS calibration error",
        "Root mean square gap between confidence and accuracy, over bins of images alike in confidence.",
        "share",
        "low",
    ),
    "chance_calibration_error": Meaning(
        "RMS calibration error within chance",
        "What a perfectly calibrated model of the same confidences stays below 95 times in 100; less says nothing.",
        "share",
        None,
    ),
    "expected_calibration_error": Meaning(
        "Expected calibration error",
        "Mean gap between confidence and accuracy, over bins of equal width, weighted by their images.",
        "share",
        "low",
    ),
    "brier_score": Meaning(
        "Brier score",
        "Mean squared distance between probabilities and truth, over all classes: 0 is perfect, 2 certain and wrong.",
        "number",
        "low",
    ),
    "accuracy_difference": Meaning(
        "Difference of accuracy",
        "Accuracy of one model minus that of another on the same images; above zero the first is ahead.",
        "points",
        "high",
    ),
    "mcnemar_p": Meaning(
        "P-value of the difference",
        "Chance of a split at least this uneven if both models were equally good, corrected for all comparisons made.",
        "number",
        None,
    ),
    "shared_mistakes": Meaning(
        "Shared mistakes", "Share of the images that either model gets wrong which both get wrong.", "share", None
    ),
    "agreement": Meaning(
        "Agreement", "Share of images to which two models give the same class, right or not.", "share", None
    ),
}
"""Every metric a study measures."""


def meaning_of(metric: str) -> Meaning:
    """The meaning of a metric; one that is not in the table goes by its name, whose last word tells a share.

    >>> meaning_of("top1_accuracy").title
    'Top-1 accuracy'
    >>> meaning_of("mean_flip_rate").title, meaning_of("mean_flip_rate").unit
    ('Mean flip rate', 'share')
    """
    if metric in MEANINGS:
        return MEANINGS[metric]
    title = metric.replace("_", " ")
    is_share = title.rpartition(" ")[2] in {"accuracy", "confidence", "error", "rate", "share"}
    return Meaning(title[:1].upper() + title[1:], "", "share" if is_share else "number", None)
