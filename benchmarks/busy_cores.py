"""How busy a machine of 1 to 64 cores is with the numbers of workers, batches and threads that are chosen for it.

    SHIFTPROOF_TEST_DATA=... python benchmarks/busy_cores.py

The stages of a run are timed here, by the CPU time of one core: an image's decoding, corrupting and preprocessing, the
forward pass, the start of workers for such images (the first waits for imports, further ones are forked), and what Python
and the system do for one more batch where batches come as fast as they are taken and as many run at once as the cores are.
Then the pipeline's own code (what hands out
the work, runs the model and chooses how many batches a session takes at once) runs on a pretended machine, event after
event: its workers and the model are queues whose work takes those times, and where more threads want to run than there are
cores, all of them run slower. It starts with one thread and has to find out by itself how many workers it needs. Last come
real runs with 1, 2 and 4 workers on this machine, by the clock and by CPU time. PHOTOS makes those shorter.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import shiftproof as sp
from harness import cpu_seconds, figure, save
from shiftproof import cores as cores_of_machine
from shiftproof.datasets.image_list import some_of
from shiftproof.models.classifiers import onnx_session
from shiftproof.runs import predict, workers
from shiftproof.runs.digests import digest_of
from shiftproof.runs.predict import fill_conditions, run_model
from shiftproof.runs.prepare import Job, Read, prepare, warm_up_for
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Batch, Workers, room_for
from shiftproof.runs.write import RowWriter
from shiftproof.types import Outputs

CORES = (1, 2, 4, 8, 16, 32, 64)
BATCH = 8
GIGABYTES_A_CORE = 2
ALL_PHOTOS = 1_281_167  # the training set of ILSVRC-2012


class Stages(NamedTuple):
    """CPU seconds: of an image before the model and in it, of Python for a batch, and what the system does for its rows
    meanwhile; of the start of workers.
    """

    image: float
    forward: float
    python: float
    system: float
    starts: Starts


class Starts(NamedTuple):
    """CPU seconds: of the process that forks workers before it can, then for each of them; and what a worker's first jobs
    take beyond the same jobs later, one after the other: pages that are copied or new, kernels, tables of a severity.
    """

    forker: float
    fork: float
    jobs: tuple[float, ...]


@dataclass(eq=False)
class Task:
    """Work for one core, or for several threads of one."""

    left: float
    server: Server
    then: Callable[[], None] | None = None
    done: bool = False


@dataclass(eq=False)
class Server:
    """Threads that take tasks in order, so many at a time; helpers are shared by all that run."""

    machine: Machine
    at_once: int = 1
    helpers: int = 0
    waiting: deque[Task] = field(default_factory=deque)
    running: list[Task] = field(default_factory=list)
    starved: float = 0.0
    used: float = 0.0

    def submit(self, seconds: float) -> Task:
        task = Task(seconds, self)
        self.waiting.append(task)
        self.start()
        return task

    def start(self) -> None:
        while self.waiting and len(self.running) < self.at_once:
            self.running.append(self.waiting.popleft())
            self.machine.running.append(self.running[-1])

    @property
    def threads(self) -> float:
        """Of each of its running tasks."""
        return 1 + self.helpers / len(self.running)


class Machine:
    """A clock and some cores, which all running threads share alike."""

    def __init__(self, cores: int) -> None:
        self.cores, self.now = cores, 0.0
        self.running: list[Task] = []
        self.main = Server(self)

    def spend(self, seconds: float) -> None:
        self.wait(self.main.submit(seconds))

    def wait(self, task: Task) -> None:
        while not task.done:
            threads = [one.server.threads for one in self.running]
            share = min(1.0, self.cores / sum(threads))
            step = min(one.left / (width * share) for one, width in zip(self.running, threads, strict=True))
            self.now += step
            for one, width in zip(self.running, threads, strict=True):
                one.left -= step * width * share
                one.server.used += step * width * share
                one.server.starved += step * (1 - share)
            for one in [one for one in self.running if one.left <= 1e-12]:
                one.done = True
                self.running.remove(one)
                one.server.running.remove(one)
                one.server.start()
                if one.then is not None:
                    one.then()


class Hand:
    """What stands in for a thread or a process that prepares batches; a process is forked by another, in its turn."""

    def __init__(self, machine: Machine, image: float, starts: Starts, forker: Server | None = None) -> None:
        self._server = Server(machine, at_once=0)
        self._image, self._forked = image, forker is None
        self._beyond = deque(starts.jobs)
        if forker is None:
            self._begin()
        else:
            forker.submit(starts.fork).then = self._begin
        self._tasks: deque[Task] = deque()
        self.has_replied = False

    def _begin(self) -> None:
        self._forked, self._server.at_once = True, 1
        self._server.start()

    @property
    def pending(self) -> int:
        return len(self._tasks)

    @property
    def task(self) -> Server:
        return self._server

    def send(self, _: object, job: int) -> None:
        beyond = self._beyond.popleft() if self._beyond else 0.0
        self._tasks.append(self._server.submit(self._image * job + beyond))

    def is_ready(self) -> bool:
        return self._forked

    def has_answer(self) -> bool:
        return self._tasks[0].done

    def receive(self) -> tuple[list[Any], int]:
        self._server.machine.wait(self._tasks[0])
        self._tasks.popleft()
        self.has_replied = True
        return [], 0

    def free_memory(self) -> None: ...

    def close(self) -> None: ...


class Threads:
    """What stands in for the executor of the model's threads."""

    def __init__(self, server: Server, forward: float) -> None:
        self._server, self._forward = server, forward

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, _: object, block: workers.Block[int]) -> SimpleNamespace:
        task = self._server.submit(self._forward * block.job)
        return SimpleNamespace(result=lambda: self._server.machine.wait(task))


class Replayed(NamedTuple):
    """What a pretended machine did: the share of its cores that worked, and what was chosen for it."""

    busy: float
    workers: int
    batches: int


def replay(cores: int, images: int, stages: Stages) -> Replayed:
    """The pipeline on so many cores."""
    machine = Machine(cores)
    forker = Server(machine)

    def start_forker(*_: object) -> SimpleNamespace:
        forker.submit(stages.starts.forker)
        return SimpleNamespace(load=lambda *_: None, start=None, close=lambda: None)

    pretended: dict[str, Any] = {
        "_Thread": lambda: Hand(machine, stages.image, Starts(0, 0, ())),
        "_Worker": lambda *_: Hand(machine, stages.image, stages.starts, forker),
        "Forker": start_forker,
        "_starved": lambda server: server.starved,
        "time": SimpleNamespace(monotonic=lambda: machine.now, thread_time=lambda: machine.main.used),
    }
    with (
        mock.patch.dict(os.environ, {"SHIFTPROOF_CORES": str(cores)}),
        mock.patch.multiple(cores_of_machine, usable_memory=lambda: cores * GIGABYTES_A_CORE * 2**30),
        mock.patch.multiple(workers, **pretended),
        Workers() as pool,
    ):
        session = onnx_session.OnnxSession(Path, input_name="", scores="")
        at_once = session.concurrent_batches
        model = Server(machine, at_once, session.threads - 1)
        jobs: Any = [BATCH] * (images // BATCH)
        with mock.patch.multiple(predict, ThreadPoolExecutor=lambda *_, **__: Threads(model, stages.forward)):
            committing = Server(machine)
            for _ in run_model(pool, jobs, lambda _: None, at_once, lambda: None):
                # one thread hands out and another commits, but only one of them at a time has the interpreter
                machine.spend(stages.python)
                committed = committing.submit(stages.system)
            machine.wait(committed)
        return Replayed(images * (stages.image + stages.forward) / (cores * machine.now), len(pool._workers), at_once)


def of_one_core(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of this thread."""
    taken = []
    for _ in range(times):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return statistics.median(taken)


def measured(model: Any, images: Any, everything: Any) -> dict[str, dict[int, Stages]]:
    """The stages of predicting photos, and of all their corruptions, by the number of cores."""
    samples = list(images.samples[:BATCH])
    cells = sp.CorruptionStudy([model], images).conditions()[1:]
    clean = Job.of(images, samples, sp.CLEAN, model.preprocessing)
    jobs = [Job.of(images, samples, cell, model.preprocessing)._replace(again=True) for cell in cells]
    inputs = np.stack(list(prepare(clean)[0]))

    def all_cells() -> None:
        for job in jobs:
            prepare(job)

    all_cells()
    forward = of_one_core(lambda: model(inputs)) / BATCH
    a_photo, a_cell = of_one_core(lambda: prepare(clean)) / BATCH, of_one_core(all_cells, 3) / BATCH / len(jobs)
    work = {
        "photos": (a_photo, everything, [sp.CLEAN], starts_of_workers([clean])),
        "75 cells": (a_cell, images, cells[:15], starts_of_workers(jobs)),
    }
    return {
        name: {cores: Stages(image, forward, *_python_and_system(model, some, chosen, cores), starts) for cores in CORES}
        for name, (image, some, chosen, starts) in work.items()
    }


def ready(job: Job) -> tuple[Batch, list[Read]]:
    """What stands in for `prepare` in a worker: a batch as it lies in memory, at once."""
    read = [Read(digest_of(image_id.encode()), image_id, None, (224, 224)) for image_id in job.ids]
    return room_for((len(read), 3, 224, 224), np.dtype(np.float32))[: len(read)], read


def starts_of_workers(jobs: list[Job], further: int = 4, times: int = 3) -> Starts:
    """What the process that forks workers takes, and workers where each works on all jobs."""
    warm_up = warm_up_for((condition for job in jobs for condition in job.conditions), jobs[0].preprocessing)

    def work(pool: Workers, jobs: Iterable[Job]) -> float:
        """CPU seconds of the process that forks, so far."""
        for _ in pool.blocks(prepare, jobs, warm_up=warm_up):
            pass
        forker: Any = pool._forker
        return int(Path(f"/proc/{forker._process._process.pid}/schedstat").read_bytes().split()[0]) / 1e9

    def of_forker() -> tuple[float, float]:
        """CPU seconds before the first fork, and of each."""
        with Workers(1) as pool:
            first = work(pool, jobs[:1])
            pool._wanted = pool._most = 1 + further
            fork = (work(pool, jobs[:1] * (1 + further)) - first) / further
        return first - fork, fork

    def of_workers(jobs: list[Job], count: int, rounds: int = 1) -> float:
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        with Workers(count) as pool:
            forker = work(pool, [job for job in jobs * rounds for _ in range(count)])
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before - forker

    def beyond(jobs: list[Job]) -> float:
        """CPU seconds of a worker beyond what its jobs take when they come again."""
        again = of_workers(jobs, 1, rounds=2) - of_workers(jobs, 1)
        return of_workers(jobs, 1 + further) / (1 + further) - again

    forker, fork = np.median([of_forker() for _ in range(times)], axis=0).tolist()
    # a worker meets every corruption before it meets all severities
    of_each_corruption = list({job.conditions[0].name: job for job in jobs[::-1]}.values())
    counted, taken, each = 0, 0.0, []
    for some in (jobs[:1], of_each_corruption, jobs):
        more = len(some) - counted
        so_far = max(taken, statistics.median(beyond(some) for _ in range(times)))
        each += [(so_far - taken) / more] * more if more else []
        counted, taken = len(some), so_far
    return Starts(forker, fork, tuple(each))


def _python_and_system(model: Any, images: Any, conditions: Iterable[Any], cores: int) -> tuple[float, float]:
    """CPU seconds for one more batch that comes from a worker process and goes into the store, where batches come as fast as
    they are taken: here, and in the system for its rows, while other threads of Python run.
    """
    from busy_cores import ready  # by a name that a worker finds too

    cells = dict.fromkeys(conditions)
    outputs = Outputs(np.random.default_rng(0).random((BATCH, 1000), np.float32))
    model = dataclasses.replace(
        model, forward=lambda inputs, _: Outputs(outputs.scores[: len(inputs)]), concurrent_batches=cores
    )
    system = 0.0
    write = RowWriter.write

    def timed(*given: Any) -> Any:
        nonlocal system
        began = resource.getrusage(resource.RUSAGE_THREAD).ru_stime
        done = write(*given)
        system += resource.getrusage(resource.RUSAGE_THREAD).ru_stime - began
        return done

    def used(photos: int) -> NDArray[np.float64]:
        nonlocal system
        system, began = 0.0, time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            fill_conditions(model, some_of(images, photos), cells, store=Store(folder), workers=pool)
        return np.array([time.process_time() - began - system, system])

    few, many = len(images.samples) // 4 // BATCH * BATCH, len(images.samples) // BATCH * BATCH
    with (
        Workers(1) as pool,
        mock.patch.multiple(RowWriter, write=timed),
        mock.patch.multiple(predict, prepare=ready, batches_in_memory=lambda _: cores),
    ):
        used(few)  # imports
        each = [(used(many) - used(few)) / (len(cells) * (many - few) / BATCH) for _ in range(3)]
    python, kernel = np.median(each, axis=0).tolist()
    return python, max(0.0, kernel)


def real_runs(model: Any, images: Any) -> Iterator[tuple[str, float, float]]:
    """Seconds by the clock and of CPU for the clean photos and five conditions, by the number of workers."""
    cells = dict.fromkeys(sp.CorruptionStudy([model], images).conditions()[:6])
    for count in (1, 2, 4, 1):
        with tempfile.TemporaryDirectory() as folder:
            clock, used = time.perf_counter(), cpu_seconds()
            with Workers(count) as pool:
                fill_conditions(model, images, cells, store=Store(folder), workers=pool)
            yield f"{count} workers", time.perf_counter() - clock, cpu_seconds() - used


def main() -> None:
    photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    everything = sp.open_dataset(str(photos))
    images = some_of(everything, int(os.environ.get("PHOTOS", "64")))
    model = sp.load_model("lite:0", threads=1)
    of_runs = measured(model, images, everything)
    figures: dict[str, Any] = {}
    for name, by_cores in of_runs.items():
        for cores, stages in by_cores.items():
            starts = {"forker": stages.starts.forker, "fork": stages.starts.fork, "first jobs": sum(stages.starts.jobs)}
            seconds = {part: value for part, value in stages._asdict().items() if part != "starts"} | starts
            print(name, cores, {part: f"{value * 1e3:.2f} ms" for part, value in seconds.items()})
            replayed = replay(cores, 75_000 if name == "75 cells" else 50_000, stages)
            figures[f"{name}, {cores} cores"] = {**replayed._asdict(), "stages": seconds}
            chosen = f"{replayed.batches} batches at once, {replayed.workers} workers"
            print(f"{name}, {cores:2} cores: busy {replayed.busy:.3f} with {chosen}", flush=True)
    for name in of_runs:
        busy = figures[f"{name}, 64 cores"]["busy"] / figures[f"{name}, 2 cores"]["busy"]
        work = {"photos": "64 cores, 50,000 photos through Lite0", "75 cells": "64 cores, 75 cells of 1,000 photos"}[name]
        figure(f"{work} (simulated)", busy, beside="how busy 2 cores are", aim=">= 0.95")
    many = {cores: replay(cores, ALL_PHOTOS, of_runs["photos"][cores]).busy for cores in (2, 64)}
    work = f"64 cores, {ALL_PHOTOS:,} photos through Lite0: the start of workers counts less (simulated)"
    figure(work, many[64] / many[2], beside="how busy 2 cores are", aim=">= 0.95")
    for name, clock, used in real_runs(sp.load_model("lite:0"), images):
        figures.setdefault("real runs", []).append([name, clock, used])
        print(f"{name}: {clock:.1f} s by the clock, {used:.1f} s of CPU", flush=True)
    save("busy_cores", figures)


if __name__ == "__main__":
    main()
