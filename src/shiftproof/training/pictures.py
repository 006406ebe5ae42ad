"""Training pictures: decoded and resized once, into one file that all workers map; augmented anew in every epoch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import write_whole, writing
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.runs.workers import Arrays, Workers
from shiftproof.training.recipe import ChosenRecipe, Pictures, recipe_of
from shiftproof.types import Dataset, Image, ImageSource, Sample, SkippedImage, fingerprint_of

DECODED_AT_A_TIME = 64
FORMAT = 2
"""Raised whenever what is kept beside the pictures changes."""


@dataclass(frozen=True)
class PictureFile:
    """Pictures in a file, (images, rows, columns, 3), of which the first so many are there."""

    path: Path
    count: int
    written: int  # when, so that another file in its place is not taken for it

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Image:
        picture: Image = mapped(self.path, self.written)[place]
        return picture


@dataclass(frozen=True)
class StoredPictures:
    """The readable images of a dataset, in the order of their pictures in a file, and those that cannot be read."""

    file: PictureFile
    samples: tuple[Sample, ...]
    sizes: tuple[tuple[int, int], ...]  # height and width of each image
    skipped: tuple[SkippedImage, ...] = ()

    def __len__(self) -> int:
        return len(self.samples)


@lru_cache(maxsize=8)
def mapped(path: Path, written: int) -> NDArray[np.uint8]:  # noqa: ARG001 - a key of the cache
    """The pictures in a file, read from it when they are looked at."""
    pictures: NDArray[np.uint8] = np.load(path, mmap_mode="r")
    return pictures


class Cutting(NamedTuple):
    """Images to be cut to the model's input."""

    sources: list[ImageSource]
    preprocessing: ImagePreprocessing


def cut(job: Cutting) -> tuple[Arrays, list[str | tuple[int, int]]]:
    """The picture of every readable image; and for each image its height and width, or the reason why it cannot be read."""
    pictures: Arrays = []
    said: list[str | tuple[int, int]] = []
    for source in job.sources:
        try:
            image = source.decode(source.read(), decoder=job.preprocessing.decoder)
            pictures.append(job.preprocessing.cut(image))
            said.append((image.shape[0], image.shape[1]))
        except UnreadableImage as error:
            said.append(str(error))
        except OSError as error:
            said.append(f"cannot be read: {error.strerror or error}")
    return pictures, said


def stored_pictures(
    dataset: Dataset, preprocessing: ImagePreprocessing, folder: Path, workers: Workers, *, writes: bool = True
) -> StoredPictures:
    """The dataset's pictures, from their file in the folder, which is made where it is not there yet.

    Without `writes` it is there: another process made it.
    """
    if not len(dataset.samples):
        raise BadInput(f"there are no images in {dataset.ref.name}")
    ref = dataset.ref
    key = fingerprint_of(ref.fingerprint, ref.location, dict(preprocessing.describe()), FORMAT)
    path = folder / f"pictures-{key[:16]}.npy"
    told = path.with_suffix(".json")
    if writes and not path.exists():
        _write(dataset, preprocessing, path, told, workers)
    said: dict[str, str | list[int]] = json.loads(told.read_text(encoding="utf-8"))
    reasons = {image_id: one for image_id, one in said.items() if isinstance(one, str)}
    kept = tuple(sample for sample in dataset.samples if sample.id not in reasons)
    if not kept:
        raise BadInput(f"no image of {dataset.ref.name} can be read: {next(iter(reasons.values()))}")
    sizes = tuple((int(said[sample.id][0]), int(said[sample.id][1])) for sample in kept)
    skipped = tuple(SkippedImage(image_id, reason) for image_id, reason in reasons.items())
    return StoredPictures(PictureFile(path, len(kept), path.stat().st_mtime_ns), kept, sizes, skipped)


def _write(dataset: Dataset, preprocessing: ImagePreprocessing, path: Path, told: Path, workers: Workers) -> None:
    if preprocessing.size is None:
        raise BadInput("the model takes pictures of any size; say which to train with (--image-size)")
    samples = dataset.samples
    said: dict[str, str | tuple[int, int]] = {}
    starts = range(0, len(samples), DECODED_AT_A_TIME)
    parts = (samples[start : start + DECODED_AT_A_TIME] for start in starts)
    jobs = (Cutting([dataset.source(sample) for sample in part], preprocessing) for part in parts)
    with writing(path) as unfinished:
        shape = (len(samples), *preprocessing.size, 3)
        pictures = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.uint8, shape=shape)
        filled = 0
        for start, block in zip(starts, workers.blocks(cut, jobs), strict=True):
            pictures[filled : filled + len(block.batch)] = block.batch
            filled += len(block.batch)
            said |= {samples[start + place].id: one for place, one in enumerate(block.said)}
        pictures.flush()
        del pictures
        # before the pictures take their place: where they are, this is too
        write_whole(told, json.dumps(said, ensure_ascii=True).encode())


class Augmenting(NamedTuple):
    """Pictures of one batch to be augmented as recipes say."""

    pictures: PictureFile
    rows: list[int]
    keys: list[str]  # ids of the images
    recipes: tuple[ChosenRecipe, ...]
    preprocessing: ImagePreprocessing
    seed: int
    epoch: int


def augmented(job: Augmenting) -> tuple[Arrays, None]:
    """The batch, (1 + copies, images, rows, columns, 3): plain pictures and copies, or one row of changed ones."""
    batch = [
        [job.preprocessing.filtered(view) for view in _views(job, row, key)]
        for row, key in zip(job.rows, job.keys, strict=True)
    ]
    return [np.stack([np.stack(views) for views in zip(*batch, strict=True)])], None


def _views(job: Augmenting, row: int, key: str) -> tuple[Image, ...]:
    return views(job.pictures[row], job.recipes, job.pictures, key=key, epoch=job.epoch, seed=job.seed)


def views(
    image: Image, chosen: Sequence[ChosenRecipe], others: Pictures, *, key: str, epoch: int, seed: int
) -> tuple[Image, ...]:
    """The picture as training sees it: augmented, or plain and then so many augmented copies as the recipe asks for.

    Crops and flips are the same whatever augments them, and for all copies: recipes of one seed differ in nothing else.
    """
    augmenting = next((one for one in chosen if one.recipe.augment is not None), None)
    plain = _cropped(image, chosen, others, key=key, epoch=epoch, seed=seed)
    if augmenting is None or augmenting.recipe.augment is None:
        return (plain,)
    augment, copies = augmenting.recipe.augment, augmenting.recipe.copies
    changed = tuple(
        augment(plain, rng_for(key, f"{augmenting}\0{epoch}\0{copy}", seed), others, **augmenting.settings)
        for copy in range(max(copies, 1))
    )
    return (plain, *changed) if copies else changed


def _cropped(image: Image, chosen: Sequence[ChosenRecipe], others: Pictures, *, key: str, epoch: int, seed: int) -> Image:
    own = next((one for one in chosen if one.recipe.crop is not None), None)
    recipe, settings = (own.recipe, own.settings) if own else (plain := recipe_of("baseline"), plain.settings)
    if recipe.crop is None:
        return image
    return recipe.crop(image, rng_for(key, f"crop\0{epoch}", seed), others, **settings)
