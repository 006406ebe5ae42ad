"""Sequences of light and weather: brightness, snow whose direction turns, water that runs down the lens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shiftproof.corruptions.canvas import Canvas
from shiftproof.corruptions.colour import brightened
from shiftproof.corruptions.filters import motion
from shiftproof.corruptions.weather import snow_layer, snowed, spatter_layer, water
from shiftproof.types import Image


def brightness(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """The picture from dark to bright, in per cent of the full range."""
    for frame in range(frames):
        yield brightened(canvas.picture, (first + step * frame) / 100)


def snow(
    canvas: Canvas,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    kept: float,
    first: float,
    step: float,
    frames: int,
) -> Iterator[Image]:
    """The same flakes in every frame, smeared in a direction that turns by `step` degrees a frame."""
    shape = canvas.picture.shape
    layer = snow_layer(rng, shape, mean=mean, spread=spread, zoom=zoom, threshold=threshold)
    for frame in range(frames):
        yield snowed(canvas.picture, motion(layer, radius, sigma, first + step * frame), kept)


def spatter(
    canvas: Canvas,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    opacity: float,
    below: float,
    here: float,
    above: float,
    higher: float,
    frames: int,
) -> Iterator[Image]:
    """Drops of water that run down: a pixel next has these shares of what lay `below` it, `here`, `above` and `higher`."""
    shape = canvas.picture.shape
    # double precision: rims of drops are found by thresholds, and rounding errors would add up from frame to frame
    layer = spatter_layer(rng, shape, mean=mean, spread=spread, sigma=sigma, threshold=threshold).astype(np.float64)
    for _ in range(frames):
        yield water(canvas.picture, layer, opacity)
        padded = np.pad(layer, ((2, 1), (0, 0)))
        layer = below * padded[3:] + here * padded[2:-1] + above * padded[1:-2] + higher * padded[:-3]
