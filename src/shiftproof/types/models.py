"""Models and their outputs for one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.types.images import Classes, Decoder, Fact, Image

Inputs: TypeAlias = NDArray[np.generic]
"""Input batch: preprocessed images, (images, ...), in the layout its preprocessing names."""

Logits: TypeAlias = NDArray[np.floating]
"""Class scores, (images, classes); what they are (logits, probabilities, scores) the model `gives`."""

Features: TypeAlias = NDArray[np.floating]
"""What the last linear layer sees, (images, features)."""

Gives = Literal["logits", "probabilities", "scores"]

OutputKind: TypeAlias = Gives | Literal["boxes"]
"""What a model outputs: class scores in one of three meanings, or boxes."""

Layout = Literal["nchw", "nhwc"]

Precision = Literal["float32", "float16"]

CompanionKind = Literal["redrawn", "odin", "input size"]


@dataclass(frozen=True)
class ModelRef:
    """A model by what its numbers depend on; the fingerprint covers weights and preprocessing."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class Companion:
    """What makes a network no model of its own: it is a companion, another model changed and run for its studies."""

    kind: CompanionKind
    of: str | None  # fingerprint of the model it was made of; None where that is not known any more


@dataclass(frozen=True)
class Seen:
    """Declared training of a model; reports print it and warn where it spoils a benchmark."""

    training_data: str = "not declared"  # in words
    augmentations: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()  # datasets this model was a filter model of, e.g. ("imagenet-a",)
    trained_on: tuple[str, ...] = ()  # datasets among its training data, by name


@dataclass(frozen=True)
class Head:
    """The last linear layer: logits = features @ weights.T + bias."""

    weights: NDArray[np.floating]  # (classes, features)
    bias: NDArray[np.floating]  # (classes,)


class Outputs(NamedTuple):
    """A classifier's outputs for one batch."""

    scores: Logits
    features: Features | None = None
    extra: NDArray[np.floating] | None = None  # (images, numbers): a further output, such as a confidence branch


class Preprocessing(Protocol):
    """How an image becomes a model's input; it is sent to worker processes, so it must pickle."""

    @property
    def decoder(self) -> Decoder:
        """Which library decodes files; their pixels differ by a level here and there, so one is named."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of every input; None where they follow from the image."""

    @property
    def layout(self) -> Layout:
        """The order of the axes of a batch."""

    def from_image(self, image: Image) -> NDArray[np.generic]:
        """The model's own resize and crop, then normalisation; one image, without the batch axis."""

    def from_picture(self, picture: Image) -> NDArray[np.generic]:
        """The whole picture resized to the model's size, no crop, then normalisation."""

    def cut(self, image: Image) -> Image:
        """The model's own resize and crop alone: what it sees of the image, as bytes."""

    def describe(self) -> Mapping[str, Fact]:
        """Every choice in plain values: printed in reports and part of the fingerprint."""


class InputForm(NamedTuple):
    """What the inputs of all images have in common, without the batch axis."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@runtime_checkable
class PlacingPreprocessing(Preprocessing, Protocol):
    """One that writes an input to where it is needed, such as its place in a batch."""

    @property
    def form(self) -> InputForm | None:
        """The shape and dtype of every input; None where they follow from the image."""

    def from_image(self, image: Image, out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        """As of every preprocessing; written into `out` and returned, where given."""

    def from_picture(self, picture: Image, out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        """As of every preprocessing; written into `out` and returned, where given."""


@runtime_checkable
class CroppingPreprocessing(Preprocessing, Protocol):
    """One that can also take the crops of ten-crop evaluation."""

    def from_crops(self, image: Image) -> Mapping[str, NDArray[np.generic]]:
        """The inputs of the ten `CROPS` by their names, perhaps `LazyInputs`; the first is what `from_image` gives."""


class LazyInputs(Mapping[str, NDArray[np.generic]]):
    """Inputs by name, made of their pictures when they are asked for: at once in their place in a batch, without a copy."""

    def __init__(
        self,
        pictures: Mapping[str, Image],
        normalised: Callable[[Image, NDArray[np.generic] | None], NDArray[np.generic]],
    ) -> None:
        self._pictures, self._normalised = pictures, normalised

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        return self.place(name, None)

    def place(self, name: str, out: NDArray[np.generic] | None) -> NDArray[np.generic]:
        """One of the inputs, written into `out` and returned, where given."""
        return self._normalised(self._pictures[name], out)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pictures)

    def __len__(self) -> int:
        return len(self._pictures)


@runtime_checkable
class Releasable(Protocol):
    """A network, or a model made of one, that can free its memory between batches."""

    def release(self) -> None:
        """Frees what it holds; its next batch makes that again."""


class BaseModel(Protocol):
    """The description that every model has, whatever it outputs."""

    @property
    def ref(self) -> ModelRef: ...

    @property
    def classes(self) -> Classes | None:
        """Its classes in the order of its outputs; None where the model does not say."""

    @property
    def preprocessing(self) -> Preprocessing: ...

    @property
    def seen(self) -> Seen: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed when it was loaded, in sentences for its user."""

    @property
    def companion(self) -> Companion | None:
        """How it was made of another model; None: it is a model of its own."""

    @property
    def default_batch_size(self) -> int: ...

    @property
    def concurrent_batches(self) -> int:
        """How many batches may run at the same time, each from a thread of its own."""


@runtime_checkable
class Classifier(BaseModel, Protocol):
    """A model that outputs class scores."""

    @property
    def gives(self) -> Gives: ...

    @property
    def has_features(self) -> bool:
        """Whether it can also output features."""

    @property
    def head(self) -> Head | None:
        """The last linear layer, or None where it cannot be read."""

    def __call__(self, inputs: Inputs, *, features: bool = False) -> Outputs:
        """Scores of a batch of inputs; features too, where wanted."""
