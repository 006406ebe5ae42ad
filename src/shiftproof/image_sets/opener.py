"""Pixels of single images by set and id, for whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shiftproof.errors import UnreadableImage
from shiftproof.types import Image, ImageSet, ImageSetRef, ImageSource


def image_opener(image_sets: Iterable[ImageSet]) -> Callable[[ImageSetRef, str], Image]:
    """A function that opens an image of these sets; UnreadableImage where it is of none of them."""
    sets = {images.ref.place: images for images in image_sets}
    samples = {key: {sample.id: sample for sample in images.samples} for key, images in sets.items()}

    def open_image(image_set: ImageSetRef, image_id: str) -> Image:
        sample = samples.get(image_set.place, {}).get(image_id)
        if sample is None:
            raise UnreadableImage(f"{image_set.name} is not at hand")
        source = sets[image_set.place].source(sample)
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
