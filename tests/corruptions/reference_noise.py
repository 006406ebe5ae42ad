"""The four noises as they were published, slow and plain, and the laws that follow from them by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shiftproof.types import Image

Law = NDArray[np.float64]
"""Chances of the 256 output levels."""


def cut(samples: NDArray[np.float64]) -> Image:
    """From the range 0 to 1 to whole levels, cut and not rounded, as published."""
    levels: Image = (np.clip(samples, 0, 1) * 255).astype(np.uint8)
    return levels


def gaussian_noise(image: Image, rng: np.random.Generator, spread: float) -> Image:
    samples = image / 255.0
    return cut(samples + rng.normal(scale=spread, size=image.shape))


def shot_noise(image: Image, rng: np.random.Generator, photons: float) -> Image:
    samples = image / 255.0
    return cut(rng.poisson(samples * photons) / float(photons))


def speckle_noise(image: Image, rng: np.random.Generator, spread: float) -> Image:
    samples = image / 255.0
    return cut(samples + samples * rng.normal(scale=spread, size=image.shape))


def impulse_noise(image: Image, rng: np.random.Generator, amount: float) -> Image:
    samples = image / 255.0
    replaced, salt = rng.random(image.shape) < amount, rng.random(image.shape) < 0.5
    samples[replaced & salt], samples[replaced & ~salt] = 1, 0
    return cut(samples)


def gaussian_law(level: int, spread: float) -> Law:
    """An output of k means a normal amount that ends in [k, k + 1), the ends of the range taking all beyond."""
    return _normal_law(level, 255 * spread)


def speckle_law(level: int, spread: float) -> Law:
    if level == 0:
        return np.concatenate([np.ones(1), np.zeros(255)])
    return _normal_law(level, level * spread)


def shot_law(level: int, photons: float) -> Law:
    """The counts that end on each output, summed; beyond ten deviations there is nothing left to sum."""
    mean = level / 255 * photons
    counts = np.arange(int(mean + 10 * np.sqrt(mean + 1) + 40))
    chances = stats.poisson.pmf(counts, mean)
    return np.bincount(cut(counts / photons), weights=chances, minlength=256).astype(np.float64)


def impulse_law(level: int, amount: float) -> Law:
    law = np.zeros(256)
    law[level] += 1 - amount
    law[0] += amount / 2
    law[255] += amount / 2
    return law


def _normal_law(level: int, spread: float) -> Law:
    edges = (np.arange(1, 256) - level) / spread
    below, above = stats.norm.cdf(edges), stats.norm.sf(edges)
    inner = np.where(edges[:-1] < 0, below[1:] - below[:-1], above[:-1] - above[1:])
    return np.concatenate([below[:1], inner, above[-1:]])
