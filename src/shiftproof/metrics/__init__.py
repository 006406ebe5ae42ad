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
from shiftproof.metrics.decomposition import DecomposedAuroc, decomposed_auroc, pooled_auroc
from shiftproof.metrics.delong import AurocDifference, auroc_covariance, auroc_difference, auroc_interval
from shiftproof.metrics.intervals import bootstrap_interval, clopper_pearson, wilson
from shiftproof.metrics.meanings import MEANINGS, Meaning, meaning_of
from shiftproof.metrics.operating_point import OperatingPoint, cheapest_point, operating_point
from shiftproof.metrics.paired import PairedCounts, difference_interval, holm, mcnemar_p, paired_counts
from shiftproof.metrics.ranks import rank_shift
from shiftproof.metrics.roc import RocCurve, roc_curve
from shiftproof.metrics.separation import Separation, aupr, auroc, fpr_at_tpr, separation, share_discarded
from shiftproof.metrics.stability import (
    flip_probability,
    sequence_flip_probability,
    sequence_top5_distance,
    sequence_zipf_distance,
    top5_distance,
    top5_distance_from_ranks,
    zipf_distance,
)
from shiftproof.metrics.two_sample import (
    bootstrap_auroc_interval,
    discarded_interval,
    fpr_interval,
    two_sample_bootstrap,
)

__all__ = [
    "MEANINGS",
    "AurocDifference",
    "DecomposedAuroc",
    "Meaning",
    "OperatingPoint",
    "PairedCounts",
    "Reliability",
    "RocCurve",
    "Separation",
    "Tally",
    "aupr",
    "auroc",
    "auroc_covariance",
    "auroc_difference",
    "auroc_interval",
    "bootstrap_auroc_interval",
    "bootstrap_interval",
    "brier_score",
    "chance_calibration_error",
    "cheapest_point",
    "clopper_pearson",
    "confusion_counts",
    "corruption_error",
    "decomposed_auroc",
    "difference_interval",
    "discarded_interval",
    "expected_calibration_error",
    "flip_probability",
    "fpr_at_tpr",
    "fpr_interval",
    "grouped_accuracy",
    "holm",
    "is_correct",
    "mcnemar_p",
    "mean_corruption_error",
    "meaning_of",
    "operating_point",
    "paired_counts",
    "per_class_accuracy",
    "pooled_auroc",
    "rank_shift",
    "relative_corruption_error",
    "relative_mean_corruption_error",
    "reliability",
    "rms_calibration_error",
    "roc_curve",
    "separation",
    "sequence_flip_probability",
    "sequence_top5_distance",
    "sequence_zipf_distance",
    "share_discarded",
    "to_probabilities",
    "top5_distance",
    "top5_distance_from_ranks",
    "top_confidence",
    "top_k_accuracy",
    "two_sample_bootstrap",
    "wilson",
    "worst_group",
    "zipf_distance",
]
