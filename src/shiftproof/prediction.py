"""Model x image set x condition: rows into the store.

Images are decoded, changed and prepared in worker processes while the model runs. They travel in blocks whose members
depend only on the order of the set, so a run that was stopped and resumed, or split over machines, gives the model the
same batches, and the same bytes come out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept, UnknownName
from shiftproof.image_sets.scoring import Scoring
from shiftproof.loading import load_predictions
from shiftproof.metrics.top5 import to_top5
from shiftproof.parallel import Arrays, Batch, Block, Workers
from shiftproof.preparing import Job, Read, prepare
from shiftproof.store import Contents, Rows, Store, StoredModel, StoredRun
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Features,
    ImageSet,
    Keep,
    Logits,
    Outputs,
    Precision,
    Predictions,
    Preparation,
    Run,
    Sample,
    SetAside,
    Study,
    richest,
)

BATCH = 32


class Progress(Protocol):
    """Whoever wants to know how far a run is."""

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True)
class Tally:
    """What a run did: images it answered now, images answered before, images set aside."""

    predicted: int
    stored_before: int
    set_aside: tuple[SetAside, ...]


def predict(
    model: Classifier,
    images: ImageSet,
    *,
    condition: Condition = CLEAN,
    store: str | Path | Store = "runs",
    keep: Keep = "top5",
    precision: Precision = "float32",
    batch_size: int | None = None,
    workers: Workers | int | None = None,
    strict: bool = False,
    scoring: Scoring | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """What the model says of every image of the set; only images without a stored answer are given to it."""
    check_classes(model, images, scoring)
    store = store if isinstance(store, Store) else Store(store)
    keep = richest([keep, (scoring or Scoring()).keep])
    fill(
        model,
        images,
        store=store,
        condition=condition,
        keep=keep,
        precision=precision,
        batch_size=batch_size,
        workers=workers,
        strict=strict,
        progress=progress,
    )
    return load_predictions(Run(model.ref, images.ref, condition), images, store=store, keep=keep, scoring=scoring)


def check_classes(model: Classifier, images: ImageSet, scoring: Scoring | None = None) -> None:
    """ClassMismatch now rather than after an hour, where the model says what its outputs are."""
    if images.classes is not None and model.classes is not None:
        (scoring or Scoring()).space(images.classes, model.classes, outputs=len(model.classes))


def fill(
    model: Classifier,
    images: ImageSet,
    *,
    store: Store,
    condition: Condition = CLEAN,
    keep: Keep = "top5",
    precision: Precision = "float32",
    batch_size: int | None = None,
    workers: Workers | int | None = None,
    strict: bool = False,
    shard: tuple[int, int] = (1, 1),
    progress: Progress | None = None,
) -> Tally:
    """Puts the rows that are missing into the store, a committed file for each batch."""
    if condition.name != "clean":
        raise UnknownName("condition", condition.name, ["clean"])
    stored = store.run(model.ref, condition, precision)
    stored.clear_unfinished()
    batch_size = batch_size or int(getattr(model, "good_batch", BATCH))
    plan = plan_blocks(images, stored.contents(keep), store, batch_size=batch_size, shard=shard)
    if strict and plan.set_aside:
        raise _refusal(plan.set_aside[0])
    if progress:
        progress.begin(f"{model.ref.name} · {images.ref.name} · {condition}", plan.total, plan.done)
    writer = _Writer(model, store, stored, keep, precision)
    aside = list(plan.set_aside)
    jobs = (Job(block, [images.source(sample) for sample in block], condition, model.preparation) for block in plan.blocks)
    with _pool(workers, model.preparation, images) as pool:
        for job, read, outputs in _answers(pool, jobs, writer.ask, at_once=int(getattr(model, "at_once", 1))):
            now_aside = writer.write(job, read, outputs)
            if strict and now_aside:
                raise _refusal(now_aside[0])
            aside += now_aside
            if progress:
                progress.advance(len(job.samples))
    writer.finish(sealed=shard == (1, 1))
    if progress:
        progress.end()
    return Tally(writer.written, plan.done - len(plan.set_aside), tuple(aside))


def _answers(
    pool: Workers, jobs: Iterable[Job], ask: Callable[[Batch], Outputs | None], *, at_once: int
) -> Iterator[tuple[Job, list[Read], Outputs | None]]:
    """Every job with what became of its images and the model's answers, `at_once` batches in the model at a time."""
    waiting: deque[tuple[Block[Job], Future[Outputs | None]]] = deque()
    ahead = 2 * at_once  # for each thread of the model one in work and one in stock, which it takes while rows are committed
    with ThreadPoolExecutor(at_once, thread_name_prefix="model") as threads:
        for block in pool.blocks(prepare, jobs, held=ahead):
            waiting.append((block, threads.submit(ask, block.batch)))
            if len(waiting) == ahead:
                done, outputs = waiting.popleft()
                yield done.job, done.said, outputs.result()
        for done, outputs in waiting:
            yield done.job, done.said, outputs.result()


class Plan(NamedTuple):
    """What is left to do of a run."""

    blocks: list[list[Sample]]
    total: int
    done: int
    set_aside: list[SetAside]


def plan_blocks(
    images: ImageSet, contents: Contents, store: Store, *, batch_size: int = BATCH, shard: tuple[int, int] = (1, 1)
) -> Plan:
    """The images without a stored answer, in blocks that any machine would cut alike."""
    part, parts = shard
    samples = images.samples
    blocks = [list(samples[start : start + batch_size]) for start in range(0, len(samples), batch_size)][part - 1 :: parts]
    mine = [sample for block in blocks for sample in block]
    if not contents.rows and not contents.aside:
        return Plan(blocks, len(mine), 0, [])
    digests = dict(zip((sample.id for sample in mine), store.digests.digests([images.source(s) for s in mine]), strict=True))
    answered = {sample.id for sample in mine if (sample.id, digests[sample.id]) in contents.rows}
    aside = {
        sample.id: contents.aside[pair]
        for sample in mine
        if sample.id not in answered and (pair := (sample.id, digests[sample.id] or "")) in contents.aside
    }
    left = [[sample for sample in block if sample.id not in answered and sample.id not in aside] for block in blocks]
    set_aside = [SetAside(*entry) for entry in aside.items()]
    return Plan([block for block in left if block], len(mine), len(answered) + len(aside), set_aside)


def plan_runs(
    studies: Iterable[Study], image_sets: Iterable[ImageSet], *, store: Store, scoring: Scoring | None = None
) -> list[dict[str, str | int]]:
    """Every run the studies name, once, with how much of it is stored."""
    sets = {images.ref: images for images in image_sets}
    least = (scoring or Scoring()).keep
    keeps: dict[Run, Keep] = {}
    for study in studies:
        for run in study.runs():
            keeps[run] = richest([keeps.get(run, least), study.keep])
    rows: list[dict[str, str | int]] = []
    for run, keep in keeps.items():
        stored = store.run(run.model, run.condition).contents(keep)
        plan = plan_blocks(sets[run.image_set], stored, store)
        names: dict[str, str | int] = {"model": run.model.name, "image set": run.image_set.name}
        asked: dict[str, str | int] = {"condition": str(run.condition), "keep": keep}
        rows.append({**names, **asked, "images": plan.total, "stored": plan.done, "to do": plan.total - plan.done})
    return rows


def _pool(workers: Workers | int | None, preparation: Preparation, images: ImageSet) -> AbstractContextManager[Workers]:
    """The given workers, or some of its own for this run."""
    if isinstance(workers, Workers):
        return nullcontext(workers)
    # a class that lives in the user's script cannot be found by another process
    at_home = "__main__" in (type(preparation).__module__, type(images).__module__)
    return Workers(0 if at_home else workers)


def _refusal(image: SetAside) -> BadInput:
    return BadInput(f"{image.id}: {image.reason}; mend or remove it, or leave out --strict to set it aside")


class _Writer:
    """Gives blocks to the model and its answers to the store."""

    def __init__(self, model: Classifier, store: Store, stored: StoredRun, keep: Keep, precision: Precision) -> None:
        self._model, self._store, self._stored, self._keep = model, store, stored, keep
        self._kind = np.dtype(precision)
        self._stamps: list[tuple[str | None, str | None]] = []
        self._introduced = False
        self.written = 0

    def ask(self, batch: Batch) -> Outputs | None:
        """The model's answers to one block; None where no image of it could be read."""
        if len(batch) == 0:
            return None
        features = self._keep == "features"
        if isinstance(batch, np.ndarray):
            outputs = self._model(batch, features=features)
        else:
            outputs = _by_shape(self._model, batch, features)
        if features and outputs.features is None:
            raise NotKept(f"{self._model.ref.name} has no features to keep; predict with --keep logits")
        return outputs

    def write(self, job: Job, read: Sequence[Read], outputs: Outputs | None) -> list[SetAside]:
        """Commits one block; the images of it that were set aside."""
        fates = list(zip((sample.id for sample in job.samples), read, strict=True))
        aside = [(key, seen.digest, seen.reason) for key, seen in fates if seen.reason]
        good = [(key, seen.digest or "") for key, seen in fates if not seen.reason]
        rows: dict[str, NDArray[Any]] = {}
        if outputs is not None:
            self._introduce(outputs.scores.shape[1])
            sound = ~np.isnan(outputs.scores).any(axis=1)
            aside += [(*good[row], "the model answered with values that are not numbers") for row in np.flatnonzero(~sound)]
            good = [good[row] for row in np.flatnonzero(sound)]
            rows = self._rows(outputs.scores[sound], None if outputs.features is None else outputs.features[sound])
        # a file that could not even be read has no digest to be remembered by, and may be back tomorrow
        lasting = [(key, digest, str(reason)) for key, digest, reason in aside if digest]
        if good or lasting:
            self._stored.append(Rows([key for key, _ in good], [digest for _, digest in good], rows, lasting), self._keep)
        self.written += len(good)
        self._remember((seen.stamp, seen.digest) for seen in read)
        return [SetAside(key, str(reason)) for key, _, reason in aside]

    def finish(self, *, sealed: bool) -> None:
        self._remember([], least=1)
        self._introduce(None)
        if sealed and self.written:
            self._stored.seal()

    def _introduce(self, columns: int | None) -> None:
        """Tells the store what the model is, before its first row, and also where there is none to add."""
        if not self._introduced:
            head = self._model.head if self._keep == "features" else None
            self._store.save_model(StoredModel.of(self._model, columns), head)
            self._introduced = True

    def _rows(self, scores: Logits, features: Features | None) -> dict[str, NDArray[Any]]:
        top5 = to_top5(scores, self._model.gives)
        rows: dict[str, NDArray[Any]] = {
            "top5_classes": top5.classes.astype(np.int32),
            "top5_scores": top5.scores.astype(np.float32),
            "log_total": top5.log_total.astype(np.float32),
        }
        if self._keep in ("logits", "features"):
            rows["logits"] = scores.astype(self._kind)
        if self._keep == "features" and features is not None:
            rows["features"] = features.astype(self._kind)
        return rows

    def _remember(self, pairs: Iterable[tuple[str | None, str | None]], least: int = 1024) -> None:
        self._stamps += pairs
        if len(self._stamps) >= least:
            self._store.digests.remember(self._stamps)
            self._stamps = []


def _by_shape(model: Classifier, arrays: Arrays, features: bool) -> Outputs:
    """The answers in the order of the arrays, each shape asked as a batch of its own."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, array in enumerate(arrays):
        groups.setdefault(array.shape, []).append(place)
    places = [place for group in groups.values() for place in group]
    parts = [model(np.stack([arrays[place] for place in group]), features=features) for group in groups.values()]
    order = np.argsort(places)
    scores = np.concatenate([part.scores for part in parts])[order]
    seen = [part.features for part in parts if part.features is not None]
    return Outputs(scores, np.concatenate(seen)[order] if len(seen) == len(parts) else None)
