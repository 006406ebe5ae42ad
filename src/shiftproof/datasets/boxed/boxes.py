"""Datasets with ground-truth boxes, whatever file the boxes come from; and boxes put on the images of any dataset."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shiftproof.datasets.image_list import ImageList, broken_note, skip_broken
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.video.frame_sets import frame_itself
from shiftproof.errors import BadInput
from shiftproof.files import read_regular
from shiftproof.places import is_folder, is_url
from shiftproof.types import Classes, Fact, ImageSource, Sample, Truths

FARTHEST = 1e9
"""Largest coordinate of a box; what lies beyond is an error, or meant to be infinite."""

ORIENTATION = 0x0112
ON_ITS_SIDE = (5, 6, 7, 8)
"""EXIF orientations whose width and height change places when the image is put upright."""


COCO_EXAMPLE = Example(
    {
        "a.png": "",
        "boxes.json": """{"images": [{"id": 7, "file_name": "a.png", "width": 12, "height": 8}],
            "annotations": [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 0},
                            {"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 0}],
            "categories": [{"id": 3, "name": "cat"}]}""",
    },
    "boxes.json",
)


class Object(NamedTuple):
    """One annotated object; the area is that of its segmentation, where the file has it."""

    key: str
    box: tuple[float, float, float, float]  # left, top, right, bottom in pixels
    crowd: bool = False
    ignored: bool = False
    area: float | None = None


@dataclass(frozen=True)
class BoxedImage:
    """One image and its objects; boxes are clipped to the image where its width and height are known."""

    id: str
    objects: Sequence[Object] = ()
    size: tuple[float, float] | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    broken: str | None = None  # why its boxes cannot be used, so that the image is skipped


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

    `places` has the place in `classes` of the key of an object. Objects that are ignored give no label. Boxes that reach
    beyond their image are clipped, those of which nothing is left are dropped, and the notes count both. Where the size of
    an image is known, `width` and `height` are facts. Images with broken boxes are skipped when they are read; BadInput
    where there are no others.
    """
    broken = {image.id: image.broken for image in images if image.broken is not None}
    find = skip_broken(find, broken, len(images))
    ordered = sorted(images, key=lambda image: image.id)
    kept = [[(each, clip_box(each.box, image.size)) for each in image.objects] for image in ordered]
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
        *((f"{reaching:,} of {len(rows):,} boxes reach beyond their image and were clipped",) if reaching else ()),
        *((f"boxes without any area in their image, dropped: {empty:,}",) if empty else ()),
    )
    return ImageList(
        name, samples, classes if len(classes) else None, find, notes=(*notes, *counted, *broken_note(broken)), truths=truths
    )


def _size_facts(size: tuple[float, float] | None) -> dict[str, Fact]:
    return {} if size is None else {"width": int(size[0]), "height": int(size[1])}


def keys_of(images: Sequence[BoxedImage]) -> Iterator[str]:
    """The key of the class of each object."""
    return (each.key for image in images for each in image.objects)


def clip_box(box: tuple[float, float, float, float], size: tuple[float, float] | None) -> tuple[float, float, float, float]:
    """The part of a box in an image of this width and height; of an image of unknown size only left and top are known edges.

    >>> clip_box((-2, 3, 30, 8), (20, 10))
    (0, 3, 20, 8)
    """
    width, height = size or (math.inf, math.inf)
    left, top, right, bottom = box
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)


def is_empty(box: tuple[float, float, float, float]) -> bool:
    """Whether a box has no area."""
    left, top, right, bottom = box
    return right <= left or bottom <= top


def area_of(box: tuple[float, float, float, float]) -> float:
    """Pixels inside a box."""
    left, top, right, bottom = box
    return (right - left) * (bottom - top)


def numbers_from(entries: Sequence[object], where: str) -> tuple[float, float, float, float]:
    """Four finite numbers; BadInput that begins with `where` they were read."""
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
    """A value for an error message, shortened."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _file_of(path: str) -> str | io.BytesIO:
    return io.BytesIO(read_regular(path)) if is_url(path) else path


def upright_size(path: str) -> tuple[int, int] | None:
    """Width and height of an image file as it is decoded, from its header; None where that cannot be read."""
    from PIL import Image as Pillow  # layouts are recognised without it

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pillow.open(_file_of(path), formats=("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")) as picture:
                width, height = picture.size
                turned = picture.getexif().get(ORIENTATION) in ON_ITS_SIDE
    except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError):
        return None
    return (height, width) if turned else (width, height)


def with_boxes(
    images: ImageList, boxed: Sequence[BoxedImage], *, classes: Classes | None = None, name: str | None = None
) -> ImageList:
    """The images of a dataset that have boxes, labelled with the classes of their objects.

    The others are left out, and counted. A frame that belongs to several anchors has its boxes each time. Facts of the
    dataset take precedence over those beside the boxes.
    """
    by_id = {image.id: image for image in boxed}
    found = [(sample, by_id[key]) for sample in images.samples if (key := _key_of(sample, by_id)) is not None]
    if not found:
        like = f"boxes are of images like {boxed[0].id}" if boxed else f"one of them is called {images.samples[0].id}"
        raise BadInput(f"none of the {len(images.samples):,} images of {images.name} has boxes; {like}")
    own = [dataclasses.replace(image, id=sample.id, facts={**image.facts, **sample.facts}) for sample, image in found]
    known, places = places_of(keys_of(own), classes)
    without = len(images.samples) - len(own)
    notes = (*images.notes, *((f"{without:,} images without boxes were left out",) if without else ()))
    title = name or images.name
    return dataclasses.replace(
        boxed_list(own, images.find, name=title, classes=known, places=places, notes=notes), credits=images.credits
    )


def _key_of(sample: Sample, by_id: Mapping[str, BoxedImage]) -> str | None:
    return next((key for key in (sample.id, frame_itself(sample.id)) if key in by_id), None)


@layout(
    holds="any other dataset, and a COCO file or `.xml` files of boxes of its images",
    labels="the classes of the objects",
    example=Example(COCO_EXAMPLE.files, options={"boxes": "boxes.json"}),
)
def open_with_boxes(
    location: str, *, boxes: str | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images at a location with the boxes of a COCO file, or of a folder of XML files as ImageNet-VID has them.

    A COCO file names the images by their ids in the dataset, an XML file has the path of its image. Classes are those of
    the COCO file; with XML files those of the dataset, where it has any.
    """
    from shiftproof.datasets import open_dataset
    from shiftproof.datasets.boxed.coco import coco_images
    from shiftproof.datasets.boxed.voc import xml_images

    if boxes is None:
        raise BadInput(f"say where the boxes are, as in boxed:{location}?boxes=boxes.json")
    images = open_dataset(location)
    if is_folder(os.fspath(boxes)):
        ids = dict.fromkeys(frame_itself(sample.id) for sample in images.samples)
        return with_boxes(images, xml_images(boxes, ids), classes=classes or images.classes, name=name)
    boxed, categories = coco_images(boxes)
    return with_boxes(images, boxed, classes=classes or categories, name=name)
