"""Measures how a vision model holds up outside its test set.

The public names are resolved when they are first used, so importing this package loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AccuracyOptions": "shiftproof.studies.accuracy.options",
    "AccuracyStudy": "shiftproof.studies.accuracy.study",
    "AdversarialOptions": "shiftproof.curation.options",
    "BudgetedCorruptionStudy": "shiftproof.studies.corruption.budgeted",
    "CIFAR_C_BAR": "shiftproof.corruptions",
    "CLEAN": "shiftproof.types",
    "CalibrationOptions": "shiftproof.studies.calibration.options",
    "CalibrationStudy": "shiftproof.studies.calibration.study",
    "CandidateSettings": "shiftproof.curation.options",
    "ComparisonStudy": "shiftproof.studies.comparison.study",
    "Condition": "shiftproof.types",
    "CorruptionChoice": "shiftproof.options",
    "CorruptionOptions": "shiftproof.studies.corruption.options",
    "CorruptionStudy": "shiftproof.studies.corruption.study",
    "CropOptions": "shiftproof.curation.options",
    "DatasetSettings": "shiftproof.options",
    "DetectionCorruptionOptions": "shiftproof.studies.detection_corruption.options",
    "DetectionCorruptionStudy": "shiftproof.studies.detection_corruption.study",
    "DetectionOptions": "shiftproof.studies.detection.options",
    "DetectionStudy": "shiftproof.studies.detection.study",
    "DuplicateOptions": "shiftproof.curation.options",
    "EstimateOptions": "shiftproof.studies.estimate.options",
    "EstimateStudy": "shiftproof.studies.estimate.study",
    "ExportOptions": "shiftproof.curation.options",
    "FrameOptions": "shiftproof.curation.options",
    "GateFiles": "shiftproof.studies.gate.options",
    "GateOptions": "shiftproof.studies.gate.options",
    "GateRule": "shiftproof.studies.gate.rules",
    "GoldSettings": "shiftproof.curation.options",
    "GridOptions": "shiftproof.training.options",
    "GuardOptions": "shiftproof.studies.guard.options",
    "HumanTestOptions": "shiftproof.curation.options",
    "IMAGENET_C": "shiftproof.corruptions",
    "IMAGENET_C_BAR": "shiftproof.corruptions",
    "IMAGENET_P": "shiftproof.corruptions",
    "InputSizeOptions": "shiftproof.studies.input_sizes.options",
    "InputSizeStudy": "shiftproof.studies.input_sizes.study",
    "LabelOptions": "shiftproof.studies.labels.options",
    "LabelReview": "shiftproof.curation.options",
    "LabelStudy": "shiftproof.studies.labels.study",
    "ModelSettings": "shiftproof.options",
    "NaturalAdversarialOptions": "shiftproof.studies.natural_adversarial.options",
    "NaturalAdversarialStudy": "shiftproof.studies.natural_adversarial.study",
    "NovelClassOptions": "shiftproof.curation.options",
    "NovelOptions": "shiftproof.curation.options",
    "OODOptions": "shiftproof.studies.ood.options",
    "OODStudy": "shiftproof.studies.ood.study",
    "ObjectOptions": "shiftproof.studies.objects.options",
    "ObjectStudy": "shiftproof.studies.objects.study",
    "OperatingPointStudy": "shiftproof.studies.threshold.study",
    "PairOptions": "shiftproof.curation.options",
    "PerturbationChoice": "shiftproof.options",
    "PerturbationOptions": "shiftproof.studies.perturbation.options",
    "PerturbationStudy": "shiftproof.studies.perturbation.study",
    "PictureSettings": "shiftproof.options",
    "PredictionSettings": "shiftproof.options",
    "ProbeOptions": "shiftproof.studies.probe.options",
    "ProbeStudy": "shiftproof.studies.probe.study",
    "PublishOptions": "shiftproof.publishing",
    "PublishedCorruptionStudy": "shiftproof.studies.corruption.published",
    "Results": "shiftproof.types",
    "ReviewerSettings": "shiftproof.curation.options",
    "SaliencyOptions": "shiftproof.studies.saliency.options",
    "SaliencyStudy": "shiftproof.studies.saliency.study",
    "Scoring": "shiftproof.datasets.label_spaces",
    "ScoringSettings": "shiftproof.options",
    "ServerOptions": "shiftproof.curation.options",
    "SliceOptions": "shiftproof.studies.slices.options",
    "SliceStudy": "shiftproof.studies.slices.study",
    "Store": "shiftproof.runs.store",
    "StudyChoice": "shiftproof.studies.choice",
    "TemporalOptions": "shiftproof.studies.temporal.options",
    "TemporalStudy": "shiftproof.studies.temporal.study",
    "ThresholdOptions": "shiftproof.studies.threshold.options",
    "TrainOptions": "shiftproof.training.options",
    "VerifySettings": "shiftproof.curation.options",
    "WatchOptions": "shiftproof.studies.guard.options",
    "boxes_as_classes": "shiftproof.models.classifiers.boxes_as_classes",
    "charts": "shiftproof.reports.inline",
    "check": "shiftproof.runs.store",
    "cite": "shiftproof.reference.citations",
    "compare": "shiftproof.bench",
    "corrupt": "shiftproof.corruptions.apply",
    "corrupt_dataset": "shiftproof.writing.jobs",
    "entries": "shiftproof.catalog",
    "estimate_accuracy": "shiftproof.bench",
    "find_label_errors": "shiftproof.bench",
    "forget_model": "shiftproof.runs.stored_models",
    "format_results": "shiftproof.reports.headline",
    "gate": "shiftproof.bench",
    "guard": "shiftproof.bench",
    "load_detector": "shiftproof.models",
    "load_guard": "shiftproof.studies.guard.guard",
    "load_model": "shiftproof.models",
    "measure": "shiftproof.studies.measure",
    "measure_stored": "shiftproof.bench",
    "merge_stores": "shiftproof.runs.store",
    "open_dataset": "shiftproof.datasets",
    "perturb": "shiftproof.corruptions.sequences",
    "perturb_dataset": "shiftproof.writing.jobs",
    "plan": "shiftproof.bench",
    "predict": "shiftproof.bench",
    "probe": "shiftproof.bench",
    "profile": "shiftproof.judging",
    "proposals": "shiftproof.models.classifiers.proposals",
    "publish": "shiftproof.publishing",
    "random_network": "shiftproof.models",
    "recipes": "shiftproof.bench",
    "rename_model": "shiftproof.runs.stored_models",
    "report": "shiftproof.bench",
    "run": "shiftproof.bench",
    "run_demo": "shiftproof.demo",
    "save_report": "shiftproof.reports.build",
    "save_zero_shot": "shiftproof.models.classifiers.zero_shot",
    "serve_review": "shiftproof.review.jobs",
    "slices": "shiftproof.bench",
    "store_predictions": "shiftproof.bench",
    "stored_models": "shiftproof.runs.stored_models",
    "threshold": "shiftproof.bench",
    "train": "shiftproof.bench",
    "verdicts": "shiftproof.review.jobs",
    "watch": "shiftproof.bench",
    "wrap_detector": "shiftproof.models",
    "wrap_model": "shiftproof.models",
}
"""Where each public name is."""

_NAMESPACES = ("curate", "metrics", "options")
"""Modules that are public as a whole."""

if TYPE_CHECKING:
    from shiftproof import curate as curate
    from shiftproof import metrics as metrics
    from shiftproof import options as options
    from shiftproof.bench import compare as compare
    from shiftproof.bench import estimate_accuracy as estimate_accuracy
    from shiftproof.bench import find_label_errors as find_label_errors
    from shiftproof.bench import gate as gate
    from shiftproof.bench import guard as guard
    from shiftproof.bench import measure_stored as measure_stored
    from shiftproof.bench import plan as plan
    from shiftproof.bench import predict as predict
    from shiftproof.bench import probe as probe
    from shiftproof.bench import recipes as recipes
    from shiftproof.bench import report as report
    from shiftproof.bench import run as run
    from shiftproof.bench import slices as slices
    from shiftproof.bench import store_predictions as store_predictions
    from shiftproof.bench import threshold as threshold
    from shiftproof.bench import train as train
    from shiftproof.bench import watch as watch
    from shiftproof.catalog import entries as entries
    from shiftproof.corruptions import CIFAR_C_BAR as CIFAR_C_BAR
    from shiftproof.corruptions import IMAGENET_C as IMAGENET_C
    from shiftproof.corruptions import IMAGENET_C_BAR as IMAGENET_C_BAR
    from shiftproof.corruptions import IMAGENET_P as IMAGENET_P
    from shiftproof.corruptions.apply import corrupt as corrupt
    from shiftproof.corruptions.sequences import perturb as perturb
    from shiftproof.curation.options import AdversarialOptions as AdversarialOptions
    from shiftproof.curation.options import CandidateSettings as CandidateSettings
    from shiftproof.curation.options import CropOptions as CropOptions
    from shiftproof.curation.options import DuplicateOptions as DuplicateOptions
    from shiftproof.curation.options import ExportOptions as ExportOptions
    from shiftproof.curation.options import FrameOptions as FrameOptions
    from shiftproof.curation.options import GoldSettings as GoldSettings
    from shiftproof.curation.options import HumanTestOptions as HumanTestOptions
    from shiftproof.curation.options import LabelReview as LabelReview
    from shiftproof.curation.options import NovelClassOptions as NovelClassOptions
    from shiftproof.curation.options import NovelOptions as NovelOptions
    from shiftproof.curation.options import PairOptions as PairOptions
    from shiftproof.curation.options import ReviewerSettings as ReviewerSettings
    from shiftproof.curation.options import ServerOptions as ServerOptions
    from shiftproof.curation.options import VerifySettings as VerifySettings
    from shiftproof.datasets import open_dataset as open_dataset
    from shiftproof.datasets.label_spaces import Scoring as Scoring
    from shiftproof.demo import run_demo as run_demo
    from shiftproof.judging import profile as profile
    from shiftproof.models import load_detector as load_detector
    from shiftproof.models import load_model as load_model
    from shiftproof.models import random_network as random_network
    from shiftproof.models import wrap_detector as wrap_detector
    from shiftproof.models import wrap_model as wrap_model
    from shiftproof.models.classifiers.boxes_as_classes import boxes_as_classes as boxes_as_classes
    from shiftproof.models.classifiers.proposals import proposals as proposals
    from shiftproof.models.classifiers.zero_shot import save_zero_shot as save_zero_shot
    from shiftproof.options import CorruptionChoice as CorruptionChoice
    from shiftproof.options import DatasetSettings as DatasetSettings
    from shiftproof.options import ModelSettings as ModelSettings
    from shiftproof.options import PerturbationChoice as PerturbationChoice
    from shiftproof.options import PictureSettings as PictureSettings
    from shiftproof.options import PredictionSettings as PredictionSettings
    from shiftproof.options import ScoringSettings as ScoringSettings
    from shiftproof.publishing import PublishOptions as PublishOptions
    from shiftproof.publishing import publish as publish
    from shiftproof.reference.citations import cite as cite
    from shiftproof.reports.build import save_report as save_report
    from shiftproof.reports.headline import format_results as format_results
    from shiftproof.reports.inline import charts as charts
    from shiftproof.review.jobs import serve_review as serve_review
    from shiftproof.review.jobs import verdicts as verdicts
    from shiftproof.runs.store import Store as Store
    from shiftproof.runs.store import check as check
    from shiftproof.runs.store import merge_stores as merge_stores
    from shiftproof.runs.stored_models import forget_model as forget_model
    from shiftproof.runs.stored_models import rename_model as rename_model
    from shiftproof.runs.stored_models import stored_models as stored_models
    from shiftproof.studies.accuracy.options import AccuracyOptions as AccuracyOptions
    from shiftproof.studies.accuracy.study import AccuracyStudy as AccuracyStudy
    from shiftproof.studies.calibration.options import CalibrationOptions as CalibrationOptions
    from shiftproof.studies.calibration.study import CalibrationStudy as CalibrationStudy
    from shiftproof.studies.choice import StudyChoice as StudyChoice
    from shiftproof.studies.comparison.study import ComparisonStudy as ComparisonStudy
    from shiftproof.studies.corruption.budgeted import BudgetedCorruptionStudy as BudgetedCorruptionStudy
    from shiftproof.studies.corruption.options import CorruptionOptions as CorruptionOptions
    from shiftproof.studies.corruption.published import PublishedCorruptionStudy as PublishedCorruptionStudy
    from shiftproof.studies.corruption.study import CorruptionStudy as CorruptionStudy
    from shiftproof.studies.detection.options import DetectionOptions as DetectionOptions
    from shiftproof.studies.detection.study import DetectionStudy as DetectionStudy
    from shiftproof.studies.detection_corruption.options import DetectionCorruptionOptions as DetectionCorruptionOptions
    from shiftproof.studies.detection_corruption.study import DetectionCorruptionStudy as DetectionCorruptionStudy
    from shiftproof.studies.estimate.options import EstimateOptions as EstimateOptions
    from shiftproof.studies.estimate.study import EstimateStudy as EstimateStudy
    from shiftproof.studies.gate.options import GateFiles as GateFiles
    from shiftproof.studies.gate.options import GateOptions as GateOptions
    from shiftproof.studies.gate.rules import GateRule as GateRule
    from shiftproof.studies.guard.guard import load_guard as load_guard
    from shiftproof.studies.guard.options import GuardOptions as GuardOptions
    from shiftproof.studies.guard.options import WatchOptions as WatchOptions
    from shiftproof.studies.input_sizes.options import InputSizeOptions as InputSizeOptions
    from shiftproof.studies.input_sizes.study import InputSizeStudy as InputSizeStudy
    from shiftproof.studies.labels.options import LabelOptions as LabelOptions
    from shiftproof.studies.labels.study import LabelStudy as LabelStudy
    from shiftproof.studies.measure import measure as measure
    from shiftproof.studies.natural_adversarial.options import NaturalAdversarialOptions as NaturalAdversarialOptions
    from shiftproof.studies.natural_adversarial.study import NaturalAdversarialStudy as NaturalAdversarialStudy
    from shiftproof.studies.objects.options import ObjectOptions as ObjectOptions
    from shiftproof.studies.objects.study import ObjectStudy as ObjectStudy
    from shiftproof.studies.ood.options import OODOptions as OODOptions
    from shiftproof.studies.ood.study import OODStudy as OODStudy
    from shiftproof.studies.perturbation.options import PerturbationOptions as PerturbationOptions
    from shiftproof.studies.perturbation.study import PerturbationStudy as PerturbationStudy
    from shiftproof.studies.probe.options import ProbeOptions as ProbeOptions
    from shiftproof.studies.probe.study import ProbeStudy as ProbeStudy
    from shiftproof.studies.saliency.options import SaliencyOptions as SaliencyOptions
    from shiftproof.studies.saliency.study import SaliencyStudy as SaliencyStudy
    from shiftproof.studies.slices.options import SliceOptions as SliceOptions
    from shiftproof.studies.slices.study import SliceStudy as SliceStudy
    from shiftproof.studies.temporal.options import TemporalOptions as TemporalOptions
    from shiftproof.studies.temporal.study import TemporalStudy as TemporalStudy
    from shiftproof.studies.threshold.options import ThresholdOptions as ThresholdOptions
    from shiftproof.studies.threshold.study import OperatingPointStudy as OperatingPointStudy
    from shiftproof.training.options import GridOptions as GridOptions
    from shiftproof.training.options import TrainOptions as TrainOptions
    from shiftproof.types import CLEAN as CLEAN
    from shiftproof.types import Condition as Condition
    from shiftproof.types import Results as Results
    from shiftproof.writing.jobs import corrupt_dataset as corrupt_dataset
    from shiftproof.writing.jobs import perturb_dataset as perturb_dataset

__all__ = ["__version__", *_HOMES, *_NAMESPACES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _NAMESPACES:
        raise AttributeError(f"module 'shiftproof' has no attribute {name!r}")
    try:
        module = importlib.import_module(_HOMES.get(name, f"shiftproof.{name}"))
    except ModuleNotFoundError as missing:
        from shiftproof.registry import missing_extra

        raise missing_extra(f"shiftproof.{name}", missing) from missing
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
