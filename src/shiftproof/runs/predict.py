"""Model x dataset x condition: predictions into the store.

Images are decoded, corrupted and preprocessed in worker processes while the model runs. They come in blocks whose members
depend only on the order of the dataset, so a run that was resumed, or split over machines, has the same batches, and the
same bytes come out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from shiftproof import catalog
from shiftproof.cores import batches_in_memory
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import BadInput
from shiftproof.options import PredictionSettings
from shiftproof.runs.adapting import adapts, under
from shiftproof.runs.engines import Engine, status_of
from shiftproof.runs.engines.predicting import predict_on
from shiftproof.runs.load import digests_of, load_found, load_predictions, meet
from shiftproof.runs.plan import KnownInputs, Plan, keeps_of, measurable, plan_blocks
from shiftproof.runs.prepare import CACHED_BYTES, Job, Read, check_condition, prepare, warm_up_for
from shiftproof.runs.processes import WarmUp
from shiftproof.runs.saliency import NeedsSaliency, fill_saliency
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Block, Workers
from shiftproof.runs.write import BatchOutputs, RowWriter, record
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Dataset,
    DatasetRef,
    FoundObjects,
    ImageSource,
    Keep,
    Logits,
    Model,
    ModelRef,
    ObjectDetector,
    Predictions,
    Preprocessing,
    RecordedDetector,
    Run,
    Sample,
    SkippedImage,
    Study,
    richest,
)


class Progress(Protocol):
    """A progress bar, or whatever else shows how far a run is."""

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None: ...

    def end(self) -> None: ...


DEFAULTS = PredictionSettings()


@dataclass(frozen=True)
class Tally:
    """What a run did: images predicted now, images stored before, images skipped."""

    predicted: int
    stored_before: int
    skipped_images: tuple[SkippedImage, ...]

    def __add__(self, more: Tally) -> Tally:
        skipped = tuple(dict.fromkeys([*self.skipped_images, *more.skipped_images]))
        return Tally(self.predicted + more.predicted, self.stored_before + more.stored_before, skipped)


def predict_images(
    model: Classifier,
    images: Dataset,
    condition: Condition = CLEAN,
    *,
    store: Store,
    settings: PredictionSettings = DEFAULTS,
    scoring: Scoring | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """The model's predictions for every image of the dataset; only images that are not stored are predicted."""
    check_classes(model, images, scoring)
    keep = richest([settings.keep or "top5", (scoring or Scoring()).keep])
    fill(model, images, store=store, condition=condition, settings=settings, keep=keep, engine=engine, progress=progress)
    return load_predictions(Run(model.ref, images.ref, condition), images, store=store, keep=keep, scoring=scoring)


def detect_objects(
    detector: ObjectDetector,
    images: Dataset,
    condition: Condition = CLEAN,
    *,
    store: Store,
    settings: PredictionSettings = DEFAULTS,
    scoring: Scoring | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> FoundObjects:
    """The detections in every image of the dataset, and the ground truth; only images that are not stored are run."""
    check_classes(detector, images, scoring)
    fill(detector, images, store=store, condition=condition, settings=settings, engine=engine, progress=progress)
    return load_found(Run(detector.ref, images.ref, condition), images, store=store, scoring=scoring)


def check_classes(model: Model, images: Dataset, scoring: Scoring | None = None) -> None:
    """ClassMismatch now rather than after an hour, where the model says what its outputs are."""
    if isinstance(model, ObjectDetector):
        if images.truths is not None:
            meet(images.classes, model.classes, len(model.classes or ()), scoring)
        return
    if images.classes is not None and model.classes is not None:
        (scoring or Scoring()).space(images.classes, model.classes, outputs=len(model.classes))


def fill(
    model: Model,
    images: Dataset,
    *,
    store: Store,
    condition: Condition = CLEAN,
    settings: PredictionSettings = DEFAULTS,
    keep: Keep | None = None,
    shard: tuple[int, int] = (1, 1),
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Predicts and stores the images that have no row under this condition, committed a few batches at a time.

    `shard` is part i of n of the images, i from 1.
    """
    return fill_conditions(
        model,
        images,
        {condition: None},
        store=store,
        settings=settings,
        keep=keep,
        shard=shard,
        engine=engine,
        progress=progress,
    )


Chosen: TypeAlias = Mapping[Condition, Collection[str] | None]
"""Conditions, each with the ids of the images it is wanted for; None for all of them."""


@dataclass(frozen=True)
class FollowUp:
    """Further conditions of those images whose logits under the first one ask for it."""

    conditions: Sequence[Condition]
    asked: Callable[[Sequence[str], Logits], Sequence[Sample]]  # those of the images with these ids


def fill_conditions(
    model: Model,
    images: Dataset,
    chosen: Chosen,
    *,
    store: Store,
    settings: PredictionSettings = DEFAULTS,
    keep: Keep | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: Workers | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    follow_up: FollowUp | None = None,
) -> Tally:
    """Predicts and stores what is missing under many conditions; each image is decoded once for all of them.

    `keep` is what is stored of each prediction where that is not as the settings say; `workers` are processes of the
    caller's, `engine` runs the model elsewhere. A `follow_up` of one condition, whose logits are kept, spares images the
    second decoding. It is left to another call, in the same batches, where something was stored before, or on an engine.
    """
    keep = keep or settings.keep or ("boxes" if isinstance(model, ObjectDetector) else "top5")
    for condition in chosen:
        check_condition(condition)
    if adapts(model):  # to each condition in turn
        if engine is not None:
            engine.tell(f"note: {model.ref.name} adapts to images before it predicts, so it runs here and not on the engine")
        fills = (
            fill_conditions(
                under(model, condition, settings.workers),
                images,
                {condition: ids},
                store=store,
                settings=settings,
                keep=keep,
                shard=shard,
                workers=workers,
                progress=progress,
            )
            for condition, ids in chosen.items()
        )
        return sum(fills, Tally(0, 0, ()))
    with store.in_use(model.ref):
        if isinstance(model, RecordedDetector):
            return _recorded(model, images, list(chosen), store)
        batch_size = settings.batch_size or model.default_batch_size
        at_once = batches_at_once(model, batch_size)
        writer = RowWriter(model, store, keep, settings.precision, sealed=shard == (1, 1))
        digests = cache(partial(digests_of, images, store))
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
        skipped = [image for plan in plans.values() for image in plan.skipped_images]
        if settings.strict and skipped:
            raise _refusal(skipped[0])
        if progress:
            what = str(next(iter(plans))) if len(plans) == 1 else f"{len(plans)} conditions"
            total, done = (sum(counts) for counts in zip(*((plan.total, plan.done) for plan in plans.values()), strict=True))
            progress.begin(f"{model.ref.name} · {images.ref.name} · {what}", total, done)
        writer.together = batches_together(at_once) if engine is None else 1
        if follow_up is not None and (engine is not None or not _is_new(plans, follow_up, writer)):
            follow_up = None
        planned = _jobs(plans, images, model.preprocessing, batch_size, writer.together, again=follow_up is not None)
        jobs = _FollowedJobs(planned, follow_up, images, model.preprocessing, batch_size)
        with writer, ExitStack() as stack:
            if engine is None:
                missing = [condition for condition, plan in plans.items() if plan.done < plan.total]
                warm_up = warm_up_for(missing, model.preprocessing)
                committed = _predict_here(workers or settings.workers, model, images, writer, jobs, at_once, warm_up)
            else:
                left = sum(plan.total - plan.done for plan in plans.values())
                committed = predict_on(engine, model, writer, jobs, store=store, total=left, status=status_of(progress))
            stack.enter_context(closing(committed))  # before the writer, whatever happens
            for job, now_skipped in committed:
                if settings.strict and now_skipped:
                    raise _refusal(now_skipped[0])
                skipped += now_skipped
                if progress and job.conditions[0] in plans:
                    progress.advance(len(job.ids))
        if progress:
            progress.end()
        before = sum(plan.done - len(plan.skipped_images) for plan in plans.values())
        return Tally(writer.written, before, tuple(dict.fromkeys(skipped)))


def _predict_here(
    workers: Workers | int | None,
    model: Model,
    images: Dataset,
    writer: RowWriter,
    jobs: _FollowedJobs,
    at_once: int,
    warm_up: WarmUp,
) -> Generator[tuple[Job, list[SkippedImage]], None, None]:
    """Every job with the images that were skipped, its rows committed; the model runs in this process."""
    # rows are committed in a thread of their own, one batch at a time, while the next ones are handed out
    with worker_pool(workers, model.preprocessing, images) as pool, ThreadPoolExecutor(1, "commit") as committing:
        last: tuple[Job, Future[list[SkippedImage]]] | None = None
        for job, read, outputs in _run_followed(pool, jobs, writer.run, at_once, warm_up):
            before, last = last, (job, committing.submit(writer.write, job, read, outputs))
            if before is not None:
                yield before[0], before[1].result()
        if last is not None:
            yield last[0], last[1].result()


def _is_new(plans: Mapping[Condition, Plan], follow_up: FollowUp, writer: RowWriter) -> bool:
    """Whether nothing was stored: whole blocks follow, as of a run that was never stopped."""
    stored = (writer.stored(condition).contents(writer.keep) for condition in follow_up.conditions)
    return not any(plan.done for plan in plans.values()) and not any(one.rows or one.skipped for one in stored)


class _FollowedJobs:
    """Jobs as planned; each block of images that a follow-up asks for comes between them as soon as it is whole."""

    def __init__(
        self, jobs: Iterator[Job], follow_up: FollowUp | None, images: Dataset, preprocessing: Preprocessing, batch_size: int
    ) -> None:
        self._jobs, self._follow_up = jobs, follow_up
        self._images, self._preprocessing, self._batch_size = images, preprocessing, batch_size
        self._asked: list[Sample] = []
        self._next: deque[Job] = deque()

    def __iter__(self) -> _FollowedJobs:
        return self

    def __next__(self) -> Job:
        return self._next.popleft() if self._next else next(self._jobs)

    def hear(self, job: Job, read: Sequence[Read], outputs: BatchOutputs | None) -> None:
        """Takes up what the outcome of a job asks for; jobs are told of in their order."""
        if outputs is None or self._follow_up is None or job.conditions[0] in self._follow_up.conditions:
            return
        ids = [image_id for image_id, seen in zip(job.ids, read, strict=True) if not seen.reason]
        valid = np.flatnonzero(outputs.valid).tolist()
        self._asked += self._follow_up.asked([ids[place] for place in valid], outputs.arrays(valid)["logits"])
        while len(self._asked) >= self._batch_size:
            self._take_block()

    def take_rest(self) -> bool:
        """Takes up the last block, which is not whole; whether there are jobs left."""
        self._take_block()
        return bool(self._next)

    def _take_block(self) -> None:
        if self._follow_up is None:
            return
        block, self._asked = self._asked[: self._batch_size], self._asked[self._batch_size :]
        pairs = [(sample, condition) for condition in self._follow_up.conditions for sample in block]
        self._next += _mixed_jobs(pairs, _made_once(self._images), self._preprocessing, self._batch_size, again=True)


def _run_followed(
    pool: Workers, jobs: _FollowedJobs, run: Callable[[Block[Job]], BatchOutputs | None], at_once: int, warm_up: WarmUp
) -> Iterator[tuple[Job, list[Read], BatchOutputs | None]]:
    """As of `run_model`, with the jobs that follow from others."""
    while True:
        for job, read, outputs in run_model(pool, jobs, run, at_once, warm_up):
            jobs.hear(job, read, outputs)
            yield job, read, outputs
        if not jobs.take_rest():
            return


FEW_AT_ONCE = 4
"""Batches that run concurrently, where the model can, however large they are."""


def batches_at_once(model: Model, batch_size: int) -> int:
    """How many batches of this size the model runs concurrently: as many as it can, unless memory might not hold them."""
    return min(model.concurrent_batches, max(FEW_AT_ONCE, batches_in_memory(batch_size / model.default_batch_size)))


def batches_ahead(at_once: int) -> int:
    """How many batches are in the model or wait for it, so that none of its threads does."""
    return at_once + max(1, at_once // 2)


MOST_TOGETHER = 8
"""Most batches whose rows are committed together."""


def batches_together(at_once: int) -> int:
    """How many batches are committed together: with those ahead, a kill loses no more than twice what runs at once, and two.

    >>> [batches_together(cores) for cores in (1, 2, 4, 8, 64)]
    [1, 2, 2, 3, 8]
    """
    return min(MOST_TOGETHER, (2 * at_once + 3 - batches_ahead(at_once)) // 2)


def _recorded(model: RecordedDetector, images: Dataset, conditions: Iterable[Condition], store: Store) -> Tally:
    """Stores the detections of a results file."""
    done = [record(model, images, condition, store=store) for condition in conditions]
    written = sum(count for count, _ in done)
    skipped = tuple(dict.fromkeys(image for _, some in done for image in some))
    return Tally(written, len(images.samples) * len(done) - written - len(skipped), skipped)


def _jobs(
    plans: Mapping[Condition, Plan],
    images: Dataset,
    preprocessing: Preprocessing,
    batch_size: int,
    together: int,
    *,
    again: bool = False,
) -> Iterator[Job]:
    """Block after block of the dataset, each under all its conditions while its pictures are remembered.

    A condition that wants a whole block is a batch of its own; what others want of it is put together to full batches.
    Up to `together` blocks are taken at once, as far as their pictures are remembered, so that rows of a condition can be
    committed together.
    """
    places = sorted({place for plan in plans.values() for place in plan.blocks})
    again = again or len(plans) > 1
    together = min(together, _blocks_remembered(plans, batch_size) if all(plan.whole for plan in plans.values()) else 1)
    for start in range(0, len(places), together):
        scattered: list[tuple[Sample, Condition]] = []
        source = _made_once(images)  # also sent once, where jobs go to another process together
        for condition, plan in plans.items():
            for place in places[start : start + together]:
                block = plan.blocks.get(place, [])
                if block and plan.whole:
                    yield _job([(sample, condition) for sample in block], source, preprocessing, again)
                else:
                    scattered += [(sample, condition) for sample in block]
        yield from _mixed_jobs(scattered, source, preprocessing, batch_size, again)


def _mixed_jobs(
    pairs: Sequence[tuple[Sample, Condition]],
    source: Callable[[Sample], ImageSource],
    preprocessing: Preprocessing,
    batch_size: int,
    again: bool,
) -> Iterator[Job]:
    """Full batches of several conditions, an image after the other, so that few pictures need be remembered."""
    in_order = sorted(pairs, key=lambda pair: pair[0].id)
    for start in range(0, len(in_order), batch_size):
        yield _job(in_order[start : start + batch_size], source, preprocessing, again)


def _blocks_remembered(conditions: Iterable[Condition], batch_size: int) -> int:
    """Of how many blocks a worker surely remembers all pictures, or 1: where none but those of editions are looked at."""
    pictures = {condition.picture for condition in conditions}
    if not all(picture in catalog.EDITIONS for picture in pictures):
        return 1  # they are as large as the images
    pixels: int = sum(catalog.EDITIONS.load(picture).size ** 2 for picture in pictures)
    return max(1, CACHED_BYTES // max(1, 3 * pixels * batch_size))


def _made_once(images: Dataset) -> Callable[[Sample], ImageSource]:
    """The sources of images, the same one for a sample that is asked for again."""
    made: dict[str, ImageSource] = {}

    def source(sample: Sample) -> ImageSource:
        if sample.id not in made:
            made[sample.id] = images.source(sample)
        return made[sample.id]

    return source


def _job(
    pairs: Sequence[tuple[Sample, Condition]],
    source: Callable[[Sample], ImageSource],
    preprocessing: Preprocessing,
    again: bool,
) -> Job:
    ids, sources = [sample.id for sample, _ in pairs], [source(sample) for sample, _ in pairs]
    return Job(ids, sources, [condition for _, condition in pairs], preprocessing, again)


def run_model(
    pool: Workers,
    jobs: Iterable[Job],
    run: Callable[[Block[Job]], BatchOutputs | None],
    concurrent_batches: int,
    warm_up: WarmUp,
) -> Iterator[tuple[Job, list[Read], BatchOutputs | None]]:
    """Every job with what became of its images and the model's outputs, in order; several batches run concurrently."""
    waiting: deque[tuple[Block[Job], Future[BatchOutputs | None]]] = deque()
    ahead = batches_ahead(concurrent_batches)
    with ThreadPoolExecutor(concurrent_batches, thread_name_prefix="model") as threads:
        for block in pool.blocks(prepare, jobs, held=ahead, warm_up=warm_up):
            waiting.append((block, threads.submit(run, block)))
            if len(waiting) == ahead:
                done, outputs = waiting.popleft()
                yield done.job, done.said, outputs.result()
        for done, outputs in waiting:
            yield done.job, done.said, outputs.result()


def fill_studies(
    model: Model,
    studies: Sequence[Study],
    datasets: Iterable[Dataset],
    *,
    store: Store,
    settings: PredictionSettings = DEFAULTS,
    scoring: Scoring | None = None,
    workers: Workers | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Predicts every run of this model that the studies name and that is not stored.

    A study that can tell from the images and the model alone that it would measure nothing is not run.
    A `SampledStudy` runs only some images of most cells: it is asked for the next ones until it wants none. A study that
    `NeedsSaliency` also gets saliency maps of the images it requests.
    """
    sets = {images.ref: images for images in datasets}
    studies, _ = measurable(studies, KnownInputs.of([model.classes], sets.values(), scoring))
    sampled = [study for study in studies if isinstance(study, SampledStudy)]
    least = richest([settings.keep or "top5", (scoring or Scoring()).keep])
    keeps = keeps_of([study for study in studies if study not in sampled], least)
    for study in sampled:
        keeps |= {run: richest([keeps.get(run, least), study.keep]) for run in study.first_runs(model.ref)}
    done = Tally(0, 0, ())
    together: dict[tuple[DatasetRef, Keep], list[Condition]] = {}
    for run, keep in keeps.items():
        if run.model == model.ref:
            together.setdefault((run.dataset, keep), []).append(run.condition)
    with store.in_use(model.ref), worker_pool(workers or settings.workers, model.preprocessing, *sets.values()) as pool:

        def fill_some(images: Dataset, chosen: Chosen, keep: Keep) -> Tally:
            nonlocal done
            tally = fill_conditions(
                model,
                images,
                chosen,
                store=store,
                settings=settings,
                keep=keep,
                workers=pool,
                engine=engine,
                progress=progress,
            )
            done += tally
            return tally

        for (ref, keep), conditions in together.items():
            fill_some(sets[ref], dict.fromkeys(conditions), keep)
        for study in sampled:
            _fill_sampled(study, model.ref, sets, store, scoring, fill_some)
        for one in studies:
            if isinstance(one, NeedsSaliency) and isinstance(model, Classifier):
                fill_saliency(
                    one,
                    under(model, CLEAN),
                    sets,
                    store=store,
                    scoring=scoring,
                    batch_size=settings.batch_size,
                    progress=progress,
                )
    return done


@runtime_checkable
class SampledStudy(Study, Protocol):
    """A study that chooses, by what it has seen, which images to run in which cell."""

    def first_runs(self, model: ModelRef) -> Sequence[Run]: ...

    def wanted(self, model: ModelRef, load: Callable[[Run], Predictions]) -> Mapping[Run, Collection[str]]: ...


def _fill_sampled(
    study: SampledStudy,
    model: ModelRef,
    sets: Mapping[DatasetRef, Dataset],
    store: Store,
    scoring: Scoring | None,
    fill_some: Callable[[Dataset, Chosen, Keep], Tally],
) -> None:
    digests = {ref: digests_of(images, store) for ref, images in sets.items()}

    def load(run: Run) -> Predictions:
        images = sets[run.dataset]
        return load_predictions(
            run, images, store=store, keep=study.keep, scoring=scoring, partial=True, digests=digests[run.dataset]
        )

    while wanted := study.wanted(model, load):
        images = sets[next(iter(wanted)).dataset]
        tally = fill_some(images, {run.condition: ids for run, ids in wanted.items()}, study.keep)
        if tally.skipped_images:
            image = tally.skipped_images[0]
            raise BadInput(
                f"{image.id} has no prediction under some condition ({image.reason}); remove it, or leave out the budget"
            )


def check_stored(
    studies: Iterable[Study], datasets: Iterable[Dataset], *, store: Store, besides: Collection[ModelRef]
) -> None:
    """MissingRuns now rather than after an hour, where a study needs stored predictions of another model."""
    sets = {images.ref: images for images in datasets}
    for study in studies:
        for run in study.runs():
            if run.model in besides:
                continue
            # labels that a study reads otherwise, or not at all, need not be known to the model
            read_otherwise = study.reading(run) is not None
            images = sets[run.dataset]
            how = load_found if study.keep == "boxes" else load_predictions
            # of a baseline that was sampled too, some cells are enough
            some = isinstance(study, SampledStudy) and run not in study.first_runs(run.model)
            how(run, unlabelled(images) if read_otherwise else images, store=store, keep=study.keep, partial=some)


def worker_pool(
    workers: Workers | int | None, preprocessing: Preprocessing, *sets: Dataset
) -> AbstractContextManager[Workers]:
    """The given workers, or some of its own for this run."""
    if isinstance(workers, Workers):
        return nullcontext(workers)
    # a class that lives in the user's script cannot be found by another process
    at_home = "__main__" in {type(one).__module__ for one in (preprocessing, *sets)}
    return Workers(0 if at_home else workers)


def _refusal(image: SkippedImage) -> BadInput:
    return BadInput(f"{image.id}: {image.reason}; mend or remove it, or leave out --strict to skip it")
