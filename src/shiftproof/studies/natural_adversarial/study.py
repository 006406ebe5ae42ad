"""ImageNet-A and ImageNet-O as published: hard photos of ID classes, and OOD photos with confident predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.classes import with_wnids
from shiftproof.datasets.label_spaces import choose_classes
from shiftproof.errors import listed
from shiftproof.metrics import aupr, is_correct, response_rate_accuracy, rms_calibration_error
from shiftproof.metrics.two_sample import aupr_interval
from shiftproof.ood import needs_training
from shiftproof.reference import wnids_of
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy, dataset_ref, load_training, model_refs, settle
from shiftproof.studies.calibration.study import published_ties, rms_measurement
from shiftproof.studies.ood.scores import Cases, DetectorPanel, apart_from_id, check_detectors
from shiftproof.types import (
    Classes,
    Dataset,
    DatasetRef,
    Fact,
    Finding,
    Head,
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
    Training,
)

PUBLISHED_DETECTORS = ("msp", "max_logit")
"""Those of the paper: minus the highest probability, and minus the highest logit, of the 200 classes."""

TOP_FIVE = {"imagenet_a_accuracy": "imagenet_a_top5_accuracy", "ordinary_accuracy": "ordinary_top5_accuracy"}

POINTS = 200
"""Of a curve; more cannot be told apart."""


@dataclass(frozen=True)
class NaturalAdversarialStudy(CleanStudy):
    """Accuracy and calibration on ImageNet-A, AUPR on ImageNet-O, scored among their 200 classes (Hendrycks et al., 2021).

    `dataset` holds hard photos of ID classes, `ordinary` other photos of such classes (the validation
    images), `novel` OOD photos. Any datasets of these kinds will do; without `novel` or `ordinary` what needs them is
    left out. The classes are lists of wnids or the names of published ones. Detectors see those classes alone; those that
    learn do so from what the model says of the `training` images of these classes.
    """

    ordinary: DatasetRef | Dataset | None = None
    novel: DatasetRef | Dataset | None = None
    hard_classes: Sequence[str] = dataclasses.field(default_factory=lambda: wnids_of("imagenet_a_classes"))
    novel_classes: Sequence[str] = dataclasses.field(default_factory=lambda: wnids_of("imagenet_o_classes"))
    detectors: Sequence[str] = PUBLISHED_DETECTORS  # OOD detectors; any of the catalog
    training: DatasetRef | Dataset | None = None  # what detectors that learn do so from
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = dataclasses.field(default_factory=dict, hash=False)  # by detector
    bin_size: int = 100  # images a bin of the RMS calibration error
    published_bins: bool = False
    keep: Keep = "logits"  # features, for detectors that need them

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            ordinary=self.ordinary and dataset_ref(self.ordinary),
            novel=self.novel and dataset_ref(self.novel),
            training=self.training and dataset_ref(self.training),
            detectors=tuple(dict.fromkeys(self.detectors)),
        )
        check_detectors(self.detectors, preset=self.preset, parameters=self.parameters)

    def runs(self) -> list[Run]:
        """Every model on every set."""
        sets = dict.fromkeys([*self._sets.values(), *self._training])
        return [Run(model, images) for model in model_refs(self.models) for images in sets]

    def reading(self, run: Run) -> Reading | None:
        """Novel images have no ID class."""
        return Reading(dataset_ref(self.dataset), labelled=False) if run.dataset == self.novel else None

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        if self.novel is None:
            yield Skipped("natural-adversarial: no OOD photos were given (--ood), so there is no AUPR of ImageNet-O")
        elif self.ordinary is None:
            why = "the AUPR of ImageNet-O needs ordinary photos of its classes (--clean-images)"
            yield Skipped(f"natural-adversarial: {why}")
        for model in model_refs(self.models):
            runs = {role: Run(model, images) for role, images in self._sets.items()}
            for run in runs.values():
                yield from self._skipped(run, load(run))
            yield from self._of_hard(runs, load)
            if "novel" in runs and "ordinary" in runs:
                yield from self._of_novel(runs["ordinary"], runs["novel"], load)

    def why_nothing(self, known: Known) -> str | None:
        """Every number is of images whose class is known."""
        unlabelled = [known.unlabelled(images, "accuracy") for role, images in self._sets.items() if role != "novel"]
        return unlabelled[0] if all(unlabelled) else None

    def _skipped(self, run: Run, predictions: Predictions) -> Iterator[Skipped]:
        """What cannot be measured of the images of one set."""
        new, name = run.dataset == self.novel, run.dataset.name
        wnids = self.novel_classes if new else self.hard_classes
        nothing = evidence.why_unread(predictions) or (None if new else evidence.why_unlabelled(predictions, "accuracy"))
        if nothing:
            yield Skipped(f"{name}: {nothing}")
        elif unscored := _unscored(predictions.classes, wnids):
            yield Skipped(f"{run.model.name} on {name}: {unscored}")
        elif run.dataset == self.dataset and (count := int(_of_classes(predictions, wnids).sum())) < self.bin_size:
            too_few = f"the RMS calibration error needs a bin of {self.bin_size} images, and has {count}"
            none = f"no image of it is of the {len(wnids)} classes of ImageNet-A"
            yield Skipped(f"{name}: {too_few if count else none}")

    @property
    def _sets(self) -> dict[str, DatasetRef]:
        named = {"hard": self.dataset, "ordinary": self.ordinary, "novel": self.novel}
        return {role: dataset_ref(images) for role, images in named.items() if images is not None}

    @property
    def _training(self) -> list[DatasetRef]:
        """The training images, where there are some and a detector learns."""
        return [dataset_ref(self.training)] if self.training and any(map(needs_training, self.detectors)) else []

    def _of_hard(self, runs: Mapping[str, Run], load: LoadPredictions) -> Iterator[Finding]:
        for role, metric in (("hard", "imagenet_a_accuracy"), ("ordinary", "ordinary_accuracy")):
            if role not in runs:
                continue
            run, predictions = runs[role], load(runs[role])
            if _unscored(predictions.classes, self.hard_classes):
                continue
            of_classes = _of_classes(predictions, self.hard_classes)
            rows = predictions.take(of_classes)
            if not len(rows):
                continue
            of_run = evidence.Subject.of(run, predictions).take(of_classes)
            among_all = _Answers(rows, f"all {len(rows.classes or ())}")
            for answers in (among_hard := _among(rows, self.hard_classes), among_all):
                correct = is_correct(answers.predictions.labels, answers.predictions.top5.classes)
                subject = of_run.also({"scored": answers.scored}, {"classes": answers.scored})
                yield dataclasses.replace(subject.share(metric, correct), as_published=answers is among_hard)
                in_five = is_correct(answers.predictions.labels, answers.predictions.top5.classes, k=5)
                yield subject.share(TOP_FIVE[metric], in_five)
                if role == "hard":
                    yield from self._confidence(answers.predictions, correct, subject)

    def _confidence(
        self, predictions: Predictions, correct: NDArray[np.bool_], subject: evidence.Subject
    ) -> Iterator[Finding]:
        """Section 7.3 of the paper: whether confidence separates correct from wrong predictions."""
        confidence = evidence.confidence_or_nan(predictions)
        counted = np.isfinite(confidence)
        confidence, correct = confidence[counted], correct[counted]
        images, subject = len(correct), subject.take(counted)
        if not images:
            return
        if images >= self.bin_size:
            error = rms_calibration_error(confidence, correct, bin_size=self.bin_size, published_bins=self.published_bins)
            last = "left out, as published" if self.published_bins else "counted"
            ties = published_ties(confidence, correct, self.bin_size) if self.published_bins else {}
            bins = f"{images // self.bin_size} of {self.bin_size} images, the last {last}"
            metric, in_bins = "imagenet_a_calibration_error", subject.also(told={"bins": bins, **ties})
            yield rms_measurement(metric, error, confidence, correct, in_bins, self.bin_size)
        yield subject.mean_accuracy_answered("imagenet_a_aurra", confidence, correct)
        curve = response_rate_accuracy(confidence, correct)
        places = np.unique(np.linspace(0, images - 1, POINTS).round().astype(int))
        axes = ("response rate", "accuracy")
        yield subject.curve("imagenet_a_response", axes, curve.response_rate[places], curve.accuracy[places])

    def _of_novel(self, id_set: Run, ood_set: Run, load: LoadPredictions) -> Iterator[Measurement | Note]:
        known, new = load(id_set), load(ood_set)
        if _unscored(known.classes, self.novel_classes) or _unscored(new.classes, self.novel_classes):
            return
        known = known.take(_of_classes(known, self.novel_classes))
        if not len(known) or not len(new):
            return
        panel = self._panel(id_set.model, load)
        ordinary, novel = (_among(rows, self.novel_classes) for rows in (known, new))
        in_scores, out_scores = (panel.scores(answers.predictions) for answers in (ordinary, novel))
        yield from panel.notes(id_set.model.name)
        for name, detector in panel.ready.items():
            sides = in_scores[name], out_scores[name]
            cases = Cases.of(known.clusters, apart_from_id(new.clusters, ood_set.dataset.name))
            ends = aupr_interval(*sides, **cases.by_side)
            convention = {
                **evidence.convention_of(ood_set, new),
                **detector.convention(),
                "classes": novel.scored,
                "positive": "OOD",
                "area": "average precision",
                "id": f"{len(known):,} images of {id_set.dataset.name}",
                "blind": f"{100 * len(new) / (len(new) + len(known)):.2f} %",
            }
            about = {**ood_set.about(), "ood_detector": name, "id": id_set.dataset.name}
            found = cases.number("imagenet_o_aupr", aupr(*sides), "jackknife", ends, about, convention)
            yield dataclasses.replace(found, as_published=name == PUBLISHED_DETECTORS[0])

    def _panel(self, model: ModelRef, load: LoadPredictions) -> DetectorPanel:
        """The detectors of one model; those that learn do so from training images of the same classes as are scored."""
        training: Training | None = None
        for images in self._training:
            learned = load_training(load, Run(model, images))
            training = _TrainingAmong(learned, tuple(self.novel_classes))
        return DetectorPanel(self.detectors, training, preset=self.preset, parameters=self.parameters)


class _Answers(NamedTuple):
    """Predictions and among which classes they were scored."""

    predictions: Predictions
    scored: str


@dataclass(frozen=True)
class _TrainingAmong:
    """Training images of some classes, with those classes alone competing."""

    training: Training
    wnids: tuple[str, ...]

    @cached_property
    def head(self) -> Head | None:
        return next((block.head for block in self.blocks()), None)

    def __len__(self) -> int:
        return self._images

    @cached_property
    def _images(self) -> int:
        return sum(len(block) for block in self.blocks())

    def blocks(self) -> Iterator[Predictions]:
        for block in self.training.blocks():
            rows = block.take(_of_classes(block, self.wnids))
            if len(rows) and not _unscored(rows.classes, self.wnids):
                yield _among(rows, self.wnids).predictions


def _among(predictions: Predictions, wnids: Sequence[str]) -> _Answers:
    """The same predictions with only these classes competing."""
    classes = predictions.classes or Classes(())
    space = choose_classes(classes, _columns(classes, wnids).tolist())
    return _Answers(space.project(predictions), space.convention["classes"])


def _of_classes(predictions: Predictions, wnids: Sequence[str]) -> NDArray[np.bool_]:
    """Which images have a label among these classes."""
    return np.asarray(np.isin(predictions.labels, _columns(predictions.classes, wnids)).any(axis=1))


def _unscored(classes: Classes | None, wnids: Sequence[str]) -> str | None:
    """Why these classes cannot be chosen among those that were scored, or None."""
    if classes is None or with_wnids(classes).wnids is None:
        return "the model does not say which wnids its outputs are, so no classes can be chosen by them (--classes)"
    lacking = sorted(set(wnids).difference(with_wnids(classes).keys))
    if not lacking:
        return None
    return f"{len(lacking)} of {len(wnids)} classes are not scored: {listed(lacking)}; score all (--scored full)"


def _columns(classes: Classes | None, wnids: Sequence[str]) -> NDArray[np.integer]:
    known = with_wnids(classes or Classes(())).keys
    return np.flatnonzero(np.isin(known, wnids))
