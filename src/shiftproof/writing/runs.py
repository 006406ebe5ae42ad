"""A run that writes a set: what is missing is shared out to workers, and the record says what was made and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shiftproof.parallel import Workers
from shiftproof.types import ImageSet, SetAside
from shiftproof.writing.destination import Plan, begin_record, destination, end_record, set_aside_before
from shiftproof.writing.products import Product
from shiftproof.writing.work import Job, Parts, Storage, Todo, write


class Progress(Protocol):
    """Whoever wants to know how far a run is."""

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True)
class Written:
    """What a run did: pictures or sequences it wrote now, those written before, images set aside."""

    destination: Path
    written: int
    written_before: int
    set_aside: tuple[SetAside, ...]


def write_set(
    images: ImageSet,
    product: Product,
    store: Callable[[Path], Storage],
    *,
    root: Path,
    plan: Plan,
    parts_a_job: int,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes every part that is not there yet, and the record; `store` is told the scratch folder."""
    with destination(root, images, plan) as scratch:
        begin_record(root, images, plan)
        storage = store(scratch)
        missing = storage.missing()
        earlier = set_aside_before(root)
        aside_before = {image for image, sample in enumerate(images.samples) if sample.id in earlier}
        total, now = len(missing) * len(product), sum(map(len, missing))
        # rows of images that were set aside are missing from arrays for good, and nobody made them
        before = sum(len(product) - len(parts) for image, parts in enumerate(missing) if image not in aside_before)
        if progress:
            progress.begin(f"{images.ref.name} to {root.name}", total, total - now)
        reasons: dict[int, str] = {}
        unmade = 0
        jobs = _jobs(images, product, storage, missing, parts_a_job)
        with Workers(0 if _lives_in_a_script(images) else workers) as pool:
            for job, _, failed in pool.blocks(write, jobs):
                reasons |= failed
                unmade += sum(len(todo.parts) for todo in job.todo if todo.image in failed)
                if progress:
                    progress.advance(sum(len(todo.parts) for todo in job.todo))
        storage.finish(sorted({*reasons, *(image for image in aside_before if not missing[image])}))
        now_aside = [SetAside(images.samples[image].id, reason) for image, reason in sorted(reasons.items())]
        tried = [images.samples[image].id for image, parts in enumerate(missing) if parts]
        aside = end_record(root, images, plan, now_aside, tried)
        if progress:
            progress.end()
    return Written(root, now - unmade, before, aside)


def _jobs(images: ImageSet, product: Product, storage: Storage, missing: list[Parts], parts_a_job: int) -> Iterator[Job]:
    """Images together until there is enough to do; one with more than enough is shared out."""
    carried, held = storage.for_workers(), list[Todo]()
    for image, parts in enumerate(missing):
        sample = images.samples[image]
        for start in range(0, len(parts), parts_a_job):
            chunk = parts[start : start + parts_a_job]
            held.append(Todo(image, sample.id, images.source(sample), storage.place(image), chunk))
            if sum(len(todo.parts) for todo in held) >= parts_a_job:
                yield Job(product, carried, held)
                held = []
    if held:
        yield Job(product, carried, held)


def _lives_in_a_script(images: ImageSet) -> bool:
    """Whether the set is of a class that another process cannot find."""
    sources = [images.source(sample) for sample in images.samples[:1]]
    return "__main__" in {type(one).__module__ for one in (images, *sources)}
