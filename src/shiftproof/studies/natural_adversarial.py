"""ImageNet-A and ImageNet-O as published: hard photos of known classes, and photos that fool a model into confidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors import needs_training
from shiftproof.errors import listed
from shiftproof.image_sets.class_matching import with_wnids
from shiftproof.image_sets.label_spaces import choose_classes
from shiftproof.metrics import aupr, is_correct, response_rate_accuracy, rms_calibration_error
from shiftproof.metrics.two_sample import aupr_interval
from shiftproof.planning import Known
from shiftproof.reference import wnids_of
from shiftproof.studies import evidence
from shiftproof.studies.calibration import published_ties, rms_measurement
from shiftproof.studies.clean_study import image_set_ref, model_refs
from shiftproof.studies.novelty_choices import Cases
from shiftproof.studies.novelty_scores import DetectorPanel, apart_from_inside, check_detectors
from shiftproof.studies.telling import Load, TellingStudy, Told
from shiftproof.types import (
    About,
    Classes,
    Classifier,
    Curve,
    Fact,
    Finding,
    Head,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Predictions,
    Reading,
    Run,
    Training,
)

PUBLISHED_DETECTORS = ("msp", "max_logit")
"""Those of the paper: minus the highest probability, and minus the highest logit, of the 200 classes."""

TOP_FIVE = {"imagenet_a_accuracy": "imagenet_a_top5_accuracy", "ordinary_accuracy": "ordinary_top5_accuracy"}

POINTS = 200
"""Of a curve; more cannot be told apart."""


@dataclass(frozen=True)
class NaturalAdversarialStudy(TellingStudy):
    """Accuracy and calibration on ImageNet-A, AUPR on ImageNet-O, scored among their 200 classes (Hendrycks et al., 2021).

    `image_set` holds hard photos of classes the model knows, `ordinary` other photos of such classes (the validation
    images), `novel` photos of none of them. Any set of each kind will do; without `novel` or `ordinary` what needs them is
    left out. The classes are lists of wnids or the names of published ones. Detectors see those classes alone; those that
    learn do so from what the model says of the `training` images of these classes.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    ordinary: ImageSetRef | ImageSet | None = None
    novel: ImageSetRef | ImageSet | None = None
    hard_classes: Sequence[str] = dataclasses.field(default_factory=lambda: wnids_of("imagenet_a_classes"))
    novel_classes: Sequence[str] = dataclasses.field(default_factory=lambda: wnids_of("imagenet_o_classes"))
    detectors: Sequence[str] = PUBLISHED_DETECTORS  # who looks for novel photos; any of the catalog
    training: ImageSetRef | ImageSet | None = None  # what detectors that learn do so from
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = dataclasses.field(default_factory=dict, hash=False)  # by detector
    bin_size: int = 100  # images a bin of the RMS calibration error
    published_bins: bool = False
    keep: Keep = "logits"  # features, for detectors that need them

    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", model_refs(self.models))
        for name in ("image_set", "ordinary", "novel", "training"):
            images = getattr(self, name)
            object.__setattr__(self, name, images and image_set_ref(images))
        object.__setattr__(self, "detectors", tuple(dict.fromkeys(self.detectors)))
        check_detectors(self.detectors, preset=self.preset, parameters=self.parameters)

    def runs(self) -> list[Run]:
        """Every model on every set."""
        sets = dict.fromkeys([*self._sets.values(), *self._training])
        return [Run(model, images) for model in model_refs(self.models) for images in sets]

    def reading(self, run: Run) -> Reading | None:
        """Novel images have no class that the model knows."""
        return Reading(image_set_ref(self.image_set), labelled=False) if run.image_set == self.novel else None

    def findings(self, load: Load, told: Told) -> Iterator[Finding]:
        if self.novel is None:
            why = "no novel photos were given (--out-images), so there is no AUPR of ImageNet-O"
            told.left_out.append(f"natural-adversarial: {why}")
        elif self.ordinary is None:
            why = "the AUPR of ImageNet-O needs ordinary photos of its classes (--clean-images)"
            told.left_out.append(f"natural-adversarial: {why}")
        for model in model_refs(self.models):
            runs = {role: Run(model, images) for role, images in self._sets.items()}
            for run in runs.values():
                told.left_out.extend(self._why_nothing(run, load(run)))
            yield from self._of_hard(runs, load)
            if "novel" in runs and "ordinary" in runs:
                yield from self._of_novel(runs["ordinary"], runs["novel"], load, told)

    def why_nothing(self, known: Known) -> str | None:
        """Every number is of images whose class is known."""
        unlabelled = [known.unlabelled(images, "accuracy") for role, images in self._sets.items() if role != "novel"]
        return unlabelled[0] if all(unlabelled) else None

    def _why_nothing(self, run: Run, predictions: Predictions) -> Iterator[str]:
        """Why the images of one set say nothing, if they do not."""
        new = run.image_set == self.novel
        wnids = self.novel_classes if new else self.hard_classes
        nothing = evidence.nothing_read(run, predictions)
        if not nothing and not new:
            nothing = evidence.nothing_labelled(run, predictions, "accuracy")
        unscored = _unscored(predictions.classes, wnids)
        if nothing:
            yield nothing
        elif unscored:
            yield f"{run.model.name} on {run.image_set.name}: {unscored}"
        elif run.image_set == self.image_set and not _of_classes(predictions, wnids).any():
            yield f"{run.image_set.name}: no image of it is of the {len(wnids)} classes of ImageNet-A"
        elif run.image_set == self.image_set and (count := int(_of_classes(predictions, wnids).sum())) < self.bin_size:
            yield f"{run.image_set.name}: the RMS calibration error needs a bin of {self.bin_size} images, and has {count}"

    @property
    def _sets(self) -> dict[str, ImageSetRef]:
        named = {"hard": self.image_set, "ordinary": self.ordinary, "novel": self.novel}
        return {role: image_set_ref(images) for role, images in named.items() if images is not None}

    @property
    def _training(self) -> list[ImageSetRef]:
        """The training images, where there are some and a detector learns."""
        return [image_set_ref(self.training)] if self.training and any(map(needs_training, self.detectors)) else []

    def _of_hard(self, runs: Mapping[str, Run], load: Load) -> Iterator[Finding]:
        for role, metric in (("hard", "imagenet_a_accuracy"), ("ordinary", "ordinary_accuracy")):
            if role not in runs:
                continue
            run, predictions = runs[role], load(runs[role])
            if _unscored(predictions.classes, self.hard_classes):
                continue
            rows = predictions.take(_of_classes(predictions, self.hard_classes))
            if not len(rows):
                continue
            convention = evidence.convention_of(run, predictions)
            for answers in (_among(rows, self.hard_classes), _Answers(rows, _all_of(rows))):
                correct = is_correct(answers.predictions.labels, answers.predictions.top5.classes)
                about: About = {**run.about(), "scored": answers.scored}
                stated = {**convention, "classes": answers.scored}
                yield evidence.share(metric, correct, about, stated, rows.clusters)
                in_five = is_correct(answers.predictions.labels, answers.predictions.top5.classes, k=5)
                yield evidence.share(TOP_FIVE[metric], in_five, about, stated, rows.clusters)
                if role == "hard":
                    yield from self._confidence(answers.predictions, correct, about, stated)

    def _confidence(
        self, predictions: Predictions, correct: NDArray[np.bool_], about: About, convention: Mapping[str, str]
    ) -> Iterator[Finding]:
        """Section 7.3 of the paper: whether the model knows which of its answers are wrong."""
        confidence = evidence.confidence_or_nan(predictions)
        counted = np.isfinite(confidence)
        confidence, correct = confidence[counted], correct[counted]
        images, clusters = len(correct), predictions.clusters.take(counted)
        if not images:
            return
        if images >= self.bin_size:
            error = rms_calibration_error(confidence, correct, bin_size=self.bin_size, published_bins=self.published_bins)
            last = "left out, as published" if self.published_bins else "counted"
            ties = published_ties(confidence, correct, self.bin_size) if self.published_bins else {}
            bins = f"{images // self.bin_size} of {self.bin_size} images, the last {last}"
            metric, stated = "imagenet_a_calibration_error", {**convention, "bins": bins, **ties}
            yield rms_measurement(metric, error, confidence, correct, about, stated, clusters, self.bin_size)
        yield evidence.mean_accuracy_answered("imagenet_a_aurra", confidence, correct, about, convention, clusters)
        curve = response_rate_accuracy(confidence, correct)
        places = np.unique(np.linspace(0, images - 1, POINTS).round().astype(int))
        yield Curve(
            "imagenet_a_response",
            about,
            "share of images answered",
            "accuracy",
            x=tuple(curve.response_rate[places].tolist()),
            y=tuple(curve.accuracy[places].tolist()),
            images=images,
            convention=dict(convention),
        )

    def _of_novel(self, inside: Run, outside: Run, load: Load, told: Told) -> Iterator[Measurement]:
        known, new = load(inside), load(outside)
        if _unscored(known.classes, self.novel_classes) or _unscored(new.classes, self.novel_classes):
            return
        known = known.take(_of_classes(known, self.novel_classes))
        if not len(known) or not len(new):
            return
        panel = self._panel(inside.model, load)
        ordinary, novel = (_among(rows, self.novel_classes) for rows in (known, new))
        in_scores, out_scores = (panel.scores(answers.predictions) for answers in (ordinary, novel))
        told.leave_out(panel.left_out, of=inside.model.name)
        told.pass_on(panel.ready, of=inside.model.name)
        for name, detector in panel.ready.items():
            sides = in_scores[name], out_scores[name]
            cases = Cases.of(known.clusters, apart_from_inside(new.clusters, outside.image_set.name))
            interval = aupr_interval(*sides, **cases.by_side)
            convention = {
                **evidence.convention_of(outside, new),
                **detector.convention(),
                "classes": novel.scored,
                "positive": "outside",
                "area": "average precision",
                "inside": f"{len(known):,} images of {inside.image_set.name}",
                "blind": f"{100 * len(new) / (len(new) + len(known)):.2f} %",
                **cases.told("jackknife", interval),
            }
            about, images = {**outside.about(), "detector": name, "inside": inside.image_set.name}, len(known) + len(new)
            yield Measurement("imagenet_o_aupr", aupr(*sides), about, images, convention, interval, cases.count)

    def _panel(self, model: ModelRef, load: Load) -> DetectorPanel:
        """The detectors of one model; those that learn do so from training images of the same classes as are scored."""
        training: Training | None = None
        for images in self._training:
            learned = getattr(load, "training", load)(Run(model, images))
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


def _all_of(predictions: Predictions) -> str:
    return f"all {len(predictions.classes or ())}"


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
