"""Measures how a vision model holds up outside its test set.

The public names are resolved when they are first used, so importing this package loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AccuracyStudy": "shiftproof.studies.accuracy",
    "CLEAN": "shiftproof.types",
    "CalibrationStudy": "shiftproof.studies.calibration",
    "Condition": "shiftproof.types",
    "CorruptionStudy": "shiftproof.studies.corruption",
    "IMAGENET_C": "shiftproof.corruptions",
    "IMAGENET_P": "shiftproof.corruptions",
    "NaturalAdversarialStudy": "shiftproof.studies.natural_adversarial",
    "OutOfDistributionStudy": "shiftproof.studies.out_of_distribution",
    "PerturbationStudy": "shiftproof.studies.perturbation",
    "boxes_as_classes": "shiftproof.models.boxes_as_classes",
    "corrupt": "shiftproof.corruptions.applying",
    "detect": "shiftproof.prediction",
    "load_detector": "shiftproof.models",
    "load_model": "shiftproof.models",
    "measure": "shiftproof.studies",
    "metrics": "shiftproof.metrics",
    "open_images": "shiftproof.image_sets",
    "perturb": "shiftproof.corruptions.sequences",
    "predict": "shiftproof.prediction",
    "proposals": "shiftproof.models.proposals",
    "wrap_detector": "shiftproof.models",
    "wrap_model": "shiftproof.models",
}

if TYPE_CHECKING:
    from shiftproof import metrics as metrics
    from shiftproof.corruptions import IMAGENET_C as IMAGENET_C
    from shiftproof.corruptions import IMAGENET_P as IMAGENET_P
    from shiftproof.corruptions.applying import corrupt as corrupt
    from shiftproof.corruptions.sequences import perturb as perturb
    from shiftproof.image_sets import open_images as open_images
    from shiftproof.models import load_detector as load_detector
    from shiftproof.models import load_model as load_model
    from shiftproof.models import wrap_detector as wrap_detector
    from shiftproof.models import wrap_model as wrap_model
    from shiftproof.models.boxes_as_classes import boxes_as_classes as boxes_as_classes
    from shiftproof.models.proposals import proposals as proposals
    from shiftproof.prediction import detect as detect
    from shiftproof.prediction import predict as predict
    from shiftproof.studies import measure as measure
    from shiftproof.studies.accuracy import AccuracyStudy as AccuracyStudy
    from shiftproof.studies.calibration import CalibrationStudy as CalibrationStudy
    from shiftproof.studies.corruption import CorruptionStudy as CorruptionStudy
    from shiftproof.studies.natural_adversarial import NaturalAdversarialStudy as NaturalAdversarialStudy
    from shiftproof.studies.out_of_distribution import OutOfDistributionStudy as OutOfDistributionStudy
    from shiftproof.studies.perturbation import PerturbationStudy as PerturbationStudy
    from shiftproof.types import CLEAN as CLEAN
    from shiftproof.types import Condition as Condition

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shiftproof' has no attribute {name!r}")
    try:
        module = importlib.import_module(_HOMES[name])
    except ModuleNotFoundError as missing:
        from shiftproof.registry import missing_extra

        raise missing_extra(f"shiftproof.{name}", missing) from missing
    value = module if _HOMES[name] == f"shiftproof.{name}" and name == "metrics" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
