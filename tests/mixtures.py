"""Pictures of four colours, and models that read shares out of them: every rule of a filter can be worked on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from shiftproof.models import wrap_model
from shiftproof.types import Classifier, Gives, Inputs, Logits

CLASSES = ("red", "green", "blue")
Mixture = tuple[int, int, int]
"""How much red, green and blue there is, in percent."""

PREPARE = "resize=32,crop=16,mean=0,std=1"
"""Of a picture of 32 x 32 the corners are its quarters, and the centre has as much of each."""


def draw_mixture(path: Path, *quarters: Mixture) -> None:
    """A picture of one colour, or of four: top left, top right, bottom left, bottom right."""
    first, second, third, fourth = quarters * (4 // len(quarters))
    cells = np.array([[first, second], [third, fourth]], np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.fromarray(np.kron(2 * cells, np.ones((16, 16, 1), np.uint8))).save(path)


class Asked:
    """A model's function that counts the pictures it is asked about."""

    def __init__(self, answer: Callable[[Inputs], Logits]) -> None:
        self.answer, self.images = answer, 0

    def __call__(self, inputs: Inputs) -> Logits:
        self.images += len(inputs)
        return self.answer(inputs)


def shares(inputs: Inputs) -> Logits:
    """The share of each colour in a picture is the probability of its class."""
    amounts = np.asarray(inputs, np.float32).mean(axis=(2, 3))
    return np.asarray(amounts / amounts.sum(axis=1, keepdims=True))


def shares_on_the_left(inputs: Inputs) -> Logits:
    """The same of the left half, so that a mirror changes the answer."""
    return shares(inputs[..., : inputs.shape[-1] // 2])


def mixture_model(
    answer: Callable[[Inputs], Logits] = shares, name: str = "eye", gives: Gives = "probabilities"
) -> Classifier:
    return wrap_model(answer, name=name, version="1", class_names=CLASSES, size=(16, 16), preprocess=PREPARE, gives=gives)
