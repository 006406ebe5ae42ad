"""What a sequence moves about: an image, and the window of it that every frame shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shiftproof.corruptions.editions import centre, edition_of, resized_whole, shorter_side
from shiftproof.types import Image


@dataclass(frozen=True)
class Canvas:
    """An image and the window of it that is kept: what lies around the window can move into it."""

    image: Image
    top: int
    left: int
    height: int
    width: int

    @cached_property
    def picture(self) -> Image:
        """What the window shows while nothing moves."""
        window = self.image[self.top : self.top + self.height, self.left : self.left + self.width]
        return np.ascontiguousarray(window)


def whole(image: Image) -> Canvas:
    """The image without surroundings: what moves in is black."""
    return Canvas(image, 0, 0, *image.shape[:2])


def middle(image: Image, height: int, width: int) -> Canvas:
    """The image with a window in its middle."""
    return Canvas(image, round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2), height, width)


BEFORE_RESIZING = {
    "inception-299": frozenset({"translate", "rotate", "tilt", "shear"}),
    "imagenet-64": frozenset({"motion_blur"}),
    "tiny-64": frozenset({"motion_blur"}),
}
"""Sequences that were made from the image at its own size, by edition; their frames were resized one by one."""

SHORTER_SIDE = {"imagenet-224": 256, "tiny-64": 64}
"""To what length the shorter side was resized, where the middle was cut out of it; elsewhere images were resized whole."""


def canvas_for(perturbation: str, image: Image, edition: str) -> Canvas:
    """The image as this sequence of this edition was made from it."""
    chosen = edition_of(edition)
    if perturbation in BEFORE_RESIZING.get(edition, ()):
        inside = 0.875 if edition == "inception-299" else 1.0
        return middle(image, *(max(1, int(inside * side)) for side in image.shape[:2]))
    if edition in SHORTER_SIDE:
        return middle(shorter_side(image, SHORTER_SIDE[edition]), chosen.size, chosen.size)
    return whole(chosen.picture(image))


def to_frame(frame: Image, edition: str) -> Image:
    """What was made before resizing, at the edition's size; what has that size already stays as it is.

    Published motion blur at 64 pixels kept the image's aspect, a slip that no network can use: our frames are square, of
    tiny-64 the middle of the shorter side as in its other sequences.
    """
    size = edition_of(edition).size
    if edition in SHORTER_SIDE:
        return centre(shorter_side(frame, size), size, size)
    return resized_whole(frame, size, size)
