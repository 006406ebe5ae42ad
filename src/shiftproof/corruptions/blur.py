"""Blurs: a lens out of focus, frosted glass, a camera that moves, one that nears its subject, and the plain gaussian."""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.disk import disk_of, under_disk
from shiftproof.corruptions.filters import from_pixels, gaussian, gaussian_kernel, motion
from shiftproof.corruptions.random_bits import BLOCK, fill_with_random_bits, seed_of
from shiftproof.corruptions.zooming import added_zooms
from shiftproof.types import Image

Displacements: TypeAlias = NDArray[np.int8]
"""Where pixels are taken from, (rounds, pixels, 2): steps to the right and down, in the order of the visits."""


def defocus_blur(image: Image, rng: np.random.Generator, *, radius: float, softness: float) -> Image:  # noqa: ARG001
    """A lens out of focus: every point becomes a disk of `radius`, its edge softened."""
    return under_disk(image, disk_of(radius, softness))


def glass_blur(image: Image, rng: np.random.Generator, *, sigma: float, reach: int, rounds: int) -> Image:
    """Frosted glass: a blur, then pixels taken from up to `reach` away, some rounds of it, then a blur again."""
    height, width = image.shape[:2]
    visited = max(0, height - 2 * reach) * max(0, width - 2 * reach)
    return through_glass(image, sigma, reach, displacements(rng, reach, rounds, visited))


def motion_blur(image: Image, rng: np.random.Generator, *, radius: int, sigma: float) -> Image:
    """A camera that moves while the shutter is open, in a random direction not far from level."""
    return motion(image, radius, sigma, rng.uniform(-45, 45))


def zoom_blur(image: Image, rng: np.random.Generator, *, stop: float, step: float) -> Image:  # noqa: ARG001
    """A camera that moves towards its subject: the mean of zooms from 1 up to `stop`.

    The image itself counts twice, as it did in the published sets: once as such and once as the zoom of 1. `np.arange`
    counts in floats, so its last zoom may be `stop` itself.
    """
    factors = tuple(np.arange(1, stop, step).tolist())
    return from_pixels((added_zooms(image, factors) + image) * np.float32(1 / (len(factors) + 1)))


def gaussian_blur(image: Image, rng: np.random.Generator, *, sigma: float) -> Image:  # noqa: ARG001
    """The image under a gaussian window."""
    return blurred(image, sigma)


def blurred(image: Image, sigma: float) -> Image:
    """The image under a gaussian window, cut to bytes."""
    if sigma >= 0.7 or sigma == 0:
        return from_pixels(gaussian(image, sigma))
    # so narrow a window moves many pixels by less than single precision can tell from a whole level
    kernel = gaussian_kernel(sigma)
    exact = cv2.sepFilter2D(image, cv2.CV_64F, kernel, kernel, borderType=cv2.BORDER_REPLICATE)
    return (exact + 1e-9).astype(np.uint8)


def displacements(rng: np.random.Generator, reach: int, rounds: int, visited: int) -> Displacements:
    """Steps from -`reach` to `reach` - 1: the published set never drew its upper end."""
    drawn = np.empty((rounds, visited, 2), np.int8)
    _draw_steps(seed_of(rng), np.uint64(2 * reach), drawn.reshape(-1))
    return drawn


@compiled
def _draw_steps(seed: np.uint64, choices: np.uint64, steps: NDArray[np.int8]) -> None:
    bits = np.empty(BLOCK, np.uint32)
    half = np.int64(choices) // 2
    for block in range(-(-steps.size // BLOCK)):
        fill_with_random_bits(bits, seed, block)
        start = block * BLOCK
        for place in range(min(BLOCK, steps.size - start)):
            steps[start + place] = np.int8(np.int64((np.uint64(bits[place]) * choices) >> np.uint64(32)) - half)


def through_glass(image: Image, sigma: float, reach: int, steps: Displacements) -> Image:
    """Frosted glass with these displacements."""
    # four bytes a pixel move at once
    pixels = cv2.cvtColor(blurred(image, sigma), cv2.COLOR_RGB2RGBA).view(np.uint32)[:, :, 0]
    _take_from_neighbours(pixels, reach, steps)
    taken = cv2.cvtColor(pixels[:, :, None].view(np.uint8), cv2.COLOR_RGBA2RGB)
    return blurred(np.asarray(taken, np.uint8), sigma)


@compiled
def _take_from_neighbours(pixels: NDArray[np.uint32], reach: int, steps: Displacements) -> None:
    """Copies a neighbour onto each pixel, from the lower right corner to the upper left.

    A swap was meant. But on colour images the published code wrote through views, so that the neighbour keeps its colour.
    """
    height, width = pixels.shape
    for number in range(len(steps)):
        place = 0
        for y in range(height - reach, reach, -1):
            for x in range(width - reach, reach, -1):
                pixels[y, x] = pixels[y + steps[number, place, 1], x + steps[number, place, 0]]
                place += 1
