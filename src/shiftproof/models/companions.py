"""Models made of another model: random weights, ODIN's perturbed inputs, rotated inputs."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.input_sizes import sized_ref
from shiftproof.models.loaded import Forward, LoadedClassifier
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.types import Classifier, Companion, Head, Inputs, ModelRef, Outputs, Releasable, Seen, fingerprint_of

REDRAWN_VERSION = 1
"""Raised whenever the same seed draws other weights."""

UNTRAINED = "nothing: its weights are drawn anew"
"""How the training data of such a network begins."""

Fan = Literal["in", "out"]


def random_network(model: Classifier, seed: int, *, fan: Fan = "in") -> LoadedClassifier:
    """The model with every weight re-initialised at random, its head too; preprocessing and classes stay.

    Weights of convolutions and linear layers are Kaiming normal: a variance of two over the inputs that each output sees
    or, with ``fan="out"`` as torchvision starts its ResNets, over the outputs that each input reaches. Biases are zero;
    norms are fresh, so in evaluation they hand on what comes in.
    """
    if fan not in ("in", "out"):
        raise BadInput(f"weights are drawn by the fan in or out, not {fan!r}")
    if not isinstance(model, LoadedClassifier) or model.reinitialise is None:
        raise BadInput(
            f"{model.ref.name} has no weights that could be re-initialised; "
            "random networks can be had of lite, ONNX and torch models"
        )
    draw = RandomWeights(seed, fan)
    fresh = model.reinitialise(draw)
    return dataclasses.replace(
        model,
        ref=random_network_ref(model.ref, draw),
        forward=fresh.forward,
        read_head=fresh.read_head,
        seen=Seen(f"{UNTRAINED} (Kaiming normal, fan {fan}, seed {seed})"),
        notes=(*model.notes, *fresh.notes),
        reinitialise=None,
        saliency={},
        for_size=None,
        companion=Companion("redrawn", model.ref.fingerprint),
    )


def random_network_ref(ref: ModelRef, draw: RandomWeights) -> ModelRef:
    """What a model is called and known by once its weights are re-initialised."""
    return ModelRef(f"{ref.name} {draw}", fingerprint_of(ref.fingerprint, dataclasses.asdict(draw), REDRAWN_VERSION))


class Fans(NamedTuple):
    """How many inputs each output of a layer sees, and how many outputs each input reaches."""

    into: int
    out: int


Recipe: TypeAlias = Fans | float
"""How a tensor is re-initialised: drawn by its fans, or filled with a number."""


@dataclass(frozen=True)
class RandomWeights:
    """Random weights of a whole network: each tensor follows from the seed and its own name alone."""

    seed: int
    fan: Fan = "in"

    def made(self, name: str, shape: Sequence[int], recipe: Recipe) -> NDArray[np.float32]:
        """The tensor of this name by its recipe."""
        return self.weights(name, shape, recipe) if isinstance(recipe, Fans) else np.full(tuple(shape), recipe, np.float32)

    def weights(self, name: str, shape: Sequence[int], fans: Fans) -> NDArray[np.float32]:
        """Normal with a variance of two over the fan: with a ReLU after each layer, what goes through keeps its size."""
        return self.normal(name, shape, math.sqrt(2 / (fans.into if self.fan == "in" else fans.out)))

    def normal(self, name: str, shape: Sequence[int], spread: float) -> NDArray[np.float32]:
        drawn = rng_for(name, "redrawn", self.seed).standard_normal(tuple(shape), np.float32)
        return drawn * np.float32(spread)

    def __str__(self) -> str:
        return f"redrawn {self.seed}" if self.fan == "in" else f"redrawn {self.seed} fan out"


class Reinitialised(NamedTuple):
    """What is new about a network whose weights were re-initialised."""

    forward: Callable[[Inputs, bool], Outputs]
    read_head: Callable[[], Head | None]
    notes: tuple[str, ...] = ()


def fans_of_convolution(shape: Sequence[int], groups: int = 1, *, transposed: bool = False) -> Fans:
    """Fans of a kernel (outputs, inputs of a group, ...), or (inputs, outputs of a group, ...) where it is transposed.

    A filter of each channel on its own sees its area and reaches as many; torch's `kaiming_normal_` leaves the groups out
    of the fan out, and would let such a network die without its batch norms.

    >>> fans_of_convolution((64, 3, 7, 7)), fans_of_convolution((96, 1, 3, 3), groups=96)
    (Fans(into=147, out=3136), Fans(into=9, out=9))
    """
    first, second, *kernel = shape
    area = math.prod(kernel)
    into, out = (first // groups, second) if transposed else (second, first // groups)
    return Fans(into * area, out * area)


ODIN_VERSION = 1
"""Raised whenever the same parameters move inputs otherwise."""

MOVED = "ODIN moves each input by eps"
"""How the note begins that such a network carries."""


@runtime_checkable
class Differentiable(Protocol):
    """A forward pass with the gradient of its loss by the inputs."""

    def __call__(self, inputs: Inputs, features: bool) -> Outputs: ...

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.floating]:
        """Of the cross-entropy between the logits over the temperature and their own best class, by the inputs."""


@dataclass(frozen=True)
class Perturbed:
    """Outputs of a network for inputs perturbed to raise the softmax score of their predicted class."""

    network: Differentiable
    step: NDArray[np.float32]  # eps on the scale of the inputs: one number, or one a channel
    temperature: float

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        signs = np.sign(self.network.gradient(inputs, self.temperature))
        return self.network((inputs - self.step * signs).astype(inputs.dtype, copy=False), features)


def perturbed_by_odin(
    model: Classifier, *, eps: float = 0.0014, temperature: float = 1000.0, divide_by_std: bool = True
) -> LoadedClassifier:
    """The model on inputs x - eps * sign(gradient of the cross-entropy of its own prediction at the temperature).

    As in the authors' code the step is divided by each channel's std, so that `eps` is a share of the way from black to
    white; without `divide_by_std`, as in others' code, it is on the scale of the normalised input, some four times less.
    Its outputs are logits (and features) of the perturbed inputs, which the OOD detector ``odin`` scores at its temperature.
    """
    if eps < 0 or temperature <= 0:
        raise BadInput(f"ODIN takes an eps of 0 or more and a temperature above 0, not {eps:g} and {temperature:g}")
    if model.gives != "logits":
        raise BadInput(f"ODIN needs logits, and {model.ref.name} gives {model.gives}")
    if not isinstance(model, LoadedClassifier) or (eps > 0 and not isinstance(model.forward, Differentiable)):
        raise BadInput(
            f"{model.ref.name} gives no gradients: ODIN with eps > 0 needs a torch model (eps = 0 needs logits alone)"
        )
    scale = (
        "the pixels, black 0 to white 1 (divided by std)" if divide_by_std else "the normalised input (not divided by std)"
    )
    return dataclasses.replace(
        model,
        ref=perturbed_ref(model.ref, eps=eps, temperature=temperature, divide_by_std=divide_by_std),
        forward=_answer(model, eps, temperature, divide_by_std),
        notes=(
            *model.notes,
            f"{MOVED} {eps:g} on the scale of {scale}, at temperature {temperature:g}",
        ),
        reinitialise=None,
        saliency={},
        for_size=None,
        companion=Companion("odin", model.ref.fingerprint),
    )


def perturbed_ref(ref: ModelRef, *, eps: float, temperature: float, divide_by_std: bool = True) -> ModelRef:
    """Name and fingerprint of a model whose inputs are perturbed."""
    chosen = {"eps": eps, "temperature": temperature, "divide_by_std": divide_by_std}
    name = f"{ref.name} odin {eps:g}" + ("" if divide_by_std else " normalised")
    return ModelRef(name, fingerprint_of(ref.fingerprint, "odin", chosen, ODIN_VERSION))


def _answer(
    model: LoadedClassifier, eps: float, temperature: float, divide_by_std: bool
) -> Callable[[Inputs, bool], Outputs]:
    if eps == 0 or not isinstance(model.forward, Differentiable):
        return model.forward
    if not divide_by_std:
        return Perturbed(model.forward, np.array(eps, np.float32), temperature)
    if not isinstance(model.preprocessing, ImagePreprocessing):
        raise BadInput(f"{model.ref.name} has a preprocessing of its own, whose std is not known; say divide_by_std=False")
    return Perturbed(model.forward, np.float32(eps) * model.preprocessing.contrast, temperature)


ROTATED_VERSION = 1
"""Raised whenever the same image is rotated otherwise."""

ROTATIONS = 4


@dataclass(frozen=True)
class Rotated:
    """Outputs of a network for the upright image; the extra output is that of all four rotations."""

    network: Forward
    axes: tuple[int, int]  # height and width among the axes of a batch

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        upright = self.network(inputs, features)
        others = [self.network(self._rotated(inputs, times), False) for times in range(1, ROTATIONS)]
        heads = [_four(one, len(inputs)) for one in (upright, *others)]
        return upright._replace(extra=np.concatenate(heads, axis=1))

    def release(self) -> None:
        network: object = self.network
        if isinstance(network, Releasable):
            network.release()

    def _rotated(self, inputs: Inputs, times: int) -> Inputs:
        return np.ascontiguousarray(np.rot90(inputs, times, self.axes))


@dataclass(frozen=True)
class RotatedDifferentiable(Rotated):
    """One whose network gives gradients, those of the upright image."""

    network: Differentiable

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.floating]:
        return self.network.gradient(inputs, temperature)


def with_rotations(model: Classifier) -> LoadedClassifier:
    """The model, whose extra output is a rotation head, shown each input rotated by 0, 90, 180 and 270 degrees.

    Rotations are counterclockwise. Scores and features are those of the upright image; the extra output is the sixteen
    numbers of the head, four for each rotation in this order, so that the detector ``rotation`` never needs the model
    again. An image costs four forward passes.
    """
    if not isinstance(model, LoadedClassifier) or not isinstance(model.preprocessing, ImagePreprocessing):
        raise BadInput(f"{model.ref.name} has a preprocessing of its own, so it is not known how to rotate its inputs")
    if model.preprocessing.size is not None and len(set(model.preprocessing.size)) > 1:
        sides = "x".join(map(str, model.preprocessing.size))
        raise BadInput(f"only square inputs can be rotated by 90 degrees, and {model.ref.name} takes {sides}")
    axes = (2, 3) if model.preprocessing.layout == "nchw" else (1, 2)
    reinitialise, for_size = model.reinitialise, model.for_size

    def rotated_random_network(draw: RandomWeights) -> Reinitialised:
        assert reinitialise is not None  # noqa: S101 - checked below
        fresh = reinitialise(draw)
        return fresh._replace(forward=_rotating(fresh.forward, axes))

    return dataclasses.replace(
        model,
        ref=rotated_ref(model.ref),
        forward=_rotating(model.forward, axes),
        notes=(*model.notes, "every image is run in four rotations, which takes four forward passes"),
        reinitialise=None if reinitialise is None else rotated_random_network,
        for_size=None if for_size is None else lambda side: _rotating(for_size(side), axes),
    )


def rotated_ref(ref: ModelRef) -> ModelRef:
    """What a model is known by once its images are rotated; its name stays, for it gives the same classes."""
    return ModelRef(ref.name, fingerprint_of(ref.fingerprint, "turned", ROTATED_VERSION))


def _rotating(network: Forward, axes: tuple[int, int]) -> Rotated:
    return RotatedDifferentiable(network, axes) if isinstance(network, Differentiable) else Rotated(network, axes)


def _four(outputs: Outputs, images: int) -> NDArray[np.floating]:
    """The outputs of a rotation head for one rotation, (images, 4)."""
    if outputs.extra is None:
        raise BadInput("images are rotated for a rotation head, and no extra output is named (--extra-output)")
    if outputs.extra.size != images * ROTATIONS:
        raise BadInput(f"a rotation head has four outputs an image, got shape {outputs.extra.shape} for {images} images")
    return outputs.extra.reshape(images, ROTATIONS)


RANDOM = re.compile(r" redrawn (?P<seed>\d+)(?P<out> fan out)?$")
ODIN = re.compile(r" odin (?P<eps>[0-9.e+-]+)(?P<normalised> normalised)?$")
SIZED = re.compile(r" (?P<input>at|on pictures of) (?P<side>\d+)$")
TEMPERATURE = re.compile(r"at temperature (?P<temperature>[0-9.e+-]+)$")


def companion_made_of(ref: ModelRef, seen: Seen, notes: Sequence[str], models: Sequence[ModelRef]) -> Companion | None:
    """How a network was made of one of these models; None where it is a model of its own.

    Its fingerprint follows from the model's. Where that is not stored any more, what the network says of itself must do.
    """
    if found := RANDOM.search(ref.name):
        draw = RandomWeights(int(found["seed"]), "out" if found["out"] else "in")
        if of := _maker(ref, models, lambda model: random_network_ref(model, draw)):
            return Companion("redrawn", of)
    moved = [note for note in notes if note.startswith(MOVED)]
    if (found := ODIN.search(ref.name)) and (told := TEMPERATURE.search(moved[-1] if moved else "")):
        eps, temperature, by_std = float(found["eps"]), float(told["temperature"]), not found["normalised"]
        if of := _maker(
            ref, models, lambda model: perturbed_ref(model, eps=eps, temperature=temperature, divide_by_std=by_std)
        ):
            return Companion("odin", of)
    if found := SIZED.search(ref.name):
        side, by_input = int(found["side"]), found["input"] == "at"
        if of := _maker(ref, models, lambda model: sized_ref(model, side, "input" if by_input else "picture")):
            return Companion("input size", of)
    if seen.training_data.startswith(UNTRAINED):
        return Companion("redrawn", None)
    return Companion("odin", None) if moved else None


def _maker(ref: ModelRef, models: Sequence[ModelRef], made: Callable[[ModelRef], ModelRef]) -> str | None:
    """The fingerprint of the model from which this network's own follows."""
    return next((model.fingerprint for model in models if made(model).fingerprint == ref.fingerprint), None)
