"""The image set that every layout ends as: a list of samples, and a rule that finds the bytes of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftproof.image_sets.decoding import decode_image
from shiftproof.types import Classes, Decoder, Image, ImageSetRef, ImageSource, Sample, Truths, fingerprint_of


@dataclass(frozen=True)
class ImageList:
    """Samples in the order of their ids, with what is known about the set as a whole.

    `notes` say in sentences what was recognised and what was passed over; `published` is the name of the published set
    these images are, or look like, as in `published.PUBLISHED`; `cut` is how pictures that we wrote were cut out of images;
    `truths` are the objects in them, where the set tells.
    """

    name: str
    samples: Sequence[Sample]
    classes: Classes | None
    find: Callable[[str], ImageSource]
    location: str | None = None
    notes: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()
    published: str | None = None
    cut: str | None = None
    truths: Truths | None = None

    @cached_property
    def ref(self) -> ImageSetRef:
        keys = self.classes.keys if self.classes else ()
        rows = [(sample.id, sample.labels, sample.facts) for sample in self.samples]
        return ImageSetRef(self.name, fingerprint_of(keys, rows), self.location)

    def source(self, sample: Sample) -> ImageSource:
        return self.find(sample.id)


def file_stamp(path: str) -> str:
    """What changes when the file does."""
    status = os.stat(path)
    return f"{path}\0{status.st_size}\0{status.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class FileImage:
    """An image that is a file of its own."""

    path: str

    def stamp(self) -> str:
        return file_stamp(self.path)

    def read(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        return decode_image(data, decoder=decoder)


@dataclass(frozen=True)
class FilesBelow:
    """Finds an image whose id is its path below the root."""

    root: str

    def __call__(self, image_id: str) -> FileImage:
        return FileImage(os.path.join(self.root, image_id))
