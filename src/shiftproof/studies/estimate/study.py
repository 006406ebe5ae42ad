"""Accuracy on images without labels, estimated by a trend through shifts of labelled images, and tried on left-out ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import corruption_of
from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct, to_probabilities
from shiftproof.metrics.likelihood import row_blocks, split_half
from shiftproof.metrics.wording import counted
from shiftproof.studies import evidence
from shiftproof.studies.accuracy.study import all_slices
from shiftproof.studies.base import ClassNames, dataset_ref, model_refs, refs_of, settle
from shiftproof.studies.corruption.study import CorruptedStudy
from shiftproof.studies.estimate.calibrated import CALIBRATED, Answers, Calibration, KnownShifts, View, large_enough
from shiftproof.types import (
    CLEAN,
    Condition,
    Dataset,
    DatasetRef,
    Finding,
    Interval,
    Keep,
    Known,
    LoadPredictions,
    Logits,
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

SEVERITIES = (1, 3, 5)
"""Weak, middling and strong shifts: what lies between is on the same line."""

RANGES = 4
"""Groups that a numeric fact of many values is cut into."""

FAMILIES = {"speckle_noise": "noise", "gaussian_blur": "blur", "spatter": "weather", "saturate": "digital"}
"""Groups of the extra corruptions: what is left out together must not be known from a near relative."""

HOW = (
    "log-odds of the accuracy, linear in those of the mean confidence and of the share of predictions that leave no class "
    "with more images than chance would give it; temperatures from the clean labelled images"
)
JUDGED = "each shift from shifts of other groups, on the half of the images that was held out"


@dataclass(frozen=True)
class EstimateStudy(CorruptedStudy):
    """Estimated accuracy of every model on datasets without labels.

    The labelled `dataset` under corruptions gives accuracies that are known: a trend through them turns what a model's
    answers look like into an accuracy. How far such an estimate is off is measured with groups of corruptions left out.
    """

    severities: Sequence[int] = SEVERITIES
    unlabelled: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    keep: Keep = "logits"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, unlabelled=refs_of(self.unlabelled))
        if len({family(name) for name in self.corruptions}) < 2:
            raise BadInput("the estimate is tried on groups of corruptions left out: name corruptions of two groups or more")

    def conditions(self) -> list[Condition]:
        """The images as the model takes them, those of production too; then every cell."""
        return [CLEAN, *super().conditions()[1:]]

    @property
    def _picture(self) -> str:
        return self.picture or "model-size"

    def runs(self) -> list[Run]:
        """Every model on the labelled images under every condition, and on the others as they are."""
        others = refs_of(self.unlabelled).values()
        return [*super().runs(), *(Run(model, images) for model in model_refs(self.models) for images in others)]

    def reading(self, run: Run) -> Reading | None:
        """Labels of the others, where they have some, take no part."""
        return None if run.dataset == dataset_ref(self.dataset) else Reading(dataset_ref(self.dataset), labelled=False)

    def why_nothing(self, known: Known) -> str | None:
        """It starts from images whose class is known."""
        return known.unlabelled(dataset_ref(self.dataset), "an estimate of accuracy")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        for model in model_refs(self.models):
            known = self._known(model, load)
            if isinstance(known, str):
                yield from evidence.skipped(dataset_ref(self.dataset).name, known)
                continue
            for name, images in refs_of(self.unlabelled).items():
                yield from self._estimates(Run(model, images), name, known, load)
            yield from self._tried(model, known.calibration(len(known.clean)), load)

    def _known(self, model: ModelRef, load: LoadPredictions) -> KnownShifts | str:
        """What one model answers to the labelled images, or why nothing is calibrated on it."""
        clean_run, *runs = (Run(model, dataset_ref(self.dataset), condition) for condition in self.conditions())
        shared = set.intersection(*(set(load(run).ids) for run in (clean_run, *runs)))
        found = load(clean_run)
        clean = _shared_only(found, shared)
        if why := evidence.why_unread(found) or evidence.why_no_confidence(clean):
            return why
        if why := evidence.why_unlabelled(found, "an estimate of accuracy") or why_infinite(clean):
            return why
        for run in runs:
            if why := why_infinite(_shared_only(load(run), shared)):
                return f"{why} under {run.condition}"
        half = split_half(clean.clusters.keys)
        if len(clean) < LEAST or min(half.sum(), (~half).sum()) < LEAST // 4:
            return f"an estimate needs {LEAST} labelled images in two halves that share none, and has {len(clean)} in all"
        shifted = AnswersInStore({str(run.condition): run for run in runs}, shared, load)
        groups = {str(run.condition): family(run.condition.name) for run in runs}
        known = KnownShifts(answers(clean), shifted, groups, half)
        try:
            known.calibration(len(clean))
        except BadInput as reason:  # no temperature fits
            return str(reason)
        return known

    def _tried(self, model: ModelRef, made: Calibration, load: LoadPredictions) -> Iterator[Measurement]:
        """How far estimates were off, ours and the published ones, and how often the interval held."""
        run = Run(model, dataset_ref(self.dataset))
        told = {
            **evidence.convention_of(run, load(run)),
            "estimate": HOW,
            "tried": f"{len(made.attempts)} times, {JUDGED}",
        }
        images = len(made.source.clean)  # each half is judged once
        for name in made.attempts[0].estimates:
            off = float(np.mean([abs(one.error(name)) for one in made.attempts]))
            yield Measurement("estimate_error", off, {**run.about(), "estimate": name}, images, told)
        yield Measurement("estimate_coverage", made.covered(), {**run.about(), "estimate": CALIBRATED}, images, told)

    def _estimates(self, run: Run, name: str, known: KnownShifts, load: LoadPredictions) -> Iterator[Finding | Note]:
        """Of one dataset as a whole, in ways of others too, and in slices; or why there is none."""
        found = load(run)
        if why := evidence.why_unread(found) or evidence.why_no_confidence(found) or why_infinite(found):
            yield Skipped(f"{name}: {why}")
            return
        if len(found) < LEAST:
            yield Skipped(f"{name}: an estimate needs {LEAST} images, and has {len(found)}")
            return
        logits, made = logits_of(found), known.calibration(len(found))
        view = made.view(logits, cases_of(found))
        if outside := made.why_outside(view, ClassNames(found.classes).__getitem__):
            yield Skipped(f"{name}: the accuracy of {run.model.name} is not estimated, {outside}")
            return
        told = {"estimate": HOW, "labelled": dataset_ref(self.dataset).name}
        subject = evidence.Subject.of(run, found).also({"dataset": name}, told)
        method = f"from the errors of a cross-validation with {len(made.attempts)} estimates: {JUDGED}"
        cases = "" if found.clusters.numbers is None else counted(found.clusters.count, found.clusters.case)
        within = Interval(*made.interval(view.look()), method=method, cases=cases)
        yield subject.number("estimated_accuracy", made.estimate(view.look()), within)
        for other, value in made.source.published(logits).items():
            yield subject.also({"estimate": other}, {"estimate": "as published"}).number("published_estimate", value)
        yield from self._slices(found, logits, subject, view, made)

    def _slices(
        self, found: Predictions, logits: Logits, subject: evidence.Subject, view: View, made: Calibration
    ) -> Iterator[Finding | Note]:
        """Of each group of a fact, and of each predicted class, that has enough images."""
        names, predicted = ClassNames(found.classes), logits.argmax(axis=1)
        facts = [one for one in all_slices(found.facts, ranges=RANGES) if not one.why_useless]
        groups = [(one.fact, one.groups == place, one.names[place]) for one in facts for place in large_enough(one.groups)]
        groups += [("predicted class", predicted == place, names[place]) for place in large_enough(predicted)]
        method = f"from the errors of slices in a cross-validation: {JUDGED}"
        for fact, rows, name in groups:
            look = view.look(rows)
            ends = made.interval_in_slice(look)
            if ends is None:
                yield Skipped(
                    f"{subject.about['dataset']}: slices are not estimated, those of the labelled images are too small to "
                    f"try it; calibrate on more of them (--calibrated-on)"
                )
                return
            of_group = subject.take(rows).also({"fact": fact, "group": name})
            yield of_group.number("estimated_group_accuracy", made.estimate(look), Interval(*ends, method=method))


@dataclass(frozen=True)
class AnswersInStore(Mapping[str, Answers]):
    """Answers under each condition, read when they are asked for: those of all conditions would not fit in memory."""

    runs: Mapping[str, Run]
    images: Collection[str]  # that have answers under all of them
    load: LoadPredictions

    def __getitem__(self, condition: str) -> Answers:
        return answers(_shared_only(self.load(self.runs[condition]), self.images))

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)


def _shared_only(predictions: Predictions, images: Collection[str]) -> Predictions:
    """The labelled rows of these images."""
    rows = np.array([image in images for image in predictions.ids], bool)
    return evidence.labelled_only(predictions if rows.all() else predictions.take(rows))


def family(corruption: str) -> str:
    """The group of a corruption, of an extra one that of its nearest relatives.

    >>> family("fog"), family("speckle_noise")
    ('weather', 'noise')
    """
    return FAMILIES.get(corruption) or corruption_of(corruption).group


def answers(predictions: Predictions) -> Answers:
    """Labels and logits of labelled images; of several labels of an image the predicted one, or else the first."""
    correct = is_correct(predictions.labels, predictions.top5.classes)
    first = np.take_along_axis(predictions.labels, (predictions.labels >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    labels = np.where(correct, predictions.top5.classes[:, 0], first)
    groupings = tuple(one.groups for one in all_slices(predictions.facts, ranges=RANGES) if not one.why_useless)
    return Answers(logits_of(predictions), labels, correct, cases_of(predictions), groupings)


def why_infinite(predictions: Predictions) -> str | None:
    """Why scores cannot be weighed against one another, or None."""
    infinite = sum(int((~np.isfinite(rows).all(axis=1)).sum()) for rows in row_blocks(logits_of(predictions)))
    return f"the scores of {infinite:,} of {len(predictions):,} images are infinite" if infinite else None


def cases_of(predictions: Predictions) -> NDArray[np.integer]:
    """The cluster of each image."""
    numbers = predictions.clusters.numbers
    return np.arange(len(predictions)) if numbers is None else numbers


def logits_of(predictions: Predictions) -> Logits:
    """Logits, or logarithms of the probabilities that a model gives instead."""
    logits = predictions.need_logits()
    if predictions.gives == "probabilities":
        return np.asarray(np.log(np.maximum(to_probabilities(np.asarray(logits, float), "probabilities"), 1e-12)))
    return logits
