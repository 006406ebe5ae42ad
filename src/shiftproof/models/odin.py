"""ODIN's change of the input: every image moved a little towards the class it is taken for (Liang et al., 2018)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.preparation import ImagePreparation
from shiftproof.types import Classifier, Companion, Inputs, ModelRef, Outputs, fingerprint_of

RULE = 1
"""Raised whenever the same parameters move inputs otherwise."""

MOVED = "ODIN moves each input by eps"
"""How the note begins that such a network carries."""


@runtime_checkable
class Differentiable(Protocol):
    """What answers batches and can say how its answers change with them."""

    def __call__(self, inputs: Inputs, features: bool) -> Outputs: ...

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.floating]:
        """Of the cross-entropy between the logits over the temperature and their own best class, by the inputs."""


@dataclass(frozen=True)
class Perturbed:
    """Answers as a network does, but of inputs moved against the gradient of their own best class."""

    network: Differentiable
    step: NDArray[np.float32]  # eps on the scale of the inputs: one number, or one a channel
    temperature: float

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        signs = np.sign(self.network.gradient(inputs, self.temperature))
        return self.network((inputs - self.step * signs).astype(inputs.dtype, copy=False), features)


def perturbed_by_odin(
    model: Classifier, *, eps: float = 0.0014, temperature: float = 1000.0, divide_by_std: bool = True
) -> LoadedClassifier:
    """The model asked about inputs x - eps * sign(gradient of the cross-entropy of its own answer at the temperature).

    As in the authors' code the step is divided by each channel's std, so that `eps` is a share of the way from black to
    white; without `divide_by_std`, as in others' code, it is on the scale of the normalised input, some four times less.
    Answers are logits (and features) of the moved inputs: the detector ``odin`` makes scores of them, at its temperature.
    """
    if eps < 0 or temperature <= 0:
        raise BadInput(f"ODIN takes an eps of 0 or more and a temperature above 0, not {eps:g} and {temperature:g}")
    if model.gives != "logits":
        raise BadInput(f"ODIN needs logits, and {model.ref.name} gives {model.gives}")
    if not isinstance(model, LoadedClassifier) or (eps > 0 and not isinstance(model.answer, Differentiable)):
        raise BadInput(
            f"{model.ref.name} gives no gradients: ODIN with eps > 0 needs a torch model (eps = 0 needs logits alone)"
        )
    scale = (
        "the pixels, black 0 to white 1 (divided by std)" if divide_by_std else "the normalised input (not divided by std)"
    )
    return dataclasses.replace(
        model,
        ref=perturbed_ref(model.ref, eps=eps, temperature=temperature, divide_by_std=divide_by_std),
        answer=_answer(model, eps, temperature, divide_by_std),
        notes=(
            *model.notes,
            f"{MOVED} {eps:g} on the scale of {scale}, at temperature {temperature:g}",
        ),
        redraw=None,
        looks={},
        for_size=None,
        companion=Companion("odin", model.ref.fingerprint),
    )


def perturbed_ref(ref: ModelRef, *, eps: float, temperature: float, divide_by_std: bool = True) -> ModelRef:
    """What a model is called and known by once its inputs are moved."""
    chosen = {"eps": eps, "temperature": temperature, "divide_by_std": divide_by_std}
    name = f"{ref.name} odin {eps:g}" + ("" if divide_by_std else " normalised")
    return ModelRef(name, fingerprint_of(ref.fingerprint, "odin", chosen, RULE))


def _answer(
    model: LoadedClassifier, eps: float, temperature: float, divide_by_std: bool
) -> Callable[[Inputs, bool], Outputs]:
    if eps == 0 or not isinstance(model.answer, Differentiable):
        return model.answer
    if not divide_by_std:
        return Perturbed(model.answer, np.array(eps, np.float32), temperature)
    if not isinstance(model.preparation, ImagePreparation):
        raise BadInput(f"{model.ref.name} has a preparation of its own, whose std is not known; say divide_by_std=False")
    return Perturbed(model.answer, np.float32(eps) * model.preparation.contrast, temperature)
