"""PixMix: pictures mixed with fractals, which are made here by iterated function systems."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.options import Bounds
from shiftproof.training.augmentations.policies import MOVES, augmented_input
from shiftproof.training.recipe import Pictures, Recipe
from shiftproof.types import Image

SIDE = 256
"""Of a fractal, in pixels."""

KEPT = 256
"""Fractals kept in memory, 192 kB each."""


def pixmix(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    rounds: int = 4,
    beta: float = 3.0,
    severity: float = 3.0,
    fractals: int = 200,
) -> Image:
    """The picture mixed up to `rounds` times with a fractal or with itself after an operation (Hendrycks et al., 2022)."""
    mixture = augmented_input(image, rng, severity) if rng.random() < 0.5 else image.copy()
    pattern: Image | None = None
    for _ in range(rng.integers(rounds + 1)):
        if rng.random() < 0.5:
            other = augmented_input(image, rng, severity)
        else:
            if pattern is None:
                pattern = _part(fractal(int(rng.integers(fractals))), rng, image.shape[:2])
            other = pattern
        mix = added if rng.random() < 0.5 else multiplied
        mixture = mix(mixture, other, *_exponents(rng, beta))
    return image.copy() if mixture is image else mixture


def _exponents(rng: np.random.Generator, beta: float) -> tuple[float, float]:
    """Weights of the picture and of what is mixed in; half of the time the latter is taken away."""
    if rng.random() < 0.5:
        return float(rng.beta(beta, 1)), float(rng.beta(1, beta))
    return 1 + float(rng.beta(1, beta)), -float(rng.beta(1, beta))


def added(first: Image, second: Image, a: float, b: float) -> Image:
    """Sum of two pictures by weights, both about mid-grey.

    >>> added(np.array([[[255, 0, 127]]], np.uint8), np.array([[[255, 255, 255]]], np.uint8), 0.5, 0.25).tolist()
    [[[223, 96, 159]]]
    """
    import cv2

    return np.asarray(cv2.addWeighted(first, a, second, b, 127.5 * (1 - a - b)), np.uint8)


def multiplied(first: Image, second: Image, a: float, b: float) -> Image:
    """Product of two pictures by powers, mid-grey being 1.

    >>> multiplied(np.array([[[255, 0, 128]]], np.uint8), np.array([[[255, 255, 255]]], np.uint8), 1.0, -1.0).tolist()
    [[[128, 0, 64]]]
    """
    import cv2

    levels = np.arange(256) / 127.5
    powers = [(levels.clip(1e-37) ** power).clip(max=1e6).astype(np.float32) for power in (a, b)]
    product = cv2.multiply(cv2.LUT(first, powers[0]), cv2.LUT(second, powers[1]), scale=127.5)
    return np.asarray(cv2.convertScaleAbs(product), np.uint8)


def _part(picture: Image, rng: np.random.Generator, size: tuple[int, int]) -> Image:
    """A random part of a picture of at least half its sides, at another size and mirrored half of the time."""
    import cv2

    side = int(rng.integers(SIDE // 2, SIDE + 1))
    top, left = (int(rng.integers(SIDE - side + 1)) for _ in range(2))
    part = picture[top : top + side, left : left + side]
    # pixels skipped rather than averaged: a fractal has detail at every size
    part = np.asarray(cv2.resize(part, size[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)
    return np.ascontiguousarray(part[:, ::-1]) if rng.random() < 0.5 else part


@lru_cache(KEPT)
def fractal(number: int) -> Image:
    """One of the fractals: the attractor of a random iterated function system over a soft background.

    A crowd of points is sent through maps chosen at random. Each point takes half of its colour from the map; a pixel is the
    less transparent, by the logarithm, the more points fell on it (Draves & Reckase, 2003).
    """
    import cv2

    rng = np.random.default_rng([number, SIDE])
    density, colours = _attractor(rng)
    light = np.log1p(density) / np.log1p(density.max())
    shade = cv2.resize(rng.uniform(0, 1, (3, 3, 3)).astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    own = colours / np.maximum(density, 1)[:, :, None]
    blend = np.minimum(1.0, 1.5 * light)[:, :, None]
    picture = np.asarray(255 * np.clip((1 - blend) * shade + blend * own, 0, 1)).round().astype(np.uint8)
    picture.flags.writeable = False
    return picture


POINTS, STEPS, SETTLING = 2000, 80, 16


def _attractor(rng: np.random.Generator) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """How many points fell on each pixel, and the sum of their colours."""
    system, chances = _system(rng)
    points = np.full((5, POINTS), 0.5, np.float32)  # x, y and a colour
    visited = np.empty((STEPS - SETTLING, 5, POINTS), np.float32)
    for step in range(STEPS):
        to_x_from_x, to_x_from_y, to_y_from_x, to_y_from_y, right, down, *tint = system[
            :, np.searchsorted(chances, rng.random(POINTS))
        ]
        x, y, *colour = points
        points = np.stack(
            [
                to_x_from_x * x + to_x_from_y * y + right,
                to_y_from_x * x + to_y_from_y * y + down,
                *((own + its) / 2 for own, its in zip(colour, tint, strict=True)),
            ]
        )
        if step >= SETTLING:
            visited[step - SETTLING] = points
    x, y, *colour = visited.transpose(1, 0, 2).reshape(5, -1)
    columns, rows = (_pixels(values) for values in (x, y))
    inside = (columns >= 0) & (columns < SIDE) & (rows >= 0) & (rows < SIDE)
    flat = rows[inside] * SIDE + columns[inside]
    density, *sums = (np.bincount(flat, weights, SIDE * SIDE) for weights in (None, *(one[inside] for one in colour)))
    return density.reshape(SIDE, SIDE).astype(float), np.stack(sums, axis=1).reshape(SIDE, SIDE, 3).astype(float)


def _pixels(values: NDArray[np.floating]) -> NDArray[np.integer]:
    """Columns or rows of points, but for the outermost few, which would leave the rest small."""
    low, high = np.quantile(values[::16], [0.005, 0.995])
    return np.asarray((values - low) / max(float(high - low), 1e-9) * SIDE).astype(np.int64)


def _system(rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.floating]]:
    """Contracting affine maps with a colour each, (9, maps), and the cumulative chances to be chosen."""
    count = int(rng.integers(3, 8))
    turns = rng.uniform(0, 2 * np.pi, (2, count))
    cosines, sines = np.cos(turns), np.sin(turns)
    first, last = np.stack([np.stack([cosines, -sines], -1), np.stack([sines, cosines], -1)], -2)
    stretch = rng.uniform(0.3, 1.0, (count, 2)) * rng.choice([-1.0, 1.0], (count, 2))
    # areas of the images of a square that add up to about its own: less leaves dust, more a blot
    stretch *= np.sqrt(rng.uniform(0.8, 1.2) / np.abs(stretch.prod(axis=1)).sum())
    maps = first @ (stretch.clip(-0.9, 0.9)[:, :, None] * last)
    areas = np.abs(np.linalg.det(maps))
    chances = np.cumsum(areas / areas.sum())
    chances[-1] = 1.0
    figures = (maps.reshape(count, 4), rng.uniform(-1, 1, (count, 2)), rng.uniform(0, 1, (count, 3)))
    return np.concatenate(figures, axis=1).T.astype(np.float32), chances


def _check_pixmix(*, rounds: int, beta: float, severity: float, fractals: int) -> None:
    if rounds < 1 or beta <= 0 or not 0.1 <= severity <= 10 or fractals < 1:
        raise BadInput(
            "pixmix: rounds and fractals should be at least 1, beta above 0 and severity between 0.1 and 10; "
            f"got {rounds}, {fractals}, {beta:g} and {severity:g}"
        )


PIXMIX = Recipe(
    title="PixMix",
    description="Images mixed with fractals and with themselves, by sums and products.",
    cites=("hendrycks2022pixmix",),
    settings={"rounds": 4, "beta": 3.0, "severity": 3.0, "fractals": 200},
    bounds={"rounds": Bounds(1, 100), "beta": Bounds(0, 1000, open_below=True), "fractals": Bounds(1, 100_000)},
    augmentations=("pixmix", *MOVES),
    check=_check_pixmix,
    augment=pixmix,
)
