"""The boxes that people drew, put on the images they drew them on."""

from __future__ import annotations

from collections.abc import Mapping

from shiftproof.curation.boxed_objects import size_of
from shiftproof.curation.origins import origin_of
from shiftproof.curation.project import Project
from shiftproof.curation.screens import EXTREME_POINTS
from shiftproof.errors import BadInput
from shiftproof.image_sets.boxed import BoxedImage, Object
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.with_boxes import with_boxes
from shiftproof.review.verdicts import Verdict


def drawn_boxes(project: Project, verdicts: Mapping[str, Verdict], images: ImageList) -> ImageList:
    """The images of a set of which people kept a box, with one box for each class of which they kept one.

    `images` is the set that a project of extreme points was made from, or a part of it. A box is the median of those that
    were drawn.
    """
    if project.screen_name != EXTREME_POINTS.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not where objects are")
    samples = {sample.id: sample for sample in images.samples}
    objects: dict[str, list[Object]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for item in project.items:
        verdict, (_, image_id) = verdicts.get(item.id), origin_of(item)
        if verdict is None or verdict.outcome != "kept" or verdict.box is None or image_id not in samples:
            continue
        size = size_of(images, samples[image_id])
        if isinstance(size, str):
            raise BadInput(f"{image_id} cannot be read any more: {size}")
        left, top, right, bottom = verdict.box
        box = (left * size[0], top * size[1], right * size[0], bottom * size[1])
        objects.setdefault(image_id, []).append(Object(str(item.label), box))
        sizes[image_id] = size
    if not objects:
        raise BadInput(f"nobody has drawn a box on an image of {images.name} that was kept in {project.title}")
    boxed = [BoxedImage(image_id, some, sizes[image_id]) for image_id, some in objects.items()]
    return with_boxes(images, boxed, classes=images.classes)
