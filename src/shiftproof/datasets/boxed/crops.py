"""Crops: the objects of a dataset with ground-truth boxes as images of their own, cropped when they are read."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from urllib.parse import quote

import numpy as np

from shiftproof.datasets.boxed.boxes import COCO_EXAMPLE
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.layout import Example, layout, number, yes_or_no
from shiftproof.datasets.records import RECORD, load_record
from shiftproof.errors import BadInput, UnknownName, UnreadableImage, listed
from shiftproof.types import Classes, Dataset, Decoder, Fact, Image, ImageSource, Sample, Truths

ObjectView = Literal["crop", "alone", "enlarged"]
"""How an object is shown.

``crop`` is the part of the image inside its box. ``alone`` is the whole image with everything outside the box made
neutral: the background is gone and the object as large as it was. ``enlarged`` is the same with the object as large as
the image allows, so that the two differ in nothing but its size.
"""

NEUTRAL = (124, 116, 104)
"""The mean colour of ImageNet, which most models' normalisation turns into zeros."""


class Cut(NamedTuple):
    """What is done with a box; the padding on each side is a share of the box's width and height."""

    view: ObjectView
    padding: float
    square: bool

    def __str__(self) -> str:
        return f"{self.view}, padding {self.padding:g}{', square' if self.square else ''}"


class Window(NamedTuple):
    """Whole pixels, which may reach beyond an image."""

    left: int
    top: int
    right: int
    bottom: int


def cut_out(image: Image, box: tuple[float, float, float, float], cut: Cut) -> Image:
    """The object in the box as the cut shows it; UnreadableImage where no pixel of it is in the image."""
    height, width = image.shape[:2]
    inside = _inside(window_around(box, cut.padding), width, height)
    if inside.right <= inside.left or inside.bottom <= inside.top:
        raise UnreadableImage(f"the box {list(box)} lies outside the image of {width} x {height} pixels")
    found = image[inside.top : inside.bottom, inside.left : inside.right]
    match cut.view:
        case "alone":
            return _on_neutral(found, inside.left, inside.top, width, height)
        case "enlarged":
            found = _enlarged(found, width, height)
            return _on_neutral(found, (width - found.shape[1]) // 2, (height - found.shape[0]) // 2, width, height)
        case _:
            return _squared(image, inside) if cut.square else found.copy()


def window_around(box: tuple[float, float, float, float], padding: float) -> Window:
    """The pixels that a box touches, with its padding.

    >>> window_around((10, 20, 30, 60), 0.1)
    Window(left=8, top=16, right=32, bottom=64)
    """
    left, top, right, bottom = box
    across, down = padding * (right - left), padding * (bottom - top)
    # a box that ends on a pixel's edge does not touch the next one, whatever rounding adds to it
    low = (math.floor(side + 1e-6) for side in (left - across, top - down))
    high = (math.ceil(side - 1e-6) for side in (right + across, bottom + down))
    return Window(*low, *high)


def _inside(window: Window, width: int, height: int) -> Window:
    return Window(max(window.left, 0), max(window.top, 0), min(window.right, width), min(window.bottom, height))


def _squared(image: Image, window: Window) -> Image:
    """The square around the middle of a window; neutral beyond the image."""
    wide, high = window.right - window.left, window.bottom - window.top
    side = max(wide, high)
    left, top = window.left - (side - wide) // 2, window.top - (side - high) // 2
    inside = _inside(Window(left, top, left + side, top + side), image.shape[1], image.shape[0])
    found = image[inside.top : inside.bottom, inside.left : inside.right]
    return _on_neutral(found, inside.left - left, inside.top - top, side, side)


def _on_neutral(found: Image, left: int, top: int, width: int, height: int) -> Image:
    canvas = np.empty((height, width, 3), np.uint8)
    canvas[:] = NEUTRAL
    canvas[top : top + found.shape[0], left : left + found.shape[1]] = found
    return canvas


def _enlarged(found: Image, width: int, height: int) -> Image:
    """The same picture as large as fits into this width and height."""
    factor = min(width / found.shape[1], height / found.shape[0])
    size = max(round(found.shape[1] * factor), 1), max(round(found.shape[0] * factor), 1)
    from PIL import Image as Pillow  # layouts are recognised without it

    return np.asarray(Pillow.fromarray(found).resize(size, Pillow.Resampling.BICUBIC))


MOST_PADDING = 1000

PIXELS = 1
"""Version of the pixels: raised when crops change, so that predictions on the old ones are not used."""


@dataclass(frozen=True, slots=True)
class CropImage:
    """One crop; its bytes are those of the source image, the box and the cut."""

    source: ImageSource
    box: tuple[float, float, float, float]
    cut: Cut

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self._suffix().decode()}"

    def read(self) -> bytes:
        return self.source.read() + self._suffix()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        return cut_out(self.source.decode(data.removesuffix(self._suffix()), decoder=decoder), self.box, self.cut)

    def _suffix(self) -> bytes:
        return "\0".join(["", "shiftproof crop", str(PIXELS), *map(repr, self.box), str(self.cut)]).encode()


@dataclass(frozen=True)
class CropsOf:
    """Finds a crop by its id, which begins with that of its image."""

    images: ImageList
    samples: Mapping[str, Sample]
    boxes: Mapping[str, tuple[float, float, float, float]]
    cut: Cut

    def __call__(self, crop_id: str) -> CropImage:
        return CropImage(self.images.source(self.samples[image_of(crop_id)]), self.boxes[crop_id], self.cut)


def image_of(crop_id: str) -> str:
    """The id of the image that a crop was cut from.

    >>> image_of("street/a.jpg/002")
    'street/a.jpg'
    """
    return crop_id.rpartition("/")[0]


def boxes_of_crops(images: Dataset) -> Mapping[str, tuple[float, float, float, float]]:
    """The box of each crop in its image, by the crop's id; empty for a dataset that is no crops."""
    sources = ((sample.id, images.source(sample)) for sample in images.samples)
    return {crop_id: source.box for crop_id, source in sources if isinstance(source, CropImage)}


def crops(
    images: ImageList,
    *,
    view: ObjectView = "crop",
    padding: float = 0.0,
    square: bool = False,
    together: bool = False,
    name: str | None = None,
) -> ImageList:
    """An image for every object of a dataset with boxes, labelled with its class; crowds and ignored objects are left out.

    A crop's id is that of its image and the number of its box in it, as in ``a.jpg/002``; its facts are those of the image,
    the `longer_side` of the box in pixels and, where the image's size is known, its `share` of the image and its
    `scale_factor`. `together` takes one box over all instances of a class in an image, as ImageNet-A-Plus does. `square`
    widens the shorter side of a crop; what then lies beyond the image is neutral.
    """
    if images.truths is None or images.classes is None:
        raise BadInput(f"{images.name} has no boxes, so no objects can be cut out of it")
    if view not in get_args(ObjectView):
        raise UnknownName("view of a crop", view, get_args(ObjectView))
    if not 0 <= padding <= MOST_PADDING:
        raise BadInput(f"padding should be a share of the box from 0 to {MOST_PADDING:,}, got {padding:g}")
    if square and view != "crop":
        raise BadInput(f"only a crop can be square; {view} keeps the size of the image")
    cut = Cut(view, float(padding), square)
    samples = {sample.id: sample for sample in images.samples}
    chosen = list(instances(images.truths, together=together))
    if not chosen:
        raise BadInput(f"{images.name} has no objects that could be cut out")
    cropped = [_sample_of(samples[one.image], one, cut) for one in chosen]
    boxes = {sample.id: one.box for sample, one in zip(cropped, chosen, strict=True)}
    title = name or f"{'objects' if view == 'crop' else f'objects {view}'} of {images.name}"
    find = CropsOf(images, samples, boxes, cut)
    notes = (f"{len(cropped):,} objects in {len({one.image for one in chosen}):,} images: {cut}",)
    location = None if images.location is None else location_of(images.location, cut, together)
    return ImageList(title, cropped, images.classes, find, location=location, notes=notes, credits=images.credits)


def location_of(location: str, cut: Cut, together: bool) -> str:
    """The location that opens the crops again."""
    options = {**cut._asdict(), "together": together}
    return f"crops:{location}?" + "&".join(f"{option}={quote(str(value))}" for option, value in options.items())


@layout(
    holds="a dataset with ground-truth boxes; every object is an image of its own",
    labels="the class of the object",
    example=COCO_EXAMPLE,
)
def open_crops(
    location: str,
    *,
    view: ObjectView = "crop",
    padding: float | str = 0.0,
    square: bool | str = False,
    together: bool | str = False,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """An image for every object of the dataset with boxes at a location."""
    from shiftproof.datasets import open_dataset

    return crops(
        open_dataset(location, classes=classes),
        view=view,
        padding=number("padding", padding),
        square=yes_or_no("square", square),
        together=yes_or_no("together", together),
        name=name,
    )


class Instance(NamedTuple):
    """One object of a dataset, or all of a class in an image."""

    image: str
    number: int  # of the box in its image
    box: tuple[float, float, float, float]
    label: int

    @property
    def id(self) -> str:
        """The id of its crop."""
        # three digits, so that ids sort like boxes
        return f"{self.image}/{self.number:03d}"


def instances(truths: Truths, *, together: bool = False) -> Iterator[Instance]:
    """The objects to crop, in the order of the boxes; `together` takes one box over all of a class in an image."""
    from shiftproof.metrics.objects import covering_boxes  # here, so that recognition does not load all metrics

    order = np.argsort(truths.image, kind="stable")
    image = truths.image[order]
    numbers = np.arange(len(image)) - np.searchsorted(image, image)
    kept = ~(truths.crowd | truths.ignored)[order]
    image, numbers, boxes, labels = image[kept], numbers[kept], truths.boxes[order][kept], truths.classes[order][kept]
    if together:
        pairs = np.stack([image, labels], axis=1)
        _, first, groups = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        boxes = covering_boxes(boxes, groups.reshape(-1))
        again = np.lexsort((numbers[first], image[first]))
        image, numbers, boxes, labels = image[first][again], numbers[first][again], boxes[again], labels[first][again]
    rows = zip(image.tolist(), numbers.tolist(), boxes.tolist(), labels.tolist(), strict=True)
    for place, box_number, (left, top, right, bottom), label in rows:
        yield Instance(truths.ids[place], box_number, (left, top, right, bottom), label)


def known_size(sample: Sample) -> tuple[int, int] | None:
    """Width and height of an image, where they are among its facts."""
    width, height = sample.facts.get("width"), sample.facts.get("height")
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _sample_of(sample: Sample, one: Instance, cut: Cut) -> Sample:
    left, top, right, bottom = one.box
    facts: dict[str, Fact] = {
        **sample.facts,
        "longer_side": round(max(right - left, bottom - top), 2),
        "cut": str(cut),
    }
    size = known_size(sample)
    if size is not None:
        from shiftproof.metrics.objects import object_share, scale_factor

        box, sizes = np.array([one.box]), np.array([size])
        facts["share"] = round(float(object_share(box, sizes)[0]), 6)
        facts["scale_factor"] = float(scale_factor(box, sizes=sizes)[0])
    return Sample(one.id, (one.label,), facts)


PHOTOS = "photos"
"""Where the photos lie, in the record beside written crops; paths are relative to the folder of the record."""


def crop_sources(crops: ImageList, photos: ImageList, *, name: str | None = None) -> ImageList:
    """Every photo that some crop is of, once, labelled with the classes of its crops.

    A crop is of the photo that its id begins with, else of the one of its own id, whatever their endings, else of the only
    one of its file name. Crops of no photo are counted in the notes.
    """
    known = _Known.of(photos)
    labels: dict[str, set[int]] = defaultdict(set)
    strange = []
    for crop in crops.samples:
        photo = known.photo_of(crop.id)
        if photo is None:
            strange.append(crop.id)
        else:
            labels[photo].update(crop.labels)
    if not labels:
        raise BadInput(
            f"none of the {len(crops.samples):,} crops of {crops.name} is of a photo of {photos.name}: no photo is called "
            f"as {listed(strange, most=1)} is"
        )
    samples = [
        dataclasses.replace(photo, labels=tuple(sorted(labels[photo.id])), boxes=None)
        for photo in photos.samples
        if photo.id in labels
    ]
    lost = (f"{len(strange):,} crops are of no photo there: {listed(strange, most=3)}",) if strange else ()
    notes = (f"{len(samples):,} photos of {photos.name}, out of which {len(crops.samples):,} crops were cut", *lost)
    return ImageList(
        name or f"photos of {crops.name}", samples, crops.classes, photos.find, notes=notes, credits=photos.credits
    )


@layout(
    holds="crops; the photos that they were cut out of are the images",
    labels="the classes of the crops",
    example=Example(COCO_EXAMPLE.files, "crops:boxes.json"),
)
def open_crop_sources(
    location: str, *, images: str | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The photos of the crops at a location: those in `images`, else where the crops say that they were cut out of."""
    from shiftproof.datasets import open_dataset

    crops = open_dataset(location, classes=classes)
    if images is None and isinstance(crops.find, CropsOf):
        return crop_sources(crops, crops.find.images, name=name)
    told = None if images else _photos_told(location)
    images = images or told
    if images is None:
        raise BadInput(f"{location} does not say where its photos are; say it, as in crop-sources:{location}?images=photos")
    found = crop_sources(crops, open_dataset(images), name=name)
    return (
        found
        if told is None
        else dataclasses.replace(found, notes=(*found.notes, f"the photos are at {told}, as {RECORD} says"))
    )


def _photos_told(location: str) -> str | None:
    """Where the record beside crops says that their photos are; None where it says nothing."""
    if not os.path.isdir(location):
        return None
    root = location if load_record(location) else os.path.dirname(os.path.abspath(location))
    told = (load_record(root) or {}).get(PHOTOS)
    if not told:
        return None
    place = seen_from_here(str(told), root)
    if "crop-sources:" in place:  # it could lead back to the same record
        raise BadInput(
            f"{root} says that its photos are those of other crops, {place[:200]}; say where they are, with ?images="
        )
    if os.path.isabs(place) and not os.path.exists(place):
        raise BadInput(
            f"the photos of {location} were at {place}, and are not there any more; say where they are, as in "
            f"crop-sources:{location}?images=photos"
        )
    return place


def seen_from(location: str, folder: str | Path) -> str | None:
    """A location with its paths relative to a folder, so that both can move together; None where there is no way.

    >>> seen_from("/tmp", "/tmp/sets/hard")
    '../..'
    """
    from shiftproof.datasets import with_paths

    def change(text: str) -> str:
        is_path = os.path.isabs(text) and os.path.exists(text)
        return Path(os.path.relpath(text, folder)).as_posix() if is_path else text

    try:
        return with_paths(location, change)
    except ValueError:  # another drive
        return None


def seen_from_here(location: str, folder: str | Path) -> str:
    """The location that `seen_from` made relative to this folder; absolute paths stay."""
    from shiftproof.datasets import with_paths

    def change(text: str) -> str:
        return os.path.abspath(os.path.join(folder, text)) if Path(text).parts[:1] == (os.pardir,) else text

    return with_paths(location, change)


@dataclasses.dataclass(frozen=True)
class _Known:
    """Photos by their ids, by these without endings, and by file names that only one has."""

    ids: frozenset[str]
    bare: Mapping[str, str]
    names: Mapping[str, str]

    @classmethod
    def of(cls, photos: ImageList) -> _Known:
        ids = [photo.id for photo in photos.samples]
        often = Counter(_name(one) for one in ids)
        names = {_name(one): one for one in ids if often[_name(one)] == 1}
        return cls(frozenset(ids), {_bare(one): one for one in ids}, names)

    def photo_of(self, crop: str) -> str | None:
        for one in (image_of(crop), crop):
            if one in self.ids:
                return one
        found = (self.bare.get(_bare(one)) or self.names.get(_name(one)) for one in (image_of(crop), crop))
        return next((one for one in found if one), None)


def _bare(image: str) -> str:
    return os.path.splitext(image)[0]


def _name(image: str) -> str:
    return os.path.basename(_bare(image))
