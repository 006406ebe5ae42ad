"""A model with a rotation head, shown every image in four turns (Hendrycks et al., 2019)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.drawing import Draw, Fresh
from shiftproof.models.loaded import Answer, LoadedClassifier
from shiftproof.models.odin import Differentiable
from shiftproof.models.preparation import ImagePreparation
from shiftproof.types import Classifier, Inputs, ModelRef, Outputs, fingerprint_of

RULE = 1
"""Raised whenever the same image is turned otherwise."""

TURNS = 4


@dataclass(frozen=True)
class Turned:
    """Answers as a network does to the upright image; its extra output is what it gives to each of four turns."""

    network: Answer
    axes: tuple[int, int]  # height and width among the axes of a batch

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        upright = self.network(inputs, features)
        others = [self.network(self._turned(inputs, times), False) for times in range(1, TURNS)]
        heads = [_four(one, len(inputs)) for one in (upright, *others)]
        return upright._replace(extra=np.concatenate(heads, axis=1))

    def _turned(self, inputs: Inputs, times: int) -> Inputs:
        return np.ascontiguousarray(np.rot90(inputs, times, self.axes))


@dataclass(frozen=True)
class TurnedDifferentiable(Turned):
    """One whose network can say how its answers change with the input; what it says is of the upright image."""

    network: Differentiable

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.floating]:
        return self.network.gradient(inputs, temperature)


def shown_turned(model: Classifier) -> LoadedClassifier:
    """The model, whose extra output is a rotation head, shown each input turned by 0, 90, 180 and 270 degrees.

    Turns are counterclockwise. Scores and features are those of the upright image; the extra output is the sixteen numbers
    of the head, four for each turn in this order, so that the detector ``rotation`` never needs the model again. An image
    costs four forward passes.
    """
    if not isinstance(model, LoadedClassifier) or not isinstance(model.preparation, ImagePreparation):
        raise BadInput(f"{model.ref.name} has a preparation of its own, so it is not known how to turn its inputs")
    if model.preparation.size is not None and len(set(model.preparation.size)) > 1:
        sides = "x".join(map(str, model.preparation.size))
        raise BadInput(f"only square inputs can be turned by 90 degrees, and {model.ref.name} takes {sides}")
    axes = (2, 3) if model.preparation.layout == "nchw" else (1, 2)
    redraw, for_size = model.redraw, model.for_size

    def redrawn(draw: Draw) -> Fresh:
        assert redraw is not None  # noqa: S101 - asked below
        fresh = redraw(draw)
        return fresh._replace(answer=_turning(fresh.answer, axes))

    return dataclasses.replace(
        model,
        ref=turned_ref(model.ref),
        answer=_turning(model.answer, axes),
        notes=(*model.notes, "every image is shown in four turns, which takes four forward passes"),
        redraw=None if redraw is None else redrawn,
        for_size=None if for_size is None else lambda side: _turning(for_size(side), axes),
    )


def turned_ref(ref: ModelRef) -> ModelRef:
    """What a model is known by once its images are turned; its name stays, for it gives the same classes."""
    return ModelRef(ref.name, fingerprint_of(ref.fingerprint, "turned", RULE))


def _turning(network: Answer, axes: tuple[int, int]) -> Turned:
    return TurnedDifferentiable(network, axes) if isinstance(network, Differentiable) else Turned(network, axes)


def _four(outputs: Outputs, images: int) -> NDArray[np.floating]:
    """What a rotation head gives to one turn, (images, 4)."""
    if outputs.extra is None:
        raise BadInput("images are turned for a rotation head, and no extra output is named (--extra-output)")
    if outputs.extra.size != images * TURNS:
        raise BadInput(f"a rotation head has four outputs an image, got shape {outputs.extra.shape} for {images} images")
    return outputs.extra.reshape(images, TURNS)
