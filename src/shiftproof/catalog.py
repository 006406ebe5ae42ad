"""The table of contents: every built-in by name. Reading it imports nothing.

A new entry is one line here; from then on it is listed, documented and under the contract tests.
"""

from __future__ import annotations

from shiftproof.registry import Registry

MODELS = Registry(
    "model",
    {
        "lite": "shiftproof.models.lite:load_lite",
        "onnx": "shiftproof.models.onnx:load_onnx",
        "torch": "shiftproof.models.pytorch:load_torch",
        "timm": "shiftproof.models.names:load_timm",
        "torchvision": "shiftproof.models.names:load_torchvision",
        "hf": "shiftproof.models.names:load_transformers",
    },
)

IMAGE_SETS = Registry(
    "image set",
    {
        "folder": "shiftproof.image_sets.folder:open_folder",
        "manifest": "shiftproof.image_sets.manifest:open_manifest",
        "arrays": "shiftproof.image_sets.arrays:open_arrays",
        "tar": "shiftproof.image_sets.tar:open_tar",
        "imagenet-c": "shiftproof.image_sets.layouts:open_imagenet_c",
        "imagenet-v2": "shiftproof.image_sets.layouts:open_imagenet_v2",
        "objectnet": "shiftproof.image_sets.objectnet:open_objectnet",
        "tiny-imagenet": "shiftproof.image_sets.layouts:open_tiny_imagenet",
        "imagenet-ood": "shiftproof.image_sets.file_lists:open_imagenet_ood",
        "openimage-o": "shiftproof.image_sets.file_lists:open_openimage_o",
    },
)

METRICS = Registry(
    "metric",
    {
        "top_k_accuracy": "shiftproof.metrics.accuracy:top_k_accuracy",
        "is_correct": "shiftproof.metrics.accuracy:is_correct",
        "per_class_accuracy": "shiftproof.metrics.accuracy:per_class_accuracy",
        "grouped_accuracy": "shiftproof.metrics.accuracy:grouped_accuracy",
        "worst_group": "shiftproof.metrics.accuracy:worst_group",
        "confusion_counts": "shiftproof.metrics.accuracy:confusion_counts",
        "rms_calibration_error": "shiftproof.metrics.calibration:rms_calibration_error",
        "chance_calibration_error": "shiftproof.metrics.calibration:chance_calibration_error",
        "expected_calibration_error": "shiftproof.metrics.calibration:expected_calibration_error",
        "brier_score": "shiftproof.metrics.calibration:brier_score",
        "reliability": "shiftproof.metrics.calibration:reliability",
        "clopper_pearson": "shiftproof.metrics.intervals:clopper_pearson",
        "wilson": "shiftproof.metrics.intervals:wilson",
        "bootstrap_interval": "shiftproof.metrics.intervals:bootstrap_interval",
        "paired_counts": "shiftproof.metrics.paired:paired_counts",
        "mcnemar_p": "shiftproof.metrics.paired:mcnemar_p",
        "difference_interval": "shiftproof.metrics.paired:difference_interval",
        "holm": "shiftproof.metrics.paired:holm",
    },
)

STUDIES = Registry(
    "study",
    {
        "accuracy": "shiftproof.studies.accuracy:AccuracyStudy",
        "calibration": "shiftproof.studies.calibration:CalibrationStudy",
        "comparison": "shiftproof.studies.comparison:ComparisonStudy",
    },
)

KINDS = {"models": MODELS, "image-sets": IMAGE_SETS, "metrics": METRICS, "studies": STUDIES}
"""What ``shiftproof list`` can list."""
