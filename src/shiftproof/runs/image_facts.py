"""Cheap facts of pixels: how bright, rich in contrast, colourful, sharp and wide an image is, and how large its object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.datasets.image_list import decoded
from shiftproof.datasets.subsets import View
from shiftproof.runs.predict import Progress
from shiftproof.runs.remembered import Job, remembered
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Arrays
from shiftproof.types import Boxes, Dataset, Fact, Image, Sample

FACTS = ("brightness", "contrast", "saturation", "sharpness", "aspect", "megapixels")
"""What pixels tell; beside these, the share of the image that its boxes cover is `OBJECT_SIZE`."""

OBJECT_SIZE = "object size"

SIDE = 256
"""Longer side of the picture that sharpness is measured in, so that it does not hang on the number of pixels."""

HEX_DIGITS = 8 * len(FACTS)
FILE = "image_facts.sqlite"
"""In the store; a cache, measured anew where it is missing."""


def image_facts(image: Image) -> dict[str, float]:
    """The facts of one image, each but aspect and megapixels from 0 to 1.

    Brightness and contrast are mean and standard deviation of the luma, saturation is the mean range of the three channels,
    sharpness the standard deviation of the luma's Laplacian (Pech-Pacheco et al., 2000), aspect the width over the height.

    >>> stripes = np.zeros((4, 8, 3), np.uint8)
    >>> stripes[:, ::2] = 255
    >>> {name: round(fact, 4) for name, fact in image_facts(stripes).items() if name != "sharpness"}
    {'brightness': 0.5, 'contrast': 0.5, 'saturation': 0.0, 'aspect': 2.0, 'megapixels': 0.0}
    """
    height, width = image.shape[:2]
    picture = _shrunk(image)
    luma = np.asarray(picture.convert("L"), np.float32) / 255
    red, green, blue = (np.asarray(channel) for channel in picture.split())
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    inner = luma[1:-1, 1:-1]
    around = luma[:-2, 1:-1] + luma[2:, 1:-1] + luma[1:-1, :-2] + luma[1:-1, 2:]
    edges = (4 * inner - around) / 4 if inner.size else np.zeros(1)
    found = (
        float(luma.mean()),
        float(luma.std()),
        float(spread.mean()) / 255,
        float(edges.std()),
        width / height,
        width * height / 1e6,
    )
    return dict(zip(FACTS, found, strict=True))


def _shrunk(image: Image) -> Pillow.Image:
    picture = Pillow.fromarray(image)
    picture.thumbnail((SIDE, SIDE), Pillow.Resampling.BOX)
    return picture


def with_image_facts(
    images: Dataset, store: Store, *, workers: int | None = None, progress: Progress | None = None
) -> Dataset:
    """The same images, with what their pixels tell among their facts; facts of their own keep their names.

    What the store has seen is not decoded again. An unreadable image has none.
    """
    if all(sample.facts.keys() >= {*FACTS} for sample in images.samples[:1]):
        return images
    found = remembered(images, store, FILE, HEX_DIGITS, look_at, what="facts of pixels", workers=workers, progress=progress)
    covered = _covered(images)

    def facts(sample: Sample) -> dict[str, Fact]:
        told: Mapping[str, Fact] = _read(found.texts[sample.id]) if sample.id in found.texts else dict.fromkeys(FACTS)
        pixels, area = told["megapixels"], covered.get(sample.id)
        share = None if area is None or not isinstance(pixels, float) else round(min(1.0, area / (1e6 * pixels)), 4)
        size = {OBJECT_SIZE: share} if covered else {}
        return {**told, **size, **sample.facts}

    samples = [dataclasses.replace(sample, facts=facts(sample)) for sample in images.samples]
    return View(images, images.classes, samples, notes=images.notes, truths=images.truths)


def _covered(images: Dataset) -> dict[str, float]:
    """Pixels that the boxes of an image cover, by its id; of images that have some."""
    truths = images.truths
    if truths is None:
        boxed = ((sample.id, sample.boxes) for sample in images.samples if sample.boxes is not None)
        return {image_id: float(_areas(boxes).sum()) for image_id, boxes in boxed if len(boxes)}
    pixels = np.bincount(truths.image, _areas(truths.boxes), minlength=len(truths.ids))
    return {image_id: area for image_id, area in zip(truths.ids, pixels.tolist(), strict=True) if area > 0}


def _areas(boxes: Boxes) -> NDArray[np.floating]:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def look_at(job: Job) -> tuple[Arrays, list[tuple[str, bool]]]:
    """Of each image its facts in hexadecimal, or why it is unreadable."""
    images = [decoded(source) for source in job.sources]
    return [], [(one, False) if isinstance(one, str) else (_hex(image_facts(one)), True) for one in images]


def _hex(facts: Mapping[str, float]) -> str:
    return np.array([facts[name] for name in FACTS], "<f4").tobytes().hex()


def _read(text: str) -> dict[str, Fact]:
    numbers = np.frombuffer(bytes.fromhex(text), "<f4")
    return {name: float(f"{number:.4g}") for name, number in zip(FACTS, numbers.tolist(), strict=True)}
