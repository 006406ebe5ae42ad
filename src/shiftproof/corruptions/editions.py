"""The published editions: the size of their pictures, and how a picture is cut out of an image."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shiftproof import catalog
from shiftproof.corruptions.entry import Parameter, corruption_of
from shiftproof.types import Image

DEFAULT_EDITION = "imagenet-224"

NEAR = 1.25
"""How many times the size of an edition's pictures, or what part of it, still counts as that size."""

LONGEST = 64
"""How many times as long as wide an image may be and still be resized whole."""


@dataclass(frozen=True)
class Edition:
    """One published dataset of corrupted pictures: their size, and how they are cut out of an image."""

    size: int
    severities: str  # the edition whose severity parameters it uses
    picture: Callable[[Image], Image]
    about: str  # how `picture` comes about, in words for lists and reports
    middle: float = 1.0  # share of either side that sequences made before resizing show
    sequence_side: int | None = None  # length of the shorter side that sequences were cut out of; None: resized whole


def resized_whole(image: Image, height: int, width: int) -> Image:
    """The whole image at another size, bilinear with Pillow's smoothing, as the published datasets were made."""
    if image.shape[:2] == (height, width):
        return image
    from PIL import Image as Pillow  # stores and lists read editions without any image

    return np.asarray(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BILINEAR))


def shorter_side(image: Image, length: int) -> Image:
    """The image with its shorter side at this length, the longer cut to whole pixels.

    Of an image more than `LONGEST` times as long as wide the middle, far more than a crop sees; a strip of 1 x 60,000 pixels
    would fill the memory.
    """
    most = LONGEST * min(image.shape[:2])
    image = centre(image, min(image.shape[0], most), min(image.shape[1], most))
    height, width = image.shape[:2]
    if height <= width:
        return resized_whole(image, length, int(length * width / height))
    return resized_whole(image, int(length * height / width), length)


def plain(image: Image) -> Image:
    """The image in memory as kernels are compiled for, in order and writeable, whatever the view."""
    return image if image.flags.c_contiguous and image.flags.writeable else image.copy()


def centre(image: Image, height: int, width: int) -> Image:
    """The middle of an image."""
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return image[top : top + height, left : left + width]


def _imagenet_224(image: Image) -> Image:
    return centre(shorter_side(image, 256), 224, 224)


def _inception_299(image: Image) -> Image:
    height, width = (max(1, int(0.875 * side)) for side in image.shape[:2])
    return resized_whole(centre(image, height, width), 299, 299)


def _whole_64(image: Image) -> Image:
    return resized_whole(image, 64, 64)


def _whole_32(image: Image) -> Image:
    return resized_whole(image, 32, 32)


IMAGENET_224 = Edition(224, "imagenet-224", _imagenet_224, about="shorter side to 256, centre 224", sequence_side=256)
INCEPTION_299 = Edition(
    299, "inception-299", _inception_299, about="centre of 0.875 of each side, resized to 299 x 299", middle=0.875
)
IMAGENET_64 = Edition(
    64, "tiny-64", _whole_64, about="the whole image resized to 64 x 64; the severity parameters of Tiny-ImageNet"
)
TINY_64 = Edition(64, "tiny-64", _whole_64, about="the whole image resized to 64 x 64", sequence_side=64)
CIFAR_32 = Edition(32, "cifar-32", _whole_32, about="the whole image resized to 32 x 32")


def edition_of(name: str) -> Edition:
    """An edition by name, or UnknownName with the nearest."""
    edition: Edition = catalog.EDITIONS.load(name)
    return edition


def severity_parameters(name: str, severity: int, edition: str) -> dict[str, Parameter]:
    """What a corruption is given at this severity of this edition.

    >>> severity_parameters("motion_blur", 5, "imagenet-224")
    {'radius': 20, 'sigma': 15}
    """
    return corruption_of(name).severities.at(severity, edition_of(edition).severities)


class Fit(NamedTuple):
    """An edition chosen by default: why this one, and a warning where none is made for the size at hand."""

    edition: str
    why: str
    warning: str | None = None
    apart: str | None = None  # a warning where models that are compared would each be given another one

    def warnings(self, *, scaled: bool = False) -> list[str]:
        """What to say of it; where severity parameters are scaled to the image size, none need be made for that."""
        return [told for told in (None if scaled else self.warning, self.apart) if told is not None]

    def told(self, *, scaled: bool = False) -> list[str]:
        """Lines for the person who waits: which edition and why, and the warnings."""
        return [f"edition {self.edition}: {self.why}", *(f"warning: {one}" for one in self.warnings(scaled=scaled))]


def fitting_edition(pictures: int | None, inputs: int | None = None) -> Fit:
    """The edition for pictures and a model's inputs of these shorter sides in pixels; None for a side that is not known.

    The smaller of the two decides, for no more can be seen. From 180 pixels on it is the one of 224, on whose files larger
    models were measured too, or that of 299 for inputs of that size.

    >>> fitting_edition(500, 224).edition, fitting_edition(32, 224).edition, fitting_edition(500, 32).edition
    ('imagenet-224', 'cifar-32', 'cifar-32')
    >>> fitting_edition(96, 96).edition, fitting_edition(96, 96).warning is None
    ('imagenet-64', False)
    """
    known = [side for side in (pictures, inputs) if side is not None]
    if not known:
        return Fit(DEFAULT_EDITION, "the default, as neither the size of the pictures nor of the model's input is known")
    told = " and ".join(
        [
            *([f"pictures of {pictures} pixels"] if pictures is not None else []),
            *([f"a model input of {inputs} pixels"] if inputs is not None else []),
        ]
    )
    why, side = f"chosen for {told} (shorter sides)", min(known)
    if side * NEAR >= IMAGENET_224.size:
        for_inception = inputs is not None and _nearest(inputs, 224, 299) == 299 and inputs <= 299 * NEAR
        return Fit("inception-299" if for_inception and side * NEAR >= 299 else "imagenet-224", why)
    size = _nearest(side, 32, 64, 224)
    whole_photos = pictures is not None and pictures > 64 * NEAR
    name = {32: "cifar-32", 64: "imagenet-64" if whole_photos else "tiny-64", 224: "imagenet-224"}[size]
    if size <= side * NEAR and side <= size * NEAR:
        return Fit(name, why)
    return Fit(
        name,
        why,
        f"no edition is made for {told}: {name}, made for {size}, is the nearest, and its severities are not what they are "
        "in the published dataset; name another with --edition, or scale the pixel parameters with the image: --at image "
        "--scale-severity",
    )


def _nearest(side: int, *sizes: int) -> int:
    return min(sizes, key=lambda size: abs(math.log(side / size)))
