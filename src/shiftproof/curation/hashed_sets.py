"""Perceptual hashes of all images of a set, remembered from one time to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shiftproof.curation.perceptual_hashes import Hashes, perceptual_hash
from shiftproof.digests import DigestCache, stamp_of
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.opener import decoded
from shiftproof.parallel import Arrays, Workers
from shiftproof.prediction import Progress
from shiftproof.types import Image, ImageSource

IMAGES_A_JOB = 32
HASH_LETTERS = 16
FILE = "perceptual_hashes.sqlite"
"""In the store; made again where it is gone."""


class HashedSet(NamedTuple):
    """The hashes of the images that can be read, and why the others cannot."""

    ids: tuple[str, ...]
    hashes: Hashes
    unreadable: Mapping[str, str]


class Job(NamedTuple):
    """Some images to hash."""

    ids: list[str]
    sources: list[ImageSource]


def hashed_set(
    images: ImageList, store: str | Path, *, workers: int | None = None, progress: Progress | None = None
) -> HashedSet:
    """The hash of every image; those that the store remembers are not opened."""
    cache = DigestCache(Path(store) / FILE, HASH_LETTERS)
    known, sources = cache.known(), {sample.id: images.source(sample) for sample in images.samples}
    stamps = {image_id: stamp_of(source) for image_id, source in sources.items()}
    found = {image_id: known[stamp] for image_id, stamp in stamps.items() if stamp is not None and stamp in known}
    unreadable: dict[str, str] = {}
    if progress is not None:
        progress.begin(f"hashes of {images.name}", len(sources), len(found))
    missing = {image_id: source for image_id, source in sources.items() if image_id not in found}
    with Workers(workers) as pool:
        for job, _, said in pool.blocks(hash_images, _jobs(missing)):
            unreadable |= {image_id: text for image_id, (text, is_hash) in zip(job.ids, said, strict=True) if not is_hash}
            fresh = {image_id: text for image_id, (text, is_hash) in zip(job.ids, said, strict=True) if is_hash}
            cache.remember((stamps[image_id], text) for image_id, text in fresh.items())
            found |= fresh
            if progress is not None:
                progress.advance(len(job.ids))
    if progress is not None:
        progress.end()
    ids = tuple(image_id for image_id in sources if image_id in found)
    return HashedSet(ids, np.array([int(found[image_id], 16) for image_id in ids], np.uint64), unreadable)


def hash_images(job: Job) -> tuple[Arrays, list[tuple[str, bool]]]:
    """No arrays; for each image its hash as text, or why there is none, and which of the two it is."""
    images = [decoded(source) for source in job.sources]
    return [], [(one, False) if isinstance(one, str) else (_letters(one), True) for one in images]


def _letters(image: Image) -> str:
    return f"{perceptual_hash(image):0{HASH_LETTERS}x}"


def _jobs(sources: Mapping[str, ImageSource]) -> Iterator[Job]:
    ids = list(sources)
    for start in range(0, len(ids), IMAGES_A_JOB):
        some = ids[start : start + IMAGES_A_JOB]
        yield Job(some, [sources[image_id] for image_id in some])
