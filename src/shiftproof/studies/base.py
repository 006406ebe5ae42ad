"""What studies of the images as they are have in common: some models, one dataset, and a run for each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from shiftproof.errors import BadInput, listed
from shiftproof.types import (
    CLEAN,
    Classes,
    Classifier,
    Dataset,
    DatasetRef,
    LoadPredictions,
    LoadsTraining,
    ModelRef,
    ObjectDetector,
    Run,
    Study,
    Training,
)

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class CleanStudy(Study):
    """Some models on one dataset. Both may be given as objects; refs are held, so that a study has no weights in it."""

    models: Sequence[ModelRef | Classifier | ObjectDetector]
    dataset: DatasetRef | Dataset

    def __post_init__(self) -> None:
        settle(self, models=model_refs(self.models), dataset=dataset_ref(self.dataset))

    def runs(self) -> list[Run]:
        """Every model on the unchanged images."""
        dataset = dataset_ref(self.dataset)
        return [Run(model_ref(model), dataset, CLEAN) for model in self.models]


def settle(study: Study, **values: object) -> None:
    """Puts fields of a frozen study in the form in which it holds them, while it is made: references for objects."""
    for name, value in values.items():
        object.__setattr__(study, name, value)


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


def dataset_ref(dataset: DatasetRef | Dataset) -> DatasetRef:
    return dataset if isinstance(dataset, DatasetRef) else dataset.ref


def refs_of(datasets: Mapping[Name, DatasetRef | Dataset]) -> dict[Name, DatasetRef]:
    """Datasets by reference, under their names."""
    return {name: dataset_ref(images) for name, images in datasets.items()}


def published_name(dataset: DatasetRef | Dataset) -> str | None:
    """The published dataset that a dataset is a copy of; None where only a reference is given."""
    return None if isinstance(dataset, DatasetRef) else dataset.published


def load_training(load: LoadPredictions, run: Run) -> Training:
    """What a detector learns from: block by block from a store, else the predictions as one block."""
    return load.training(run) if isinstance(load, LoadsTraining) else load(run)


class ClassNames:
    """A readable name of each class, no two alike: a repeated name is followed by its wnid.

    >>> names = ClassNames(Classes(("crane", "crane", "tench"), ("n02012849", "n03126707", "n01440764")))
    >>> names[0], names[2]
    ('crane (n02012849)', 'tench')
    >>> ClassNames(None)[3]
    'class 3'
    """

    def __init__(self, classes: Classes | None) -> None:
        self.classes = classes
        self.times = Counter(classes.names) if classes else Counter[str]()

    def __getitem__(self, place: int) -> str:
        if self.classes is None or not 0 <= place < len(self.classes):
            return f"class {place}"
        name = self.classes.names[place]
        key = self.classes.wnids[place] if self.classes.wnids else f"class {place}"
        return name if self.times[name] == 1 else f"{name} ({key})"

    def of_labels(self, labels: Iterable[int]) -> str:
        """The true classes of one image.

        >>> ClassNames(Classes(("cat", "dog"))).of_labels([1, 0, -1])
        'dog or cat'
        """
        return " or ".join(self[int(label)] for label in labels if label >= 0)


def sure_of(name: str, confidence: float) -> str:
    """A predicted class with the model's confidence, where it is known.

    >>> sure_of("espresso", 0.978), sure_of("espresso", float("nan"))
    ('espresso 98 %', 'espresso')
    """
    return f"{name} {100 * confidence:.0f} %" if np.isfinite(confidence) else name
