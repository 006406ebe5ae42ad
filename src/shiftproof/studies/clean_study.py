"""What studies of the images as they are have in common: some models, one image set, and a run for each model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shiftproof.errors import BadInput, listed
from shiftproof.types import CLEAN, Classifier, ImageSet, ImageSetRef, ModelRef, ObjectDetector, Run


@dataclass(frozen=True)
class CleanStudy:
    """Some models on one image set. Both may be given as objects; refs are held, so that a study has no weights in it."""

    models: Sequence[ModelRef | Classifier | ObjectDetector]
    image_set: ImageSetRef | ImageSet

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", model_refs(self.models))
        object.__setattr__(self, "image_set", image_set_ref(self.image_set))

    def runs(self) -> list[Run]:
        """Every model on the unchanged images."""
        image_set = image_set_ref(self.image_set)
        return [Run(model_ref(model), image_set, CLEAN) for model in self.models]


def model_refs(models: Iterable[ModelRef | Classifier | ObjectDetector]) -> tuple[ModelRef, ...]:
    """The models by reference; BadInput where there is none, or two go by one name."""
    refs = tuple(model_ref(model) for model in models)
    names = [ref.name for ref in refs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if not refs:
        raise BadInput("a study needs at least one model")
    if repeated:
        raise BadInput(f"two models are both called {listed(repeated)}; give one of them a name of its own")
    return refs


def model_ref(model: ModelRef | Classifier | ObjectDetector) -> ModelRef:
    return model if isinstance(model, ModelRef) else model.ref


def image_set_ref(image_set: ImageSetRef | ImageSet) -> ImageSetRef:
    return image_set if isinstance(image_set, ImageSetRef) else image_set.ref
