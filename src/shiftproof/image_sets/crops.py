"""The objects of a boxed set as images of their own, cut out when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, get_args
from urllib.parse import quote

import numpy as np

from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets.cutting import Cut, Look, cut_out
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.options import number, yes_or_no
from shiftproof.metrics.object_size import covering_boxes, object_share
from shiftproof.metrics.scale_factors import scale_factor
from shiftproof.types import Classes, Decoder, Fact, Image, ImageSet, ImageSource, Sample, Truths

MOST_PADDING = 1000

PIXELS = 1
"""Raised whenever a crop comes out otherwise than before, so that stored answers to the old crops are not used."""


@dataclass(frozen=True, slots=True)
class CropImage:
    """One object; its bytes are those of the image it is cut from, and how it is cut."""

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
    """Finds a crop by its id, behind the image it is cut from."""

    images: ImageList
    samples: Mapping[str, Sample]
    boxes: Mapping[str, tuple[float, float, float, float]]
    cut: Cut

    def __call__(self, crop_id: str) -> CropImage:
        return CropImage(self.images.source(self.samples[image_of(crop_id)]), self.boxes[crop_id], self.cut)


def image_of(crop_id: str) -> str:
    """The id of the image that an object was cut out of.

    >>> image_of("street/a.jpg/002")
    'street/a.jpg'
    """
    return crop_id.rpartition("/")[0]


def boxes_of_crops(images: ImageSet) -> Mapping[str, tuple[float, float, float, float]]:
    """Where in its image each object of a set of crops lies, by its id; nothing for sets that are none."""
    find = getattr(images, "find", None)
    return find.boxes if isinstance(find, CropsOf) else {}


def crops(
    images: ImageList,
    *,
    look: Look = "crop",
    padding: float = 0.0,
    square: bool = False,
    together: bool = False,
    name: str | None = None,
) -> ImageList:
    """An image for every object of a boxed set, labelled with its class; crowds and ignored objects are left out.

    A crop's id is that of its image and the number of its box in it, as in ``a.jpg/002``; its facts are those of the image,
    the `longer_side` of the box in pixels and, where the image's size is known, its `share` of the image and its
    `scale_factor`. `together` takes one box over all instances of a class in an image, as ImageNet-A-Plus does. `square`
    widens the shorter side of a crop; what then lies beyond the image is neutral.
    """
    if images.truths is None or images.classes is None:
        raise BadInput(f"{images.name} has no boxes, so no objects can be cut out of it")
    if look not in get_args(Look):
        raise UnknownName("look of a crop", look, get_args(Look))
    if not 0 <= padding <= MOST_PADDING:
        raise BadInput(f"padding should be a share of the box from 0 to {MOST_PADDING:,}, got {padding:g}")
    if square and look != "crop":
        raise BadInput(f"only a crop can be square; {look} keeps the size of the image")
    cut = Cut(look, float(padding), square)
    samples = {sample.id: sample for sample in images.samples}
    chosen = list(instances(images.truths, together=together))
    if not chosen:
        raise BadInput(f"{images.name} has no objects that could be cut out")
    cropped = [_sample_of(samples[one.image], one, cut) for one in chosen]
    boxes = {sample.id: one.box for sample, one in zip(cropped, chosen, strict=True)}
    title = name or f"{'objects' if look == 'crop' else f'objects {look}'} of {images.name}"
    find = CropsOf(images, samples, boxes, cut)
    notes = (f"{len(cropped):,} objects in {len({one.image for one in chosen}):,} images: {cut}",)
    location = None if images.location is None else location_of(images.location, cut, together)
    return ImageList(title, cropped, images.classes, find, location=location, notes=notes, credits=images.credits)


def location_of(location: str, cut: Cut, together: bool) -> str:
    """What opens the crops of the images at a location again."""
    options = {**cut._asdict(), "together": together}
    return f"crops:{location}?" + "&".join(f"{option}={quote(str(value))}" for option, value in options.items())


def open_crops(
    location: str,
    *,
    look: Look = "crop",
    padding: float | str = 0.0,
    square: bool | str = False,
    together: bool | str = False,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """An image for every object of the boxed set at a location."""
    from shiftproof.image_sets import open_images

    return crops(
        open_images(location, classes=classes),
        look=look,
        padding=number("padding", padding),
        square=yes_or_no("square", square),
        together=yes_or_no("together", together),
        name=name,
    )


class Instance(NamedTuple):
    """One object of a set, or all of a class in an image."""

    image: str
    number: int  # of the box in its image
    box: tuple[float, float, float, float]
    label: int

    @property
    def id(self) -> str:
        """What its crop is called."""
        # three digits, so that ids sort like boxes
        return f"{self.image}/{self.number:03d}"


def instances(truths: Truths, *, together: bool = False) -> Iterator[Instance]:
    """What can be cut out, in the order of the boxes; `together` takes one box over all of a class in an image."""
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
    """Width and height of an image, where its set tells."""
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
        box, sizes = np.array([one.box]), np.array([size])
        facts["share"] = round(float(object_share(box, sizes)[0]), 6)
        facts["scale_factor"] = float(scale_factor(box, sizes=sizes)[0])
    return Sample(one.id, (one.label,), facts)
