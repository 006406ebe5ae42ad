"""Boxes of a file put on the images of any set: on frames of a clip, say, which no file of boxes can open."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

from shiftproof.errors import BadInput
from shiftproof.image_sets.boxed import BoxedImage, boxed_list, keys_of
from shiftproof.image_sets.class_keys import places_of
from shiftproof.image_sets.coco import coco_images
from shiftproof.image_sets.frame_sets import frame_itself
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.voc_xml import xml_images
from shiftproof.types import Classes, Sample


def with_boxes(
    images: ImageList, boxed: Sequence[BoxedImage], *, classes: Classes | None = None, name: str | None = None
) -> ImageList:
    """The images of a set that are among the boxed ones, labelled with the classes of their objects.

    The others are left out, and counted. A frame that is seen from several anchors has its boxes each time. What the set
    says about an image stands before what is said beside its boxes.
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


def open_with_boxes(
    location: str, *, boxes: str | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images at a location with the boxes of a COCO file, or of a folder of XML files as ImageNet-VID has them.

    A COCO file names the images by their ids in the set, an XML file lies where its image does. Classes are those of the
    COCO file; with XML files those of the set, where it has any.
    """
    from shiftproof.image_sets import open_images

    if boxes is None:
        raise BadInput(f"say where the boxes are, as in boxed:{location}?boxes=boxes.json")
    images = open_images(location)
    if os.path.isdir(boxes):
        ids = dict.fromkeys(frame_itself(sample.id) for sample in images.samples)
        return with_boxes(images, xml_images(boxes, ids), classes=classes or images.classes, name=name)
    boxed, categories = coco_images(boxes)
    return with_boxes(images, boxed, classes=classes or categories, name=name)
