"""How fresh weights are drawn, alike for every framework: Kaiming normal (He et al., 2015)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.randomness import rng_for
from shiftproof.types import Head, Inputs, Outputs

RULE = 1
"""Raised whenever the same seed draws other weights."""

Fan = Literal["in", "out"]


class Fans(NamedTuple):
    """How many inputs each output of a layer sees, and how many outputs each input reaches."""

    into: int
    out: int


Recipe: TypeAlias = Fans | float
"""How a tensor is made anew: drawn by its fans, or filled with a number."""


@dataclass(frozen=True)
class Draw:
    """Fresh weights for a whole network: each tensor follows from the seed and its own name, and from no other tensor."""

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


class Fresh(NamedTuple):
    """What is new about a network whose weights were drawn anew."""

    answer: Callable[[Inputs, bool], Outputs]
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
