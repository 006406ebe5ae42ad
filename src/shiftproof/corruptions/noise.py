"""Noise: Gaussian, shot, impulse and speckle; every sample changes at random, independently."""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.entry import Corruption, Severities
from shiftproof.types import Image


def gaussian_noise(image: Image, rng: np.random.Generator, *, spread: float) -> Image:
    """Additive Gaussian noise of standard deviation `spread` (on 0..1)."""
    from shiftproof.corruptions.kernels.noise import drawn, gaussian_table, seed_of

    return drawn(image, gaussian_table(spread), seed_of(rng))


GAUSSIAN_NOISE = Corruption(
    gaussian_noise,
    "gaussian noise",
    Severities(
        "spread",
        imagenet_224=(0.08, 0.12, 0.18, 0.26, 0.38),
        inception_299=(0.09, 0.13, 0.19, 0.27, 0.4),
        tiny_64=(0.04, 0.08, 0.12, 0.15, 0.18),
        cifar_32=(0.04, 0.06, 0.08, 0.09, 0.1),
    ),
    "noise",
    also_called=("additive gaussian noise", "gauss noise"),
)


def shot_noise(image: Image, rng: np.random.Generator, *, photons: float) -> Image:
    """Poisson noise; `photons` is the rate of white."""
    from shiftproof.corruptions.kernels.noise import drawn, seed_of, shot_table

    return drawn(image, shot_table(photons), seed_of(rng))


SHOT_NOISE = Corruption(
    shot_noise,
    "shot noise",
    Severities(
        "photons",
        imagenet_224=(60, 25, 12, 5, 3),
        inception_299=(50, 20, 10, 5, 3),
        tiny_64=(250, 100, 50, 30, 15),
        cifar_32=(500, 250, 100, 75, 50),
    ),
    "noise",
    also_called=("shot", "poisson", "poisson noise"),
)


def impulse_noise(image: Image, rng: np.random.Generator, *, amount: float) -> Image:
    """Salt-and-pepper noise on a share `amount` of the samples, per channel."""
    from shiftproof.corruptions.kernels.noise import salted, seed_of

    every = 2**32 - 1
    return salted(image, seed_of(rng), np.uint32(amount / 2 * every), np.uint32(amount * every))


IMPULSE_NOISE = Corruption(
    impulse_noise,
    "impulse noise",
    Severities(
        "amount",
        imagenet_224=(0.03, 0.06, 0.09, 0.17, 0.27),
        inception_299=(0.04, 0.07, 0.1, 0.18, 0.28),
        tiny_64=(0.01, 0.02, 0.05, 0.08, 0.14),
        cifar_32=(0.01, 0.02, 0.03, 0.05, 0.07),
    ),
    "noise",
    also_called=("impulse", "salt and pepper"),
)


def speckle_noise(image: Image, rng: np.random.Generator, *, spread: float) -> Image:
    """Multiplicative Gaussian noise: every sample times 1 plus noise of standard deviation `spread`."""
    from shiftproof.corruptions.kernels.noise import drawn, seed_of, speckle_table

    return drawn(image, speckle_table(spread), seed_of(rng))


SPECKLE_NOISE = Corruption(
    speckle_noise,
    "speckle noise",
    Severities(
        "spread",
        imagenet_224=(0.15, 0.2, 0.35, 0.45, 0.6),
        inception_299=(0.16, 0.21, 0.36, 0.46, 0.61),
        tiny_64=(0.15, 0.2, 0.25, 0.3, 0.35),
        cifar_32=(0.06, 0.1, 0.12, 0.16, 0.2),
    ),
    also_called=("noise", "speckle", "multiplicative noise"),
)
