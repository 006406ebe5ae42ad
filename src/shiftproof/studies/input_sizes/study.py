"""Accuracy of one model at several input sizes, on the same images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import listed
from shiftproof.metrics import is_correct
from shiftproof.models.input_sizes import InputSize, Sizing, height_and_width, short_size, size_name
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy, dataset_ref, model_ref, model_refs, settle
from shiftproof.studies.evidence import paired_differences
from shiftproof.studies.objects.scales import accuracies_by_scale, largest_factors
from shiftproof.types import (
    About,
    Classifier,
    Finding,
    Keep,
    Known,
    LoadPredictions,
    LoadsImages,
    Measurement,
    ModelRef,
    Note,
    Run,
    Skipped,
)

X_LABEL = "input side, pixels"
SAME_AREA = "; of a rectangle that of the square of the same area"


class Sized(NamedTuple):
    """A model at one input size, or on pictures downscaled to that size."""

    size: InputSize
    model: ModelRef | Classifier
    sizing: Sizing = "input"

    @property
    def said(self) -> str | int:
        """The size in `about`: side of a square, or height and width."""
        size = short_size(self.size)
        return size if isinstance(size, int) else size_name(size)

    @property
    def side(self) -> float:
        """Side of the square of the same area."""
        return math.sqrt(math.prod(height_and_width(self.size)))


ONE_SIZE = "the model is available at one input size only, so there is nothing to compare"


@dataclass(frozen=True)
class InputSizeStudy(CleanStudy):
    """Accuracy by input size, its difference from the model's own size, and on boxed datasets by object size.

    `sizes` has of each model, by its name, the same model at several sizes, its own among them.
    """

    sizes: Mapping[str, Sequence[Sized]] = field(default_factory=dict, hash=False)
    wanted: Sequence[InputSize] = ()  # sizes that were asked for, available or not

    keep: ClassVar[Keep] = "top5"
    needs_labels: ClassVar[bool] = False  # without other sizes there is nothing that labels could help with

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {
            name: tuple(sorted((one._replace(model=model_ref(one.model)) for one in some), key=lambda one: one.side))
            for name, some in self.sizes.items()
        }
        settle(self, sizes=sizes, wanted=tuple(self.wanted))

    def runs(self) -> list[Run]:
        """Every model at every size; none where it is available at one only."""
        return [run for model in model_refs(self.models) for run in self._runs(model).values()]

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        opened = load.images if isinstance(load, LoadsImages) else None
        for model in model_refs(self.models):
            runs = self._runs(model)
            predicted = _PredictionsBySize.of(runs, load)
            yield from self._skipped(model, runs, predicted)
            if predicted is not None:
                about: About = Run(model, dataset_ref(self.dataset)).about()
                yield from _accuracies(predicted, about)
                yield from _against_own(predicted, model, about)
                factors = largest_factors(opened(dataset_ref(self.dataset))) if opened else {}
                yield from _by_scale(predicted, factors, about)

    def _skipped(
        self, model: ModelRef, runs: Mapping[Sized, Run], predicted: _PredictionsBySize | None
    ) -> Iterator[Skipped]:
        unread = None if predicted else "no labelled image was read at every input size"
        at_hand = {short_size(one.size) for one in runs}
        lacking = listed(str(Sized(size, model).said) for size in self.wanted if short_size(size) not in at_hand)
        reasons = [unread, lacking and f"nothing at {lacking}, which it does not take or was not run at"]
        name = dataset_ref(self.dataset).name
        return evidence.skipped(f"{model.name} on {name}", *(reasons if runs else [ONE_SIZE]))

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured: one size only, or no labels."""
        refs, ref = model_refs(self.models), dataset_ref(self.dataset)
        if not any(self._runs(model) for model in refs):
            return f"{listed(model.name for model in refs)} on {ref.name}: {ONE_SIZE}"
        return known.unlabelled(ref, "accuracy by input size")

    def _runs(self, model: ModelRef) -> dict[Sized, Run]:
        some = self.sizes.get(model.name, ())
        dataset = dataset_ref(self.dataset)
        return {one: Run(model_ref(one.model), dataset) for one in some} if len(some) > 1 else {}


@dataclass(frozen=True)
class _PredictionsBySize:
    """Which of the images that were read at every size are classified correctly at each."""

    ids: tuple[str, ...]
    correct: Mapping[Sized, NDArray[np.bool_]]  # smallest first
    subject: evidence.Subject

    @classmethod
    def of(cls, runs: Mapping[Sized, Run], load: LoadPredictions) -> _PredictionsBySize | None:
        if not runs:
            return None
        loaded = {one: load(run) for one, run in runs.items()}
        first = next(iter(loaded.values()))
        common = set.intersection(*(set(evidence.labelled_only(found).ids) for found in loaded.values()))
        if not common:
            return None
        ids = tuple(one for one in first.ids if one in common)
        correct = {}
        for one, found in loaded.items():
            row_of = {image: row for row, image in enumerate(found.ids)}
            rows = np.array([row_of[image] for image in ids], np.intp)
            correct[one] = is_correct(found.labels[rows], found.top5.classes[rows])
        clusters = first.clusters.take(np.array([one in common for one in first.ids], bool))
        convention = evidence.convention_of(next(iter(runs.values())), first)
        return cls(ids, correct, evidence.Subject({}, convention, clusters))


def _accuracies(predicted: _PredictionsBySize, about: About) -> Iterator[Finding]:
    subject = predicted.subject.also(about)
    for one, correct in predicted.correct.items():
        yield subject.also({"input_size": one.said}, _said(one)).share("input_size_accuracy", correct)
    points = [evidence.Point(one.side, correct, subject.clusters) for one, correct in predicted.correct.items()]
    across = X_LABEL + ("" if all(isinstance(one.said, int) for one in predicted.correct) else SAME_AREA)
    yield subject.share_curve("input_size_curve", (across, "accuracy"), points)


def _against_own(predicted: _PredictionsBySize, model: ModelRef, about: About) -> Iterator[Measurement]:
    """Difference of each size from the model's own, and the best size."""
    own = next((one for one in predicted.correct if model_ref(one.model) == model), None)
    if own is None:
        return
    pairs = [
        ({**about, "input_size": one.said, "versus": own.said}, (correct, predicted.correct[own]))
        for one, correct in predicted.correct.items()
        if one != own
    ]
    p_values: dict[str | int, float] = {own.said: 1.0}
    metrics = ("input_size_difference", "input_size_p")
    for numbers in paired_differences(predicted.subject, pairs, metrics=metrics):
        p_values |= {one.about["input_size"]: one.value for one in numbers if one.metric == "input_size_p"}
        yield from numbers
    # of sizes that do equally well the model's own, then the smallest
    best = max(predicted.correct, key=lambda one: (predicted.correct[one].sum(), one == own, -one.side))
    chance = p_values.get(best.said, 1.0)
    sure = "is significant" if chance < 0.05 else "is not significant"
    told = "the model's own" if best == own else f"its lead over {own.said} {sure} (p = {chance:.2g})"
    stated = {**predicted.subject.convention, "best": told, "size": size_name(best.size)}
    yield Measurement("best_input_size", best.side, about, len(predicted.ids), stated)


def _by_scale(predicted: _PredictionsBySize, factors: Mapping[str, float], about: About) -> Iterator[Measurement]:
    """Accuracy by the scale factor of the largest object, on images with boxes."""
    places = np.array([place for place, one in enumerate(predicted.ids) if one in factors], np.intp)
    if not len(places):
        return
    of_images = np.array([factors[predicted.ids[place]] for place in places.tolist()])
    for one, correct in predicted.correct.items():
        told = {**_said(one), "object": "the largest of its image"}
        subject = predicted.subject.also({**about, "input_size": one.said}, told).take(places)
        yield from accuracies_by_scale("input_size_scale_accuracy", correct[places], of_images, subject)


def _said(one: Sized) -> dict[str, str]:
    """Whether the input or the picture has the size, as a convention."""
    enlarged = "pictures of this size, upscaled to the model's own"
    return {"input": "of this size" if one.sizing == "input" else enlarged}
