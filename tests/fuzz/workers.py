"""A fuzzer: damaged files go through every reader, in worker processes that are watched.

A reader must answer each with a ShiftproofError or with a result that holds. What it must not do:

    traceback   any other error, or the end of the process
    hang        more than SECONDS for one case
    blow-up     more than GROWTH bytes of memory for one case
    outside     a file written outside the folder of the case, a program or a connection started
    silent      a result that breaks a rule of the reader, or other numbers where a checksum should have told

Cases come from two sources: bytes of a small valid file are changed at random, and Hypothesis draws documents that are valid
but for some odd parts. Files that once failed lie in ``corpus/`` and are replayed by the tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzz.bench import GROWTH, Batch, Bench, Found, Kind, Progress, Reader, load_readers, run_batch
from fuzz.cases import Seed

SECONDS = 10.0
"""What a case may take."""


def run_worker(connection: Connection, shared: Any, root: Path, module: str) -> None:
    """Tries batches until it is told to end."""
    os.setsid()  # so that it can be ended with all that it started
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # libraries print what they think of damaged files
        os.dup2(nowhere, stream)
    sys.dont_write_bytecode = True
    bench, progress = Bench(root), Progress(shared)
    tempfile.tempdir = str(root / "cache")
    stack = root.with_suffix(".stack").open("w")
    faulthandler.enable(stack)
    faulthandler.register(signal.SIGUSR1, stack)
    seeds: dict[str, Sequence[Seed]] = {}
    readers = load_readers(module)
    while (batch := connection.recv()) is not None:
        reader = readers[batch.reader]
        try:
            if reader.name not in seeds:
                seeds[reader.name] = reader.seeds()
                for seed in seeds[reader.name]:  # what is imported and compiled at first use is no growth of a case
                    bench.try_seed(reader, seed)
            several = seeds[reader.name]
            seed = several[batch.number // 2 % len(several)]
            root.with_suffix(".seed").write_text(f"{seed.name}\n{seed.target}")  # for when this process is gone
            progress.clear()
            connection.send(run_batch(bench, reader, seed, batch, progress))
        except BaseException:
            connection.send(traceback.format_exc())


@dataclass
class Worker:
    """A worker as its supervisor sees it."""

    root: Path
    module: str

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.shared = context.Array("d", Progress.SIZE, lock=False)
        self.process = context.Process(target=run_worker, args=(theirs, self.shared, self.root, self.module))
        self.process.start()
        theirs.close()
        self.batch: Batch | None = None
        self._case, self._cpu, self._memory = 0.0, 0.0, 0

    def give(self, batch: Batch) -> None:
        self.batch = batch
        self._memory = self._resident()
        self.connection.send(batch)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()  # it may not have got as far as a group of its own
        self.process.join()
        self.connection.close()

    def trouble(self) -> tuple[Kind, str] | None:
        """What is wrong with a case that does not come to an end, if anything is."""
        began = self.shared[0]
        if began != self._case:
            self._case, self._cpu = began, self._processor_seconds()
        grown = self._resident() - self._memory
        if grown > GROWTH:
            return "blow-up", f"{grown / 2**30:.1f} GiB and more"
        waited = time.monotonic() - began if began else 0.0
        # on a busy machine a case may wait for its turn: then it is not the one that takes so long
        if waited > 12 * SECONDS or (waited > SECONDS and self._processor_seconds() - self._cpu > SECONDS / 2):
            return "hang", f"{waited:.0f} s and more"
        return None

    def found(self, kind: Kind, told: str) -> Found:
        """The case that a worker is in, or was in when it ended."""
        written = self.root.with_suffix(".stack")
        if self.process.is_alive():
            os.kill(self.process.pid or 0, signal.SIGUSR1)  # it writes down where it is
            _wait_until_written(written)
        stack = written.read_text()
        ours = re.findall(r'File ".*/shiftproof/([^"]+)", line (\d+)', stack)
        seed, target = self.root.with_suffix(".seed").read_text().split("\n")
        content = (self.root / "case" / target).read_bytes()
        assert self.batch is not None
        return Found(
            self.batch.reader,
            seed,
            kind,
            ":".join(ours[0]) if ours else "somewhere",
            f"{told}\n{stack[:3000]}",
            target,
            content,
        )

    def _resident(self) -> int:
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()
        except (FileNotFoundError, ProcessLookupError):
            return 0

    def _processor_seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_until_written(path: Path) -> None:
    """Until a file has something in it and grows no more, for a second at most: meanwhile the case goes on."""
    size, deadline = 0, time.monotonic() + 1
    while time.monotonic() < deadline:
        time.sleep(0.02)
        before, size = size, path.stat().st_size
        if 0 < before == size:
            return


@dataclass
class Fuzzed:
    """What a round came to."""

    counts: dict[str, Counter[str]]
    found: dict[str, Found] = field(default_factory=dict)


def fuzz(
    module: str,
    root: Path,
    *,
    cases: int,
    seed: int,
    jobs: int,
    only: Sequence[str] = (),
    tell: Callable[[Found], None] = lambda _: None,
) -> Fuzzed:
    """Tries so many cases, shared out over the readers of a module; the same seed draws the same cases."""
    readers = [reader for name, reader in load_readers(module).items() if not only or name in only]
    fuzzed = Fuzzed({reader.name: Counter() for reader in readers})
    waiting = _batches(readers, cases, seed)
    workers = [Worker(root / f"worker{number}", module) for number in range(jobs)]
    for worker in workers:
        worker.start()
    try:
        while waiting or any(worker.batch for worker in workers):
            for worker in workers:
                if worker.batch is None and waiting:
                    batch = waiting.pop(0)
                    worker.give(dataclasses.replace(batch, known=frozenset(fuzzed.found)))
            ready = wait([worker.connection for worker in workers if worker.batch], timeout=0.05)
            for worker in workers:
                if worker.batch:
                    _look_after(worker, fuzzed, is_ready=worker.connection in ready, waiting=waiting, tell=tell)
    finally:
        for worker in workers:
            worker.end()
    return fuzzed


def _batches(readers: Sequence[Reader], cases: int, seed: int) -> list[Batch]:
    """Batches of all readers, in turn."""
    total = sum(reader.share for reader in readers)
    made: list[tuple[int, Batch]] = []
    for reader in readers:
        left = max(round(cases * reader.share / total), 1)
        size = min(max(left // 80, 4), 20 if reader.is_slow else 200)  # of 80 batches each seed has some
        sizes = [min(size, left - begun) for begun in range(0, left, size)]
        made += [(number, Batch(reader.name, number, seed, count, frozenset())) for number, count in enumerate(sizes)]
    return [batch for _, batch in sorted(made, key=lambda one: one[0])]


def _look_after(
    worker: Worker, fuzzed: Fuzzed, *, is_ready: bool, waiting: list[Batch], tell: Callable[[Found], None]
) -> None:
    """Takes what a worker has to say, or ends it where it is in trouble; a worker that failed starts anew."""
    batch = worker.batch
    assert batch is not None
    new: list[Found] = []
    if is_ready:
        try:
            said = worker.connection.recv()
        except EOFError:
            worker.process.join()
            new, gone = [worker.found("traceback", f"the process ended with {worker.process.exitcode}")], True
        else:
            if isinstance(said, str):
                raise RuntimeError(said[-2000:])
            new, gone = said, bool(said)
    else:
        trouble = worker.trouble()
        if trouble is None:
            return
        new, gone = [worker.found(*trouble)], True
    counts = Progress(worker.shared).counts()
    cut_short = gone and not (is_ready and worker.process.is_alive())
    if cut_short:
        counts.update([new[0].kind, "cases"])
        left = batch.cases - counts["cases"]
        if left > 0:  # the same cases come again but in another order, or the next would fail as this one did
            waiting.append(dataclasses.replace(batch, number=batch.number + 10_000, cases=left))
    fuzzed.counts[batch.reader].update(counts)
    for found in new:
        if found.key not in fuzzed.found:
            fuzzed.found[found.key] = found
            tell(found)
    worker.batch = None
    if gone:
        worker.end()
        worker.start()
