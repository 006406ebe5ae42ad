"""Jobs as an array of Slurm jobs, by submitit: each does a part, writes its rows into the store and reports as it goes.

What Slurm preempts it queues again, and it goes on behind its last report; what dies is submitted again with what is left.
The store and the current folder are on a file system that all nodes share, as those of a Slurm cluster do.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import submitit
from submitit.helpers import DelayedSubmission

from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.options import EngineSettings
from shiftproof.runs.engines import (
    MOST_TRIES,
    Cost,
    JobT,
    Opener,
    Rates,
    Spent,
    Tell,
    Terms,
    Unfit,
    Work,
    WorkFailed,
    failure_told,
    measured,
)
from shiftproof.runs.engines.queue import JobQueue, Piece
from shiftproof.runs.workers import portable

JOBS = 8
"""Jobs of an array, unless settings say otherwise."""

POLL_SECONDS = 0.5

QUEUE_SECONDS = 10.0
"""Between two questions to Slurm which jobs there are: often ones would be a burden to a cluster of many users."""

PATIENCE = 60.0
"""Seconds that Slurm has for an answer."""

LATE_SECONDS = 120.0
"""How long a report of a finished job may take to be seen: network file systems show new files late."""

BEGUN = "begun"
"""A file in the folder of a job that came as far as our own code."""

OWN_NAMES = {"time": "timeout_min", "mem": "mem_gb"}
"""Parameters of jobs that submitit has its own names for: minutes, and gigabytes."""


def open_slurm(address: str, settings: EngineSettings, tell: Tell) -> SlurmEngine:
    """Slurm, by an array of jobs; slurm://local runs the same jobs on this machine, to try it."""
    if address not in ("", "local"):
        raise BadInput(f"slurm has no address but local, got {address!r}; log in to a node where sbatch is")
    if not address and shutil.which("sbatch") is None:
        raise BadInput("there is no sbatch on this machine; log in to a node that has it, or try slurm://local")
    return SlurmEngine("local" if address else "slurm", settings, tell)


class Report(NamedTuple):
    """What a job did since its last report: the answers to its next jobs, or the error that ended it."""

    answers: list[Any]
    spent: Spent
    node: str
    error: Exception | None = None


@dataclass
class Part:
    """A job of the array; what it reports lies in its folder, so that one that is started again goes on."""

    terms: bytes
    work: bytes
    jobs: bytes
    folder: Path
    cores: int

    def __call__(self) -> int:
        """Does what is not reported yet; how many reports there are."""
        write_whole(self.folder / BEGUN, b"")
        done = list(reports_in(self.folder))
        try:
            terms: Terms = pickle.loads(self.terms)  # noqa: S301 from our own process, as below
            terms.meet(self.cores)
            work: Work = pickle.loads(self.work)  # noqa: S301
            jobs = pickle.loads(self.jobs)[sum(len(one.answers) for one in done) :]  # noqa: S301
            opened, queue = work.open(), JobQueue(work, jobs, sum(map(work.size, jobs)))
            while piece := queue.take(1):
                answers, spent = measured(opened, piece.jobs)
                queue.done(piece, spent.seconds)
                self._report(len(done), Report(answers, spent, platform.node()))
                done.append(Report(answers, spent, ""))
            opened.close()
        except Exception as problem:  # whatever it is, it is raised where the work came from
            self._report(len(done), Report([], Spent(), platform.node(), portable(problem)))
            return len(done) + 1
        return len(done)

    def checkpoint(self) -> DelayedSubmission:
        """Asked by submitit where Slurm preempts the job: it is queued again as it is."""
        return DelayedSubmission(self)

    def _report(self, number: int, report: Report) -> None:
        write_whole(self.folder / _file_of(number), cloudpickle.dumps(report))


def _file_of(number: int) -> str:
    return f"{number:06d}.report"


def reports_in(folder: Path, first: int = 0) -> Iterator[Report]:
    """The reports of a job from this one on."""
    number = first
    while True:
        try:
            data = (folder / _file_of(number)).read_bytes()
        except FileNotFoundError:
            return
        yield pickle.loads(data)  # noqa: S301 by our own job
        number += 1


@dataclass(eq=False)
class Submitted:
    """A part that was submitted, seen from here."""

    job: Any
    folder: Path
    left: Piece  # what it has not reported
    seen: int = 0  # reports
    since: float = 0.0


class JobList:
    """Which jobs Slurm still has, asked now and then.

    By squeue: submitit asks sacct, which says nothing of any job where a cluster keeps no accounts.
    """

    def __init__(self) -> None:
        self._asked = time.monotonic()
        self._missing: dict[str, int] = {}

    def has(self, job: Any) -> bool:
        """Whether a job has not ended; one is given up for lost when it is missing twice."""
        return self._missing.get(job.job_id, 0) < 2

    def look(self, jobs: Iterable[Any]) -> None:
        """Asks again, where it is time to; where Slurm does not answer, nothing is known that was not."""
        if time.monotonic() - self._asked < QUEUE_SECONDS:
            return
        self._asked = time.monotonic()
        own = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}  # which hide jobs
        try:
            asked = subprocess.run(
                ["squeue", "--me", "--array", "--noheader", "--format=%i"],  # noqa: S607 - of the user's own Slurm
                capture_output=True,
                text=True,
                check=False,
                env=own,
                timeout=PATIENCE,
            )
        except (subprocess.TimeoutExpired, FileNotFoundError):
            return
        if asked.returncode == 0:
            there = set(asked.stdout.split())
            self._missing = {one.job_id: self._missing.get(one.job_id, 0) + 1 for one in jobs if one.job_id not in there}


class SlurmEngine:
    """Arrays of Slurm jobs, for all work of one job."""

    needs_shared_store = True

    def __init__(self, cluster: str, settings: EngineSettings, tell: Tell) -> None:
        self.openers: dict[str, Opener] = {}
        self.tell = tell
        self._cluster, self._settings = cluster, settings
        self._folder = Path(f"slurm-{uuid.uuid4().hex[:8]}").absolute()
        self.cost = Cost()

    def pickled(self, value: object) -> bytes:
        return bytes(cloudpickle.dumps(value))

    def each(self, work: Work, jobs: Iterable[JobT], *, total: int, status: Tell) -> Iterator[list[tuple[JobT, Any]]]:
        pieces = _parts(work, list(jobs), self._settings.max_workers or JOBS, total)
        if not pieces:
            return
        sent, rates, failed = (pickle.dumps(Terms.here()), self.pickled(work)), Rates(), list[tuple[str, str]]()
        running, there = self._submit(sent, pieces), JobList()
        try:
            while running:
                again: list[Piece] = []
                for one in list(running):
                    ended = _answered(one.job) or (not there.has(one.job) if self._cluster == "slurm" else one.job.done())
                    yield from self._reported(one, work, rates)
                    if ended:
                        yield from self._late(one, work, rates)
                        running.remove(one)
                        again += _left_of(one, work, failed)
                if self._cluster == "slurm":
                    there.look(one.job for one in running)
                running += self._submit(sent, again) if again else []
                if rates.due():
                    waiting = [(one.job.job_id, time.monotonic() - one.since) for one in running]
                    status(rates.told(len(running), waiting, len(failed)))
                time.sleep(POLL_SECONDS if running else 0)
        finally:
            for one in running:
                one.job.cancel(check=False)
        if failed:
            raise failure_told(failed)

    def close(self) -> None:
        if self.cost.nodes:
            self.tell(self.cost.told("slurm"))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _submit(self, sent: tuple[bytes, bytes], pieces: Sequence[Piece]) -> list[Submitted]:
        """An array of jobs, one for each piece."""
        settings = self._settings
        executor = submitit.AutoExecutor(folder=self._folder / "logs", cluster=self._cluster)
        own: dict[str, Any] = {"name": "shiftproof", "cpus_per_task": settings.worker_cpus}
        if settings.worker_gpus:
            own["gpus_per_node"] = max(1, round(settings.worker_gpus))
        try:
            executor.update_parameters(**own, **_parameters(settings.slurm, self._cluster))
        except (NameError, TypeError, ValueError) as problem:
            raise BadInput(f"--slurm: {problem}") from problem
        folders = [self._folder / uuid.uuid4().hex for _ in pieces]
        with executor.batch():
            jobs = [
                executor.submit(Part(*sent, self.pickled(piece.jobs), folder, settings.worker_cpus))
                for piece, folder in zip(pieces, folders, strict=True)
            ]
        return [
            Submitted(job, folder, piece, since=time.monotonic())
            for job, folder, piece in zip(jobs, folders, pieces, strict=True)
        ]

    def _reported(self, one: Submitted, work: Work, rates: Rates) -> Iterator[list[tuple[Any, Any]]]:
        for report in reports_in(one.folder, one.seen):
            one.seen, one.since = one.seen + 1, time.monotonic()
            if isinstance(report.error, Unfit):
                raise Unfit(f"{report.node} cannot be used: {report.error}")
            if report.error is not None:
                raise report.error
            done, one.left.jobs = one.left.jobs[: len(report.answers)], one.left.jobs[len(report.answers) :]
            one.left.tries = 0
            answered = list(zip(done, report.answers, strict=True))
            for job, answer in answered:
                if fault := work.fault(job, answer):
                    raise Unfit(f"{report.node} cannot be used: {fault}, or leave it out with --slurm exclude={report.node}")
                rates.add(report.node, work.size(job))
            self.cost.nodes.add(report.node)
            self.cost.cpu_seconds += report.spent.seconds * self._settings.worker_cpus
            self.cost.gpu_seconds += report.spent.seconds * self._settings.worker_gpus
            self.cost.add(report.spent)
            yield answered

    def _late(self, one: Submitted, work: Work, rates: Rates) -> Iterator[list[tuple[Any, Any]]]:
        """Reports of a job that has ended and are not seen yet."""
        until, expected = time.monotonic() + LATE_SECONDS, 0
        if _answered(one.job):  # one that died says nothing
            with contextlib.suppress(Exception):
                expected = one.job.result()
        while one.seen < expected and time.monotonic() < until:
            yield from self._reported(one, work, rates)
            time.sleep(0 if one.seen == expected else POLL_SECONDS)


def _parts(work: Work, jobs: list[Any], parts: int, total: int) -> list[Piece]:
    """The jobs in so many pieces of about one size; neighbours stay together, since they share images."""
    pieces: list[Piece] = []
    for job in jobs:
        if not pieces or pieces[-1].size >= total / parts:
            pieces.append(Piece([], 0))
        pieces[-1].jobs.append(job)
        pieces[-1].size += work.size(job)
    return pieces


def _left_of(one: Submitted, work: Work, failed: list[tuple[str, str]]) -> list[Piece]:
    """What a job that has ended left to do; a job of ours that ends it time and again is given up."""
    left = one.left
    if not left.jobs:
        return []
    left.tries += 1
    if left.tries >= MOST_TRIES:
        if not (one.folder / BEGUN).exists():
            raise WorkFailed(f"Slurm jobs end before they begin, the last {_end_of(one.job)}")
        culprit = left.jobs.pop(0)
        failed.append((work.told(culprit), f"its Slurm job {one.job.job_id} ended {left.tries} times, {_end_of(one.job)}"))
        left.tries = 0
    return [left] if left.jobs else []


def _answered(job: Any) -> bool:
    """Whether a job has left its answer; one that ended without has died."""
    return bool(job.paths.result_pickle.exists())


def _end_of(job: Any) -> str:
    """The last that a job wrote."""
    said = (job.stderr() or "").strip().splitlines()
    return f"with {said[-1].strip()!r}" if said else "without a word"


def _parameters(given: Iterable[str], cluster: str) -> dict[str, Any]:
    """Parameters as submitit calls them, those of Slurm alone with its prefix."""
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--slurm should be a parameter such as partition=gpu, got {text!r}")
        if key in OWN_NAMES:
            found[OWN_NAMES[key]] = int(value) if value.isdigit() else value
        elif cluster == "slurm":
            found[f"slurm_{key}"] = int(value) if value.isdigit() else value
    return found
