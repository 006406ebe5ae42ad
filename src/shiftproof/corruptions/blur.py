"""Blurs: defocus, glass, motion, zoom and Gaussian."""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.entry import Corruption, Severities
from shiftproof.types import Image


def defocus_blur(image: Image, rng: np.random.Generator, *, radius: float, softness: float) -> Image:  # noqa: ARG001
    """Convolution with an antialiased disk of `radius`."""
    from shiftproof.corruptions.kernels.blur import disk_of, under_disk

    return under_disk(image, disk_of(radius, softness))


DEFOCUS_BLUR = Corruption(
    defocus_blur,
    "defocus blur",
    Severities(
        "radius softness",
        imagenet_224=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        inception_299=((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
        tiny_64=((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        cifar_32=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        pixels="softness",
        whole_pixels="radius",
    ),
    "blur",
    random=False,
    also_called=("defocus",),
)


def glass_blur(image: Image, rng: np.random.Generator, *, sigma: float, reach: int, rounds: int) -> Image:
    """Gaussian blur, `rounds` in which pixels take the place of neighbours up to `reach` away, Gaussian blur again."""
    from shiftproof.corruptions.kernels.blur import displacements, through_glass

    height, width = image.shape[:2]
    visited = max(0, height - 2 * reach) * max(0, width - 2 * reach)
    return through_glass(image, sigma, reach, displacements(rng, reach, rounds, visited))


GLASS_BLUR = Corruption(
    glass_blur,
    "glass blur",
    Severities(
        "sigma reach rounds",
        imagenet_224=((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        inception_299=((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
        tiny_64=((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        cifar_32=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        pixels="sigma",
        whole_pixels="reach",
    ),
    "blur",
    also_called=("glass",),
)


def motion_blur(image: Image, rng: np.random.Generator, *, radius: int, sigma: float) -> Image:
    """Motion blur at a random angle of -45 to 45 degrees."""
    from shiftproof.corruptions.kernels.filters import motion

    return motion(image, radius, sigma, rng.uniform(-45, 45))


MOTION_BLUR = Corruption(
    motion_blur,
    "motion blur",
    Severities(
        "radius sigma",
        imagenet_224=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        inception_299=((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
        tiny_64=((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        cifar_32=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        pixels="sigma",
        whole_pixels="radius",
    ),
    "blur",
    also_called=("motion",),
)


def zoom_blur(image: Image, rng: np.random.Generator, *, stop: float, step: float) -> Image:  # noqa: ARG001
    """Zoom blur: the mean of zooms from 1 up to `stop`.

    The image itself counts twice, as it did in the published datasets: once as such and once as the zoom of 1. `np.arange`
    counts in floats, so its last zoom may be `stop` itself.
    """
    from shiftproof.corruptions.kernels.blur import mean_with_zooms

    return mean_with_zooms(image, tuple(np.arange(1, stop, step).tolist()))


ZOOM_BLUR = Corruption(
    zoom_blur,
    "zoom blur",
    Severities(
        "stop step",
        imagenet_224=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        inception_299=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        tiny_64=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        cifar_32=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    ),
    "blur",
    random=False,
    also_called=("zoom",),
)


def gaussian_blur(image: Image, rng: np.random.Generator, *, sigma: float) -> Image:  # noqa: ARG001
    """Gaussian blur."""
    from shiftproof.corruptions.kernels.blur import blurred

    return blurred(image, sigma)


GAUSSIAN_BLUR = Corruption(
    gaussian_blur,
    "gaussian blur",
    Severities(
        "sigma",
        imagenet_224=(1, 2, 3, 4, 6),
        inception_299=(1.5, 2.5, 3.5, 4.5, 6.5),
        tiny_64=(0.5, 0.75, 1, 1.25, 1.5),
        cifar_32=(0.4, 0.6, 0.7, 0.8, 1),
        pixels="sigma",
    ),
    random=False,
    also_called=("blur",),
)
