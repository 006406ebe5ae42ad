"""Pixels of single images by set and id, for whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shiftproof.types import Image, ImageSet, ImageSetRef


def image_opener(image_sets: Iterable[ImageSet]) -> Callable[[ImageSetRef, str], Image]:
    """A function that opens an image of these sets."""
    sets = {images.ref.fingerprint: images for images in image_sets}
    samples = {key: {sample.id: sample for sample in images.samples} for key, images in sets.items()}

    def open_image(image_set: ImageSetRef, image_id: str) -> Image:
        images = sets[image_set.fingerprint]
        source = images.source(samples[image_set.fingerprint][image_id])
        return source.decode(source.read())

    return open_image
