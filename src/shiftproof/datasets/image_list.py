"""The dataset that every layout is opened as: a list of samples, and a function that finds the bytes of each."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex, TypeVar

from shiftproof.datasets.sample_table import counted_samples, samples_by_id, samples_fingerprint
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import impossible_name, read_regular
from shiftproof.places import is_url
from shiftproof.types import (
    Classes,
    Dataset,
    DatasetRef,
    Decoder,
    Image,
    ImageSource,
    Origin,
    Sample,
    Truths,
)
from shiftproof.types.shown import counted, html_table, in_a_line

Item = TypeVar("Item")

LARGEST_FILE = 2**31
"""Largest image file in bytes; no picture within the pixel limit takes as many."""


class DatasetBase:
    """What a class of datasets need not say again: its reference, how it shows itself, and members that most leave empty."""

    name: str
    samples: Sequence[Sample]
    classes: Classes | None
    location: str | None = None  # what opens the dataset again; None for one that lives in memory
    notes: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()
    published: str | None = None
    cut: str | None = None
    truths: Truths | None = None
    origin: Origin | None = None

    @cached_property
    def ref(self) -> DatasetRef:
        return DatasetRef(self.name, self.fingerprint(), self.location)

    def __repr__(self) -> str:
        return in_a_line(self, self.ref.name, *self._counts())

    def _repr_html_(self) -> str:
        """For notebooks: counts and classes, where the images lie, and what is known about them."""
        told = [("images", ", ".join(self._counts()))]
        told += [("classes", self.classes.in_short)] if self.classes else []
        told += [("location", self.location)] if self.location else []
        told += [("note", note) for note in self.notes] + [("credit", credit) for credit in self.credits[:5]]
        return html_table(self.ref.name, ("", ""), told)

    def _counts(self) -> list[str]:
        labelled = counted_samples(self.samples).labelled
        classes = [counted(len(self.classes), "class", "classes")] if self.classes else []
        return [counted(len(self.samples), "image"), f"{labelled:,} labelled", *classes]

    def fingerprint(self) -> str:
        """A digest of ids, labels and facts."""
        keys = self.classes.keys if self.classes else ()
        return samples_fingerprint(keys, self.samples)


@dataclass(frozen=True, repr=False)
class ImageList(DatasetBase):
    """Samples in the order of their ids, with what is known about the dataset as a whole; see `types.Dataset`."""

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
    origin: Origin | None = None

    def source(self, sample: Sample) -> ImageSource:
        return self.find(sample.id)


def origin_of(images: Dataset) -> Origin:
    """What a dataset was made of: itself, where it is as it was opened."""
    return images.origin or Origin(images.ref.name, len(images.samples))


class StoredImage:
    """An image that is stored as it is, and not made from another when it is read."""

    __slots__ = ()

    @property
    def source(self) -> None:
        return None


class EncodedImage(StoredImage):
    """One that is stored as the bytes of an image file."""

    __slots__ = ()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        from shiftproof.datasets.decoding import decode_image  # datasets are listed and checked without Pillow

        return decode_image(data, decoder=decoder)


def spread_over(samples: Sequence[Item], limit: int | None) -> Sequence[Item]:
    """`limit` samples at even distances, so that every part of the dataset is among them."""
    if limit is None or limit >= len(samples):
        return samples
    if limit < 1:
        raise BadInput(f"limit should be a number of images, at least 1, got {limit}")
    return [samples[place * len(samples) // limit] for place in range(limit)]


def some_of(images: ImageList, limit: int | None) -> ImageList:
    """At most this many images, spread evenly: datasets are ordered by class, and the first would be of few."""
    return dataclasses.replace(images, samples=spread_over(images.samples, limit))


def file_stamp(path: str) -> str:
    """Path, size and time of a file, which change when the file does."""
    if problem := impossible_name(path):
        raise OSError(errno.EINVAL, problem)
    if is_url(path):
        return f"{path}\0{_asked_version(path)}"
    status = os.stat(path)
    return f"{path}\0{status.st_size}\0{status.st_mtime_ns}"


def _asked_version(url: str) -> str:
    from shiftproof import remote

    found = remote.known(url, fresh=True).version
    if found is None:
        raise OSError(errno.ENOTSUP, "the server does not tell when a file has changed")
    return found


@dataclass(frozen=True, slots=True)
class FileImage(EncodedImage):
    """An image that is a file of its own."""

    path: str  # or URL
    version: str | None = None  # at a URL, where a listing told it: changes when the file does
    digest: str | None = None  # where a manifest told it

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if type(self) is not FileImage:  # which may have more to it
            return object.__reduce_ex__(self, protocol)
        # each is sent to a worker, and what dataclasses with slots do by themselves takes several times as long
        return FileImage, (self.path, self.version, self.digest)

    def stamp(self) -> str:
        return file_stamp(self.path) if self.version is None else f"{self.path}\0{self.version}"

    def read(self) -> bytes:
        if self.version is None:
            return read_regular(self.path, most=LARGEST_FILE)
        from shiftproof import remote

        return remote.read(self.path, self.version)


def file_image(path: str, digest: str | None = None) -> FileImage:
    """The image at a path or URL, of which a listing may have told the version, and a manifest the digest."""
    if not is_url(path):
        return FileImage(path, digest=digest)
    from shiftproof import remote

    return FileImage(path, remote.listed_version(path), digest)


def is_away(source: ImageSource) -> bool:
    """Whether the bytes of an image lie at a URL."""
    return is_url(getattr(source, "path", ""))


def fetch_images(sources: Iterable[ImageSource]) -> None:
    """Brings those images that lie at a URL into the cache, many at a time; others cost nothing."""
    away = list(filter(is_away, sources))
    if away:
        from shiftproof import remote

        remote.fetch_together(away, lambda source: source.read())


@dataclass(frozen=True)
class FilesBelow:
    """Finds an image whose id is its path below the root."""

    root: str

    def __call__(self, image_id: str) -> FileImage:
        return file_image(os.path.join(self.root, image_id))


@dataclass(frozen=True, slots=True)
class BrokenImage(StoredImage):
    """An image that is skipped for a reason found when its dataset was opened, such as broken boxes."""

    reason: str

    def stamp(self) -> None:
        return None

    def read(self) -> bytes:
        return f"broken image\0{self.reason}".encode("utf-8", "surrogateescape")

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - there is nothing to decode
        raise UnreadableImage(self.reason)


@dataclass(frozen=True)
class SkipBroken:
    """Finds images as another function does, but for those that are skipped for a known reason."""

    find: Callable[[str], ImageSource]
    reasons: Mapping[str, str]  # by id

    def __call__(self, image_id: str) -> ImageSource:
        reason = self.reasons.get(image_id)
        return self.find(image_id) if reason is None else BrokenImage(reason)


def broken_note(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """The note on images that are skipped for broken annotations."""
    return tuple(
        f"{len(reasons):,} images are skipped, such as {image_id}: {reasons[image_id]}" for image_id in sorted(reasons)[:1]
    )


def skip_broken(find: Callable[[str], ImageSource], reasons: Mapping[str, str], images: int) -> Callable[[str], ImageSource]:
    """The same function with broken images skipped; BadInput with the first reason where all are broken."""
    if reasons and len(reasons) == images:
        raise BadInput(next(iter(reasons.values())))
    return SkipBroken(find, reasons) if reasons else find


def image_opener(datasets: Iterable[Dataset]) -> Callable[[DatasetRef, str], Image]:
    """A function that opens images of these datasets by id; UnreadableImage for one of another dataset."""
    by_place = {images.ref.place: images for images in datasets}
    samples = {key: samples_by_id(images.samples) for key, images in by_place.items()}

    def open_image(dataset: DatasetRef, image_id: str) -> Image:
        sample = samples.get(dataset.place, {}).get(image_id)
        if sample is None:
            raise UnreadableImage(f"{dataset.name} is not at hand")
        source = by_place[dataset.place].source(sample)
        return source.decode(source.read())

    return open_image


def decoded(source: ImageSource) -> Image | str:
    """The image, or why it cannot be read."""
    try:
        return source.decode(source.read())
    except UnreadableImage as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
