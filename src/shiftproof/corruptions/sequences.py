"""Perturbation sequences (ImageNet-P): one image as a short film in which little changes from frame to frame.

The table has the figures of the authors' generator (Hendrycks & Dietterich, 2019), by edition and level. What moves
begins at `first` and goes on by `step` a frame: degrees, pixels or per cent, as the sequence's own docstring says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION
from shiftproof.corruptions.applying import to_rgb
from shiftproof.corruptions.canvas import canvas_for, to_frame
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.strengths import Strength, Table
from shiftproof.errors import BadInput, UnknownName
from shiftproof.randomness import rng_for
from shiftproof.types import Image

Frames: TypeAlias = NDArray[np.uint8]
"""One image after the other, (frames, height, width, 3)."""

SEQUENCES: Mapping[str, Table] = {
    "gaussian_noise": Table(
        "spread frames",
        {
            "imagenet-224": ((0.03, 31), (0.05, 31), (0.08, 31)),
            "inception-299": ((0.035, 31), (0.055, 31), (0.085, 31)),
            "tiny-64": ((0.025, 31), (0.05, 31), (0.075, 31)),
            "cifar-32": ((0.02, 31), (0.04, 31), (0.06, 31)),
        },
    ),
    "shot_noise": Table(
        "photons frames",
        {
            "imagenet-224": ((300, 31), (120, 31), (60, 31)),
            "inception-299": ((250, 31), (100, 31), (50, 31)),
            "tiny-64": ((500, 31), (250, 31), (125, 31)),
            "cifar-32": ((700, 31), (400, 31), (200, 31)),
        },
    ),
    "motion_blur": Table(
        "radius sigma first step frames",
        {
            "imagenet-224": ((10, 3, -120, 4, 31),),
            "inception-299": ((13, 3, -120, 4, 31),),
            "tiny-64": ((14, 3, -150, 5, 31),),
            "cifar-32": ((6, 1.8, -180, 9, 21),),
        },
    ),
    "zoom_blur": Table(
        "step frames",
        {
            "imagenet-224": ((0.004, 31),),
            "inception-299": ((0.004, 31),),
            "tiny-64": ((0.004, 31),),
            "cifar-32": ((0.004, 31),),
        },
    ),
    "snow": Table(
        "mean spread zoom threshold radius sigma kept first step frames",
        {
            "imagenet-224": ((0.05, 0.3, 3, 0.5, 14, 4, 0.85, -150, 4, 31),),
            "inception-299": ((0.05, 0.3, 3, 0.5, 14, 4, 0.85, -150, 4, 31),),
            "tiny-64": ((0.05, 0.28, 2, 0.5, 10, 2.5, 0.85, -150, 4, 31),),
            "cifar-32": ((0.05, 0.3, 2, 0.5, 10, 2, 0.85, -150, 4, 31),),
        },
    ),
    "brightness": Table(
        "first step frames",
        {
            "imagenet-224": ((-30, 2, 31),),
            "inception-299": ((-30, 2, 31),),
            "tiny-64": ((-30, 2, 31),),
            "cifar-32": ((-22.5, 1.5, 31),),
        },
    ),
    "translate": Table(
        "first step frames",
        {
            "imagenet-224": ((-20, 1, 41),),
            "inception-299": ((-20, 1, 41),),
            "tiny-64": ((-15, 1, 31),),
            "cifar-32": ((-7, 1, 16),),
        },
    ),
    "rotate": Table(
        "first step frames",
        {
            "imagenet-224": ((-15, 1, 31),),
            "inception-299": ((-15, 1, 31),),
            "tiny-64": ((-15, 1, 31),),
            "cifar-32": ((-15, 1, 31),),
        },
    ),
    "tilt": Table(
        "first step frames",
        {
            "imagenet-224": ((-15, 1, 31),),
            "inception-299": ((-15, 1, 31),),
            "tiny-64": ((-15, 1, 31),),
            "cifar-32": ((-11.25, 0.75, 31),),
        },
    ),
    "scale": Table(
        "first step frames",
        {
            "imagenet-224": ((40, 2.5, 31),),
            "inception-299": ((40, 2.5, 31),),
            "tiny-64": ((40, 2.5, 31),),
            "cifar-32": ((70, 2, 31),),
        },
    ),
    "speckle_noise": Table(
        "spread frames",
        {
            "imagenet-224": ((0.05, 31), (0.1, 31), (0.15, 31)),
            "inception-299": ((0.06, 31), (0.11, 31), (0.16, 31)),
            "tiny-64": ((0.05, 31), (0.1, 31), (0.15, 31)),
            "cifar-32": ((0.05, 31), (0.07, 31), (0.1, 31)),
        },
    ),
    "gaussian_blur": Table(
        "first step truncate frames",
        {
            "imagenet-224": ((0.25, 0.035, 6, 31),),
            "inception-299": ((0.35, 0.035, 6, 31),),
            "tiny-64": ((0.35, 0.014, 7, 31),),
            "cifar-32": ((0.3, 0.015, 7, 31),),
        },
    ),
    "spatter": Table(
        "mean spread sigma threshold opacity below here above higher frames",
        {
            "imagenet-224": ((0.65, 0.27, 3.7, 0.69, 0.6, 0.05, 0.1, 0.15, 0.7, 31),),
            "inception-299": ((0.65, 0.3, 4, 0.69, 0.6, 0.05, 0.1, 0.15, 0.7, 31),),
            "tiny-64": ((0.6, 0.25, 1.75, 0.7, 0.6, 0, 0.2, 0.8, 0, 31),),
            "cifar-32": ((0.6, 0.265, 1.75, 0.7, 0.6, 0, 0.2, 0.8, 0, 31),),
        },
    ),
    "shear": Table(
        "first step frames",
        {
            "imagenet-224": ((-15, 1, 31),),
            "inception-299": ((-15, 1, 31),),
            "tiny-64": ((-15, 1, 31),),
            "cifar-32": ((-15, 1, 31),),
        },
    ),
}

LEVELS = {name: len(table.editions["imagenet-224"]) for name, table in SEQUENCES.items()}
"""How many levels each sequence comes in: three for noise, one for what moves."""


def perturb(
    image: Image, name: str, level: int = 1, *, seed: int = 0, key: str = "", edition: str = DEFAULT_EDITION
) -> Frames:
    """The frames of a perturbation sequence, of the edition's size, made from an image that is not cropped yet.

    The same (seed, name, level, edition, key) draws the same random numbers: give each image of a set its own `key`.

    >>> photo = np.full((300, 400, 3), 128, np.uint8)
    >>> perturb(photo, "translate").shape, perturb(photo, "rotate", edition="cifar-32").shape
    ((41, 224, 224, 3), (31, 32, 32, 3))
    """
    parameters = parameters_of(name, level, edition)
    size, make = edition_of(edition).size, catalog.PERTURBATIONS.load(name)
    rng = rng_for(key, f"sequence\0{name}\0{level}\0{edition}", seed)
    canvas = canvas_for(name, to_rgb(image), edition)
    frames = np.empty((int(parameters["frames"]), size, size, 3), np.uint8)
    for place, frame in enumerate(make(canvas, rng, **parameters)):
        frames[place] = to_frame(frame, edition)
    return frames


def parameters_of(name: str, level: int = 1, edition: str = DEFAULT_EDITION) -> dict[str, Strength]:
    """What a sequence is given at this level of this edition.

    >>> parameters_of("gaussian_noise", 2), parameters_of("tilt", edition="cifar-32")
    ({'spread': 0.05, 'frames': 31}, {'first': -11.25, 'step': 0.75, 'frames': 31})
    """
    column = edition_of(edition).strengths
    check_level(name, level)
    figures = SEQUENCES[name].editions[column][level - 1]
    return dict(zip(SEQUENCES[name].names.split(), figures if isinstance(figures, tuple) else (figures,), strict=True))


def check_level(name: str, level: int) -> None:
    """UnknownName or BadInput where there is no such sequence or level."""
    if name not in SEQUENCES:
        raise UnknownName("perturbation", name, SEQUENCES)
    if level in range(1, LEVELS[name] + 1):
        return
    if LEVELS[name] > 1:
        raise BadInput(f"level of {name} should be 1 to {LEVELS[name]}, got {level}")
    raise BadInput(
        f"{name} has level 1 alone, got {level}: what makes a sequence that moves more difficult is the step between the "
        "frames compared, as in flip_probability(predictions, step=2)"
    )
