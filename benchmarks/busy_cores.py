"""How busy a machine of 1 to 64 cores is with the numbers of workers, batches and threads that are chosen for it.

    SHIFTPROOF_TEST_DATA=... python benchmarks/busy_cores.py

The stages of a run are timed here, by the CPU time of one core: an image's decoding, corrupting and preprocessing, the
forward pass, what Python and the system do for a batch, the start of a worker. Then the pipeline's own code (what hands out
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

import shiftproof as sp
from harness import cpu_seconds, figure, save
from shiftproof.datasets.image_list import some_of
from shiftproof.models.classifiers import onnx_session
from shiftproof.runs import predict, workers
from shiftproof.runs.predict import fill_conditions, run_model
from shiftproof.runs.prepare import Job, prepare
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers
from shiftproof.runs.write import RowWriter
from shiftproof.types import Outputs

CORES = (1, 2, 4, 8, 16, 32, 64)
BATCH = 8
GIGABYTES_A_CORE = 2


class Stages(NamedTuple):
    """CPU seconds: of an image before the model and in it, of Python for a batch, and what the system does for its rows
    meanwhile; of the start of a worker.
    """

    image: float
    forward: float
    python: float
    system: float
    start: float


@dataclass(eq=False)
class Task:
    """Work for one core, or for several threads of one."""

    left: float
    server: Server
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


class Hand:
    """What stands in for a thread or a process that prepares batches."""

    def __init__(self, machine: Machine, image: float, start: float) -> None:
        self._server = Server(machine)
        self._image, self._starting = image, self._server.submit(start)
        self._tasks: deque[Task] = deque()
        self.has_replied = False

    @property
    def pending(self) -> int:
        return len(self._tasks)

    @property
    def task(self) -> Server:
        return self._server

    def send(self, _: object, job: int) -> None:
        self._tasks.append(self._server.submit(self._image * job))

    def is_ready(self) -> bool:
        return self._starting.done

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


def replay(cores: int, images: int, stages: Stages, batches: tuple[int, int] | None = None) -> Replayed:
    """The pipeline on so many cores; `batches` at once and the threads of their pool, where these are not as chosen."""
    machine = Machine(cores)
    pretended: dict[str, Any] = {
        "_Thread": lambda: Hand(machine, stages.image, 0.0),
        "_Worker": lambda _: Hand(machine, stages.image, stages.start),
        "_starved": lambda server: server.starved,
        "time": SimpleNamespace(monotonic=lambda: machine.now, thread_time=lambda: machine.main.used),
    }
    with (
        mock.patch.dict(os.environ, {"SHIFTPROOF_CORES": str(cores)}),
        mock.patch.multiple(onnx_session, usable_memory=lambda: cores * GIGABYTES_A_CORE * 2**30),
        mock.patch.multiple(workers, **pretended),
        Workers() as pool,
    ):
        session = onnx_session.OnnxSession(Path, input_name="", scores="")
        at_once, pooled = batches or (session.concurrent_batches, session.threads)
        model = Server(machine, at_once, pooled - 1)
        jobs: Any = [BATCH] * (images // BATCH)
        with mock.patch.multiple(predict, ThreadPoolExecutor=lambda *_, **__: Threads(model, stages.forward)):
            committing = Server(machine)
            for _ in run_model(pool, jobs, lambda _: None, at_once):
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


def measured(model: Any, images: Any, everything: Any) -> dict[str, Stages]:
    """The stages of predicting photos, and of all their corruptions."""
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
    start = _start_of_a_worker(jobs[0])
    a_photo, a_cell = of_one_core(lambda: prepare(clean)) / BATCH, of_one_core(all_cells, 3) / BATCH / len(jobs)
    return {
        "photos": Stages(a_photo, forward, *_python_and_system(model, everything, [sp.CLEAN]), start),
        "75 cells": Stages(a_cell, forward, *_python_and_system(model, images, cells[:15]), start),
    }


def _start_of_a_worker(job: Job) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Workers(1) as pool:
        list(pool.blocks(prepare, [job]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(after[:2]) - sum(before[:2])


def _python_and_system(model: Any, images: Any, conditions: Iterable[Any]) -> tuple[float, float]:
    """CPU seconds for a batch that comes from a worker process and goes into the store: here, and in the system for its
    rows, while other threads of Python run.
    """
    cells = dict.fromkeys(conditions)
    model = dataclasses.replace(model, forward=lambda inputs, _: Outputs(np.zeros((len(inputs), 1000), np.float32)))
    system = 0.0
    write = RowWriter.write

    def timed(*given: Any) -> Any:
        nonlocal system
        began = resource.getrusage(resource.RUSAGE_THREAD).ru_stime
        done = write(*given)
        system += resource.getrusage(resource.RUSAGE_THREAD).ru_stime - began
        return done

    with tempfile.TemporaryDirectory() as folder, Workers(1) as pool, mock.patch.multiple(RowWriter, write=timed):
        began = time.process_time()
        fill_conditions(model, images, cells, store=Store(folder), workers=pool)
        used = time.process_time() - began
    batches = len(cells) * len(images.samples) / BATCH
    return (used - system) / batches, system / batches


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
    figures: dict[str, Any] = {"stages": {name: stages._asdict() for name, stages in of_runs.items()}}
    for name, stages in of_runs.items():
        print(name, {part: f"{seconds * 1e3:.2f} ms" for part, seconds in stages._asdict().items()})
        for cores in CORES:
            passes = 75_000 if name == "75 cells" else 50_000
            new = replay(cores, passes, stages)
            old = replay(cores, passes, stages, (min(4, cores), cores // min(4, cores)))
            figures[f"{name}, {cores} cores"] = {**new._asdict(), "with four batches at once": old.busy}
            chosen = f"{new.batches} batches at once, {new.workers} workers"
            print(
                f"{name}, {cores:2} cores: busy {new.busy:.3f} with {chosen}; with four batches {old.busy:.3f}", flush=True
            )
    for name in of_runs:
        busy = figures[f"{name}, 64 cores"]["busy"] / figures[f"{name}, 2 cores"]["busy"]
        work = {"photos": "64 cores, 50,000 photos through Lite0", "75 cells": "64 cores, 75 cells of 1,000 photos"}[name]
        figure(f"{work} (simulated)", busy, beside="how busy 2 cores are", aim=">= 0.95")
    for name, clock, used in real_runs(sp.load_model("lite:0"), images):
        figures.setdefault("real runs", []).append([name, clock, used])
        print(f"{name}: {clock:.1f} s by the clock, {used:.1f} s of CPU", flush=True)
    save("busy_cores", figures)


if __name__ == "__main__":
    main()
