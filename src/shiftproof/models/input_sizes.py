"""The same model given images of another size: other inputs where it takes them, else pictures of less detail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.preparation import ImagePreparation, resized_to
from shiftproof.types import Classifier, Companion, Decoder, Fact, Image, ModelRef, fingerprint_of

Sizing = Literal["input", "picture"]
"""What has the size: the ``input`` of the model, or the ``picture`` that is then enlarged to the model's own input."""


@dataclass(frozen=True)
class SmallPictures:
    """A model's own preparation of pictures that were first made small: its input keeps its size and loses detail."""

    own: ImagePreparation
    size: tuple[int, int]  # height, width of the small pictures

    @property
    def decoder(self) -> Decoder:
        return self.own.decoder

    def from_image(self, image: Image) -> NDArray[np.generic]:
        return self.own.from_picture(resized_to(self.own, self.size).cut(image))

    def from_picture(self, picture: Image) -> NDArray[np.generic]:
        return self.own.from_picture(dataclasses.replace(self.own, rule="squash", size=self.size).cut(picture))

    def cut(self, image: Image) -> Image:
        return dataclasses.replace(self.own, rule="squash").cut(resized_to(self.own, self.size).cut(image))

    def describe(self) -> Mapping[str, Fact]:
        return {**self.own.describe(), "enlarged from": "x".join(map(str, self.size))}


def at_input_size(model: Classifier, side: int, *, sizing: Sizing | None = None) -> LoadedClassifier:
    """The model on square inputs of this side, or on pictures of it; the part of the image that is seen stays the same.

    Unless `sizing` says which, inputs have the size where the model takes others than its own, else pictures.
    """
    if not isinstance(model, LoadedClassifier) or not isinstance(model.preparation, ImagePreparation):
        raise BadInput(f"{model.ref.name} has a preparation of its own, which cannot be had for another size")
    own = own_side(model)
    chosen = sizing or sizing_of(model)
    if chosen == "input" and model.for_size is None:
        raise BadInput(f"{model.ref.name} takes inputs of {own} x {own} only; pictures can be made small instead")
    if chosen == "picture" and side > own:
        raise BadInput(f"{model.ref.name} takes {own} x {own}, so pictures of {side} x {side} are none to enlarge for it")
    if side == own:
        return model
    size, ref = (side, side), sized_ref(model.ref, side, chosen)
    companion = Companion("input size", model.ref.fingerprint)
    if chosen == "picture" or model.for_size is None:
        note = f"pictures are made {side} x {side} first, and then enlarged to the model's own input of {own} x {own}"
        small = SmallPictures(model.preparation, size)
        return dataclasses.replace(model, ref=ref, preparation=small, notes=(*model.notes, note), companion=companion)
    answer, preparation = model.for_size(side), resized_to(model.preparation, size)
    sized = dataclasses.replace(model, ref=ref, preparation=preparation, answer=answer, redraw=None, looks={})
    return dataclasses.replace(sized, companion=companion)


def sizing_of(model: Classifier) -> Sizing:
    """What has the size where nobody says."""
    return "picture" if getattr(model, "for_size", None) is None else "input"


def own_side(model: Classifier) -> int:
    """The side of the model's own square input."""
    size = model.preparation.size if isinstance(model.preparation, ImagePreparation) else None
    if size is None or size[0] != size[1]:
        raise BadInput(f"{model.ref.name} has no square input of its own that others could be compared with")
    return size[0]


def sized_ref(ref: ModelRef, side: int, sizing: Sizing) -> ModelRef:
    """What a model is called and known by at another size."""
    name = f"{ref.name} at {side}" if sizing == "input" else f"{ref.name} on pictures of {side}"
    return ModelRef(name, fingerprint_of(ref.fingerprint, "size", side, sizing))
