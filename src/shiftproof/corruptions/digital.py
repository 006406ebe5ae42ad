"""Digital corruptions: contrast, elastic transform, pixelation, JPEG compression and saturation."""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.entry import COLOUR_JITTER, Corruption, Severities
from shiftproof.types import Image


def contrast(image: Image, rng: np.random.Generator, *, gain: float) -> Image:  # noqa: ARG001
    """Scales every sample's distance from the mean of its channel by `gain`."""
    from shiftproof.corruptions.kernels.colour import about_mean

    return about_mean(image, float(gain))


CONTRAST = Corruption(
    contrast,
    "contrast",
    Severities(
        "gain",
        imagenet_224=(0.4, 0.3, 0.2, 0.1, 0.05),
        inception_299=(0.4, 0.3, 0.2, 0.1, 0.05),
        tiny_64=(0.4, 0.3, 0.2, 0.1, 0.05),
        cifar_32=(0.75, 0.5, 0.4, 0.3, 0.15),
    ),
    "digital",
    random=False,
    also_called=COLOUR_JITTER,
)


def elastic_transform(image: Image, rng: np.random.Generator, *, amplitude: float, sigma: float, jitter: float) -> Image:
    """Random affine transform (of up to `jitter`), then a random displacement field, smooth over `sigma`.

    Without an amplitude the three points are all that moves.
    """
    from shiftproof.corruptions.kernels.compiled import seed_of
    from shiftproof.corruptions.kernels.filters import from_pixels
    from shiftproof.corruptions.kernels.geometry import elastic, tilt
    from shiftproof.corruptions.kernels.smoothing import Draws

    moves = rng.uniform(-jitter, jitter, size=(3, 2))
    if amplitude == 0:
        return from_pixels(tilt(image, moves))
    return elastic(image, moves, Draws(seed_of(rng), *image.shape[:2]), sigma, amplitude)


ELASTIC_TRANSFORM = Corruption(
    elastic_transform,
    "elastic transform",
    Severities(
        "amplitude sigma jitter",
        imagenet_224=((488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88), (29.28, 2.44, 4.88)),
        inception_299=((720, 252, 36), (720, 28.8, 72), (18, 3.6, 7.2), (25.2, 3.6, 7.2), (43.2, 3.6, 7.2)),
        tiny_64=((0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)),
        cifar_32=((0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)),
        pixels="amplitude sigma jitter",
    ),
    "digital",
    also_called=("elastic", "elastic deformation"),
)


def pixelate(image: Image, rng: np.random.Generator, *, share: float) -> Image:  # noqa: ARG001
    """Downsampling to `share` of either side (box filter) and back (nearest)."""
    from shiftproof.corruptions.kernels.geometry import averaged_over_cells, cells

    height, width = image.shape[:2]
    return averaged_over_cells(image, cells(height, int(height * share)), cells(width, int(width * share)))


PIXELATE = Corruption(
    pixelate,
    "pixelate",
    Severities(
        "share",
        imagenet_224=(0.6, 0.5, 0.4, 0.3, 0.25),
        inception_299=(0.5, 0.4, 0.3, 0.25, 0.2),
        tiny_64=(0.9, 0.8, 0.7, 0.6, 0.5),
        cifar_32=(0.95, 0.9, 0.85, 0.75, 0.65),
    ),
    "digital",
    random=False,
    also_called=("pixelation", "downscale"),
)


def jpeg_compression(image: Image, rng: np.random.Generator, *, quality: int) -> Image:  # noqa: ARG001
    """JPEG compression of this `quality`."""
    from shiftproof.corruptions.kernels.jpeg import jpeg_round_trip

    return jpeg_round_trip(image, quality)


JPEG_COMPRESSION = Corruption(
    jpeg_compression,
    "JPEG compression",
    Severities(
        "quality",
        imagenet_224=(25, 18, 15, 10, 7),
        inception_299=(23, 16, 13, 8, 5),
        tiny_64=(65, 58, 50, 40, 25),
        cifar_32=(80, 65, 58, 50, 40),
    ),
    "digital",
    random=False,
    also_called=("jpeg", "jpg", "compression", "image compression"),
)


def saturate(image: Image, rng: np.random.Generator, *, gain: float, offset: float) -> Image:  # noqa: ARG001
    """Scales HSV saturation by `gain` and shifts it by `offset`, clipped to its range."""
    from shiftproof.corruptions.kernels.colour import saturated

    return saturated(image, gain, offset)


SATURATE = Corruption(
    saturate,
    "saturate",
    Severities(
        "gain offset",
        imagenet_224=((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        inception_299=((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        tiny_64=((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        cifar_32=((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    ),
    random=False,
    also_called=("saturation", "color", "colour", *COLOUR_JITTER),
    revision=2,
)
