"""Prediction as work for an engine: workers open the model themselves and run the way of one image on each batch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from shiftproof.cores import usable_cores
from shiftproof.errors import ShiftproofError, UnreadableImage
from shiftproof.places import is_url
from shiftproof.runs.digests import digest_of
from shiftproof.runs.engines import Engine, Opener, Unfit, opener_of, token_in
from shiftproof.runs.prepare import Job, Read, warm_up_for
from shiftproof.runs.rows import may_be_back
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers
from shiftproof.runs.write import BatchOutputs, RowWriter
from shiftproof.types import ImageSource, Keep, Model, ModelRef, Precision, SkippedImage

if TYPE_CHECKING:
    from shiftproof.runs.engines import Tell

Numbered: TypeAlias = tuple[int, Job]
"""A job, and a number by which its rows are ordered in the store."""


_open_model: dict[str, Model] = {}
"""The model that this worker opened last, by fingerprint: much work is of the same."""


class Outcome(NamedTuple):
    """What became of the images of a job, and the model's outputs for those that could be read."""

    read: list[Read]
    outputs: BatchOutputs | None


class Committed(NamedTuple):
    """The same, after a worker has written the rows."""

    read: list[Read]
    skipped: list[SkippedImage]


@dataclass(frozen=True)
class Predicting:
    """The batches of a model; rows go into the store where a worker sees its token, else they are sent back."""

    opener: Opener
    ref: ModelRef
    keep: Keep
    precision: Precision
    store: Path | None = None
    token: Path | None = None
    must_see_store: bool = False

    def open(self) -> OpenedPredicting:
        if self.ref.fingerprint not in _open_model:
            _open_model.clear()
            try:
                _open_model[self.ref.fingerprint] = self.opener()
            except ShiftproofError as problem:
                raise Unfit(f"it cannot open {self.ref.name}: {problem}") from problem
        model = _open_model[self.ref.fingerprint]
        if model.ref.fingerprint != self.ref.fingerprint:
            _open_model.clear()
            raise Unfit(
                f"it opens {model.ref.name} with the fingerprint {model.ref.fingerprint}, here it is "
                f"{self.ref.fingerprint}: weights or preprocessing differ; give all nodes the same files "
                "(quantised graphs are other models on other providers of onnxruntime; engines run them on the CPU's)"
            )
        sees_store = self.token is not None and self.token.exists()
        if self.must_see_store and not sees_store:
            raise Unfit(f"it does not see the store {self.store}; keep it on a file system that all nodes share")
        return OpenedPredicting(self, model, self.store if sees_store else None)

    def size(self, job: Numbered) -> int:
        return len(job[1].ids)

    def told(self, job: Numbered) -> str:
        ids = job[1].ids
        return f"{ids[0]} to {ids[-1]} under {job[1].conditions[0]}"

    def fault(self, job: Numbered, answer: Outcome | Committed) -> str | None:
        """An image that this process can read and the worker cannot is no fault of the image."""
        for image_id, source, seen in zip(job[1].ids, job[1].sources, answer.read, strict=True):
            if _lost(seen) and _can_be_read(source):
                return f"it cannot read {image_id}, which this machine can ({seen.reason}); give all nodes the same images"
        return None


def _lost(seen: Read) -> bool:
    """Whether a file was not there, or another one was, where the image was read."""
    return seen.digest is None or may_be_back(seen.reason or "")


def _can_be_read(source: ImageSource) -> bool:
    """Whether this process finds the file, with the digest that a manifest tells of it."""
    try:
        found, told = digest_of(source.read()), getattr(source, "digest", None)
    except (OSError, UnreadableImage):
        return False
    return told in (None, found)


class OpenedPredicting:
    """A model that is open in a worker, with what prepares its batches and, where it sees the store, writes their rows."""

    def __init__(self, work: Predicting, model: Model, store: Path | None) -> None:
        cores = usable_cores()
        self._pool = Workers(0 if cores == 1 else None)
        self._model, self._cores = model, cores
        self._sees_store = store is not None
        self._writer = RowWriter(model, Store(store or Path()), work.keep, work.precision, sealed=False, own_digests=False)

    def __call__(self, jobs: list[Numbered]) -> list[Outcome | Committed]:
        from shiftproof.runs.predict import batches_at_once, run_model  # which imports this file

        numbers = [number for number, _ in jobs]
        at_once = min(self._cores, batches_at_once(self._model, max(len(job.ids) for _, job in jobs)))
        warm_up = warm_up_for((condition for _, job in jobs for condition in job.conditions), self._model.preprocessing)
        ran = run_model(self._pool, [job for _, job in jobs], self._writer.run, at_once, warm_up)
        answers: list[Outcome | Committed] = []
        for number, (job, read, outputs) in zip(numbers, ran, strict=True):
            if self._sees_store and not any(map(_lost, read)):  # else it may be this node that cannot read them
                answers.append(Committed(read, self._writer.write(job, read, outputs, number)))
            else:
                answers.append(Outcome(read, outputs))
        self._writer.commit_waiting()
        return answers

    def close(self) -> None:
        self._pool.close()


def predict_on(
    engine: Engine, model: Model, writer: RowWriter, jobs: Iterator[Job], *, store: Store, total: int, status: Tell
) -> Generator[tuple[Job, list[SkippedImage]], None, None]:
    """Every job with the images that were skipped, its rows committed; the model runs where the engine says."""
    numbered = enumerate(jobs, time.time_ns())  # in the store they lie in this order, behind what was there before
    work = Predicting(opener_of(engine, model), model.ref, writer.keep, writer.precision)
    with nullcontext() if is_url(store.root) and not engine.needs_shared_store else token_in(store.root) as token:
        if token is not None:
            place = store.root.absolute()
            work = dataclasses.replace(work, store=place, token=token, must_see_store=engine.needs_shared_store)
        for piece in engine.each(work, numbered, total=total, status=status):
            done = [(job, _written(writer, number, job, answer)) for (number, job), answer in piece]
            writer.commit_waiting()
            yield from done


def _written(writer: RowWriter, number: int, job: Job, answer: Outcome | Committed) -> list[SkippedImage]:
    """The images of a job that were skipped; its rows are in the store, or wait to be committed."""
    if isinstance(answer, Outcome):
        return writer.write(job, answer.read, answer.outputs, number)
    writer.note_committed(job, answer.read, len(job.ids) - len(answer.skipped))
    return answer.skipped
