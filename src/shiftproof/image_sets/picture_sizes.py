"""How large the pictures of a set are, found cheaply, and the edition of corruptions that is made for such pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from shiftproof.corruptions.editions import Fit, fitting_edition
from shiftproof.errors import UnreadableImage
from shiftproof.image_sets.boxed import upright_size
from shiftproof.image_sets.image_list import FileImage
from shiftproof.image_sets.views import spread_over
from shiftproof.types import ImageSet, ImageSource

LOOKED_AT = 15
"""Images that are looked at, spread evenly over the set."""


def edition_for(
    images: ImageSet | None, preparations: Iterable[Mapping[str, object]] = (), *, picture: str | None = None
) -> Fit:
    """The edition for these images and models, which say how they prepare images; of several the smallest input counts.

    `picture` is what is corrupted: by default the edition's cut, so that both sizes count; of ``model-size`` the inputs
    alone do, of ``image`` and ``whole`` the images.
    """
    sides = [side for side in map(input_side, preparations) if side is not None]
    inputs = min(sides) if sides and picture not in ("image", "whole") else None
    if images is None or (picture == "model-size" and inputs is not None):
        return fitting_edition(None, inputs)
    return fitting_edition(shorter_side_of(images), inputs)


def shorter_side_of(images: ImageSet) -> int | None:
    """The median shorter side of some images, of files by their headers; None where none can be read."""
    sides = [side for sample in spread_over(images.samples, LOOKED_AT) if (side := _shorter_side(images.source(sample)))]
    return round(median(sides)) if sides else None


def input_side(preparation: Mapping[str, object]) -> int | None:
    """The shorter side of a model's input, by what its preparation tells of itself; None where any size will do.

    >>> input_side({"size": "224x320"}), input_side({"size": "any"})
    (224, None)
    """
    sides = str(preparation.get("size", "")).split("x")
    return min(map(int, sides)) if all(side.isdecimal() for side in sides) else None


def _shorter_side(source: ImageSource) -> int | None:
    try:
        if isinstance(source, FileImage):
            size = upright_size(source.path)
            return min(size) if size else None
        return int(min(source.decode(source.read()).shape[:2]))
    except (OSError, UnreadableImage):
        return None
