"""Noise made from a spectrum of random phases: blue noise that leaves out pixels, and brownish noise (ImageNet-C-bar)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.overlays import cosine, level, sine
from shiftproof.types import Image

Doubles: TypeAlias = NDArray[np.float64]


def phases_needed(height: int, width: int) -> int:
    """How many phases one field takes: its left half and, where the width is odd, half of the column in the middle."""
    return height * (width // 2) + (height // 2 if width % 2 else 0)


def noise_of(phases: Doubles, height: int, width: int, *, brown: bool) -> Doubles:
    """A field of standard deviation 1, (height, width); a picture of one pixel has none, so 0.

    Brown noise falls with the square of the frequency, blue rises with it.
    """
    spectrum = np.empty((height, width // 2 + 1), np.complex128)
    _fill(phases, height, width, brown, spectrum)
    field: Doubles = np.fft.irfft2(spectrum, (height, width))
    spread = field.std()
    return field / spread if spread > 0 else np.zeros_like(field)


@compiled
def _fill(phases: Doubles, height: int, width: int, brown: bool, spectrum: NDArray[np.complex128]) -> None:
    """Half of the spectrum of the real part of the published field.

    There the right half is the left one turned round, with phases of the same sign, so that the field was complex and its
    imaginary part dropped. A real part has the mean of the spectrum and of its mirror image, conjugated.
    """
    sines, cosines = np.empty(phases.size), np.empty(phases.size)
    for place in range(phases.size):
        sines[place], cosines[place] = sine(phases[place]), cosine(phases[place])
    side, half, odd = min(height, width), width // 2, width % 2
    for y in range(height):
        row, mirrored_row = (y + height // 2) % height, ((height - y) % height + height // 2) % height
        down = min(y, height - y) * side / height
        # frequencies that are both in the right half and mirrored in the left one, so that places run along the row
        own, mirrored = (height - 1 - row) * half + half - 1 + odd, mirrored_row * half + half
        for x in range(1, half + odd):
            power = _power(down, x * side / width, brown)
            real, imaginary = cosines[own - x] + cosines[mirrored - x], sines[own - x] - sines[mirrored - x]
            spectrum[y, x] = complex(power * real, power * imaginary)
        for x in range(0, half + 1, max(half, 1)) if odd == 0 else range(1):
            first, second = (
                _place(row, (x + half) % width, height, width),
                _place(mirrored_row, (half - x) % width, height, width),
            )
            real = (cosines[first] if first >= 0 else 1.0) + (cosines[second] if second >= 0 else 1.0)
            imaginary = (sines[first] if first >= 0 else 0.0) - (sines[second] if second >= 0 else 0.0)
            power = _power(down, x * side / width, brown)
            spectrum[y, x] = complex(power * real, power * imaginary)


@compiled
def _power(down: float, right: float, brown: bool) -> float:
    """Half of the magnitude at a frequency, for a mean of two."""
    square = down * down + right * right
    return 0.5 / (square + 1) if brown else 0.5 * np.sqrt(square)


@compiled
def _place(row: int, column: int, height: int, width: int) -> int:
    """Where the phase of a pixel of the spectrum stands; -1 for the very middle of one of odd sides, whose phase is 0."""
    half = width // 2
    if width % 2 and column == half:
        if height % 2 and row == height // 2:
            return -1
        return height * half + min(row, height - 1 - row)
    if column < half:
        return row * half + column
    return (height - 1 - row) * half + width - 1 - column


@compiled
def kept_above(image: Image, noise: Doubles, threshold: float) -> Image:
    """The image where the noise is above a threshold, black elsewhere."""
    height, width = noise.shape
    result = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            kept = np.uint8(0) - np.uint8(noise[y, x] > threshold)  # all bits or none
            for channel in range(3):
                result[y, x, channel] = image[y, x, channel] & kept
    return result


@compiled
def with_channel(image: Image, noise: Doubles, intensity: float, channel: int, result: Image) -> None:
    """Writes one channel of the image with noise added."""
    height, width = noise.shape
    for y in range(height):
        for x in range(width):
            result[y, x, channel] = level(image[y, x, channel] + intensity * noise[y, x])
