"""Sequences of noise: the clean picture first, then frames that know nothing of each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shiftproof.corruptions import noise
from shiftproof.corruptions.canvas import Canvas
from shiftproof.types import Image


def gaussian_noise(canvas: Canvas, rng: np.random.Generator, *, spread: float, frames: int) -> Iterator[Image]:
    """The picture, then the picture in low light again and again."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.gaussian_noise(canvas.picture, rng, spread=spread)


def shot_noise(canvas: Canvas, rng: np.random.Generator, *, photons: float, frames: int) -> Iterator[Image]:
    """The picture, then the picture made of few photons again and again."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.shot_noise(canvas.picture, rng, photons=photons)


def speckle_noise(canvas: Canvas, rng: np.random.Generator, *, spread: float, frames: int) -> Iterator[Image]:
    """The picture, then the picture under noise that grows with brightness again and again."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.speckle_noise(canvas.picture, rng, spread=spread)
