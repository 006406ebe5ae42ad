"""What studies of the images as they are have in common: some models, one image set, and a run for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.errors import BadInput, listed
from shiftproof.types import CLEAN, Classifier, ImageSet, ImageSetRef, ModelRef, Run


@dataclass(frozen=True)
class CleanStudy:
    """Some models on one image set. Both may be given as objects; refs are held, so that a study has no weights in it."""

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet

    def __post_init__(self) -> None:
        models = tuple(_model_ref(model) for model in self.models)
        names = [model.name for model in models]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if not models:
            raise BadInput("a study needs at least one model")
        if repeated:
            raise BadInput(f"two models are both called {listed(repeated)}; give one of them a name of its own")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "image_set", _image_set_ref(self.image_set))

    def runs(self) -> list[Run]:
        """Every model on the unchanged images."""
        image_set = _image_set_ref(self.image_set)
        return [Run(_model_ref(model), image_set, CLEAN) for model in self.models]


def _model_ref(model: ModelRef | Classifier) -> ModelRef:
    return model if isinstance(model, ModelRef) else model.ref


def _image_set_ref(image_set: ImageSetRef | ImageSet) -> ImageSetRef:
    return image_set if isinstance(image_set, ImageSetRef) else image_set.ref
