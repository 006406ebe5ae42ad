"""The pixels of an image as its source has them: its own file where it is one, a PNG file without loss otherwise."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import BinaryIO

from PIL import Image as Pillow

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.image_sets.image_list import FileImage
from shiftproof.image_sets.opener import decoded
from shiftproof.image_sets.tar import TarImage
from shiftproof.types import ImageSet, ImageSource, Sample
from shiftproof.writing.places import file_places
from shiftproof.writing.whole_folders import File


def is_own_file(source: ImageSource) -> bool:
    """Whether the bytes of an image are a file that shows just it, and no frame, crop or row of an array."""
    return isinstance(source, (FileImage, TarImage))


def read_original(image_id: str, source: ImageSource) -> bytes:
    """The file; BadInput where it cannot be read any more."""
    try:
        return source.read() if is_own_file(source) else _png_file(source)
    except UnreadableImage as error:
        raise BadInput(f"{image_id}: {error}") from error
    except OSError as error:
        raise BadInput(f"{image_id} cannot be read: {error.strerror or error}") from error


def picture_files(images: ImageSet, places: Sequence[str]) -> Iterator[File]:
    """The file of each image at its place."""
    for sample, place in zip(images.samples, places, strict=True):
        yield File(place, partial(_copy, sample.id, images.source(sample)))


def _copy(image_id: str, source: ImageSource, stream: BinaryIO) -> None:
    stream.write(read_original(image_id, source))


def original_places(images: ImageSet) -> Sequence[str]:
    """The path of each image below a folder, in the folder of its class, with the ending of its own file."""
    places = zip(file_places(images), images.samples, strict=True)
    return [f"{place}{_ending(sample, images.source(sample))}" for place, sample in places]


def _ending(sample: Sample, source: ImageSource) -> str:
    if not is_own_file(source):
        return ".png"
    return PurePath(source.path if isinstance(source, FileImage) else sample.id).suffix


def _png_file(source: ImageSource) -> bytes:
    image = decoded(source)
    if isinstance(image, str):
        raise UnreadableImage(image)
    held = io.BytesIO()
    Pillow.fromarray(image).save(held, "PNG")
    return held.getvalue()
