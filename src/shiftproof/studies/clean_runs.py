"""The runs of a study that asks about the images as they are: one for each model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shiftproof.errors import BadInput, listed
from shiftproof.types import CLEAN, Classifier, ImageSet, ImageSetRef, ModelRef, Run


class CleanStudy(Protocol):
    """A study of some models on one image set; both may be given as objects or as their refs."""

    @property
    def models(self) -> Sequence[ModelRef | Classifier]: ...

    @property
    def image_set(self) -> ImageSetRef | ImageSet: ...


def hold_refs(study: CleanStudy) -> None:
    """Puts refs in place of the models and images of a frozen study, so that it holds no weights and can be compared."""
    models = tuple(_model_ref(model) for model in study.models)
    names = [model.name for model in models]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if not models:
        raise BadInput("a study needs at least one model")
    if repeated:
        raise BadInput(f"two models are both called {listed(repeated)}; give one of them a name of its own")
    object.__setattr__(study, "models", models)
    object.__setattr__(study, "image_set", _image_set_ref(study.image_set))


def clean_runs(study: CleanStudy) -> list[Run]:
    """Every model of the study on its unchanged images."""
    image_set = _image_set_ref(study.image_set)
    return [Run(_model_ref(model), image_set, CLEAN) for model in study.models]


def _model_ref(model: ModelRef | Classifier) -> ModelRef:
    return model if isinstance(model, ModelRef) else model.ref


def _image_set_ref(image_set: ImageSetRef | ImageSet) -> ImageSetRef:
    return image_set if isinstance(image_set, ImageSetRef) else image_set.ref
