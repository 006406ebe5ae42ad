"""Accuracy on images without labels, estimated by a line through shifts of labelled images, and tried on left-out ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from shiftproof.corruptions import corruption_of
from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct, to_probabilities
from shiftproof.studies import evidence
from shiftproof.studies.base import dataset_ref, model_refs, refs_of, settle
from shiftproof.studies.corruption.study import CorruptedStudy
from shiftproof.studies.estimate.calibrated import CALIBRATED, Answers, Calibration, halves
from shiftproof.types import (
    Dataset,
    DatasetRef,
    Finding,
    Interval,
    Keep,
    Known,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    Predictions,
    Reading,
    Run,
    Skipped,
)

LEAST = 40
"""Labelled images, and unlabelled ones, below which an estimate says nothing."""

FAMILIES = {"speckle_noise": "noise", "gaussian_blur": "blur", "spatter": "weather", "saturate": "digital"}
"""Groups of the extra corruptions: what is left out together must not be known from a near relative."""

HOW = "log-odds of the accuracy, a line in those of the transported confidence; temperature from the clean labelled images"
JUDGED = "each shift by a line through shifts of other groups, on the half of the images that the line does not know"


@dataclass(frozen=True)
class EstimateStudy(CorruptedStudy):
    """Estimated accuracy of every model on datasets without labels.

    The labelled `dataset` under corruptions gives accuracies that are known: one line through them turns what a model's
    answers look like into an accuracy. How far such an estimate is off is measured with groups of corruptions left out.
    """

    unlabelled: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    keep: Keep = "logits"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, unlabelled=refs_of(self.unlabelled))
        if not self.unlabelled:
            raise BadInput("an accuracy is estimated on images without labels: name at least one dataset of them")
        if len({family(name) for name in self.corruptions}) < 2:
            raise BadInput("the estimate is tried on groups of corruptions left out: name corruptions of two groups or more")

    def runs(self) -> list[Run]:
        """Every model on the labelled images under every condition, and on the others as they are."""
        clean = self.conditions()[0]
        others = refs_of(self.unlabelled).values()
        return [
            *super().runs(),
            *(Run(model, images, clean) for model in model_refs(self.models) for images in others),
        ]

    def reading(self, run: Run) -> Reading | None:
        """Labels of the others, where they have some, take no part."""
        return None if run.dataset == dataset_ref(self.dataset) else Reading(dataset_ref(self.dataset), labelled=False)

    def why_nothing(self, known: Known) -> str | None:
        """It starts from images whose class is known."""
        return known.unlabelled(dataset_ref(self.dataset), "an estimate of accuracy")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        for model in model_refs(self.models):
            made = self._calibration(model, load)
            if isinstance(made, str):
                yield Skipped(f"{model.name} on {dataset_ref(self.dataset).name}: {made}")
                continue
            yield from self._tried(model, made)
            for name, images in refs_of(self.unlabelled).items():
                yield from self._estimate(Run(model, images, self.conditions()[0]), name, made, load)

    def _calibration(self, model: ModelRef, load: LoadPredictions) -> Calibration | str:
        """The line of one model, or why there is none."""
        dataset = dataset_ref(self.dataset)
        clean, *cells = [load(Run(model, dataset, condition)) for condition in self.conditions()]
        shared = set(clean.ids).intersection(*(one.ids for one in cells))
        clean, *cells = [
            evidence.labelled_only(one.take(np.array([image in shared for image in one.ids]))) for one in (clean, *cells)
        ]
        if why := evidence.why_unread(clean) or evidence.why_no_confidence(clean):
            return why
        if len(clean) < LEAST:
            return f"an estimate needs {LEAST} labelled images, and has {len(clean)}"
        half = halves(clean)
        if not LEAST // 4 <= half.sum() <= len(half) - LEAST // 4:
            return "the images are too few clusters to be parted in two halves"
        names = [str(condition) for condition in self.conditions()[1:]]
        groups = {str(condition): family(condition.name) for condition in self.conditions()[1:]}
        return Calibration.of(answers(clean), dict(zip(names, map(answers, cells), strict=True)), groups, half)

    def _tried(self, model: ModelRef, made: Calibration) -> Iterator[Measurement]:
        """How far estimates were off, ours and the published ones, and how often the interval held."""
        about = {"model": model.name, "dataset": dataset_ref(self.dataset).name}
        told = {"estimate": HOW, "tried": f"{len(made.attempts)} times, {JUDGED}"}
        images = made.attempts[0].images
        for name in made.attempts[0].estimates:
            off = float(np.mean([abs(one.error(name)) for one in made.attempts]))
            yield Measurement("estimate_error", off, {**about, "estimate": name}, images, told)
        yield Measurement("estimate_coverage", made.covered(), {**about, "estimate": CALIBRATED}, images, told)

    def _estimate(self, run: Run, name: str, made: Calibration, load: LoadPredictions) -> Iterator[Finding | Note]:
        found = load(run)
        if why := evidence.why_unread(found) or evidence.why_no_confidence(found):
            yield Skipped(f"{name}: {why}")
            return
        if len(found) < LEAST:
            yield Skipped(f"{name}: an estimate needs {LEAST} images, and has {len(found)}")
            return
        look = made.source.look(logits_of(found))
        if outside := made.why_outside(look):
            yield Skipped(f"{name}: the accuracy of {run.model.name} is not estimated, {outside}")
            return
        low, high = made.interval(look)
        told = {**evidence.convention_of(run, found), "estimate": HOW, "labelled": dataset_ref(self.dataset).name}
        method = f"as far as estimates were off on {len(made.attempts)} tries, {JUDGED}"
        about = {**run.about(), "dataset": name}
        within = Interval(low, high, method=method)
        yield Measurement("estimated_accuracy", made.estimate(look), about, len(found), told, within)


def family(corruption: str) -> str:
    """The group of a corruption, of an extra one that of its nearest relatives.

    >>> family("fog"), family("speckle_noise")
    ('weather', 'noise')
    """
    return FAMILIES.get(corruption) or corruption_of(corruption).group


def answers(predictions: Predictions) -> Answers:
    """Labels and logits of labelled images."""
    labels = predictions.labels[:, 0]
    return Answers(logits_of(predictions), labels, is_correct(predictions.labels, predictions.top5.classes))


def logits_of(predictions: Predictions) -> np.ndarray:
    """Logits, or logarithms of the probabilities that a model gives instead."""
    logits = predictions.need_logits()
    if predictions.gives == "probabilities":
        return np.log(np.maximum(to_probabilities(logits, "probabilities"), 1e-12))
    return np.asarray(logits, float)
