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
from shiftproof.metrics.average_precision import (
    average_precision,
    average_recall,
    image_average_precision,
    precision_at_recall,
)
from shiftproof.metrics.by_offset import OffsetErrors, conditional_robustness, errors_by_offset
from shiftproof.metrics.calibration import (
    Reliability,
    brier_score,
    chance_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    reliability,
    rms_calibration_error,
    rms_calibration_error_bounds,
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
from shiftproof.metrics.detection import (
    average_precision_interval,
    matched_average_precision,
    mean_average_precision,
)
from shiftproof.metrics.effective_robustness import EffectiveRobustness, effective_robustness
from shiftproof.metrics.frame_distance import Spread, empirical_cdf, l_infinity_distance
from shiftproof.metrics.frechet import Moments, frechet_distance, moments_of
from shiftproof.metrics.hardest_frames import hardest_frames
from shiftproof.metrics.hot_regions import heat_inside, hot_point_inside, hot_region, hot_region_meets
from shiftproof.metrics.intervals import bootstrap_interval, clopper_pearson, wilson
from shiftproof.metrics.likelihood import negative_log_likelihood
from shiftproof.metrics.matching import Matches, match
from shiftproof.metrics.meanings import MEANINGS, Meaning, meaning_of
from shiftproof.metrics.object_size import (
    ShareComparison,
    compare_shares,
    covering_boxes,
    mean_share_by_class,
    object_share,
)
from shiftproof.metrics.operating_point import OperatingPoint, cheapest_point, operating_point
from shiftproof.metrics.paired import PairedCounts, difference_interval, holm, mcnemar_p, paired_counts
from shiftproof.metrics.performance_under_corruption import (
    mean_performance_under_corruption,
    relative_performance_under_corruption,
)
from shiftproof.metrics.pm_k_detection import pm_k_average_precision, pm_k_average_precision_sweep, worst_frames
from shiftproof.metrics.ranks import rank_shift
from shiftproof.metrics.roc import RocCurve, roc_curve
from shiftproof.metrics.scale_factors import ScaleTable, accuracy_by_scale, pooled_accuracy, scale_factor
from shiftproof.metrics.selective import (
    ResponseCurve,
    RiskCoverage,
    augrc,
    aurc,
    aurra,
    aurra_bounds,
    aurra_interval,
    coverage_at_risk,
    e_aurc,
    response_rate_accuracy,
    risk_coverage,
)
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
from shiftproof.metrics.temperature import fit_temperature, split_half, temperature_interval
from shiftproof.metrics.temporal import AnchorAnswers, pm_k_accuracy, pm_k_correct, pm_k_sweep
from shiftproof.metrics.trends import Line, fit_line, predicted_interval
from shiftproof.metrics.two_sample import (
    bootstrap_auroc_interval,
    discarded_interval,
    fpr_interval,
    two_sample_bootstrap,
)

__all__ = [
    "MEANINGS",
    "AnchorAnswers",
    "AurocDifference",
    "DecomposedAuroc",
    "EffectiveRobustness",
    "Line",
    "Matches",
    "Meaning",
    "Moments",
    "OffsetErrors",
    "OperatingPoint",
    "PairedCounts",
    "Reliability",
    "ResponseCurve",
    "RiskCoverage",
    "RocCurve",
    "ScaleTable",
    "Separation",
    "ShareComparison",
    "Spread",
    "Tally",
    "accuracy_by_scale",
    "augrc",
    "aupr",
    "aurc",
    "auroc",
    "auroc_covariance",
    "auroc_difference",
    "auroc_interval",
    "aurra",
    "aurra_bounds",
    "aurra_interval",
    "average_precision",
    "average_precision_interval",
    "average_recall",
    "bootstrap_auroc_interval",
    "bootstrap_interval",
    "brier_score",
    "chance_calibration_error",
    "cheapest_point",
    "clopper_pearson",
    "compare_shares",
    "conditional_robustness",
    "confusion_counts",
    "corruption_error",
    "coverage_at_risk",
    "covering_boxes",
    "debiased_calibration_error",
    "decomposed_auroc",
    "difference_interval",
    "discarded_interval",
    "e_aurc",
    "effective_robustness",
    "empirical_cdf",
    "errors_by_offset",
    "expected_calibration_error",
    "fit_line",
    "fit_temperature",
    "flip_probability",
    "fpr_at_tpr",
    "fpr_interval",
    "frechet_distance",
    "grouped_accuracy",
    "hardest_frames",
    "heat_inside",
    "holm",
    "hot_point_inside",
    "hot_region",
    "hot_region_meets",
    "image_average_precision",
    "is_correct",
    "l_infinity_distance",
    "match",
    "matched_average_precision",
    "mcnemar_p",
    "mean_average_precision",
    "mean_corruption_error",
    "mean_performance_under_corruption",
    "mean_share_by_class",
    "meaning_of",
    "moments_of",
    "negative_log_likelihood",
    "object_share",
    "operating_point",
    "paired_counts",
    "per_class_accuracy",
    "pm_k_accuracy",
    "pm_k_average_precision",
    "pm_k_average_precision_sweep",
    "pm_k_correct",
    "pm_k_sweep",
    "pooled_accuracy",
    "pooled_auroc",
    "precision_at_recall",
    "predicted_interval",
    "rank_shift",
    "relative_corruption_error",
    "relative_mean_corruption_error",
    "relative_performance_under_corruption",
    "reliability",
    "response_rate_accuracy",
    "risk_coverage",
    "rms_calibration_error",
    "rms_calibration_error_bounds",
    "roc_curve",
    "scale_factor",
    "separation",
    "sequence_flip_probability",
    "sequence_top5_distance",
    "sequence_zipf_distance",
    "share_discarded",
    "split_half",
    "temperature_interval",
    "to_probabilities",
    "top5_distance",
    "top5_distance_from_ranks",
    "top_confidence",
    "top_k_accuracy",
    "two_sample_bootstrap",
    "wilson",
    "worst_frames",
    "worst_group",
    "zipf_distance",
]
