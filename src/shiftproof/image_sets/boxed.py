"""What every file of boxes ends as: an image set whose samples have boxes, and the objects of the whole set as one value."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PIL import Image as Pillow

from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList, all_but, broken_note
from shiftproof.types import Classes, Fact, ImageSource, Sample, Truths

FARTHEST = 1e9
"""No picture has a side of as many pixels; what lies beyond is a slip, or meant to be infinite."""

ORIENTATION = 0x0112
ON_ITS_SIDE = (5, 6, 7, 8)
"""EXIF orientations whose width and height change places when the image is put upright."""


class Object(NamedTuple):
    """One object as its file tells it; the area is that of its outline, where the file knows it."""

    key: str
    box: tuple[float, float, float, float]  # left, top, right, bottom in pixels
    crowd: bool = False
    ignored: bool = False
    area: float | None = None


@dataclass(frozen=True)
class BoxedImage:
    """One image and its objects; boxes are cut at the edges where its width and height are known."""

    id: str
    objects: Sequence[Object] = ()
    size: tuple[float, float] | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    broken: str | None = None  # why its boxes cannot be used, so that the image is set aside


def boxed_list(
    images: Sequence[BoxedImage],
    find: Callable[[str], ImageSource],
    *,
    name: str,
    classes: Classes,
    places: Mapping[str, int],
    notes: tuple[str, ...] = (),
) -> ImageList:
    """The images in the order of their ids, each labelled with the classes of its objects.

    `places` says where in `classes` the key of an object stands. Objects that are ignored give no label. Boxes that reach
    beyond their image are cut, those of which nothing is left are dropped, and the notes count both. Where the size of an
    image is known, `width` and `height` are facts. Images with broken boxes are set aside when they are read; BadInput where
    there are no others.
    """
    broken = {image.id: image.broken for image in images if image.broken is not None}
    find = all_but(find, broken, len(images))
    ordered = sorted(images, key=lambda image: image.id)
    kept = [[(each, cut_at_edges(each.box, image.size)) for each in image.objects] for image in ordered]
    inside = [[(each, box) for each, box in objects if not is_empty(box)] for objects in kept]
    reaching = sum(box != each.box for objects in inside for each, box in objects)
    empty = sum(len(objects) for objects in kept) - sum(len(objects) for objects in inside)
    samples = [
        Sample(
            image.id,
            tuple(sorted({places[each.key] for each, _ in objects if not each.ignored})),
            {**image.facts, **_size_facts(image.size)},
            np.array([box for _, box in objects], float).reshape(-1, 4),
        )
        for image, objects in zip(ordered, inside, strict=True)
    ]
    rows = [(place, each, box) for place, objects in enumerate(inside) for each, box in objects]
    truths = Truths(
        tuple(image.id for image in ordered),
        np.array([place for place, _, _ in rows], int),
        np.array([box for _, _, box in rows], float).reshape(-1, 4),
        np.array([places[each.key] for _, each, _ in rows], int),
        np.array([each.crowd for _, each, _ in rows], bool),
        np.array([each.ignored for _, each, _ in rows], bool),
        np.array([area_of(box) if each.area is None else each.area for _, each, box in rows], float),
    )
    counted = (
        *((f"{reaching:,} of {len(rows):,} boxes reach beyond their image and were cut at its edge",) if reaching else ()),
        *((f"boxes without any area inside their image, dropped: {empty:,}",) if empty else ()),
    )
    return ImageList(
        name, samples, classes if len(classes) else None, find, notes=(*notes, *counted, *broken_note(broken)), truths=truths
    )


def _size_facts(size: tuple[float, float] | None) -> dict[str, Fact]:
    return {} if size is None else {"width": int(size[0]), "height": int(size[1])}


def keys_of(images: Sequence[BoxedImage]) -> Iterator[str]:
    """What names the class of each object."""
    return (each.key for image in images for each in image.objects)


def cut_at_edges(
    box: tuple[float, float, float, float], size: tuple[float, float] | None
) -> tuple[float, float, float, float]:
    """The part of a box inside an image of this width and height; of an image of unknown size only left and top are edges.

    >>> cut_at_edges((-2, 3, 30, 8), (20, 10))
    (0, 3, 20, 8)
    """
    width, height = size or (math.inf, math.inf)
    left, top, right, bottom = box
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)


def is_empty(box: tuple[float, float, float, float]) -> bool:
    """Whether nothing lies inside a box."""
    left, top, right, bottom = box
    return right <= left or bottom <= top


def area_of(box: tuple[float, float, float, float]) -> float:
    """Pixels inside a box."""
    left, top, right, bottom = box
    return (right - left) * (bottom - top)


def numbers_from(entries: Sequence[object], where: str) -> tuple[float, float, float, float]:
    """Four finite numbers; BadInput in a sentence that begins with `where` they stand."""
    try:
        first, second, third, fourth = (float(str(entry)) for entry in entries)
    except (TypeError, ValueError) as problem:
        raise BadInput(f"{where}: a box should be four numbers, got {short(entries)}") from problem
    if not all(-FARTHEST < side < FARTHEST for side in (first, second, third, fourth)):
        raise BadInput(f"{where}: a box should be four finite numbers of pixels, got {short(list(entries))}")
    return first, second, third, fourth


def sized_box(entries: Sequence[object], where: str) -> tuple[float, float, float, float]:
    """The corners of a box that is given by its left, top, width and height."""
    left, top, width, height = numbers_from(entries, where)
    return cornered_box((left, top, left + width, top + height), where)


def cornered_box(box: tuple[float, float, float, float], where: str) -> tuple[float, float, float, float]:
    """The box; BadInput where its right or bottom lies before its left or top."""
    left, top, right, bottom = box
    if right < left or bottom < top:
        raise BadInput(f"{where}: a box of negative size, {right - left:g} x {bottom - top:g}")
    return box


def short(value: object) -> str:
    """A value as it may stand in a sentence, however long it is."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def upright_size(path: str) -> tuple[int, int] | None:
    """Width and height of an image file as it is decoded, from its header; None where that cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pillow.open(path, formats=("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")) as picture:
                width, height = picture.size
                turned = picture.getexif().get(ORIENTATION) in ON_ITS_SIDE
    except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError):
        return None
    return (height, width) if turned else (width, height)
