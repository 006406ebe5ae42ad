"""What happens to pictures inside devices: less contrast, fewer pixels, JPEG."""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.cells import averaged_over_cells, cells
from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.jpeg import jpeg_round_trip
from shiftproof.types import Image

GUARD = 1e-9  # before results are cut to whole levels: rounding must not push a whole number below itself


def contrast(image: Image, rng: np.random.Generator, *, gain: float) -> Image:  # noqa: ARG001
    """Flat light: every sample's distance from the mean of its channel shrinks to `gain` of it."""
    return _about_mean(image, float(gain))


def pixelate(image: Image, rng: np.random.Generator, *, share: float) -> Image:  # noqa: ARG001
    """Too few pixels: averaged down to `share` of either side, and each shown as a block."""
    height, width = image.shape[:2]
    return averaged_over_cells(image, cells(height, int(height * share)), cells(width, int(width * share)))


def jpeg_compression(image: Image, rng: np.random.Generator, *, quality: int) -> Image:  # noqa: ARG001
    """A save as JPEG of low quality."""
    return jpeg_round_trip(image, quality)


@compiled
def _about_mean(image: Image, gain: float) -> Image:
    samples, result = image.reshape(-1), np.empty(image.size, np.uint8)
    pixels = image.size // 3
    reds, greens, blues = 0, 0, 0
    for pixel in range(pixels):
        reds += samples[3 * pixel]
        greens += samples[3 * pixel + 1]
        blues += samples[3 * pixel + 2]
    rest = (1 - gain) / pixels
    for pixel in range(pixels):
        result[3 * pixel] = np.uint8(np.int32(samples[3 * pixel] * gain + (reds * rest + GUARD)))
        result[3 * pixel + 1] = np.uint8(np.int32(samples[3 * pixel + 1] * gain + (greens * rest + GUARD)))
        result[3 * pixel + 2] = np.uint8(np.int32(samples[3 * pixel + 2] * gain + (blues * rest + GUARD)))
    return result.reshape(image.shape)
