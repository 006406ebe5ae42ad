"""From stored bytes to a model's inputs: what worker processes do, so this file imports little."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from inspect import signature
from typing import NamedTuple, cast

import numpy as np

from shiftproof import catalog
from shiftproof.corruptions.entry import check_kernels, corruption_of
from shiftproof.datasets.image_list import fetch_images
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.runs.digests import digest_of, stamp_of
from shiftproof.runs.processes import WarmUp
from shiftproof.runs.rows import CANNOT_BE_READ, NOT_AS_TOLD
from shiftproof.runs.workers import Arrays, Batch, room_for
from shiftproof.types import (
    CROPS,
    Condition,
    CroppingPreprocessing,
    Dataset,
    Image,
    ImageSource,
    InputForm,
    Inputs,
    LazyInputs,
    PlacingPreprocessing,
    Preprocessing,
    Sample,
)

PICTURES = ("image", "whole", "model-size", *CROPS)
"""What a condition may act on, beside the pictures of the editions."""

CACHED_BYTES = 64 * 2**20
"""Bytes of pictures that a worker caches: those of a few batches, which many conditions need in turn."""

CACHED_CROPS = 4
"""Images whose ten crops a worker caches: they are needed one image after the other."""


class Job(NamedTuple):
    """Some images of a run, each with its condition, and their preprocessing."""

    ids: list[str]
    sources: list[ImageSource]
    conditions: list[Condition]
    preprocessing: Preprocessing
    again: bool = False  # other conditions of the same images follow

    @classmethod
    def of(cls, images: Dataset, samples: Sequence[Sample], condition: Condition, preprocessing: Preprocessing) -> Job:
        """Some images of a dataset under one condition."""
        sources = [images.source(sample) for sample in samples]
        return cls([sample.id for sample in samples], sources, [condition] * len(samples), preprocessing)


class Read(NamedTuple):
    """What became of one image: its digest and stamp, and the reason where it cannot be used."""

    digest: str | None
    stamp: str | None
    reason: str | None
    size: tuple[int, int] | None = None  # height and width before preprocessing


def prepare(job: Job) -> tuple[Batch, list[Read]]:
    """The input of every readable image, in order, and what became of each image."""
    arrays: Arrays = []
    abilities = _Abilities(job.preprocessing)
    form = abilities.form
    # each input is written to its place in the batch at once
    room = None if form is None else room_for((len(job.ids), *form.shape), form.dtype)
    read: list[Read] = []
    # once an image, which may be there under many conditions
    sources = dict(zip(job.ids, job.sources, strict=True))
    fetch_images(sources.values())
    stamps = {image_id: stamp_of(source) for image_id, source in sources.items()}
    for image_id, source, condition in zip(job.ids, job.sources, job.conditions, strict=True):
        stamp, reason = stamps[image_id], None
        size: tuple[int, int] | None = None
        digest: str | None = None
        told: str | None = getattr(source, "digest", None)
        try:
            data, digest = _bytes_of(source, stamp, job)
            if told not in (None, digest):
                stamp, digest = None, told
                raise UnreadableImage(NOT_AS_TOLD)
            out = None if room is None else room[len(arrays)]
            if condition.picture in CROPS:
                crop = _placed(_crops_of(image_id, source, data, digest, job, abilities), condition.picture, out)
                if room is not None and crop is not out:  # of another form than other inputs
                    room, arrays = None, [array.copy() for array in arrays]
                arrays.append(crop)
            else:
                picture = _picture_of(image_id, source, data, digest, condition, job)
                arrays.append(_input_of(image_id, picture, condition, job.preprocessing, out))
                size = picture.shape[:2]
        except UnreadableImage as error:
            reason = str(error)
        except OSError as error:
            stamp, digest = None, told
            reason = f"{CANNOT_BE_READ}{error.strerror or error}"
        read.append(Read(digest, stamp, reason, size))
    return arrays if room is None else room[: len(arrays)], read


class _Abilities:
    """What a preprocessing can do, asked once a batch and only where it matters: protocols are slow to check."""

    def __init__(self, preprocessing: Preprocessing) -> None:
        self.preprocessing = preprocessing

    @cached_property
    def rule(self) -> str:
        """What its inputs depend on."""
        return repr(self.preprocessing)

    @cached_property
    def form(self) -> InputForm | None:
        """The form of every input; None where it is not known, or inputs are only returned, not placed."""
        placing = self.preprocessing
        places = isinstance(placing, PlacingPreprocessing) and _places_inputs(type(placing))
        return cast(PlacingPreprocessing, placing).form if places else None

    @cached_property
    def cropping(self) -> CroppingPreprocessing:
        if not isinstance(self.preprocessing, CroppingPreprocessing):
            raise BadInput("the model has a preprocessing of its own, which has no corner crops")
        return self.preprocessing


@cache
def _places_inputs(preprocessing: type) -> bool:
    """Whether inputs are written to where they are needed: a subclass may make them its own way, and only return them."""
    return all("out" in signature(getattr(preprocessing, name)).parameters for name in ("from_image", "from_picture"))


def warm_up_for(conditions: Iterable[Condition], preprocessing: Preprocessing) -> WarmUp:
    """What loads the libraries that jobs under these conditions need.

    One corruption loads three quarters of what all take; workers load the other kernels when they need them, not one after
    the other before the first worker is there.
    """
    one = next((condition for condition in conditions if _changes_pixels(condition)), None)
    return partial(_warm_up, one, type(preprocessing).__module__)


def _warm_up(condition: Condition | None, preprocessing: str) -> None:
    importlib.import_module("shiftproof.datasets.decoding")
    importlib.import_module(preprocessing)
    if condition is not None:
        _corrupted("", np.zeros((224, 224, 3), np.uint8), condition)


def check_condition(condition: Condition) -> None:
    """An error now where the condition names what there is not, or needs a library that is missing."""
    if condition.name != "clean":
        corruption_of(condition.name)
        check_kernels(f"corruption {condition.name!r}")
    if condition.edition is not None:
        catalog.EDITIONS.load(condition.edition)
    if condition.picture not in PICTURES and condition.picture not in catalog.EDITIONS:
        raise UnknownName("picture", condition.picture, [*PICTURES, *catalog.EDITIONS])
    if condition.picture in CROPS and (condition.name != "clean" or condition.output != "raw"):
        raise BadInput(f"one of ten crops is evaluated clean, not under {condition}")
    if condition.frost is not None and (condition.name == "clean" or not corruption_of(condition.name).takes_frost):
        raise BadInput(f"{condition.name} takes no frost pictures")


def _input_of(
    image_id: str, picture: Image, condition: Condition, preprocessing: Preprocessing, out: Inputs | None
) -> Inputs:
    if _changes_pixels(condition):
        picture = _corrupted(image_id, picture, condition)
    whole_image = condition.picture == "image"
    if out is None:
        return preprocessing.from_image(picture) if whole_image else preprocessing.from_picture(picture)
    placing = cast(PlacingPreprocessing, preprocessing)  # for others there is no room
    return placing.from_image(picture, out) if whole_image else placing.from_picture(picture, out)


def _changes_pixels(condition: Condition) -> bool:
    return condition.name != "clean" or condition.output != "raw"


def _corrupted(image_id: str, picture: Image, condition: Condition) -> Image:
    from shiftproof.corruptions.apply import apply  # only where pixels change: it loads OpenCV

    return apply(condition, picture, key=image_id)


def _bytes_of(source: ImageSource, stamp: str | None, job: Job) -> tuple[bytes | None, str]:
    """The stored bytes and their digest; no bytes where a picture of them is cached."""
    digest = _cache.digest(stamp) if job.again and stamp else None
    if digest is not None:
        return None, digest
    data = source.read()
    digest = digest_of(data)
    if job.again and stamp:
        _cache.keep_digest(stamp, digest)
    return data, digest


def _picture_of(
    image_id: str, source: ImageSource, data: bytes | None, digest: str, condition: Condition, job: Job
) -> Image:
    """The image as the condition sees it."""
    preprocessing = job.preprocessing
    rule = repr(preprocessing) if condition.picture == "model-size" else preprocessing.decoder
    key = (image_id, digest, condition.picture, rule, _limit())
    picture = _cache.picture(key) if job.again else None
    if picture is None:
        picture = _cut(_decoded(source, data, preprocessing), condition.picture, preprocessing)
        if job.again:
            picture = np.require(picture, requirements=["C", "W"])  # as corruptions need it, else each would copy it
            _cache.keep_picture(key, picture)
    return picture


def _crops_of(
    image_id: str, source: ImageSource, data: bytes | None, digest: str, job: Job, abilities: _Abilities
) -> Mapping[str, Inputs]:
    """The inputs of the ten crops, made together, since the others are mostly needed next."""
    key = (image_id, digest, abilities.rule, _limit())
    crops = _cache.crops(key) if job.again else None
    if crops is None:
        of_whole = (image_id, digest, "image", job.preprocessing.decoder, _limit())
        whole = _cache.take_picture(of_whole) if job.again else None
        crops = abilities.cropping.from_crops(_decoded(source, data, job.preprocessing) if whole is None else whole)
        _cache.keep_crops(key, crops)
    return crops


def _placed(crops: Mapping[str, Inputs], name: str, out: Inputs | None) -> Inputs:
    """One of the crops, in its place where there is one for inputs of its form."""
    if out is not None and isinstance(crops, LazyInputs):
        return crops.place(name, out)
    crop = crops[name]
    if out is None or (crop.shape, crop.dtype) != (out.shape, out.dtype):
        return crop
    out[...] = crop
    return out


def _limit() -> str:
    """The limit of pixels, which an earlier call of this process may have set otherwise: what it read is then not reused."""
    from shiftproof.datasets.decoding import limit_from_environment  # with Pillow, which a stored run does without

    return str(limit_from_environment())


def _decoded(source: ImageSource, data: bytes | None, preprocessing: Preprocessing) -> Image:
    return source.decode(source.read() if data is None else data, decoder=preprocessing.decoder)


def _cut(image: Image, picture: str, preprocessing: Preprocessing) -> Image:
    if picture in ("image", "whole"):
        return image
    if picture == "model-size":
        return preprocessing.cut(image)
    cut: Image = catalog.EDITIONS.load(picture).picture(image)
    return cut


class _Cache:
    """An LRU cache of pictures, ten crops and the digests of their files, for all threads of a process."""

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
            while self._held > CACHED_BYTES and len(self._pictures) > 1:
                self._held -= self._pictures.popitem(last=False)[1].nbytes

    def take_picture(self, key: tuple[str, ...]) -> Image | None:
        """A picture that is not needed again."""
        with self._lock:
            picture = self._pictures.pop(key, None)
            self._held -= 0 if picture is None else picture.nbytes
            return picture

    def crops(self, key: tuple[str, ...]) -> Mapping[str, Inputs] | None:
        with self._lock:
            return self._crops.get(key)

    def keep_crops(self, key: tuple[str, ...], crops: Mapping[str, Inputs]) -> None:
        with self._lock:
            self._crops[key] = crops
            if len(self._crops) > CACHED_CROPS:
                self._crops.popitem(last=False)


_cache = _Cache()
