"""Model x image set x condition: rows into the store.

Images are decoded, changed and prepared in worker processes while the model runs. They travel in blocks whose members
depend only on the order of the set, so a run that was stopped and resumed, or split over machines, gives the model the
same batches, and the same bytes come out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from shiftproof.answers import Answered, Model
from shiftproof.errors import BadInput
from shiftproof.image_sets.scoring import Scoring
from shiftproof.image_sets.views import unlabelled
from shiftproof.loading import digests_of, load_predictions
from shiftproof.loading_boxes import load_found, meet
from shiftproof.looking import LookingStudy, fill_looks
from shiftproof.parallel import Block, Workers
from shiftproof.planning import BATCH, Digests, Known, Plan, keeps_of, measurable, plan_blocks
from shiftproof.preparing import Job, Read, check_condition, prepare
from shiftproof.recording import record
from shiftproof.row_writer import RowWriter
from shiftproof.store import Store
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    FoundObjects,
    ImageSet,
    ImageSetRef,
    Keep,
    ModelRef,
    ObjectDetector,
    Precision,
    Predictions,
    Preparation,
    RecordedDetector,
    Run,
    Sample,
    SetAside,
    Study,
    richest,
)


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


def detect(
    detector: ObjectDetector,
    images: ImageSet,
    *,
    condition: Condition = CLEAN,
    store: str | Path | Store = "runs",
    batch_size: int | None = None,
    workers: Workers | int | None = None,
    strict: bool = False,
    scoring: Scoring | None = None,
    progress: Progress | None = None,
) -> FoundObjects:
    """What the detector finds in every image of the set, beside what is there; stored images are not asked again."""
    check_classes(detector, images, scoring)
    store = store if isinstance(store, Store) else Store(store)
    fill(
        detector,
        images,
        store=store,
        condition=condition,
        keep="boxes",
        batch_size=batch_size,
        workers=workers,
        strict=strict,
        progress=progress,
    )
    return load_found(Run(detector.ref, images.ref, condition), images, store=store, scoring=scoring)


def check_classes(model: Model, images: ImageSet, scoring: Scoring | None = None) -> None:
    """ClassMismatch now rather than after an hour, where the model says what its outputs are."""
    if isinstance(model, ObjectDetector):
        if getattr(images, "truths", None) is not None:
            meet(images.classes, model.classes, len(model.classes or ()), (scoring or Scoring()).unmatched)
        return
    if images.classes is not None and model.classes is not None:
        (scoring or Scoring()).space(images.classes, model.classes, outputs=len(model.classes))


def fill(
    model: Model,
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
    """Puts the rows of one condition that are missing into the store, a committed file for each batch."""
    return fill_conditions(
        model,
        images,
        {condition: None},
        store=store,
        keep=keep,
        precision=precision,
        batch_size=batch_size,
        workers=workers,
        strict=strict,
        shard=shard,
        progress=progress,
    )


Chosen: TypeAlias = Mapping[Condition, Collection[str] | None]
"""Conditions, each with the ids of the images it is wanted for; None for all of them."""


def fill_conditions(
    model: Model,
    images: ImageSet,
    chosen: Chosen,
    *,
    store: Store,
    keep: Keep = "top5",
    precision: Precision = "float32",
    batch_size: int | None = None,
    workers: Workers | int | None = None,
    strict: bool = False,
    shard: tuple[int, int] = (1, 1),
    progress: Progress | None = None,
) -> Tally:
    """Puts the rows of many conditions that are missing into the store; each image is decoded once for all of them."""
    for condition in chosen:
        check_condition(condition)
    with store.in_use(model.ref):
        if isinstance(model, RecordedDetector):
            return _recorded(model, images, list(chosen), store)
        batch_size = batch_size or int(getattr(model, "good_batch", BATCH))
        writer = RowWriter(model, store, keep, precision, sealed=shard == (1, 1))
        digests = Digests(images, store)
        plans = {
            condition: plan_blocks(
                images,
                writer.stored(condition).contents(keep, verified=True),
                digests,
                batch_size=batch_size,
                shard=shard,
                only=ids,
            )
            for condition, ids in chosen.items()
        }
        aside = [image for plan in plans.values() for image in plan.set_aside]
        if strict and aside:
            raise _refusal(aside[0])
        if progress:
            what = str(next(iter(plans))) if len(plans) == 1 else f"{len(plans)} conditions"
            total, done = (sum(counts) for counts in zip(*((plan.total, plan.done) for plan in plans.values()), strict=True))
            progress.begin(f"{model.ref.name} · {images.ref.name} · {what}", total, done)
        with _pool(workers, model.preparation, images) as pool, writer:
            jobs = _jobs(plans, images, model.preparation, batch_size)
            for job, read, answers in _answers(pool, jobs, writer.ask, at_once=int(getattr(model, "at_once", 1))):
                now_aside = writer.write(job, read, answers)
                if strict and now_aside:
                    raise _refusal(now_aside[0])
                aside += now_aside
                if progress:
                    progress.advance(len(job.samples))
        if progress:
            progress.end()
        before = sum(plan.done - len(plan.set_aside) for plan in plans.values())
        return Tally(writer.written, before, tuple(dict.fromkeys(aside)))


def _recorded(model: RecordedDetector, images: ImageSet, conditions: Iterable[Condition], store: Store) -> Tally:
    """The answers of a detector that needs no asking."""
    done = [record(model, images, condition, store=store) for condition in conditions]
    written = sum(count for count, _ in done)
    aside = tuple(dict.fromkeys(image for _, some in done for image in some))
    return Tally(written, len(images.samples) * len(done) - written - len(aside), aside)


def _jobs(plans: Mapping[Condition, Plan], images: ImageSet, preparation: Preparation, batch_size: int) -> Iterator[Job]:
    """Block after block of the set, each under all its conditions while its pictures are remembered.

    A condition that wants a whole block is a batch of its own; what others want of it is put together to full batches.
    """
    places = sorted({place for plan in plans.values() for place in plan.blocks})
    again = len(plans) > 1
    for place in places:
        scattered: list[tuple[Sample, Condition]] = []
        for condition, plan in plans.items():
            block = plan.blocks.get(place, [])
            if block and plan.whole:
                yield _job([(sample, condition) for sample in block], images, preparation, again)
            else:
                scattered += [(sample, condition) for sample in block]
        scattered.sort(key=lambda pair: pair[0].id)  # an image after the other, so that few pictures need be remembered
        for start in range(0, len(scattered), batch_size):
            yield _job(scattered[start : start + batch_size], images, preparation, again)


def _job(pairs: Sequence[tuple[Sample, Condition]], images: ImageSet, preparation: Preparation, again: bool) -> Job:
    samples = [sample for sample, _ in pairs]
    return Job(
        samples, [images.source(sample) for sample in samples], [condition for _, condition in pairs], preparation, again
    )


def _answers(
    pool: Workers, jobs: Iterable[Job], ask: Callable[[Block[Job]], Answered | None], *, at_once: int
) -> Iterator[tuple[Job, list[Read], Answered | None]]:
    """Every job with what became of its images and the model's answers, `at_once` batches in the model at a time."""
    waiting: deque[tuple[Block[Job], Future[Answered | None]]] = deque()
    ahead = 2 * at_once  # for each thread of the model one in work and one in stock, which it takes while rows are committed
    with ThreadPoolExecutor(at_once, thread_name_prefix="model") as threads:
        for block in pool.blocks(prepare, jobs, held=ahead):
            waiting.append((block, threads.submit(ask, block)))
            if len(waiting) == ahead:
                done, answers = waiting.popleft()
                yield done.job, done.said, answers.result()
        for done, answers in waiting:
            yield done.job, done.said, answers.result()


def fill_studies(
    model: Model,
    studies: Sequence[Study],
    image_sets: Iterable[ImageSet],
    *,
    store: Store,
    keep: Keep = "top5",
    precision: Precision = "float32",
    batch_size: int | None = None,
    workers: Workers | int | None = None,
    strict: bool = False,
    scoring: Scoring | None = None,
    progress: Progress | None = None,
) -> None:
    """Every run of this model that the studies name; what is stored already is not done again.

    A study that can tell from the images and the model alone that it would measure nothing is not run.
    A study that has `wanted` runs only some images of most cells: it is asked what is next until it wants nothing. One that
    has `looks` also gets heat maps of those images that it wants to look into.
    """
    sets = {images.ref: images for images in image_sets}
    studies, _ = measurable(studies, Known.of([model.classes], sets.values(), scoring))
    sampled = [study for study in studies if isinstance(study, SampledStudy)]
    keeps = keeps_of([study for study in studies if study not in sampled], keep)
    for study in sampled:
        keeps |= {run: richest([keeps.get(run, keep), study.keep]) for run in study.first_runs(model.ref)}
    together: dict[tuple[ImageSetRef, Keep], list[Condition]] = {}
    for run, least in keeps.items():
        if run.model == model.ref:
            together.setdefault((run.image_set, least), []).append(run.condition)
    with store.in_use(model.ref), _pool(workers, model.preparation, *sets.values()) as pool:

        def fill_some(images: ImageSet, chosen: Chosen, least: Keep) -> Tally:
            return fill_conditions(
                model,
                images,
                chosen,
                store=store,
                keep=least,
                precision=precision,
                batch_size=batch_size,
                workers=pool,
                strict=strict,
                progress=progress,
            )

        for (ref, least), conditions in together.items():
            fill_some(sets[ref], dict.fromkeys(conditions), least)
        for study in sampled:
            _fill_sampled(study, model.ref, sets, store, scoring, fill_some)
        for looking in studies:
            if isinstance(looking, LookingStudy) and isinstance(model, Classifier):
                fill_looks(looking, model, sets, store=store, scoring=scoring, batch_size=batch_size, progress=progress)


@runtime_checkable
class SampledStudy(Study, Protocol):
    """A study that chooses, by what it has seen, which images to run in which cell."""

    def first_runs(self, model: ModelRef) -> Sequence[Run]: ...

    def wanted(self, model: ModelRef, load: Callable[[Run], Predictions]) -> Mapping[Run, Collection[str]]: ...


def _fill_sampled(
    study: SampledStudy,
    model: ModelRef,
    sets: Mapping[ImageSetRef, ImageSet],
    store: Store,
    scoring: Scoring | None,
    fill_some: Callable[[ImageSet, Chosen, Keep], Tally],
) -> None:
    digests = {ref: digests_of(images, store) for ref, images in sets.items()}

    def load(run: Run) -> Predictions:
        images = sets[run.image_set]
        return load_predictions(
            run, images, store=store, keep=study.keep, scoring=scoring, partial=True, digests=digests[run.image_set]
        )

    while wanted := study.wanted(model, load):
        images = sets[next(iter(wanted)).image_set]
        tally = fill_some(images, {run.condition: ids for run, ids in wanted.items()}, study.keep)
        if tally.set_aside:
            image = tally.set_aside[0]
            raise BadInput(f"{image.id} has no answer under some condition ({image.reason}); remove it, or spend no budget")


def check_stored(
    studies: Iterable[Study], image_sets: Iterable[ImageSet], *, store: Store, besides: Collection[ModelRef]
) -> None:
    """MissingRuns now rather than after an hour, where a study needs answers of a model that is not asked now."""
    sets = {images.ref: images for images in image_sets}
    for study in studies:
        for run in study.runs():
            if run.model in besides:
                continue
            # labels that a study reads otherwise, or not at all, need not be known to the model
            read_otherwise = hasattr(study, "reading") and study.reading(run) is not None
            images = sets[run.image_set]
            how = load_found if study.keep == "boxes" else load_predictions
            # of a baseline that was sampled too, some cells are enough
            some = isinstance(study, SampledStudy) and run not in study.first_runs(run.model)
            how(run, unlabelled(images) if read_otherwise else images, store=store, keep=study.keep, partial=some)


def _pool(workers: Workers | int | None, preparation: Preparation, *sets: ImageSet) -> AbstractContextManager[Workers]:
    """The given workers, or some of its own for this run."""
    if isinstance(workers, Workers):
        return nullcontext(workers)
    # a class that lives in the user's script cannot be found by another process
    at_home = "__main__" in {type(one).__module__ for one in (preparation, *sets)}
    return Workers(0 if at_home else workers)


def _refusal(image: SetAside) -> BadInput:
    return BadInput(f"{image.id}: {image.reason}; mend or remove it, or leave out --strict to set it aside")
