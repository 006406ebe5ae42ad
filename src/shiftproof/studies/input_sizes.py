"""How large a model needs its images: one model at several sizes of its input, on the same images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import listed
from shiftproof.metrics import clopper_pearson, is_correct, paired_counts
from shiftproof.models.input_sizes import Sizing
from shiftproof.planning import Known
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import image_set_ref, model_ref, model_refs
from shiftproof.studies.object_scales import accuracies_by_scale, largest_factors
from shiftproof.studies.paired_evidence import paired_differences
from shiftproof.types import (
    About,
    Classifier,
    Curve,
    Finding,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Predictions,
    Run,
)


class Sized(NamedTuple):
    """A model at one size of its input, or of the pictures that become its input."""

    side: int
    model: ModelRef | Classifier
    sizing: Sizing = "input"


ONE_SIZE = "it is at hand at one input size only, so there is nothing to compare"


@dataclass(frozen=True)
class InputSizeStudy:
    """Accuracy by input size, what each size gains over the model's own, and on a boxed set by the size of the objects.

    `sizes` has of each model, by its name, the same model at several sizes; its own size is the one of the model itself.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    sizes: Mapping[str, Sequence[Sized]] = field(default_factory=dict, hash=False)
    wanted: Sequence[int] = ()  # sides that were asked for, whether or not they can be had

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
            lacking = listed(str(side) for side in sorted(set(self.wanted) - {one.side for one in runs}))
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
        return cls(ids, correct, evidence.convention_of(next(iter(runs.values())), first))


def _accuracies(answers: _SizedAnswers, about: About) -> Iterator[Finding]:
    sized, images = list(answers.correct), len(answers.ids)
    right = np.array([int(correct.sum()) for correct in answers.correct.values()])
    for one, count in zip(sized, right.tolist(), strict=True):
        named = {**about, "input_size": one.side}
        yield evidence.share("input_size_accuracy", count, images, named, {**answers.convention, **_said(one)})
    low, high = clopper_pearson(right, np.full(len(right), images))
    yield Curve(
        "input_size_curve",
        about,
        "side of the input, pixels",
        "accuracy",
        x=tuple(float(one.side) for one in sized),
        y=tuple((right / images).tolist()),
        images=images,
        convention={**answers.convention, **evidence.EXACT},
        counts=(images,) * len(sized),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def _against_own(answers: _SizedAnswers, model: ModelRef, about: About) -> Iterator[Measurement]:
    """What each size gains or loses against the model's own, and which size is the best of all."""
    own = next((one for one in answers.correct if model_ref(one.model) == model), None)
    if own is None:
        return
    pairs = [
        ({**about, "input_size": one.side, "versus": own.side}, paired_counts(correct, answers.correct[own]))
        for one, correct in answers.correct.items()
        if one != own
    ]
    p_values: dict[int, float] = {own.side: 1.0}
    found = paired_differences(pairs, answers.convention, metrics=("input_size_difference", "input_size_p"))
    for difference, chance in found:
        p_values[int(chance.about["input_size"])] = chance.value
        yield from (difference, chance)
    # of sizes that do equally well the model's own, then the smallest
    best = max(answers.correct, key=lambda one: (answers.correct[one].sum(), one == own, -one.side))
    sure = "more than chance" if p_values[best.side] < 0.05 else "may be chance"
    told = "the model's own" if best == own else f"its lead over {own.side} {sure} (p = {p_values[best.side]:.2g})"
    yield Measurement("best_input_size", float(best.side), about, len(answers.ids), {**answers.convention, "best": told})


def _by_scale(answers: _SizedAnswers, factors: Mapping[str, float], about: About) -> Iterator[Measurement]:
    """Of images with boxes, by how large their largest object is."""
    places = np.array([place for place, one in enumerate(answers.ids) if one in factors], np.intp)
    if not len(places):
        return
    of_images = np.array([factors[answers.ids[place]] for place in places.tolist()])
    for one, correct in answers.correct.items():
        named = {**about, "input_size": one.side}
        stated = {**answers.convention, **_said(one), "object": "the largest of its image"}
        yield from accuracies_by_scale("input_size_scale_accuracy", correct[places], of_images, named, stated)


def _said(one: Sized) -> dict[str, str]:
    """What has the size; the size itself is what a number is about."""
    enlarged = "pictures of this size, enlarged to the model's own"
    return {"input": "of this size" if one.sizing == "input" else enlarged}
