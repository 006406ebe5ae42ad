"""A model that can be asked: the one classifier behind every kind of model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models.batches import in_batches
from shiftproof.models.drawing import Draw, Fresh
from shiftproof.models.looks import Look
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.sanity import check_probabilities
from shiftproof.types import Classes, Companion, Gives, Head, Inputs, ModelRef, Outputs, Preparation, Seen, fingerprint_of

Answer: TypeAlias = Callable[[Inputs, bool], Outputs]
"""Scores of a batch of prepared images; features too, where asked."""

MOST_EXTRA = 64
"""Numbers an image that an extra output may have: they are stored with every row, whatever else is kept."""


@dataclass(frozen=True)
class LoadedClassifier:
    """A classifier made of what is known about it and a function that answers batches.

    Whatever is slow (sessions, weights) belongs behind `answer` and `read_head`, which are called late or never.
    """

    ref: ModelRef
    preparation: Preparation
    gives: Gives
    answer: Answer
    classes: Classes | None = None
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    batch_size: int | None = None  # the only size that `answer` takes; None: any
    good_batch: int = 32  # images a batch had best have
    at_once: int = 1  # batches that may be asked at the same time, from as many threads
    rounded: bool = False  # whether probabilities are too coarse to sum to 1, as those of quantised networks
    has_features: bool = True
    read_head: Callable[[], Head | None] = lambda: None
    redraw: Callable[[Draw], Fresh] | None = None  # None: nobody can see its weights
    looks: Mapping[str, Look] = field(default_factory=dict)  # ways of finding out where it looks, from inside it
    for_size: Callable[[tuple[int, int]], Answer] | None = None  # answers inputs of another height and width; None: nothing
    companion: Companion | None = None  # how it was made of another model; None: it is a model of its own

    @cached_property
    def head(self) -> Head | None:
        """The last linear layer, or None where it cannot be read; the notes then say why."""
        return self.read_head()

    def __call__(self, inputs: Inputs, *, features: bool = False) -> Outputs:
        """Scores of a batch of prepared images, float32; features too, where asked."""
        if features and not self.has_features:
            raise BadInput(f"{self.ref.name} shows no features; name a tensor or layer to take them from, or keep logits")
        scores, points, extra = in_batches(lambda batch: self.answer(batch, features), inputs, self.batch_size)
        if scores.ndim != 2 or len(scores) != len(inputs):
            raise BadInput(f"{self.ref.name} should answer {len(inputs)} images with (images, classes), got {scores.shape}")
        if self.classes is not None and scores.shape[1] != len(self.classes):
            raise ClassMismatch(
                f"{self.ref.name} gives {scores.shape[1]} scores an image but {len(self.classes)} classes are named"
            )
        if self.gives == "probabilities" and not self.rounded:
            check_probabilities(scores, self.ref.name)
        return Outputs(
            scores=_single(scores),
            features=_single(points) if features and points is not None else None,
            extra=None if extra is None else _single(_few(extra, len(inputs), self.ref.name)),
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.ref.name} stays in its process; send its preparation to workers instead")


def _single(values: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


def _few(extra: NDArray[np.floating], images: int, name: str) -> NDArray[np.floating]:
    """The extra numbers as rows, (images, numbers); BadInput where they are not a few to each image."""
    if extra.ndim == 0 or len(extra) != images or extra.size > images * MOST_EXTRA:
        raise BadInput(
            f"the extra output of {name} should be 1 to {MOST_EXTRA} numbers an image, got shape {extra.shape} "
            f"for {images} images"
        )
    return extra.reshape(images, -1)


def model_ref(name: str, weights: str, preparation: Preparation, **choices: str | None) -> ModelRef:
    """A model by what its numbers depend on: a digest of its weights, its preparation, and choices such as precision."""
    made = {key: value for key, value in choices.items() if value is not None}
    return ModelRef(name, fingerprint_of(weights, dict(preparation.describe()), made))


def check_size(preparation: ImagePreparation, size: tuple[int, int] | None, name: str) -> None:
    """Nothing where the prepared size is the one the model demands, else BadInput."""
    if size is not None and preparation.size != size:
        got = "any size" if preparation.size is None else "x".join(map(str, preparation.size))
        raise BadInput(
            f"{name} takes {size[0]}x{size[1]} only, but the preparation makes {got}; say size={size[0]}x{size[1]}"
        )
