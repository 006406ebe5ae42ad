"""What a fast filter owes to its slow version: bytes that differ by no more than 1, and rarely; borders looked at alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.editions import severity_parameters
from shiftproof.types import Image

COLUMNS = {"imagenet-224": 224, "inception-299": 299, "tiny-64": 64, "cifar-32": 32}
SIDEWAYS = (37, 91)  # neither square nor even
UPRIGHT = (83, 48)
BAND = 12  # pixels
RARE = 0.005


def drawn(height: int, width: int, seed: int = 0) -> Image:
    """Waves, edges, noise, and flat parts of black, white and grey; each time another copy of it."""
    return _drawn_once(height, width, seed).copy()


@cache
def _drawn_once(height: int, width: int, seed: int) -> Image:
    rng = np.random.default_rng(seed)
    down, right = np.mgrid[0:height, 0:width]
    image = np.stack([127 + 120 * np.sin((down * speed + right / speed) / 9) for speed in (0.3, 0.7, 1.1)], axis=2)
    image[: height // 2] += rng.normal(0, 40, (height // 2, width, 3))
    for number, level in enumerate((0, 255, 77)):
        top, left = (number + 2) * height // 6, number * width // 3
        image[top : top + height // 6, left : left + width // 4] = level
    picture: Image = np.clip(image, 0, 255).astype(np.uint8)
    return picture


def cases(name: str, largest: int = 299) -> Iterator[tuple[dict[str, Any], Image]]:
    """All parameters of all columns, each on a square picture of its size, a wide one and a tall one; nothing twice."""
    seen = set()
    for column, size in COLUMNS.items():
        for severity in range(1, 6):
            parameters = severity_parameters(name, severity, column)
            for shape in ((min(size, largest), min(size, largest)), SIDEWAYS, UPRIGHT):
                case = (severity, shape, *parameters.items())
                if case not in seen:  # editions share many
                    yield parameters, drawn(*shape, seed=severity)
                seen.add(case)


def assert_agrees(result: Image, exact: NDArray[np.float64], rare: float = RARE) -> None:
    """Within 1 everywhere, and different from the exact samples cut to bytes on few of them, inside and on every border.

    Sums of doubles end within 1e-9 of a whole number that they should be; where the exact samples do, they are that number.
    """
    expected = (np.clip(exact, 0, 255) + 1e-9).astype(np.uint8)
    assert result.shape == expected.shape
    wrong = np.abs(result.astype(int) - expected)
    assert wrong.max() <= 1
    assert (wrong > 0).sum() <= max(rare * wrong.size, 3), (wrong > 0).mean()
    for band in (wrong[:BAND], wrong[-BAND:], wrong[:, :BAND], wrong[:, -BAND:]):
        # a rule that is wrong at the border is wrong on most of a band; few samples are a matter of chance
        assert (band > 0).sum() <= max(2 * rare * band.size, 5), (band > 0).mean()


def psnr(first: Image, second: Image) -> float:
    return float(10 * np.log10(255**2 / (((first.astype(float) - second) ** 2).mean() + 1e-9)))
