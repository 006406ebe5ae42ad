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
        "imagenet-ood": "shiftproof.image_sets.published:open_imagenet_ood",
        "openimage-o": "shiftproof.image_sets.published:open_openimage_o",
    },
)

METRICS = Registry(
    "metric",
    {
        "top_k_accuracy": "shiftproof.metrics.accuracy:top_k_accuracy",
        "clopper_pearson": "shiftproof.metrics.intervals:clopper_pearson",
        "rms_calibration_error": "shiftproof.metrics.calibration:rms_calibration_error",
    },
)

STUDIES = Registry(
    "study",
    {
        "accuracy": "shiftproof.studies.accuracy:AccuracyStudy",
        "calibration": "shiftproof.studies.calibration:CalibrationStudy",
    },
)

KINDS = {"models": MODELS, "image-sets": IMAGE_SETS, "metrics": METRICS, "studies": STUDIES}
"""What ``shiftproof list`` can list."""
