"""The image set that every layout ends as: a list of samples, and a rule that finds the bytes of each."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import impossible_name, read_regular
from shiftproof.image_sets.decoding import decode_image
from shiftproof.types import Classes, Decoder, Image, ImageSetRef, ImageSource, Sample, Truths, fingerprint_of

LARGEST_FILE = 2**31
"""Bytes of an image file that are read, at most; no picture of a size that is decoded takes as many."""


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
    if problem := impossible_name(path):
        raise OSError(errno.EINVAL, problem)
    status = os.stat(path)
    return f"{path}\0{status.st_size}\0{status.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class FileImage:
    """An image that is a file of its own."""

    path: str

    def stamp(self) -> str:
        return file_stamp(self.path)

    def read(self) -> bytes:
        return read_regular(self.path, most=LARGEST_FILE)

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        return decode_image(data, decoder=decoder)


@dataclass(frozen=True)
class FilesBelow:
    """Finds an image whose id is its path below the root."""

    root: str

    def __call__(self, image_id: str) -> FileImage:
        return FileImage(os.path.join(self.root, image_id))


@dataclass(frozen=True, slots=True)
class BrokenImage:
    """An image that nobody can use, for a reason that was found when its set was opened, as in its file of boxes."""

    reason: str

    def stamp(self) -> None:
        return None

    def read(self) -> bytes:
        return f"broken image\0{self.reason}".encode("utf-8", "surrogateescape")

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - there is nothing to decode
        raise UnreadableImage(self.reason)


@dataclass(frozen=True)
class AllBut:
    """Finds images as another rule does, but for those that are set aside whatever their bytes are."""

    find: Callable[[str], ImageSource]
    reasons: Mapping[str, str]  # by id

    def __call__(self, image_id: str) -> ImageSource:
        reason = self.reasons.get(image_id)
        return self.find(image_id) if reason is None else BrokenImage(reason)


def broken_note(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """How many images are set aside for what is said about them, in a sentence."""
    return tuple(
        f"{len(reasons):,} images are set aside, such as {image_id}: {reasons[image_id]}" for image_id in sorted(reasons)[:1]
    )


def all_but(find: Callable[[str], ImageSource], reasons: Mapping[str, str], images: int) -> Callable[[str], ImageSource]:
    """The same rule, with broken members set aside; BadInput with the first reason where they are all that there is."""
    if reasons and len(reasons) == images:
        raise BadInput(next(iter(reasons.values())))
    return AllBut(find, reasons) if reasons else find
