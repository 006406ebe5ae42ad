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
from shiftproof.metrics.corruption_error import (
    corruption_error,
    mean_corruption_error,
    relative_corruption_error,
    relative_mean_corruption_error,
)
from shiftproof.metrics.intervals import bootstrap_interval, clopper_pearson, wilson
from shiftproof.metrics.meanings import MEANINGS, Meaning, meaning_of
from shiftproof.metrics.paired import PairedCounts, difference_interval, holm, mcnemar_p, paired_counts
from shiftproof.metrics.stability import (
    flip_probability,
    sequence_flip_probability,
    sequence_top5_distance,
    sequence_zipf_distance,
    top5_distance,
    top5_distance_from_ranks,
    zipf_distance,
)

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
    "corruption_error",
    "difference_interval",
    "expected_calibration_error",
    "flip_probability",
    "grouped_accuracy",
    "holm",
    "is_correct",
    "mcnemar_p",
    "mean_corruption_error",
    "meaning_of",
    "paired_counts",
    "per_class_accuracy",
    "relative_corruption_error",
    "relative_mean_corruption_error",
    "reliability",
    "rms_calibration_error",
    "sequence_flip_probability",
    "sequence_top5_distance",
    "sequence_zipf_distance",
    "to_probabilities",
    "top5_distance",
    "top5_distance_from_ranks",
    "top_confidence",
    "top_k_accuracy",
    "wilson",
    "worst_group",
    "zipf_distance",
]
