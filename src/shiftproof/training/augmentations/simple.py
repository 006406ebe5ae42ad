"""Crops and flips, cutout, noise, and the corruptions of our own benchmarks as augmentations."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from shiftproof.corruptions.editions import edition_of, fitting_edition, plain, severity_parameters
from shiftproof.corruptions.entry import SEVERITIES, corruption_of
from shiftproof.corruptions.selection import corruptions_named
from shiftproof.errors import BadInput, UnknownName
from shiftproof.options import Bounds
from shiftproof.training.recipe import Pictures, Recipe
from shiftproof.types import Image

SMALL = 64
"""Shorter side in pixels up to which pictures are padded and cropped, as those of CIFAR; larger ones are resized crops."""

TRIES = 10
"""How often a crop of random area and shape is drawn that may not fit into the picture."""

MEAN_COLOUR = (124, 116, 104)
"""Of ImageNet: what a network whose inputs are normalised by it sees as nothing."""


def crop_and_flip(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    padding: float = 0.125,
    scale: float = 0.08,
    ratio: float = 4 / 3,
    flip: float = 0.5,
) -> Image:
    """A part of the picture at its own size, mirrored half of the time.

    Small pictures are padded with black by a share `padding` of their sides and cropped. Of others a part is resized, of at
    least a share `scale` of the area and at most `ratio` times as wide as high, or as high as wide.
    """
    small = min(image.shape[:2]) <= SMALL
    part = _padded_crop(image, rng, padding) if small else _resized_crop(image, rng, scale, ratio)
    if rng.random() < flip:
        import cv2

        return np.asarray(cv2.flip(part, 1), np.uint8)
    return part


def _padded_crop(image: Image, rng: np.random.Generator, padding: float) -> Image:
    height, width = image.shape[:2]
    down, right = (int(rng.integers(-most, most + 1)) for most in (round(padding * height), round(padding * width)))
    cropped = np.zeros_like(image)
    cropped[max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)] = image[
        max(0, down) : height - max(0, -down), max(0, right) : width - max(0, -right)
    ]
    return cropped


def _resized_crop(image: Image, rng: np.random.Generator, scale: float, ratio: float) -> Image:
    import cv2

    height, width = image.shape[:2]
    for _ in range(TRIES):
        area = height * width * rng.uniform(scale, 1)
        shape = math.exp(rng.uniform(-math.log(ratio), math.log(ratio)))
        part_height, part_width = round(math.sqrt(area / shape)), round(math.sqrt(area * shape))
        if 0 < part_height <= height and 0 < part_width <= width:
            top, left = int(rng.integers(height - part_height + 1)), int(rng.integers(width - part_width + 1))
            part = image[top : top + part_height, left : left + part_width]
            # only ever enlarged or left, but for pictures far from square
            return np.asarray(cv2.resize(part, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
    return image.copy()


def _check_crops(*, padding: float, scale: float, ratio: float, flip: float) -> None:
    if not (0 <= padding < 1 and 0 < scale <= 1 and ratio >= 1 and 0 <= flip <= 1):
        raise BadInput(
            "baseline: padding and flip should lie between 0 and 1, scale above 0 and at most at 1, ratio at 1 or above; "
            f"got {padding:g}, {flip:g}, {scale:g} and {ratio:g}"
        )


BASELINE = Recipe(
    title="Baseline",
    description="Random crops and horizontal flips, with which every other recipe begins too.",
    settings={"padding": 0.125, "scale": 0.08, "ratio": 4 / 3, "flip": 0.5},
    bounds={"ratio": Bounds(1, 1000)},
    check=_check_crops,
    crop=crop_and_flip,
)


def cutout(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    side: float = 0.5,
    holes: int = 1,
) -> Image:
    """A square of one colour somewhere in the picture, part of it perhaps outside (DeVries & Taylor, 2017)."""
    import cv2

    height, width = image.shape[:2]
    length, covered = round(side * min(height, width)), image.copy()
    for _ in range(holes if length else 0):
        top, left = int(rng.integers(height)) - length // 2, int(rng.integers(width)) - length // 2
        cv2.rectangle(covered, (left, top), (left + length - 1, top + length - 1), MEAN_COLOUR, cv2.FILLED)
    return covered


def _check_cutout(*, side: float, holes: int) -> None:
    if not 0 < side <= 2 or holes < 1:
        raise BadInput(f"cutout: side should lie above 0 and at most at 2, of at least 1 hole; got {side:g} and {holes}")


CUTOUT = Recipe(
    title="Cutout",
    description="A square of half the image's side is masked, in a random place.",
    cites=("devries2017improved",),
    settings={"side": 0.5, "holes": 1},
    bounds={"holes": Bounds(1, 1000)},
    augmentations=("cutout",),
    check=_check_cutout,
    augment=cutout,
)


def noise(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    kind: str = "gaussian",
    most: float = 0.4,
    share: float = 0.5,
) -> Image:
    """Noise of a random strength on some of the pictures (Rusak et al., 2020)."""
    if rng.random() >= share:
        return image.copy()
    from shiftproof.corruptions.kernels.noise import drawn, gaussian_table, seed_of, uniform_table

    table = {"gaussian": gaussian_table, "uniform": uniform_table}[kind]
    strength = float(rng.integers(1, STRENGTHS + 1)) / STRENGTHS * most
    return drawn(plain(image), table(strength), seed_of(rng))


STRENGTHS = 16
"""Strengths that a noise is drawn of: each has a table, which is kept."""


def _check_noise(*, kind: str, most: float, share: float) -> None:
    if kind not in ("gaussian", "uniform"):
        raise UnknownName("kind of noise", kind, ("gaussian", "uniform"))
    if most <= 0 or not 0 < share <= 1:
        raise BadInput(f"noise: most should lie above 0, and share above 0 and at most at 1; got {most:g} and {share:g}")


NOISE = Recipe(
    title="Noise",
    description="Gaussian or uniform noise of a random strength on half of the images.",
    cites=("rusak2020simple",),
    settings={"kind": "gaussian", "most": 0.4, "share": 0.5},
    bounds={"most": Bounds(0, 100, open_below=True)},
    augmentations=("noise",),
    check=_check_noise,
    augment=noise,
    keeps_places=True,
)


def corrupted(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    names: str = "gaussian_noise",
    least: int = 1,
    most: int = SEVERITIES,
    share: float = 1.0,
) -> Image:
    """The picture under one of the named corruptions at a random severity."""
    if share < 1 and rng.random() >= share:
        return image.copy()
    chosen = named(names)
    name, severity = chosen[rng.integers(len(chosen))], int(rng.integers(least, most + 1))
    side = min(image.shape[:2])
    entry, edition = corruption_of(name), fitting_edition(side).edition
    parameters = severity_parameters(name, severity, edition)
    size = edition_of(edition).size
    if side != size:
        parameters = entry.severities.scaled(parameters, side / size)
    return entry.function(plain(image), rng, **parameters)


@cache
def named(names: str) -> tuple[str, ...]:
    """The corruptions that names or groups with ``/`` between them stand for.

    >>> named("gaussian_noise/fog")
    ('gaussian_noise', 'fog')
    """
    return corruptions_named(names.replace("/", ","))


def _check_corrupted(*, names: str, least: int, most: int, share: float) -> None:
    named(names)
    if not 1 <= least <= most <= SEVERITIES or not 0 < share <= 1:
        raise BadInput(
            f"corrupted: severities from least to most are 1 to {SEVERITIES}, and share lies above 0 and at most at 1; "
            f"got {least} to {most} and {share:g}"
        )


def _said(*, names: str, **_: Any) -> tuple[str, ...]:
    return named(names)


CORRUPTED = Recipe(
    title="Corruptions as augmentation",
    description="Each image under one of the named corruptions, joined by /, at a random severity.",
    cites=("shankar2021do",),
    settings={"names": "gaussian_noise", "least": 1, "most": SEVERITIES, "share": 1.0},
    augmentations=_said,
    check=_check_corrupted,
    augment=corrupted,
    keeps_places=True,
)
