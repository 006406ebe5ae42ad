"""Policies that choose among simple operations at random: AugMix, RandAugment and TrivialAugment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.options import Bounds
from shiftproof.training.recipe import Pictures, Recipe
from shiftproof.types import Image

MOVES = ("rotate", "shear", "translate")
"""Perturbation sequences that the operations of all policies show; what they do to colours, their names tell."""


class Choice(NamedTuple):
    """An operation, and its figure at a share of the greatest strength on a picture."""

    operation: Callable[[Image, float], Image]
    figure: Callable[[float, Image], float] = lambda _share, _image: 0.0
    signed: bool = False  # the other way half of the time

    def applied(self, image: Image, rng: np.random.Generator, share: float) -> Image:
        figure = self.figure(share, image)
        return self.operation(image, -figure if self.signed and rng.random() < 0.5 else figure)


def augmix(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    severity: float = 3.0,
    width: int = 3,
    depth: int = 0,
    alpha: float = 1.0,
    **_: Any,
) -> Image:
    """Chains of operations, mixed with one another and with the picture (Hendrycks et al., 2020)."""
    weights, weight = rng.dirichlet([alpha] * width), float(rng.beta(alpha, alpha))
    chains = (augmented_input(image, rng, severity, depth or int(rng.integers(1, 4))) for _ in range(width))
    return mixed([(1 - weight, image), *zip(weight * weights, chains, strict=True)])


def mixed(parts: list[tuple[float, Image]]) -> Image:
    """The sum of pictures by weights that add up to 1."""
    import cv2

    total, mixture = 0.0, np.zeros(parts[0][1].shape, np.float32)
    for weight, picture in parts:
        total += weight
        if weight > 0:
            # the mean so far: OpenCV takes bytes and adds to it in one pass
            cv2.accumulateWeighted(picture, mixture, weight / total)
    return np.asarray(cv2.convertScaleAbs(mixture), np.uint8)


def augmented_input(image: Image, rng: np.random.Generator, severity: float, depth: int = 1) -> Image:
    """The picture after so many of AugMix's operations in turn."""
    choices = augmix_choices()
    for _ in range(depth):
        choice = choices[rng.integers(len(choices))]
        image = choice.applied(image, rng, rng.uniform(0.1, severity) / 10)
    return image


@cache
def augmix_choices() -> tuple[Choice, ...]:
    """The nine operations of AugMix, none of which is a corruption of ImageNet-C."""
    from shiftproof.training.augmentations import operations as do

    return (
        Choice(do.autocontrast),
        Choice(do.equalize),
        Choice(do.posterize, lambda share, _: 4 - int(4 * share)),
        Choice(partial(do.rotate, smooth=do.BILINEAR), lambda share, _: int(30 * share), signed=True),
        Choice(do.solarize, lambda share, _: 256 - int(256 * share)),
        Choice(partial(do.shear_x, smooth=do.BILINEAR), lambda share, _: 0.3 * share, signed=True),
        Choice(partial(do.shear_y, smooth=do.BILINEAR), lambda share, _: 0.3 * share, signed=True),
        Choice(do.translate_x, lambda share, image: int(image.shape[1] / 3 * share), signed=True),
        Choice(do.translate_y, lambda share, image: int(image.shape[0] / 3 * share), signed=True),
    )


def _check_augmix(*, severity: float, width: int, depth: int, alpha: float, **_: Any) -> None:
    if not 0.1 <= severity <= 10:
        raise BadInput(f"augmix: severity should lie between 0.1 and 10, got {severity:g}")
    if width < 1 or depth < 0 or alpha <= 0:
        raise BadInput(
            f"augmix: width should be at least 1, depth at least 0 and alpha above 0, got {width}, {depth}, {alpha:g}"
        )


AUGMIX = Recipe(
    title="AugMix",
    description="Mixtures of chains of augmentations, two per image, and a consistency loss (Jensen-Shannon divergence).",
    cites=("hendrycks2020augmix",),
    settings={"severity": 3.0, "width": 3, "depth": 0, "alpha": 1.0, "consistency": 12.0},
    bounds={
        "width": Bounds(1, 100),
        "depth": Bounds(0, 100),
        "alpha": Bounds(0, 1000, open_below=True),
        "consistency": Bounds(0, 1000),
    },
    augmentations=("augmix", *MOVES),
    check=_check_augmix,
    augment=augmix,
    copies=2,
    loss="shiftproof.training.networks.losses:augmix",
)


def randaugment(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    operations: int = 2,
    magnitude: int = 9,
    bins: int = 31,
) -> Image:
    """Some of fourteen operations in turn, all at one magnitude (Cubuk et al., 2020)."""
    changed, choices = image, _choices(wide=False)
    for _ in range(operations):
        changed = choices[rng.integers(len(choices))].applied(changed, rng, magnitude / (bins - 1))
    return image.copy() if changed is image else changed


def trivialaugment(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    bins: int = 31,
) -> Image:
    """One of fourteen operations at a random magnitude of a wide range (Müller & Hutter, 2021)."""
    choices = _choices(wide=True)
    changed = choices[rng.integers(len(choices))].applied(image, rng, float(rng.integers(bins)) / (bins - 1))
    return image.copy() if changed is image else changed


@cache
def _choices(*, wide: bool) -> tuple[Choice, ...]:
    """The fourteen operations of RandAugment, or of TrivialAugment with their wide ranges."""
    from shiftproof.training.augmentations import operations as do

    shear, degrees, change, bits = (0.99, 135.0, 0.99, 6) if wide else (0.3, 30.0, 0.9, 4)

    def moved(axis: int) -> Callable[[float, Image], float]:
        # 150 pixels of AutoAugment's 331, and 32 pixels of pictures of any size: as published
        return lambda share, image: share * (32 if wide else 150 / 331 * image.shape[axis])

    return (
        Choice(do.identity),
        Choice(do.shear_x, lambda share, _: shear * share, signed=True),
        Choice(do.shear_y, lambda share, _: shear * share, signed=True),
        Choice(do.translate_x, moved(1), signed=True),
        Choice(do.translate_y, moved(0), signed=True),
        Choice(do.rotate, lambda share, _: degrees * share, signed=True),
        Choice(do.brightness, lambda share, _: change * share, signed=True),
        Choice(do.colour, lambda share, _: change * share, signed=True),
        Choice(do.contrast, lambda share, _: change * share, signed=True),
        Choice(do.sharpness, lambda share, _: change * share, signed=True),
        Choice(do.posterize, lambda share, _: 8 - round(bits * share)),
        Choice(do.solarize, lambda share, _: 255 * (1 - share)),
        Choice(do.autocontrast),
        Choice(do.equalize),
    )


def _check_bins(*, bins: int, magnitude: int = 0, operations: int = 1) -> None:
    if bins < 2 or not 0 <= magnitude < bins or operations < 1:
        raise BadInput(
            "a magnitude is one of 0 to bins - 1, of at least 2 bins, for at least 1 operation; "
            f"got {magnitude}, {bins} and {operations}"
        )


RANDAUGMENT = Recipe(
    title="RandAugment",
    description="Two of fourteen operations in turn, drawn for each image, all at one magnitude.",
    cites=("cubuk2020randaugment",),
    settings={"operations": 2, "magnitude": 9, "bins": 31},
    bounds={"operations": Bounds(1, 100)},
    augmentations=("randaugment", *MOVES),
    check=_check_bins,
    augment=randaugment,
)

TRIVIALAUGMENT = Recipe(
    title="TrivialAugment",
    description="One of fourteen operations at a random magnitude, drawn for each image.",
    cites=("muller2021trivialaugment",),
    settings={"bins": 31},
    augmentations=("trivialaugment", *MOVES),
    check=_check_bins,
    augment=trivialaugment,
)
