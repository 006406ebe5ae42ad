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
        "imagenet-p": "shiftproof.image_sets.sequences:open_imagenet_p",
        "imagenet-v2": "shiftproof.image_sets.layouts:open_imagenet_v2",
        "objectnet": "shiftproof.image_sets.objectnet:open_objectnet",
        "tiny-imagenet": "shiftproof.image_sets.layouts:open_tiny_imagenet",
        "imagenet-ood": "shiftproof.image_sets.file_lists:open_imagenet_ood",
        "openimage-o": "shiftproof.image_sets.file_lists:open_openimage_o",
        "perturbed": "shiftproof.image_sets.perturbed:open_perturbed",
    },
)

CORRUPTIONS = Registry(
    "corruption",
    {
        "gaussian_noise": "shiftproof.corruptions.noise:gaussian_noise",
        "shot_noise": "shiftproof.corruptions.noise:shot_noise",
        "impulse_noise": "shiftproof.corruptions.noise:impulse_noise",
        "defocus_blur": "shiftproof.corruptions.blur:defocus_blur",
        "glass_blur": "shiftproof.corruptions.blur:glass_blur",
        "motion_blur": "shiftproof.corruptions.blur:motion_blur",
        "zoom_blur": "shiftproof.corruptions.blur:zoom_blur",
        "snow": "shiftproof.corruptions.weather:snow",
        "frost": "shiftproof.corruptions.weather:frost",
        "fog": "shiftproof.corruptions.weather:fog",
        "brightness": "shiftproof.corruptions.colour:brightness",
        "contrast": "shiftproof.corruptions.digital:contrast",
        "elastic_transform": "shiftproof.corruptions.warping:elastic_transform",
        "pixelate": "shiftproof.corruptions.digital:pixelate",
        "jpeg_compression": "shiftproof.corruptions.digital:jpeg_compression",
        "speckle_noise": "shiftproof.corruptions.noise:speckle_noise",
        "gaussian_blur": "shiftproof.corruptions.blur:gaussian_blur",
        "spatter": "shiftproof.corruptions.weather:spatter",
        "saturate": "shiftproof.corruptions.colour:saturate",
    },
)

PERTURBATIONS = Registry(
    "perturbation",
    {
        "gaussian_noise": "shiftproof.corruptions.sequence_noise:gaussian_noise",
        "shot_noise": "shiftproof.corruptions.sequence_noise:shot_noise",
        "motion_blur": "shiftproof.corruptions.sequence_blur:motion_blur",
        "zoom_blur": "shiftproof.corruptions.sequence_blur:zoom_blur",
        "snow": "shiftproof.corruptions.sequence_weather:snow",
        "brightness": "shiftproof.corruptions.sequence_weather:brightness",
        "translate": "shiftproof.corruptions.sequence_geometry:translate",
        "rotate": "shiftproof.corruptions.sequence_geometry:rotate",
        "tilt": "shiftproof.corruptions.sequence_geometry:tilt",
        "scale": "shiftproof.corruptions.sequence_geometry:scale",
        "speckle_noise": "shiftproof.corruptions.sequence_noise:speckle_noise",
        "gaussian_blur": "shiftproof.corruptions.sequence_blur:gaussian_blur",
        "spatter": "shiftproof.corruptions.sequence_weather:spatter",
        "shear": "shiftproof.corruptions.sequence_geometry:shear",
    },
)

EDITIONS = Registry(
    "edition",
    {
        "imagenet-224": "shiftproof.corruptions.editions:IMAGENET_224",
        "inception-299": "shiftproof.corruptions.editions:INCEPTION_299",
        "imagenet-64": "shiftproof.corruptions.editions:IMAGENET_64",
        "tiny-64": "shiftproof.corruptions.editions:TINY_64",
        "cifar-32": "shiftproof.corruptions.editions:CIFAR_32",
    },
)

DETECTORS = Registry(
    "detector",
    {
        "msp": "shiftproof.detectors.scores:msp",
        "max_logit": "shiftproof.detectors.scores:max_logit",
        "energy": "shiftproof.detectors.scores:energy",
        "entropy": "shiftproof.detectors.scores:entropy",
        "margin": "shiftproof.detectors.scores:margin",
        "odin": "shiftproof.detectors.scores:odin",
        "gen": "shiftproof.detectors.scores:gen",
        "max_cosine": "shiftproof.detectors.heads:max_cosine",
        "gradnorm": "shiftproof.detectors.heads:gradnorm",
        "ash_b": "shiftproof.detectors.activations:ash_b",
        "ash_s": "shiftproof.detectors.activations:ash_s",
        "ash_p": "shiftproof.detectors.activations:ash_p",
        "scale": "shiftproof.detectors.activations:scale",
        "react": "shiftproof.detectors.activations:fit_react",
        "dice": "shiftproof.detectors.dice:fit_dice",
        "kl_matching": "shiftproof.detectors.kl_matching:fit_kl_matching",
        "she": "shiftproof.detectors.she:fit_she",
        "openmax": "shiftproof.detectors.openmax:fit_openmax",
        "mahalanobis": "shiftproof.detectors.mahalanobis:fit_mahalanobis",
        "relative_mahalanobis": "shiftproof.detectors.mahalanobis:fit_relative_mahalanobis",
        "vim": "shiftproof.detectors.vim:fit_vim",
        "residual": "shiftproof.detectors.vim:fit_residual",
        "knn": "shiftproof.detectors.nearest_neighbours:fit_knn",
        "confidence": "shiftproof.detectors.extra_outputs:confidence",
        "rotation": "shiftproof.detectors.extra_outputs:rotation",
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
        "debiased_calibration_error": "shiftproof.metrics.calibration:debiased_calibration_error",
        "brier_score": "shiftproof.metrics.calibration:brier_score",
        "negative_log_likelihood": "shiftproof.metrics.likelihood:negative_log_likelihood",
        "fit_temperature": "shiftproof.metrics.temperature:fit_temperature",
        "temperature_interval": "shiftproof.metrics.temperature:temperature_interval",
        "reliability": "shiftproof.metrics.calibration:reliability",
        "aurra": "shiftproof.metrics.selective:aurra",
        "aurra_bounds": "shiftproof.metrics.selective:aurra_bounds",
        "aurra_interval": "shiftproof.metrics.selective:aurra_interval",
        "response_rate_accuracy": "shiftproof.metrics.selective:response_rate_accuracy",
        "aurc": "shiftproof.metrics.selective:aurc",
        "e_aurc": "shiftproof.metrics.selective:e_aurc",
        "augrc": "shiftproof.metrics.selective:augrc",
        "coverage_at_risk": "shiftproof.metrics.selective:coverage_at_risk",
        "risk_coverage": "shiftproof.metrics.selective:risk_coverage",
        "frechet_distance": "shiftproof.metrics.frechet:frechet_distance",
        "moments_of": "shiftproof.metrics.frechet:moments_of",
        "fit_line": "shiftproof.metrics.trends:fit_line",
        "clopper_pearson": "shiftproof.metrics.intervals:clopper_pearson",
        "wilson": "shiftproof.metrics.intervals:wilson",
        "bootstrap_interval": "shiftproof.metrics.intervals:bootstrap_interval",
        "paired_counts": "shiftproof.metrics.paired:paired_counts",
        "mcnemar_p": "shiftproof.metrics.paired:mcnemar_p",
        "difference_interval": "shiftproof.metrics.paired:difference_interval",
        "holm": "shiftproof.metrics.paired:holm",
        "corruption_error": "shiftproof.metrics.corruption_error:corruption_error",
        "mean_corruption_error": "shiftproof.metrics.corruption_error:mean_corruption_error",
        "relative_corruption_error": "shiftproof.metrics.corruption_error:relative_corruption_error",
        "relative_mean_corruption_error": "shiftproof.metrics.corruption_error:relative_mean_corruption_error",
        "flip_probability": "shiftproof.metrics.stability:flip_probability",
        "sequence_flip_probability": "shiftproof.metrics.stability:sequence_flip_probability",
        "sequence_top5_distance": "shiftproof.metrics.stability:sequence_top5_distance",
        "sequence_zipf_distance": "shiftproof.metrics.stability:sequence_zipf_distance",
        "top5_distance": "shiftproof.metrics.stability:top5_distance",
        "top5_distance_from_ranks": "shiftproof.metrics.stability:top5_distance_from_ranks",
        "zipf_distance": "shiftproof.metrics.stability:zipf_distance",
        "auroc": "shiftproof.metrics.separation:auroc",
        "aupr": "shiftproof.metrics.separation:aupr",
        "fpr_at_tpr": "shiftproof.metrics.separation:fpr_at_tpr",
        "share_discarded": "shiftproof.metrics.separation:share_discarded",
        "separation": "shiftproof.metrics.separation:separation",
        "roc_curve": "shiftproof.metrics.roc:roc_curve",
        "auroc_interval": "shiftproof.metrics.delong:auroc_interval",
        "auroc_covariance": "shiftproof.metrics.delong:auroc_covariance",
        "auroc_difference": "shiftproof.metrics.delong:auroc_difference",
        "two_sample_bootstrap": "shiftproof.metrics.two_sample:two_sample_bootstrap",
        "bootstrap_auroc_interval": "shiftproof.metrics.two_sample:bootstrap_auroc_interval",
        "fpr_interval": "shiftproof.metrics.two_sample:fpr_interval",
        "discarded_interval": "shiftproof.metrics.two_sample:discarded_interval",
        "decomposed_auroc": "shiftproof.metrics.decomposition:decomposed_auroc",
        "pooled_auroc": "shiftproof.metrics.decomposition:pooled_auroc",
        "rank_shift": "shiftproof.metrics.ranks:rank_shift",
        "operating_point": "shiftproof.metrics.operating_point:operating_point",
        "cheapest_point": "shiftproof.metrics.operating_point:cheapest_point",
    },
)

STUDIES = Registry(
    "study",
    {
        "accuracy": "shiftproof.studies.accuracy:AccuracyStudy",
        "calibration": "shiftproof.studies.calibration:CalibrationStudy",
        "comparison": "shiftproof.studies.comparison:ComparisonStudy",
        "corruption": "shiftproof.studies.corruption:CorruptionStudy",
        "perturbation": "shiftproof.studies.perturbation:PerturbationStudy",
        "natural-adversarial": "shiftproof.studies.natural_adversarial:NaturalAdversarialStudy",
        "out-of-distribution": "shiftproof.studies.out_of_distribution:OutOfDistributionStudy",
    },
)

KINDS = {
    "models": MODELS,
    "image-sets": IMAGE_SETS,
    "corruptions": CORRUPTIONS,
    "perturbations": PERTURBATIONS,
    "editions": EDITIONS,
    "detectors": DETECTORS,
    "metrics": METRICS,
    "studies": STUDIES,
}
"""What ``shiftproof list`` can list."""
