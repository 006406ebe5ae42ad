"""The entry of a kind of classifier in the catalog; a plug-in registers one too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from shiftproof.catalog import MODELS
from shiftproof.models.options import ModelOptions
from shiftproof.types import Classifier

Load: TypeAlias = Callable[[str, ModelOptions], Classifier]
"""From what follows the colon of a spec, and the options, to the classifier."""


@dataclass(frozen=True)
class ModelKind:
    """A kind of classifier, called as the function that loads one."""

    load: Load
    goes_by_boxes: bool = False  # runs an object detector, and so takes the options of one
    is_data: bool = False  # opening one runs no code of whoever made it
    example: Callable[[Path], str] | None = None  # writes a small model into a folder, and says what follows the colon

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.load.__doc__)

    def __call__(self, spec: str, options: ModelOptions) -> Classifier:
        return self.load(spec, options)


def model_kind(**about: Any) -> Callable[[Load], ModelKind]:
    """Makes a kind of classifier of the function below it; the arguments are the fields of `ModelKind`."""
    return lambda load: ModelKind(load, **about)


def kind_of(name: str) -> ModelKind:
    """A kind of classifier of the catalog; of a bare function nothing more is known."""
    entry = MODELS.load(name)
    return entry if isinstance(entry, ModelKind) else ModelKind(entry)
