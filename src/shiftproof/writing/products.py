"""What is made of each image: corrupted pictures, or the frames of sequences; small values that go to worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.applying import apply
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.sequences import perturb
from shiftproof.types import Condition, Image


class Product(Protocol):
    """Some parts, each of which can be made of any image."""

    def __len__(self) -> int:
        """How many parts there are."""

    def base(self, image: Image) -> Image:
        """What all parts are made from."""

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        """One part of one image; nothing but the arguments decides what comes out."""


@dataclass(frozen=True)
class CorruptedPictures:
    """A picture under some conditions, which all see the same cut of the image."""

    conditions: tuple[Condition, ...]

    def __len__(self) -> int:
        return len(self.conditions)

    def base(self, image: Image) -> Image:
        rule = self.conditions[0].picture
        return image if rule == "image" else np.ascontiguousarray(edition_of(rule).picture(image))

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        return apply(self.conditions[part], base, key=key)


@dataclass(frozen=True)
class PerturbedFrames:
    """An image as some sequences, each a perturbation and its level."""

    sequences: tuple[tuple[str, int], ...]
    edition: str
    seed: int

    def __len__(self) -> int:
        return len(self.sequences)

    def base(self, image: Image) -> Image:
        return image

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        name, level = self.sequences[part]
        return perturb(base, name, level, seed=self.seed, key=key, edition=self.edition)
