"""What is found in the pixels of an image, kept as a short text in the store: no image is decoded twice for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shiftproof.runs.digests import DigestCache, stamp_of
from shiftproof.runs.predict import Progress
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Work, Workers
from shiftproof.types import Dataset, ImageSource

IMAGES_A_JOB = 32


class Remembered(NamedTuple):
    """Texts by image id, in the order of the dataset, and why the other images are unreadable."""

    texts: Mapping[str, str]
    unreadable: Mapping[str, str]


class Job(NamedTuple):
    """A batch of images to look at."""

    ids: list[str]
    sources: list[ImageSource]


def remembered(
    images: Dataset,
    store: Store,
    file: str,
    letters: int,
    work: Work,
    *,
    what: str,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Remembered:
    """The text of every image that can be read; those in the cache, a `file` of the store, are not decoded.

    `work` takes a `Job` and says of each image a hexadecimal text of so many letters, or why it is unreadable, and whether
    it is the text: no arrays, ``[(text, True), (reason, False)]``.
    """
    cache = DigestCache(store.cache / file, letters)
    known, sources = cache.known(), {sample.id: images.source(sample) for sample in images.samples}
    stamps = {image_id: stamp_of(source) for image_id, source in sources.items()}
    found = {image_id: known[stamp] for image_id, stamp in stamps.items() if stamp is not None and stamp in known}
    unreadable: dict[str, str] = {}
    missing = {image_id: source for image_id, source in sources.items() if image_id not in found}
    if progress is not None:
        progress.begin(f"{what} of {images.ref.name}", len(sources), len(found))
    if missing:
        with Workers(workers) as pool:
            for job, _, said in pool.blocks(work, _jobs(missing)):
                unreadable |= {
                    image_id: text for image_id, (text, is_read) in zip(job.ids, said, strict=True) if not is_read
                }
                fresh = {image_id: text for image_id, (text, is_read) in zip(job.ids, said, strict=True) if is_read}
                cache.remember((stamps[image_id], text) for image_id, text in fresh.items())
                found |= fresh
                if progress is not None:
                    progress.advance(len(job.ids))
    if progress is not None:
        progress.end()
    return Remembered({image_id: found[image_id] for image_id in sources if image_id in found}, unreadable)


def _jobs(sources: Mapping[str, ImageSource]) -> Iterator[Job]:
    ids = list(sources)
    for start in range(0, len(ids), IMAGES_A_JOB):
        some = ids[start : start + IMAGES_A_JOB]
        yield Job(some, [sources[image_id] for image_id in some])
