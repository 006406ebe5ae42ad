"""Writing a dataset: its folder with a record of how it was made, and missing products distributed to worker processes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import shiftproof
from shiftproof.corruptions.apply import apply
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.sequences import perturb
from shiftproof.datasets.image_list import decoded
from shiftproof.datasets.records import RECORD, Record, load_record
from shiftproof.errors import BadInput, StoreError, listed
from shiftproof.files import alone, check_inside, refusal, write_whole
from shiftproof.runs.engines import Engine, status_of, token_in
from shiftproof.runs.workers import Arrays, Workers
from shiftproof.types import Condition, Dataset, Image, ImageSource, SkippedImage

SCRATCH = ".unfinished"
"""Hidden folder for incomplete files; removed when a run succeeds."""

Making: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By corruption or perturbation: its parameters by severity or level, and whatever else it depends on."""


@dataclass(frozen=True)
class Plan:
    """How a dataset is made; a folder takes further parts made with the same settings, and nothing else."""

    settings: Mapping[str, Any]  # what all of them share
    kind: str  # what the parts are: "corruptions", "perturbations" or "crops"
    making: Making
    parts: tuple[str, ...]  # what this run writes, by name
    information: Mapping[str, Any] = field(default_factory=dict)  # for readers; no picture depends on it


@contextmanager
def destination(root: Path, images: Dataset, plan: Plan) -> Iterator[Path]:
    """The scratch folder of a destination, locked for this run; BadInput where it holds another dataset."""
    scratch = root / SCRATCH
    with _os_errors_as_refusals(root):
        _check_place(root, images)
        root.mkdir(parents=True, exist_ok=True)
    with alone(root):
        _check_record(root, _shared(images, plan), plan)
        with _os_errors_as_refusals(root):
            scratch.mkdir(exist_ok=True)
        check_inside(scratch, root)
        for left in scratch.iterdir():
            if left.name.startswith(".") or left.is_symlink():  # left by a killed run; a link by nobody who means well
                left.unlink(missing_ok=True)
        yield scratch
        shutil.rmtree(scratch, ignore_errors=True)


def begin_record(root: Path, images: Dataset, plan: Plan) -> None:
    """Writes the record with this run's parts as unfinished."""
    _save(root, images, plan, unfinished={*_recorded(root, "unfinished"), *plan.parts}, aside=_recorded(root, "set_aside"))


def skipped_before(root: Path) -> set[str]:
    """The images that earlier runs could not read."""
    return {entry["id"] for entry in _recorded(root, "set_aside")}


def end_record(
    root: Path, images: Dataset, plan: Plan, skipped_images: Iterable[SkippedImage], tried: Iterable[str]
) -> tuple[SkippedImage, ...]:
    """Writes the record of a run that is through; every image that was ever skipped and could not be read since."""
    tried = set(tried)
    earlier = [entry for entry in _recorded(root, "set_aside") if entry["id"] not in tried]
    aside = [*earlier, *({"id": image.id, "reason": image.reason} for image in skipped_images)]
    aside.sort(key=lambda entry: str(entry["id"]))
    _save(root, images, plan, unfinished=set(_recorded(root, "unfinished")) - set(plan.parts), aside=aside)
    return tuple(SkippedImage(entry["id"], entry["reason"]) for entry in aside)


def _shared(images: Dataset, plan: Plan) -> dict[str, Any]:
    """The settings that all parts of a folder share."""
    source = {"name": images.ref.name, "fingerprint": images.ref.fingerprint, "images": len(images.samples)}
    return {"shiftproof": shiftproof.__version__, **plan.settings, "labelled": images.classes is not None, "source": source}


def _save(root: Path, images: Dataset, plan: Plan, *, unfinished: set[str], aside: list[Mapping[str, str]]) -> None:
    earlier = (load_record(root) or {}).get(plan.kind, {})
    names = [*earlier, *(name for name in plan.making if name not in earlier)]
    making = {name: _joined(earlier.get(name, {}), plan.making.get(name, {})) for name in names}
    record = {
        **_shared(images, plan),
        **plan.information,
        plan.kind: making,
        "unfinished": sorted(unfinished),
        "set_aside": aside,
    }
    write_whole(root / RECORD, json.dumps(record, indent=1).encode() + b"\n", scratch=root / SCRATCH, inside=root)


def _recorded(root: Path, key: str) -> list[Any]:
    return list((load_record(root) or {}).get(key, []))


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of both, in order of severity or level."""
    joined = {**one, **other}
    return {key: joined[key] for key in sorted(joined)}


def _check_place(root: Path, images: Dataset) -> None:
    location = images.ref.location
    if location and os.path.isdir(location) and root.resolve().is_relative_to(Path(location).resolve()):
        raise BadInput(f"{root} lies inside {location}, whose images it would become; name a folder elsewhere")
    if root.exists() and not root.is_dir():
        raise StoreError(f"cannot write {root}: it is a file, not a folder")


def _check_record(root: Path, shared: Mapping[str, Any], plan: Plan) -> None:
    record = load_record(root)
    if record is None:
        strangers = [entry.name for entry in root.iterdir() if entry.name != SCRATCH] if root.exists() else []
        if strangers:
            raise BadInput(
                f"{root} holds {listed(sorted(strangers), most=3)} and no record of a dataset we wrote; name a new folder"
            )
        return
    differences = list(_differences(record, shared, plan))
    if differences:
        raise BadInput(
            f"{root} holds a dataset made with other settings: {'; '.join(differences)}; "
            "name another folder, or use the same settings"
        )


def _differences(record: Record, shared: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    for key, now in shared.items():
        there: Any = record.get(key)
        if key == "source" and there is None:
            yield "no source there"
            continue
        if key == "source" and there.get("fingerprint") == now["fingerprint"]:
            continue
        if key == "source":
            yield f"{_images(there)} there, {_images(now)} now, and their names, labels or facts differ"
        elif there != now:
            yield f"{key.replace('_', ' ')} {there} there, {now} now"
    if plan.kind not in record:
        yield f"no {plan.kind} there"
    for name, figures in json.loads(json.dumps({name: dict(made) for name, made in plan.making.items()})).items():
        earlier = record.get(plan.kind, {}).get(name, {})
        for key in figures.keys() & earlier.keys():
            if figures[key] != earlier[key]:
                yield f"{name} {key} {earlier[key]} there, {figures[key]} now"


def _images(source: Mapping[str, Any]) -> str:
    count = source.get("images")
    return f"{count:,} images of {source.get('name')}" if isinstance(count, int) else f"images of {source.get('name')}"


@contextmanager
def _os_errors_as_refusals(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, root) from error


class Product(Protocol):
    """What is made of each image: one or more parts; small, as it is sent to worker processes."""

    def __len__(self) -> int:
        """Number of parts."""

    def base(self, image: Image) -> Image:
        """The common input of all parts."""

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        """One part of one image, a pure function of the arguments."""


@dataclass(frozen=True)
class CorruptedPictures:
    """An image under some conditions, which share one resize and crop."""

    conditions: tuple[Condition, ...]

    def __len__(self) -> int:
        return len(self.conditions)

    def base(self, image: Image) -> Image:
        rule = self.conditions[0].picture
        return image if rule == "image" else np.ascontiguousarray(edition_of(rule).picture(image))

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        return apply(self.conditions[part], base, key=key)


@dataclass(frozen=True)
class PerturbedFrames:
    """Perturbation sequences of an image, each a perturbation and its level."""

    sequences: tuple[tuple[str, int], ...]
    edition: str
    seed: int

    def __len__(self) -> int:
        return len(self.sequences)

    def base(self, image: Image) -> Image:
        return image

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:
        name, level = self.sequences[part]
        return perturb(base, name, level, seed=self.seed, key=key, edition=self.edition)


Parts = tuple[int, ...]

WRITERS = 8
"""Threads that save files: a disk serves several syncs at once."""


class Storage(Protocol):
    """Where the parts of images are stored; whatever exists is complete."""

    by_many: ClassVar[bool]
    """Whether several machines may save at the same time, on a file system that they share."""

    def for_workers(self) -> Any:
        """The same, without what workers do not need."""

    def place(self, image: int) -> Any:
        """The key of one image."""

    def missing(self) -> list[Parts]:
        """The missing parts of each image."""

    def encoded(self, product: NDArray[np.uint8], part: int) -> bytes:
        """A part, encoded."""

    def save(self, data: bytes, part: int, place: Any) -> None: ...

    def finish(self, unreadable: Sequence[int]) -> None:
        """Called when all parts are stored."""


class Todo(NamedTuple):
    """The missing parts of one image."""

    image: int
    key: str
    source: ImageSource
    place: Any
    parts: Parts


class Job(NamedTuple):
    """A unit of work for a worker process."""

    product: Product
    storage: Storage
    todo: list[Todo]


def write(job: Job) -> tuple[Arrays, dict[int, str]]:
    """Saves the missing parts; returns no arrays, and the reason for each unreadable image."""
    reasons: dict[int, str] = {}
    saved: list[Future[None]] = []
    with ThreadPoolExecutor(WRITERS) as writers:
        for data, part, place in _made(job, reasons):
            saved.append(writers.submit(job.storage.save, data, part, place))
    for one in saved:
        one.result()
    return [], reasons


def _made(job: Job, reasons: dict[int, str]) -> Iterator[tuple[bytes, int, Any]]:
    """The missing parts as they are saved, each with its number and place; unreadable images get a reason."""
    for todo in job.todo:
        image = decoded(todo.source)
        if isinstance(image, str):
            reasons[todo.image] = image
            continue
        base = job.product.base(image)
        for part in todo.parts:
            yield job.storage.encoded(job.product.make(base, part, key=todo.key), part), part, todo.place


class Finished(NamedTuple):
    """What a worker of an engine made of a job: the reasons of unreadable images, and the parts that it did not save."""

    reasons: dict[int, str]
    unsaved: list[tuple[bytes, int, Any]]


@dataclass(frozen=True)
class Writing:
    """Jobs of a dataset as work for an engine; parts are saved by workers that see the token, else they are sent back."""

    token: Path

    def open(self) -> OpenedWriting:
        return OpenedWriting(direct=self.token.exists())

    def size(self, job: Job) -> int:
        return sum(len(todo.parts) for todo in job.todo)

    def told(self, job: Job) -> str:
        return f"{job.todo[0].key} to {job.todo[-1].key}"

    def fault(self, job: Job, answer: Finished) -> str | None:
        """An image that this process can read and the worker cannot is no fault of the image."""
        for todo in job.todo:
            if todo.image in answer.reasons and not isinstance(decoded(todo.source), str):
                return f"it cannot read {todo.key}, which this machine can ({answer.reasons[todo.image]})"
        return None


@dataclass(frozen=True)
class OpenedWriting:
    """The same in a worker."""

    direct: bool

    def __call__(self, jobs: list[Job]) -> list[Finished]:
        return [self._finished(job) for job in jobs]

    def _finished(self, job: Job) -> Finished:
        if self.direct and job.storage.by_many:
            return Finished(write(job)[1], [])
        reasons: dict[int, str] = {}
        return Finished(reasons, list(_made(job, reasons)))

    def close(self) -> None:
        """Nothing is held."""


def _write_here(images: Dataset, jobs: Iterator[Job], workers: int | None) -> Iterator[tuple[Job, dict[int, str]]]:
    """Every job, done, with the reasons of unreadable images."""
    with Workers(0 if _lives_in_a_script(images) else workers) as pool:
        for job, _, failed in pool.blocks(write, jobs):
            yield job, failed


def _write_on(
    engine: Engine, scratch: Path, jobs: Iterator[Job], total: int, progress: Progress | None
) -> Iterator[tuple[Job, dict[int, str]]]:
    """The same, where the engine says."""
    with token_in(scratch) as token, ThreadPoolExecutor(WRITERS) as writers:
        for piece in engine.each(Writing(token), jobs, total=total, status=status_of(progress)):
            saved = [writers.submit(job.storage.save, *one) for job, answer in piece for one in answer.unsaved]
            for one in saved:
                one.result()
            yield from ((job, answer.reasons) for job, answer in piece)


class Progress(Protocol):
    """A progress display."""

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True)
class Written:
    """What a run did: pictures or sequences it wrote now, those written before, images skipped."""

    destination: Path
    written: int
    written_before: int
    skipped_images: tuple[SkippedImage, ...]


def write_set(
    images: Dataset,
    product: Product,
    store: Callable[[Path], Storage],
    *,
    root: Path,
    plan: Plan,
    parts_a_job: int,
    workers: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes every missing part, and the record; `store` is called with the scratch folder."""
    with destination(root, images, plan) as scratch:
        begin_record(root, images, plan)
        storage = store(scratch)
        missing = storage.missing()
        earlier = skipped_before(root)
        aside_before = {image for image, sample in enumerate(images.samples) if sample.id in earlier}
        total, now = len(missing) * len(product), sum(map(len, missing))
        # rows of images that were skipped are missing from arrays for good, and nobody made them
        before = sum(len(product) - len(parts) for image, parts in enumerate(missing) if image not in aside_before)
        if progress:
            progress.begin(f"{images.ref.name} to {root.name}", total, total - now)
        reasons: dict[int, str] = {}
        unmade = 0
        jobs = _jobs(images, product, storage, missing, parts_a_job)
        done = _write_here(images, jobs, workers) if engine is None else _write_on(engine, scratch, jobs, now, progress)
        for job, failed in done:
            reasons |= failed
            unmade += sum(len(todo.parts) for todo in job.todo if todo.image in failed)
            if progress:
                progress.advance(sum(len(todo.parts) for todo in job.todo))
        storage.finish(sorted({*reasons, *(image for image in aside_before if not missing[image])}))
        now_aside = [SkippedImage(images.samples[image].id, reason) for image, reason in sorted(reasons.items())]
        tried = [images.samples[image].id for image, parts in enumerate(missing) if parts]
        aside = end_record(root, images, plan, now_aside, tried)
        if progress:
            progress.end()
    return Written(root, now - unmade, before, aside)


def _jobs(images: Dataset, product: Product, storage: Storage, missing: list[Parts], parts_a_job: int) -> Iterator[Job]:
    """Jobs of about `parts_a_job` parts: several images, or some parts of one."""
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


def _lives_in_a_script(images: Dataset) -> bool:
    """Whether the dataset is of a class in `__main__`, which worker processes cannot import."""
    sources = [images.source(sample) for sample in images.samples[:1]]
    return "__main__" in {type(one).__module__ for one in (images, *sources)}
