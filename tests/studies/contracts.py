"""What contracts of all studies ask of a number."""

from __future__ import annotations

import math

from shiftproof.metrics import MEANINGS
from shiftproof.types import Measurement

WITHOUT_INTERVAL = frozenset(
    (
        "chance_calibration_error",
        "accuracy_difference_p",
        "object_difference_p",
        "input_size_p",
        "auroc_difference_p",
        "best_input_size",
        "sampling_error",
        "pm_k_median_class_drop",
        "random_network_auroc",
        "random_network_failure_auroc",
        "distance_intercept_gap",
        "frechet_distance",
        "mean_auroc",
        "auroc_spread",
        "model_mean",
        "model_spread",
        "operating_threshold",
        "operating_cost",
        "answer_kept_share",
        "mean_average_recall",
        "class_objects",
        "class_boxes",
        "objects_to_find",
        "objects_left_out",
        "boxes_found",
        "precision_recall",
        "object_share_overlap",
        "left_after_step",
        "right_together",
        "class_lookups",
        "percent_agreement",
        "fleiss_kappa",
        "krippendorff_alpha",
        "agreement_with_others",
        "votes_with_verification",
        "votes_of_everybody",
        "seconds_to_answer",
    )
)
"""Numbers that are printed without an interval: counts, p-values, thresholds, and those that say why they have none."""


def check_number(found: Measurement) -> None:
    """It exists, lies within its interval, has a meaning, and an interval only where its coverage is simulated."""
    low, high = found.interval or (found.value, found.value)
    assert low <= found.value <= high
    assert math.isfinite(found.value)
    assert found.metric in MEANINGS
    assert found.interval is None or found.metric not in WITHOUT_INTERVAL
