"""A picture under a condition: a corruption, its severity parameters by edition, and random numbers of its own."""

from __future__ import annotations

import operator
import warnings
from functools import lru_cache
from typing import get_args

import numpy as np

from shiftproof.corruptions.editions import DEFAULT_EDITION, edition_of, fitting_edition, plain
from shiftproof.corruptions.entry import corruption_of
from shiftproof.corruptions.kernels.jpeg import jpeg85
from shiftproof.errors import BadInput, UnknownName
from shiftproof.randomness import NO_DRAWS, rng_for
from shiftproof.types import Condition, FrostPictures, Image, Output

OUTPUTS = get_args(Output)


class SizeWarning(UserWarning):
    """Severity parameters made for pictures of one size are used on another."""


def corrupt(
    image: Image,
    name: str,
    severity: int = 3,
    *,
    seed: int = 0,
    key: str = "",
    edition: str = DEFAULT_EDITION,
    output: Output = "raw",
    scale_severity: bool = False,
    frost: FrostPictures | None = None,
) -> Image:
    """The image under a corruption, of the same size; grey images come back as RGB.

    The same (seed, name, severity, edition, key) draws the same random numbers: give each image of a dataset its own `key`.
    Severity parameters are made for the edition's size; on another one `scale_severity` lets lengths in pixels grow with the
    shorter side.
    `frost` pictures are for frost; other corruptions have no use for them, so that a loop over all may give them to each.

    >>> grey = np.full((224, 224, 3), 128, np.uint8)
    >>> corrupt(grey, "contrast", 5)[0, 0].tolist()
    [128, 128, 128]
    """
    picture = to_rgb(image)
    size = edition_of(edition).size
    if output not in OUTPUTS:
        raise UnknownName("output", output, OUTPUTS)
    made = _condition if isinstance(seed, int) else _condition.__wrapped__  # 0.0 equals -0.0, and an array has no hash
    condition = made(name, whole(severity), edition, output, seed, scale_severity, frost)
    if not scale_severity and picture.shape[:2] != (size, size):
        fitting = fitting_edition(min(picture.shape[:2]))
        another = "another edition" if fitting.warning or fitting.edition == edition else f"edition={fitting.edition!r}"
        warnings.warn(
            f"{edition} is made for {size} x {size}, this image is {picture.shape[1]} x {picture.shape[0]}: "
            f"choose {another}, or scale_severity=True",
            SizeWarning,
            stacklevel=2,
        )
    return apply(condition, picture, key=key)


@lru_cache(maxsize=1024, typed=True)  # a loop over images asks for few, each as often as there are images
def _condition(
    name: str, severity: int, edition: str, output: Output, seed: int, scale_severity: bool, frost: FrostPictures | None
) -> Condition:
    corruption_of(name)
    return Condition(name, severity, edition=edition, output=output, seed=seed, scale_severity=scale_severity, frost=frost)


def apply(condition: Condition, picture: Image, *, key: str) -> Image:
    """The picture under a condition; nothing but the arguments decides what comes out."""
    changed = picture = plain(picture)  # a view, or read-only memory, would have every kernel compiled once more
    if condition.name != "clean":
        edition, entry = edition_of(condition.edition or DEFAULT_EDITION), corruption_of(condition.name)
        parameters = entry.severities.at(condition.severity, edition.severities)
        if condition.scale_severity:
            parameters = entry.severities.scaled(parameters, min(picture.shape[:2]) / edition.size)
        folder = {"folder": condition.frost.folder} if condition.frost and entry.takes_frost else {}
        rng = rng_for(key, condition) if entry.random else NO_DRAWS
        changed = entry.function(picture, rng, **parameters, **folder)
        if not isinstance(changed, np.ndarray) or (changed.shape, changed.dtype) != (picture.shape, picture.dtype):
            raise BadInput(f"corruption {condition.name!r} should return a uint8 image of the picture's size; it does not")
    return jpeg85(changed) if condition.output == "jpeg85" else changed


def whole(severity: int) -> int:
    """The severity as a plain whole number, whichever library's number it was."""
    try:
        return operator.index(severity)
    except TypeError:
        raise BadInput(f"severity should be a whole number from 1 to 5, got {severity!r}") from None


def to_rgb(image: Image) -> Image:
    """The image as RGB bytes in the usual order of memory; BadInput where it is nothing of the kind."""
    if not isinstance(image, np.ndarray):
        raise BadInput(f"an image should be an array, got {type(image).__name__}; numpy.asarray makes one of most images")
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        raise BadInput(f"an image should be uint8 (height, width, 3), got {image.dtype} {image.shape}")
    if image.ndim == 2 or image.shape[2] == 1:
        return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
    if image.shape[2] != 3:
        raise BadInput(f"an image should have 3 channels, got {image.shape[2]}; drop the alpha channel first")
    return np.ascontiguousarray(image)
