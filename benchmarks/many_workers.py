"""How many workers the process that hands out the work can keep busy: its real cost of a batch, and a replay with 1,000.

    SHIFTPROOF_TEST_DATA=... python benchmarks/many_workers.py

First the driver's own code (planning, handing out, noting what came back) runs over an engine whose workers answer at once,
so that what is measured is its CPU time alone; jobs and answers are pickled as Ray would. Then that cost, the times of real
batches of EfficientNet-Lite0 and the real queue are replayed for 1 to 1,000 workers, event after event: a worker waits while
the driver is busy with others. The efficiency is the work done over what as many workers could have done meanwhile.
"""

from __future__ import annotations

import heapq
import os
import pickle
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import shiftproof as sp
from harness import save
from shiftproof.datasets.image_list import some_of
from shiftproof.runs.engines import Cost, Opener, Tell, Work
from shiftproof.runs.engines.predicting import Committed
from shiftproof.runs.engines.queue import JobQueue
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.prepare import Read
from shiftproof.runs.store import Store

PHOTOS = int(os.environ.get("PHOTOS", "200"))
TURNS = 4
RATES = {"80 images/s, as a core here": 80.0, "1,000 images/s, as a GPU might": 1000.0}
WORKERS = (1, 2, 10, 100, 1000)
PASSES = 3_800_000  # ImageNet-C and the clean images
RAY_SECONDS = float(os.environ.get("RAY_SECONDS", "0.001"))  # of the driver's CPU that Ray itself takes for a piece


class Instant:
    """An engine whose workers answer at once, with rows that they wrote themselves; it keeps count of the driver's time."""

    needs_shared_store = False

    def __init__(self, openers: dict[str, Opener]) -> None:
        self.openers = openers
        self.tell: Tell = print
        self.cost = Cost()
        self.away = 0.0  # CPU seconds of what workers would have done
        self.pieces = 0

    def each(self, work: Work, jobs: Iterable[Any], *, total: int, status: Tell) -> Iterator[list[tuple[Any, Any]]]:
        queue = JobQueue(work, jobs, total * max(WORKERS))  # pieces as in the middle of a long run
        while piece := queue.take(max(WORKERS)):
            sent = pickle.dumps(piece.jobs)
            started = time.process_time()
            answers = pickle.dumps([_answer(job) for _, job in pickle.loads(sent)])
            self.away += time.process_time() - started
            self.pieces += 1
            queue.done(piece, piece.size / RATES["80 images/s, as a core here"])
            yield list(zip(piece.jobs, pickle.loads(answers), strict=True))
        status("")

    def pickled(self, value: object) -> bytes:
        return pickle.dumps(value)

    def close(self) -> None: ...


def _answer(job: Any) -> Committed:
    return Committed([Read("0" * 32, f"{image_id} 1 2", None, (224, 224)) for image_id in job.ids], [])


def driver_seconds(model: Any, images: Any) -> tuple[float, float]:
    """CPU time of the driver for an image under one condition, and images in a piece."""
    conditions = dict.fromkeys(sp.CorruptionStudy([model], images).conditions())
    engine = Instant(openers={model.ref.fingerprint: partial(sp.load_model, "lite:0")})
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        fill_conditions(model, images, conditions, store=Store(folder), engine=engine)
        used = time.process_time() - started - engine.away
    passes = len(images.samples) * len(conditions)
    return used / passes, passes / engine.pieces


def batch_seconds(model: Any, images: Any) -> list[float]:
    """What real batches take a core, by the time it is used: an image each."""
    seconds: list[float] = []
    batch = model.default_batch_size
    for start in range(0, len(images.samples) - batch + 1, batch):
        began = time.process_time()
        sources = [images.source(sample) for sample in images.samples[start : start + batch]]
        for source in sources:
            model.preprocessing.from_image(source.decode(source.read()))
        seconds.append((time.process_time() - began) / batch)
    mean = statistics.fmean(seconds)
    return [one / mean for one in seconds]  # only how much they differ; how fast a worker is is a choice below


@dataclass
class Sized:
    """Work of which only the number of images matters."""

    def size(self, job: int) -> int:
        return job

    def told(self, job: int) -> str:
        return str(job)


def replay(workers: int, rate: float, an_image: float, a_piece: float, spread: list[float]) -> float:
    """The efficiency of so many workers, each `rate` images a second on average, with two pieces at hand as on Ray."""
    rng, batch = random.Random(0), 8
    queue = JobQueue(Sized(), (batch for _ in range(PASSES // batch)), PASSES)  # type: ignore[arg-type]
    free = 0.0  # when the driver is free
    events: list[tuple[float, int, Any]] = []  # when a worker ends a piece
    waiting = dict.fromkeys(range(workers), 0.0)  # when each is done with all that it has
    busy = end = 0.0

    def give(worker: int, now: float) -> None:
        nonlocal free, busy
        piece = queue.take(workers)
        if piece is None:
            return
        free = max(free, now) + a_piece / 2
        seconds = sum(batch / rate * rng.choice(spread) for _ in piece.jobs)
        waiting[worker] = max(waiting[worker], free) + seconds
        busy += seconds
        heapq.heappush(events, (waiting[worker], worker, (piece, seconds)))

    for _ in range(2):
        for worker in range(workers):
            give(worker, 0.0)
    while events:
        now, worker, (piece, seconds) = heapq.heappop(events)
        free = max(free, now) + a_piece / 2 + an_image * piece.size
        queue.done(piece, seconds)
        end = max(end, free)
        give(worker, free)
    return busy / (workers * end)


def main() -> None:
    photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    images = some_of(sp.open_dataset(str(photos)), PHOTOS)
    model = sp.load_model("lite:0", threads=1)
    driver_seconds(model, some_of(images, 16))  # what is imported and opened once
    turns = [driver_seconds(model, images) for _ in range(TURNS)]
    an_image, in_a_piece = min(turns)
    each = ", ".join(f"{one * 1e6:.1f}" for one, _ in turns)
    told = f"in pieces of {in_a_piece:.0f}, and {RAY_SECONDS * 1e3:g} ms for a piece"
    print(f"the driver takes {each} us of CPU for an image {told}")
    spread = batch_seconds(model, images)
    figures: dict[str, float] = {"driver us an image": an_image * 1e6}
    for told, rate in RATES.items():
        for workers in WORKERS:
            if PASSES / rate / workers < 20:
                continue  # over before it has begun
            figures[f"{workers:,} workers, {told}"] = replay(workers, rate, an_image, RAY_SECONDS, spread)
            print(f"{workers:6,} workers of {told}: efficiency {figures[f'{workers:,} workers, {told}']:.3f}", flush=True)
    save("many_workers", figures)


if __name__ == "__main__":
    main()
