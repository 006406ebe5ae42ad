"""Pictures of soft blotches, each unlike the others, and the same picture after what happens to copies."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.types import Image


def blotches(seed: int, *, width: int = 192, height: int = 144) -> Image:
    """Random brightness that changes slowly and, the less the finer, quickly as well, as in photos; tinted at random."""
    generator = np.random.default_rng(seed)
    layers = [_smooth(generator.normal(size=(side, side)), width, height) / side for side in (3, 5, 8, 13, 21)]
    grey = np.asarray(np.sum(layers, axis=0))
    low, high = np.min(grey), np.max(grey)
    tint = generator.uniform(0.5, 1, 3)
    return np.asarray((grey - low)[..., None] / (high - low) * 255 * tint, np.uint8)


def _smooth(grid: NDArray[np.floating], width: int, height: int) -> NDArray[np.floating]:
    return np.asarray(Pillow.fromarray(grid.astype(np.float32)).resize((width, height), Pillow.Resampling.BICUBIC))


def shrunk(image: Image) -> Image:
    height, width = image.shape[:2]
    return np.asarray(Pillow.fromarray(image).resize((width // 2, height // 3), Pillow.Resampling.LANCZOS))


def saved_badly(image: Image) -> Image:
    held = io.BytesIO()
    Pillow.fromarray(image).save(held, "JPEG", quality=20)
    return np.asarray(Pillow.open(held))


def darker(image: Image) -> Image:
    return np.asarray(image * 0.6 + 5, np.uint8)


def cut_a_little(image: Image) -> Image:
    """Without two of a hundred pixels on every side, where there are as many."""
    height, width = image.shape[:2]
    down, across = round(height / 50), round(width / 50)
    return np.ascontiguousarray(image[down : height - down, across : width - across])


def mirrored(image: Image) -> Image:
    return np.ascontiguousarray(image[:, ::-1])
