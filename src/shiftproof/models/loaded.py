"""The one classifier behind every kind of model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.sanity import check_probabilities
from shiftproof.types import (
    Classes,
    Companion,
    Dataset,
    Gives,
    Head,
    Inputs,
    ModelRef,
    Outputs,
    Preprocessing,
    Releasable,
    Seen,
    fingerprint_of,
)
from shiftproof.types.shown import counted, in_a_line

if TYPE_CHECKING:
    from shiftproof.models.companions import RandomWeights, Reinitialised
    from shiftproof.models.saliency import SaliencyMethod


def in_batches(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int | None) -> Outputs:
    """Outputs of a model that takes batches of exactly `size`; the last batch is filled up with its last image.

    >>> in_batches(lambda batch: Outputs(batch * 2), np.arange(5), 2).scores.tolist()
    [0, 2, 4, 6, 8]
    """
    if size is None or len(inputs) == size:
        return run(inputs)
    return joined([_filled(run, inputs[start : start + size], size) for start in range(0, len(inputs), size)])


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Several outputs as one; features and extra numbers where all of them have some."""
    return Outputs(
        scores=np.concatenate([part.scores for part in parts]),
        features=_concatenated([part.features for part in parts]),
        extra=_concatenated([part.extra for part in parts]),
    )


def taken(outputs: Outputs, rows: slice | NDArray[np.integer]) -> Outputs:
    """The outputs of some of the images."""
    return Outputs(
        scores=outputs.scores[rows],
        features=None if outputs.features is None else outputs.features[rows],
        extra=None if outputs.extra is None else outputs.extra[rows],
    )


def filled_up(inputs: Inputs, size: int) -> Inputs:
    """The inputs with the last one repeated, so that there are `size`.

    >>> filled_up(np.array([3, 5]), 4).tolist()
    [3, 5, 5, 5]
    """
    return np.concatenate([inputs, np.repeat(inputs[-1:], size - len(inputs), axis=0)])


def _filled(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int) -> Outputs:
    return run(inputs) if len(inputs) == size else taken(run(filled_up(inputs, size)), slice(len(inputs)))


def _concatenated(columns: Sequence[NDArray[np.floating] | None]) -> NDArray[np.floating] | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if len(there) == len(columns) else None


Forward: TypeAlias = Callable[[Inputs, bool], Outputs]
"""The forward pass: scores of a batch of inputs; features too, where asked."""

MOST_EXTRA = 64
"""Numbers an image that an extra output may have: they are stored with every row, whatever else is kept."""


@dataclass(frozen=True)
class NetworkGraph:
    """A network as an ONNX graph, and the tensors in it that hold class scores and features."""

    read: Callable[[], Path | bytes]
    scores: str
    features: str | None  # None: it shows none
    folder: Path = Path()  # of files beside it that hold its larger tensors


@dataclass(frozen=True)
class Adaptation:
    """How a model adapts to unlabelled images of a condition before it predicts under it."""

    to: Callable[[Sequence[Inputs]], Forward]  # the forward pass after it has adapted to these batches
    most: int  # images to adapt to
    images: Dataset | None = None  # those it adapts to, in the order of batches; None: nobody has said which
    named: bool = False  # whether its name was chosen by the user


@dataclass(frozen=True)
class LoadedClassifier:
    """A classifier made of what is known about it and a forward pass.

    Whatever is slow (sessions, weights) belongs behind `forward` and `read_head`, which are called late or never.
    """

    ref: ModelRef
    preprocessing: Preprocessing
    gives: Gives
    forward: Forward
    classes: Classes | None = None
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    fixed_batch_size: int | None = None  # the only size that `forward` takes; None: any
    default_batch_size: int = 32
    concurrent_batches: int = 1  # batches that may run at the same time, each from a thread of its own
    rounded: bool = False  # whether probabilities are too coarse to sum to 1, as those of quantised networks
    has_features: bool = True
    read_head: Callable[[], Head | None] = lambda: None
    graph: NetworkGraph | None = None  # so that it can be written with another head, or with more outputs
    reinitialise: Callable[[RandomWeights], Reinitialised] | None = None  # None: nobody can see its weights
    saliency: Mapping[str, SaliencyMethod] = field(default_factory=dict)  # methods that see inside the network
    for_size: Callable[[tuple[int, int]], Forward] | None = None  # forward pass at another height and width; None: none
    companion: Companion | None = None  # how it was made of another model; None: it is a model of its own
    adaptation: Adaptation | None = None  # called on a batch such a model adapts to that; stored runs name the images

    def __repr__(self) -> str:
        classes = "classes not named" if self.classes is None else counted(len(self.classes), "class", "classes")
        return in_a_line(self, self.ref.name, self.gives, classes)

    @cached_property
    def head(self) -> Head | None:
        """The last linear layer, or None where it cannot be read; the notes then say why."""
        return self.read_head()

    def __call__(self, inputs: Inputs, *, features: bool = False) -> Outputs:
        """Scores of a batch of inputs, float32; features too, where asked."""
        if features and not self.has_features:
            raise BadInput(f"{self.ref.name} shows no features; name a tensor or layer to take them from, or keep logits")
        scores, points, extra = in_batches(lambda batch: self.forward(batch, features), inputs, self.fixed_batch_size)
        if scores.ndim != 2 or len(scores) != len(inputs):
            raise BadInput(f"{self.ref.name} should give {len(inputs)} images (images, classes) scores, got {scores.shape}")
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

    def release(self) -> None:
        """Frees the memory of the network until its next batch, where its library can."""
        network: object = self.forward
        if isinstance(network, Releasable):
            network.release()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.ref.name} stays in its process; send its preprocessing to workers instead")


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


def model_ref(name: str, weights: str, preprocessing: Preprocessing, **choices: str | None) -> ModelRef:
    """A model by what its numbers depend on: a digest of its weights, its preprocessing, and choices such as precision."""
    made = {key: value for key, value in choices.items() if value is not None}
    return ModelRef(name, fingerprint_of(weights, dict(preprocessing.describe()), made))


def preprocessed(model: LoadedClassifier, preprocessing: Preprocessing) -> LoadedClassifier:
    """The same model behind another preprocessing."""
    return replace(model, preprocessing=preprocessing, ref=model_ref(model.ref.name, model.ref.fingerprint, preprocessing))


def check_size(preprocessing: ImagePreprocessing, size: tuple[int, int] | None, name: str) -> None:
    """Nothing where the preprocessed size is the one the model demands, else BadInput."""
    if size is not None and preprocessing.size != size:
        got = "any size" if preprocessing.size is None else "x".join(map(str, preprocessing.size))
        raise BadInput(
            f"{name} takes {size[0]}x{size[1]} only, but the preprocessing makes {got}; say size={size[0]}x{size[1]}"
        )
