"""A dataset and stylised copies of its images beside it, as ImageNet and Stylized-ImageNet are trained on together."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import inner_root, list_images
from shiftproof.errors import BadInput
from shiftproof.types import Classes, ImageSource, Sample

COPIES = "stylized/"
"""How the id of a copy begins."""

BY_STYLE = "-stylized-"
"""Between the name of a photo and that of a style, where copies are named after both."""


@dataclass(frozen=True)
class PhotoOrCopy:
    """Finds an image of the dataset, or a copy below its own folder."""

    photos: Callable[[str], ImageSource]
    copies: FilesBelow

    def __call__(self, image_id: str) -> ImageSource:
        return self.copies(image_id.removeprefix(COPIES)) if image_id.startswith(COPIES) else self.photos(image_id)


@layout(
    holds="any other dataset, and a folder of stylised copies of its images (Stylized-ImageNet)",
    labels="those of the image",
    example=Example(
        {"photos/cat/a.png": "", "photos/dog/b.png": "", "copies/cat/a.png": "", "copies/dog/b-stylized-waves.png": ""},
        opened="photos",
        options={"copies": "copies"},
    ),
)
def open_stylized(
    location: str, *, copies: str | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images at a location and their stylised copies, which have the same paths below another folder.

    Endings may differ, and a copy may be named after its style too: ``a-stylized-waves.jpg`` is one of ``a.jpg``. A photo is
    one cluster with its copies.
    """
    from shiftproof.datasets import open_dataset

    if copies is None:
        raise BadInput(f"say where the stylised copies are, as in stylized:{location}?copies=stylized-photos")
    images = open_dataset(location, classes=classes)
    root = inner_root(os.fspath(copies))
    photos = {os.path.splitext(sample.id)[0]: sample for sample in images.samples}
    found = [(copy, photos.get(_stem(copy))) for copy in list_images(root).ids()]
    samples = [_beside(sample, sample.id, "no") for sample in images.samples]
    samples += [_beside(sample, f"{COPIES}{copy}", "style") for copy, sample in found if sample is not None]
    if len(samples) == len(images.samples):
        raise BadInput(f"{copies} holds no copy of an image of {location}: copies have the paths of their photos")
    if len({sample.id for sample in samples}) < len(samples):
        raise BadInput(f"{location} has a folder {COPIES.rstrip('/')} of its own; copies could not be told from its images")
    strangers = sum(sample is None for _, sample in found)
    notes = (f"copies of no image of the dataset, left out: {strangers}",) if strangers else ()
    return ImageList(
        name or f"{images.ref.name} and stylised copies",
        sorted(samples, key=lambda sample: sample.id),
        images.classes,
        PhotoOrCopy(images.find, FilesBelow(root)),
        notes=(*images.notes, *notes),
    )


def _stem(copy: str) -> str:
    """The path of a copy's photo without its ending.

    >>> _stem("n01440764/a-stylized-waves.png"), _stem("n01440764/a.JPEG")
    ('n01440764/a', 'n01440764/a')
    """
    path = PurePosixPath(copy)
    return str(path.with_name(path.stem.partition(BY_STYLE)[0] or path.stem))


def _beside(photo: Sample, image_id: str, varied: str) -> Sample:
    return replace(photo, id=image_id, facts={**photo.facts, "photo": photo.id, "varied": varied}, boxes=None)
