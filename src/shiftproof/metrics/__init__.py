"""Pure functions, arrays in and numbers out: what is measured of predictions, and how sure one can be of it."""

from shiftproof.metrics.accuracy import (
    Tally,
    confusion_counts,
    grouped_accuracy,
    is_correct,
    per_class_accuracy,
    top_k_accuracy,
    worst_group,
)
from shiftproof.metrics.calibration import (
    Reliability,
    brier_score,
    chance_calibration_error,
    expected_calibration_error,
    reliability,
    rms_calibration_error,
    to_probabilities,
    top_confidence,
)
from shiftproof.metrics.intervals import bootstrap_interval, clopper_pearson, wilson
from shiftproof.metrics.meanings import MEANINGS, Meaning, meaning_of
from shiftproof.metrics.paired import PairedCounts, difference_interval, holm, mcnemar_p, paired_counts

__all__ = [
    "MEANINGS",
    "Meaning",
    "PairedCounts",
    "Reliability",
    "Tally",
    "bootstrap_interval",
    "brier_score",
    "chance_calibration_error",
    "clopper_pearson",
    "confusion_counts",
    "difference_interval",
    "expected_calibration_error",
    "grouped_accuracy",
    "holm",
    "is_correct",
    "mcnemar_p",
    "meaning_of",
    "paired_counts",
    "per_class_accuracy",
    "reliability",
    "rms_calibration_error",
    "to_probabilities",
    "top_confidence",
    "top_k_accuracy",
    "wilson",
    "worst_group",
]
