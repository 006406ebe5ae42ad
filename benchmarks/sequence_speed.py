"""Perturbation sequences beside a straightforward version of each with Pillow, NumPy, SciPy and scikit-image.

    PYTHONPATH=tests python benchmarks/sequence_speed.py [FIGURES.json]

One thread, a drawn photo of 375 x 500, the edition for 224 pixels; rates are frames a second. The straightforward versions
are those the tests compare with, but for tilt, which is OpenCV's here as it was in the published generator; of snow and
spatter they are given the random layer for nothing.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from corruptions.reference_sequences import cropped, picture, resize_shorter, sequence
from harness import race, save
from shiftproof import catalog
from shiftproof.corruptions.kernels.weather import snow_layer, spatter_layer
from shiftproof.corruptions.sequences import parameters_of, perturb, tilted
from shiftproof.types import Image

EDITION = "imagenet-224"


def photo() -> Image:
    """Blotches of all sizes, as in a photo, with a little noise."""
    rng = np.random.default_rng(0)
    image = np.full((375, 500, 3), 128.0)
    for sigma in (2, 8, 32):
        image += 30 * sigma * cv2.GaussianBlur(rng.standard_normal(image.shape), (0, 0), sigma)
    return np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


def straightforward(name: str, image: Image) -> Callable[[], object]:
    parameters = parameters_of(name, 1, EDITION)
    rng, clean = np.random.default_rng(1), picture(image, EDITION) / 255
    frames = range(int(parameters["frames"]) - 1)
    moved: Callable[[], NDArray[np.float64]]
    match name:
        case "gaussian_noise":
            moved = lambda: clean + rng.normal(0, parameters["spread"], clean.shape)  # noqa: E731
        case "shot_noise":
            moved = lambda: rng.poisson(clean * parameters["photons"]) / parameters["photons"]  # noqa: E731
        case "speckle_noise":
            moved = lambda: clean + clean * rng.normal(0, parameters["spread"], clean.shape)  # noqa: E731
        case "tilt":
            large = resize_shorter(image, 256)
            height, width = large.shape[:2]
            maps = [tilted(height, width, frame - 15) for frame in range(31)]
            warp: Callable[[NDArray[np.float64]], Image] = lambda one: np.asarray(  # noqa: E731
                cv2.warpPerspective(large, one, (width, height)), np.uint8
            )
            return lambda: [cropped(warp(one), 224, 224) for one in maps]
        case "snow":
            flakes = snow_layer(rng, clean.shape, mean=0.05, spread=0.3, zoom=3, threshold=0.5)
            return lambda: list(sequence(name, image, EDITION, flakes))
        case "spatter":
            layer = spatter_layer(rng, clean.shape, mean=0.65, spread=0.27, sigma=3.7, threshold=0.69)
            return lambda: list(sequence(name, image, EDITION, layer))
        case _:
            return lambda: list(sequence(name, image, EDITION))
    return lambda: [np.uint8(np.clip(moved(), 0, 1) * 255) for _ in frames]


def main() -> None:
    cv2.setNumThreads(1)
    image = photo()
    figures = {}
    for name in catalog.PERTURBATIONS:
        perturb(image, name)  # kernels and tables are made on first use
        print(f"--- {name}")
        contestants: dict[str, Callable[[], object]] = {
            "straightforward": straightforward(name, image),
            "shiftproof": lambda name=name: perturb(image, name),  # type: ignore[misc]
        }
        frames = int(parameters_of(name, 1, EDITION)["frames"])
        ratios = race(contestants, rounds=int(os.environ.get("ROUNDS", "5")), work=frames)
        figures[name] = ratios["shiftproof"].median
    print(f"geometric mean of the ratios: {statistics.geometric_mean(figures.values()):.1f}")
    print(f"least: {min(figures, key=lambda name: figures.get(name, math.inf))}")
    save("sequence_speed", figures)


if __name__ == "__main__":
    main()
