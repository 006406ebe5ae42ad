"""How large the pictures of a set are, found cheaply, and the edition of corruptions that is made for such pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from shiftproof.corruptions.editions import Fit, fitting_edition
from shiftproof.errors import UnreadableImage, listed
from shiftproof.image_sets.boxed import upright_size
from shiftproof.image_sets.image_list import FileImage
from shiftproof.image_sets.views import spread_over
from shiftproof.types import ImageSet, ImageSource

LOOKED_AT = 15
"""Images that are looked at, spread evenly over the set."""


def edition_for(
    images: ImageSet | None, preparations: Iterable[tuple[str, Mapping[str, object]]] = (), *, picture: str | None = None
) -> Fit:
    """The edition for these images and models, each with its name and how it prepares images.

    Models compare only under one edition: of several the smallest input counts, and where others would have another edition
    by themselves, the fit says so. `picture` is what is corrupted: by default the edition's cut, so that both sizes count;
    of ``model-size`` the inputs alone do, of ``image`` and ``whole`` the images.
    """
    known = ((name, input_side(preparation)) for name, preparation in preparations)
    sides = [(name, side) for name, side in known if side is not None and picture not in ("image", "whole")]
    from_pictures = images is not None and not (picture == "model-size" and sides)
    pictures = shorter_side_of(images) if images is not None and from_pictures else None
    fit = fitting_edition(pictures, min(side for _, side in sides) if sides else None)
    return fit._replace(apart=_apart(fit.edition, [(name, fitting_edition(pictures, side).edition) for name, side in sides]))


def _apart(edition: str, alone: Sequence[tuple[str, str]]) -> str | None:
    """What to say where models by themselves have other editions; None where all have this one.

    >>> _apart("cifar-32", [("small", "cifar-32"), ("large", "cifar-32")]) is None
    True
    """
    names: dict[str, list[str]] = {}
    for name, own in alone:
        names.setdefault(own, []).append(name)
    if set(names) <= {edition}:
        return None
    told = "; ".join(f"{own} is for {listed(some)}" for own, some in names.items())
    return (
        f"these models have inputs of different editions: {told}. Numbers compare only under one edition, and all of these "
        f"are of {edition}, which suits the smallest input; name another with --edition"
    )


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
