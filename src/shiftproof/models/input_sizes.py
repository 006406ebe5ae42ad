"""The same model given images of another size: other inputs where it takes them, else pictures of less detail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.preprocessing import ImagePreprocessing, resized_to
from shiftproof.types import Classifier, Companion, Decoder, Fact, Image, Layout, ModelRef, fingerprint_of

Sizing = Literal["input", "picture"]
"""What has the size: the ``input`` of the model, or the ``picture`` that is then enlarged to the model's own input."""

InputSize: TypeAlias = int | tuple[int, int]
"""The side of a square, or height and width."""


@dataclass(frozen=True)
class SmallPictures:
    """A model's own preprocessing of pictures that were first made small: its input keeps its size and loses detail."""

    own: ImagePreprocessing
    picture_size: tuple[int, int]  # height, width of the small pictures

    @property
    def size(self) -> tuple[int, int] | None:
        return self.own.size

    @property
    def layout(self) -> Layout:
        return self.own.layout

    @property
    def decoder(self) -> Decoder:
        return self.own.decoder

    def from_image(self, image: Image) -> NDArray[np.generic]:
        return self.own.from_picture(resized_to(self.own, self.picture_size).cut(image))

    def from_picture(self, picture: Image) -> NDArray[np.generic]:
        return self.own.from_picture(dataclasses.replace(self.own, rule="squash", size=self.picture_size).cut(picture))

    def cut(self, image: Image) -> Image:
        return dataclasses.replace(self.own, rule="squash").cut(resized_to(self.own, self.picture_size).cut(image))

    def describe(self) -> Mapping[str, Fact]:
        return {**self.own.describe(), "enlarged from": "x".join(map(str, self.picture_size))}


def at_input_size(
    model: Classifier, size: InputSize, *, sizing: Sizing | None = None, whole: bool = False
) -> LoadedClassifier:
    """The model on inputs of this size, or on pictures of it; the part of the image that is seen stays the same.

    Unless `sizing` says which, inputs have the size where the model takes others than its own, else pictures. With `whole`
    it sees all of the image, resized to that size without regard to its shape.
    """
    if not isinstance(model, LoadedClassifier) or not isinstance(model.preprocessing, ImagePreprocessing):
        raise BadInput(f"{model.ref.name} has a preprocessing of its own, which cannot be had for another size")
    own, wanted = own_size(model), height_and_width(size)
    chosen = sizing or sizing_of(model)
    told, name = size_name(own), model.ref.name
    if chosen == "input" and model.for_size is None:
        raise BadInput(f"{name} takes inputs of {told} only; pictures can be made small instead")
    if chosen == "picture" and (wanted[0] > own[0] or wanted[1] > own[1]):
        raise BadInput(f"{name} takes {told}, so pictures of {size_name(wanted)} are none to enlarge for it")
    preprocessing = dataclasses.replace(model.preprocessing, rule="squash") if whole else model.preprocessing
    if wanted == own and preprocessing == model.preprocessing:
        return model
    ref = sized_ref(model.ref, size, chosen, whole=preprocessing != model.preprocessing)
    companion = Companion("input size", model.ref.fingerprint)
    if chosen == "picture" or model.for_size is None:
        note = f"pictures are made {size_name(wanted)} first, and then enlarged to the model's own input of {told}"
        small = SmallPictures(preprocessing, wanted)
        return dataclasses.replace(model, ref=ref, preprocessing=small, notes=(*model.notes, note), companion=companion)
    forward = model.forward if wanted == own else model.for_size(wanted)
    resized = resized_to(preprocessing, wanted)
    sized = dataclasses.replace(model, ref=ref, preprocessing=resized, forward=forward, reinitialise=None, saliency={})
    return dataclasses.replace(sized, companion=companion)


def takes_size(model: LoadedClassifier) -> bool:
    """Whether a model takes inputs of its size: layers that halve an input may leave nothing of a small one."""
    empty = np.zeros((*(model.preprocessing.size or (224, 224)), 3), np.uint8)
    try:
        model(model.preprocessing.from_image(empty)[None])
    except Exception:  # every library complains in its own way
        return False
    finally:
        model.release()
    return True


def sizing_of(model: Classifier) -> Sizing:
    """What has the size where nobody says."""
    return "input" if isinstance(model, LoadedClassifier) and model.for_size else "picture"


def own_size(model: Classifier) -> tuple[int, int]:
    """Height and width of the model's own input."""
    size = model.preprocessing.size if isinstance(model.preprocessing, ImagePreprocessing) else None
    if size is None:
        raise BadInput(f"{model.ref.name} has no input size of its own that others could be compared with")
    return size


def sized_ref(ref: ModelRef, size: InputSize, sizing: Sizing, *, whole: bool = False) -> ModelRef:
    """What a model is called and known by at another size."""
    known = short_size(size)
    told = str(known) if isinstance(known, int) else size_name(known)
    name = f"{ref.name} at {told}" if sizing == "input" else f"{ref.name} on pictures of {told}"
    parts = [ref.fingerprint, "size", known, sizing, *(["whole image"] if whole else [])]
    return ModelRef(f"{name}, whole image" if whole else name, fingerprint_of(*parts))


def height_and_width(size: InputSize) -> tuple[int, int]:
    """Both sides of an input.

    >>> height_and_width(224), height_and_width((600, 800))
    ((224, 224), (600, 800))
    """
    return (size, size) if isinstance(size, int) else size


def short_size(size: InputSize) -> InputSize:
    """A square by its side alone.

    >>> short_size((224, 224)), short_size((600, 800))
    (224, (600, 800))
    """
    height, width = height_and_width(size)
    return height if height == width else (height, width)


def size_name(size: InputSize) -> str:
    """A size as people write it, height first.

    >>> size_name(224), size_name((600, 800))
    ('224 x 224', '600 x 800')
    """
    height, width = height_and_width(size)
    return f"{height} x {width}"
