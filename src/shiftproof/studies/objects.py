"""Whether a model goes by an object or by what is around it, and how large it needs the object (Li et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shiftproof.image_sets.crops import boxes_of_crops
from shiftproof.image_sets.cutting import Look
from shiftproof.planning import Known
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import image_set_ref, model_ref, model_refs
from shiftproof.studies.object_galleries import object_galleries
from shiftproof.studies.object_looks import WHOLE, ObjectLooks
from shiftproof.studies.object_scales import (
    ScaledCrops,
    accuracies_by_scale,
    factors_from_facts,
    lacking_scales,
    scaled_accuracies,
)
from shiftproof.studies.object_shares import share_findings
from shiftproof.studies.paired_evidence import paired_differences
from shiftproof.types import (
    About,
    Classifier,
    Finding,
    ImageSet,
    ImageSetRef,
    Keep,
    ModelRef,
    Predictions,
    Run,
)

EFFECTS = {
    "background removed": ("alone", WHOLE),
    "object enlarged": ("enlarged", "alone"),
    "both": ("enlarged", WHOLE),
    "cropped": ("crop", WHOLE),
}
"""What is done to an object, and the looks after and before it: the paper's two effects, and what they come to."""

NO_BOXES = "objects are told from their background by boxes, and it has none"


@dataclass(frozen=True)
class ObjectStudy:
    """Accuracy on the objects of a boxed set in their images, cut out, without background and enlarged; by their size.

    `looks` are sets of crops of `image_set`, object for object the same: ``crop``, ``alone`` and ``enlarged``. `beside` are
    the objects of another boxed set, to compare how much of their images they fill. `scaled` has of each model, by its name,
    the crops of each scale factor at that factor times each of the `crop_sizes`, for crops of the `factors`.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    looks: Mapping[Look, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    beside: ImageSetRef | ImageSet | None = None
    scaled: Mapping[str, Sequence[ScaledCrops]] = field(default_factory=dict, hash=False)
    factors: Sequence[float] = ()
    crop_sizes: Sequence[int] = ()
    shown: int = 8  # objects in a gallery

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False  # objects have their classes; what is needed is boxes

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", model_refs(self.models))
        object.__setattr__(self, "image_set", image_set_ref(self.image_set))
        object.__setattr__(self, "looks", {look: image_set_ref(images) for look, images in self.looks.items()})
        object.__setattr__(self, "beside", self.beside and image_set_ref(self.beside))
        settled = {
            name: tuple(one._replace(model=model_ref(one.model), image_set=image_set_ref(one.image_set)) for one in some)
            for name, some in self.scaled.items()
        }
        object.__setattr__(self, "scaled", settled)

    def runs(self) -> list[Run]:
        """Every model on the whole images, on their objects in every look and at their scale; none without objects."""
        models = model_refs(self.models)
        looks = [run for model in models for run in self._runs(model).values()]
        return [*looks, *(one.run for model in models for one in self._scaled(model))]

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        if not self.looks:
            return
        opened: Callable[[ImageSetRef], ImageSet] | None = getattr(load, "images", None)
        if opened is not None:
            beside = opened(image_set_ref(self.beside)) if self.beside else None
            yield from share_findings(opened(self._any_look), of=image_set_ref(self.image_set).name, beside=beside)
        boxes = boxes_of_crops(opened(self._any_look)) if opened else {}
        for model in model_refs(self.models):
            runs = self._runs(model)
            objects = ObjectLooks.of(runs, load)
            if objects is not None:
                yield from _accuracies(objects, runs[WHOLE].about())
                yield from _effects(objects, runs[WHOLE].about())
                yield from object_galleries(runs, objects, boxes, shown=self.shown)
            yield from scaled_accuracies(self._scaled(model), self.factors, runs[WHOLE].about(), load)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        name = image_set_ref(self.image_set).name
        if not self.looks:
            yield f"{name}: {NO_BOXES}"
            return
        for model in model_refs(self.models):
            objects = ObjectLooks.of(self._runs(model), load)
            if objects is None:
                yield f"{model.name} on {name}: no object with a label was read in every look"
            elif factors_from_facts(objects.facts) is None:
                yield f"{name}: scale factors need the sizes of the images, which its boxes come without"
            lacking = lacking_scales(self._scaled(model), self.factors, self.crop_sizes)
            if lacking:
                yield f"{model.name} on {name}: no crops at {lacking}, which it does not take or was not asked at"

    def why_nothing(self, known: Known) -> str | None:
        """Objects are found by boxes, and need a class."""
        name = image_set_ref(self.image_set).name
        return known.unlabelled(self._any_look, "accuracy on objects") if self.looks else f"{name}: {NO_BOXES}"

    @property
    def _any_look(self) -> ImageSetRef:
        return image_set_ref(next(iter(self.looks.values())))

    def _scaled(self, model: ModelRef) -> Sequence[ScaledCrops]:
        return self.scaled.get(model.name, ()) if self.looks else ()

    def _runs(self, model: ModelRef) -> dict[str, Run]:
        if not self.looks:
            return {}
        sets = [(WHOLE, self.image_set), *self.looks.items()]
        return {look: Run(model, image_set_ref(images)) for look, images in sets}


def _accuracies(objects: ObjectLooks, about: About) -> Iterator[Finding]:
    """Of each look, overall and by scale factor."""
    factors = factors_from_facts(objects.facts)
    for look, correct in objects.correct.items():
        named = {**about, "look": look}
        yield evidence.share("object_accuracy", correct, named, objects.convention, objects.clusters)
        if factors is not None:
            yield from accuracies_by_scale(
                "scale_factor_accuracy", correct, factors, named, objects.convention, objects.clusters
            )


def _effects(objects: ObjectLooks, about: About) -> Iterator[Finding]:
    """What each change does to accuracy, object by object."""
    correct = objects.correct
    pairs = [
        ({**about, "effect": effect}, (correct[after], correct[before]))
        for effect, (after, before) in EFFECTS.items()
        if after in correct and before in correct
    ]
    metrics = ("object_difference", "object_difference_p")
    for numbers in paired_differences(pairs, objects.convention, metrics=metrics, clusters=objects.clusters):
        yield from numbers
