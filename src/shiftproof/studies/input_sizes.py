"""How large a model needs its images: one model at several sizes of its input, on the same images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import listed
from shiftproof.metrics import is_correct
from shiftproof.models.input_sizes import InputSize, Sizing, height_and_width, short_size, size_name
from shiftproof.planning import Known
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import image_set_ref, model_ref, model_refs
from shiftproof.studies.object_scales import accuracies_by_scale, largest_factors
from shiftproof.studies.paired_evidence import paired_differences
from shiftproof.types import (
    About,
    Classifier,
    Clusters,
    Finding,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Predictions,
    Run,
)

X_LABEL = "side of the input, pixels"
SAME_AREA = "; of a rectangle that of the square with as many"


class Sized(NamedTuple):
    """A model at one size of its input, or of the pictures that become its input."""

    size: InputSize
    model: ModelRef | Classifier
    sizing: Sizing = "input"

    @property
    def said(self) -> str | int:
        """What a number is about: the side of a square, or height and width."""
        size = short_size(self.size)
        return size if isinstance(size, int) else size_name(size)

    @property
    def side(self) -> float:
        """Of the square with as many pixels."""
        return math.sqrt(math.prod(height_and_width(self.size)))


ONE_SIZE = "it is at hand at one input size only, so there is nothing to compare"


@dataclass(frozen=True)
class InputSizeStudy:
    """Accuracy by input size, what each size gains over the model's own, and on a boxed set by the size of the objects.

    `sizes` has of each model, by its name, the same model at several sizes; its own size is the one of the model itself.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    sizes: Mapping[str, Sequence[Sized]] = field(default_factory=dict, hash=False)
    wanted: Sequence[InputSize] = ()  # sizes that were asked for, whether or not they can be had

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False  # without other sizes there is nothing that labels could help with

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", model_refs(self.models))
        object.__setattr__(self, "image_set", image_set_ref(self.image_set))
        settled = {
            name: tuple(sorted((one._replace(model=model_ref(one.model)) for one in some), key=lambda one: one.side))
            for name, some in self.sizes.items()
        }
        object.__setattr__(self, "sizes", settled)
        object.__setattr__(self, "wanted", tuple(self.wanted))

    def runs(self) -> list[Run]:
        """Every model at every size; none where it is not at hand at several."""
        return [run for model in model_refs(self.models) for run in self._runs(model).values()]

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        opened: Callable[[ImageSetRef], ImageSet] | None = getattr(load, "images", None)
        for model in model_refs(self.models):
            answers = _SizedAnswers.of(self._runs(model), load)
            if answers is not None:
                about: About = Run(model, image_set_ref(self.image_set)).about()
                yield from _accuracies(answers, about)
                yield from _against_own(answers, model, about)
                factors = largest_factors(opened(image_set_ref(self.image_set))) if opened else {}
                yield from _by_scale(answers, factors, about)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        name = image_set_ref(self.image_set).name
        for model in model_refs(self.models):
            runs = self._runs(model)
            if not runs:
                yield f"{model.name} on {name}: {ONE_SIZE}"
            elif _SizedAnswers.of(runs, load) is None:
                yield f"{model.name} on {name}: no image with a label was read at every input size"
            at_hand = {short_size(one.size) for one in runs}
            lacking = listed(str(Sized(size, model).said) for size in self.wanted if short_size(size) not in at_hand)
            if lacking and runs:
                yield f"{model.name} on {name}: nothing at {lacking}, which it does not take or was not asked at"

    def why_nothing(self, known: Known) -> str | None:
        """Sizes need several of a model, and accuracy needs labels."""
        refs, ref = model_refs(self.models), image_set_ref(self.image_set)
        if not any(self._runs(model) for model in refs):
            return f"{listed(model.name for model in refs)} on {ref.name}: {ONE_SIZE}"
        return known.unlabelled(ref, "accuracy by input size")

    def _runs(self, model: ModelRef) -> dict[Sized, Run]:
        some = self.sizes.get(model.name, ())
        image_set = image_set_ref(self.image_set)
        return {one: Run(model_ref(one.model), image_set) for one in some} if len(some) > 1 else {}


@dataclass(frozen=True)
class _SizedAnswers:
    """Which of the images that were read at every size are right at each."""

    ids: tuple[str, ...]
    correct: Mapping[Sized, NDArray[np.bool_]]  # smallest first
    convention: Mapping[str, str]
    clusters: Clusters

    @classmethod
    def of(cls, runs: Mapping[Sized, Run], load: Callable[[Run], Predictions]) -> _SizedAnswers | None:
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
        return cls(ids, correct, evidence.convention_of(next(iter(runs.values())), first), clusters)


def _accuracies(answers: _SizedAnswers, about: About) -> Iterator[Finding]:
    for one, correct in answers.correct.items():
        named = {**about, "input_size": one.said}
        told = {**answers.convention, **_said(one)}
        yield evidence.share("input_size_accuracy", correct, named, told, answers.clusters)
    points = [evidence.Point(one.side, correct, answers.clusters) for one, correct in answers.correct.items()]
    across = X_LABEL + ("" if all(isinstance(one.said, int) for one in answers.correct) else SAME_AREA)
    yield evidence.share_curve("input_size_curve", about, (across, "accuracy"), points, answers.convention)


def _against_own(answers: _SizedAnswers, model: ModelRef, about: About) -> Iterator[Measurement]:
    """What each size gains or loses against the model's own, and which size is the best of all."""
    own = next((one for one in answers.correct if model_ref(one.model) == model), None)
    if own is None:
        return
    pairs = [
        ({**about, "input_size": one.said, "versus": own.said}, (correct, answers.correct[own]))
        for one, correct in answers.correct.items()
        if one != own
    ]
    p_values: dict[str | int, float] = {own.said: 1.0}
    metrics = ("input_size_difference", "input_size_p")
    for numbers in paired_differences(pairs, answers.convention, metrics=metrics, clusters=answers.clusters):
        p_values |= {one.about["input_size"]: one.value for one in numbers if one.metric == "input_size_p"}
        yield from numbers
    # of sizes that do equally well the model's own, then the smallest
    best = max(answers.correct, key=lambda one: (answers.correct[one].sum(), one == own, -one.side))
    chance = p_values.get(best.said, 1.0)
    sure = "more than chance" if chance < 0.05 else "may be chance"
    told = "the model's own" if best == own else f"its lead over {own.said} {sure} (p = {chance:.2g})"
    stated = {**answers.convention, "best": told, "size": size_name(best.size)}
    yield Measurement("best_input_size", best.side, about, len(answers.ids), stated)


def _by_scale(answers: _SizedAnswers, factors: Mapping[str, float], about: About) -> Iterator[Measurement]:
    """Of images with boxes, by how large their largest object is."""
    places = np.array([place for place, one in enumerate(answers.ids) if one in factors], np.intp)
    if not len(places):
        return
    of_images = np.array([factors[answers.ids[place]] for place in places.tolist()])
    for one, correct in answers.correct.items():
        named = {**about, "input_size": one.said}
        stated = {**answers.convention, **_said(one), "object": "the largest of its image"}
        clusters = answers.clusters.take(places)
        yield from accuracies_by_scale("input_size_scale_accuracy", correct[places], of_images, named, stated, clusters)


def _said(one: Sized) -> dict[str, str]:
    """What has the size; the size itself is what a number is about."""
    enlarged = "pictures of this size, enlarged to the model's own"
    return {"input": "of this size" if one.sizing == "input" else enlarged}
