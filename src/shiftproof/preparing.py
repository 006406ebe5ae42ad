"""From stored bytes to a model's inputs: the part of a run that worker processes do, which therefore imports little."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from shiftproof import catalog
from shiftproof.digests import digest_of, stamp_of
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.parallel import Arrays
from shiftproof.types import CROPS, Condition, CroppingPreparation, Image, ImageSource, Inputs, Preparation, Sample

PICTURES = ("image", "whole", "model-size", *CROPS)
"""What a condition may act on, beside the pictures of the editions."""

REMEMBERED = 64 * 2**20
"""Bytes of pictures that a worker remembers: those of a few batches, which many conditions ask for in turn."""

CROPPED = 4
"""Images whose ten crops a worker remembers: they are asked for one image after the other."""


class Job(NamedTuple):
    """Some images of a run, each with its condition, and how they are prepared."""

    samples: list[Sample]
    sources: list[ImageSource]
    conditions: list[Condition]
    preparation: Preparation
    again: bool = False  # other conditions of the same images follow


class Read(NamedTuple):
    """What became of one image: its digest and stamp, and the reason where it cannot be used."""

    digest: str | None
    stamp: str | None
    reason: str | None
    size: tuple[int, int] | None = None  # height and width of the picture that was prepared


def prepare(job: Job) -> tuple[Arrays, list[Read]]:
    """The input of every readable image, in order, and what became of each image."""
    arrays: Arrays = []
    read: list[Read] = []
    # once an image, which may be there under many conditions
    sources = dict(zip((sample.id for sample in job.samples), job.sources, strict=True))
    stamps = {image_id: stamp_of(source) for image_id, source in sources.items()}
    for sample, source, condition in zip(job.samples, job.sources, job.conditions, strict=True):
        stamp, reason = stamps[sample.id], None
        size: tuple[int, int] | None = None
        digest: str | None = None
        try:
            data, digest = _bytes_of(source, stamp, job)
            if condition.picture in CROPS:
                arrays.append(_crop_of(sample, source, data, digest, condition, job))
            else:
                picture = _picture_of(sample, source, data, digest, condition, job)
                arrays.append(_input_of(sample, picture, condition, job.preparation))
                size = picture.shape[:2]
        except UnreadableImage as error:
            reason = str(error)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
        read.append(Read(digest, stamp, reason, size))
    return arrays, read


def check_condition(condition: Condition) -> None:
    """An error now where the condition names what there is not, or needs a library that is missing."""
    if condition.name != "clean":
        catalog.CORRUPTIONS.load(condition.name)
    if condition.edition is not None:
        catalog.EDITIONS.load(condition.edition)
    if condition.picture not in PICTURES and condition.picture not in catalog.EDITIONS:
        raise UnknownName("picture", condition.picture, [*PICTURES, *catalog.EDITIONS])
    if condition.picture in CROPS and (condition.name != "clean" or condition.output != "raw"):
        raise BadInput(f"one of ten crops is looked at as it is, not under {condition}")
    if condition.frost is not None and condition.name != "frost":
        raise BadInput(f"frost pictures are for frost, not for {condition.name}")


def _input_of(sample: Sample, picture: Image, condition: Condition, preparation: Preparation) -> Inputs:
    if condition.name != "clean" or condition.output != "raw":
        from shiftproof.corruptions.applying import apply  # only where pixels change: it loads OpenCV

        picture = apply(condition, picture, key=sample.id)
    return preparation.from_image(picture) if condition.picture == "image" else preparation.from_picture(picture)


def _bytes_of(source: ImageSource, stamp: str | None, job: Job) -> tuple[bytes | None, str]:
    """The stored bytes and their digest; no bytes where a picture of them is remembered."""
    digest = _memory.digest(stamp) if job.again and stamp else None
    if digest is not None:
        return None, digest
    data = source.read()
    digest = digest_of(data)
    if job.again and stamp:
        _memory.keep_digest(stamp, digest)
    return data, digest


def _picture_of(
    sample: Sample, source: ImageSource, data: bytes | None, digest: str, condition: Condition, job: Job
) -> Image:
    """The image as the condition sees it."""
    preparation = job.preparation
    rule = repr(preparation) if condition.picture == "model-size" else preparation.decoder
    key = (sample.id, digest, condition.picture, rule)
    picture = _memory.picture(key) if job.again else None
    if picture is None:
        picture = _cut(_decoded(source, data, preparation), condition.picture, preparation)
        if job.again:
            _memory.keep_picture(key, picture)
    return picture


def _crop_of(sample: Sample, source: ImageSource, data: bytes | None, digest: str, condition: Condition, job: Job) -> Inputs:
    """The input of one of the ten crops; all are made together, since the others are mostly asked for next."""
    key = (sample.id, digest, repr(job.preparation))
    crops = _memory.crops(key) if job.again else None
    if crops is None:
        if not isinstance(job.preparation, CroppingPreparation):
            raise BadInput("the model prepares images in a way of its own, which knows no corners to crop")
        crops = job.preparation.from_crops(_decoded(source, data, job.preparation))
        _memory.keep_crops(key, crops)
    return crops[condition.picture]


def _decoded(source: ImageSource, data: bytes | None, preparation: Preparation) -> Image:
    return source.decode(source.read() if data is None else data, decoder=preparation.decoder)


def _cut(image: Image, picture: str, preparation: Preparation) -> Image:
    if picture in ("image", "whole"):
        return image
    if picture == "model-size":
        return preparation.cut(image)
    cut: Image = catalog.EDITIONS.load(picture).picture(image)
    return cut


class _Memory:
    """The pictures used last, and the digests of their files, for all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pictures: OrderedDict[tuple[str, ...], Image] = OrderedDict()
        self._held = 0
        self._crops: OrderedDict[tuple[str, ...], Mapping[str, Inputs]] = OrderedDict()
        self._digests: OrderedDict[str, str] = OrderedDict()

    def digest(self, stamp: str) -> str | None:
        with self._lock:
            return self._digests.get(stamp)

    def keep_digest(self, stamp: str, digest: str) -> None:
        with self._lock:
            self._digests[stamp] = digest
            if len(self._digests) > 4096:
                self._digests.popitem(last=False)

    def picture(self, key: tuple[str, ...]) -> Image | None:
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
            return self._pictures.get(key)

    def keep_picture(self, key: tuple[str, ...], picture: Image) -> None:
        with self._lock:
            if key not in self._pictures:
                self._pictures[key] = picture
                self._held += picture.nbytes
            while self._held > REMEMBERED and len(self._pictures) > 1:
                self._held -= self._pictures.popitem(last=False)[1].nbytes

    def crops(self, key: tuple[str, ...]) -> Mapping[str, Inputs] | None:
        with self._lock:
            return self._crops.get(key)

    def keep_crops(self, key: tuple[str, ...], crops: Mapping[str, Inputs]) -> None:
        with self._lock:
            self._crops[key] = crops
            if len(self._crops) > CROPPED:
                self._crops.popitem(last=False)


_memory = _Memory()
