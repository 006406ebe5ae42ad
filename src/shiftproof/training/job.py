"""One training, as data: all that its weights depend on."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.options import ModelSettings
from shiftproof.training.options import TrainOptions
from shiftproof.training.recipe import ChosenRecipe, Level, course_of
from shiftproof.types import Classes, Dataset, DatasetRef, Sample, fingerprint_of


@dataclass(frozen=True)
class Job:
    """One training with one seed, and the folder that its result is written to."""

    model: str  # as `load_model` takes it
    model_options: ModelSettings  # device and precision among them
    recipes: tuple[ChosenRecipe, ...]
    level: Level
    training: Dataset
    validation: Dataset
    outliers: Dataset | None
    classes: Classes  # of the model that comes out: labels of `training` and `validation` are places in it
    options: TrainOptions
    seed: int
    folder: Path
    source: str  # fingerprint of the model
    dataset: DatasetRef  # that the images are of
    digest: str  # of the bytes of the images, and of the boxes where these are learned
    held_out: Dataset | None = None  # images that a recipe left out, to be measured
    course: Path | None = None  # of checkpoints that others go on from; who shares them removes them

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return self.course or self.folder / "checkpoints"

    def remove_checkpoints(self) -> None:
        """Nobody goes on from them, unless others share them."""
        if self.course is None:
            shutil.rmtree(self.checkpoints, ignore_errors=True)

    def asked(self) -> Mapping[str, Any]:
        """What the weights depend on, in plain values."""
        told = {one.name: getattr(self.options, one.name) for one in fields(self.options) if "told" in one.metadata}
        return {
            "model": self.source,
            "recipes": [str(one) for one in self.recipes],
            "training": self.training.ref.fingerprint,
            "validation": self.validation.ref.fingerprint,
            "outliers": None if self.outliers is None else self.outliers.ref.fingerprint,
            "images": self.digest,
            "options": {name: value for name, value in told.items() if name not in UNDEPENDING},
            "seed": self.seed,
        }

    @property
    def multi_label(self) -> bool:
        """Whether every class is a question of its own: targets are 0 or 1 each, answers log-odds of each class alone."""
        return any(one.multi_label for one in self.recipes)

    def targets(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """What each image should be predicted as, (images, classes)."""
        return targets_of(samples, len(self.classes), multi_label=self.multi_label)

    @property
    def key(self) -> str:
        """A digest of all that."""
        return fingerprint_of(self.asked())

    @property
    def course_key(self) -> str:
        """A digest of what a training depends on until it is over: what a recipe makes of its weights then is left out."""
        return fingerprint_of({**self.asked(), "recipes": list(course_of(self.recipes))})


UNDEPENDING = ("recipe", "seeds", "seed", "outliers")
"""Options that are told otherwise, or on which the weights of one seed do not depend."""


def targets_of(samples: Sequence[Sample], classes: int, *, multi_label: bool = False) -> NDArray[np.float64]:
    """What each image should be predicted as, (images, classes): all of its labels alike. BadInput where one has no place.

    Labels share a probability of 1; with `multi_label` each has one of its own.

    >>> targets_of([Sample("a", (1,)), Sample("b", (0, 2))], 3).tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    >>> targets_of([Sample("b", (0, 2))], 3, multi_label=True).tolist()
    [[1.0, 0.0, 1.0]]
    """
    targets = np.zeros((len(samples), classes))
    for row, sample in zip(targets, samples, strict=True):
        if not sample.labels or max(sample.labels) >= classes:
            told = f"label {max(sample.labels)}" if sample.labels else "no label"
            raise BadInput(f"{sample.id} has {told}, and the network is trained on {classes} classes, 0 to {classes - 1}")
        row[list(sample.labels)] = 1 if multi_label else 1 / len(sample.labels)
    return targets
