"""A stand-in for Stylized-ImageNet that needs no network: the amplitude spectra of other photos."""

from __future__ import annotations

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.training.recipe import Pictures, Recipe
from shiftproof.types import Image


def stylized(
    image: Image, rng: np.random.Generator, others: Pictures, *, strength: float = 1.0, share: float = 0.5
) -> Image:
    """The picture with a part of its amplitude spectrum taken from another photo, its phases kept (Xu et al., 2021).

    The part is random, up to `strength`: phases carry most of the shapes, amplitudes much of texture and colours.
    """
    if len(others) == 0 or rng.random() >= share:
        return image.copy()
    other, part = others[int(rng.integers(len(others)))], rng.uniform(0, strength)
    return with_amplitudes(image, other, float(part))


def with_amplitudes(image: Image, other: Image, part: float) -> Image:
    """The picture with a share of its amplitude spectrum taken from another, which is resized to it."""
    from scipy.fft import irfft2, rfft2

    height, width = image.shape[:2]
    if other.shape != image.shape:
        import cv2

        other = np.asarray(cv2.resize(other, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    own, theirs = (rfft2(np.ascontiguousarray(picture.transpose(2, 0, 1), np.float32)) for picture in (image, other))
    # where the picture has no wave there is no phase to keep, and none is added
    own *= (1 - part) + part * np.abs(theirs) / np.maximum(np.abs(own), 1e-6)
    changed = irfft2(own, (height, width)).transpose(1, 2, 0)
    return np.ascontiguousarray(changed.round().clip(0, 255), np.uint8)


def _check_stylized(*, strength: float, share: float) -> None:
    if not 0 < strength <= 1 or not 0 < share <= 1:
        raise BadInput(f"stylized: strength and share should lie above 0 and at most at 1, got {strength:g} and {share:g}")


STYLIZED = Recipe(
    title="Amplitude spectra of other photos (a stand-in for Stylized-ImageNet)",
    description="Pictures keep their phases and take the amplitudes of other photos: a stand-in for style transfer.",
    cites=("geirhos2019imagenet", "xu2021fourier"),
    settings={"strength": 1.0, "share": 0.5},
    augmentations=("amplitude mix",),
    check=_check_stylized,
    augment=stylized,
    mixes=True,
)
