"""Where blocks of work are done: in this process, on a Ray cluster, or as Slurm jobs.

An engine gets work and jobs, has the jobs done somewhere and gives each back with its answer, in whichever order they are
done. The members of a job depend on the dataset alone, so what comes out is the same to the byte, wherever, by however many
and in whichever order that happens. What dies is done again elsewhere; nothing of ours schedules. Without an engine, work is
done here, by `runs/workers.py`.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

import shiftproof
from shiftproof import catalog
from shiftproof.datasets.decoding import LIMIT_VARIABLE, limit_from_environment
from shiftproof.errors import BadInput, ShiftproofError, listed
from shiftproof.files import refusal
from shiftproof.options import EngineSettings
from shiftproof.types import Model

JobT = TypeVar("JobT")

Tell: TypeAlias = Callable[[str], None]
"""Takes a line for the person who waits."""

Opener: TypeAlias = Callable[[], Model]
"""Opens a model; it is pickled and called where the model is to run."""

MOST_TRIES = 3
"""Times that a job may end its worker before it is given up."""

PIECE_SECONDS = 2.0
"""Work that a worker gets at a time: enough that handing it out costs nothing, little enough that a death costs little."""

PIECES_A_SECOND = 100
"""That are handed out to all workers together: beyond as many, pieces are larger instead."""

PIECES_AT_MOST = 500
"""The same towards the end, where pieces get smaller so that all workers end at once."""

MOST_JOBS = 4096
"""Most jobs that a worker gets at a time."""


class Unfit(ShiftproofError):
    """A worker that cannot do the work, whichever job it gets: other versions, no model, no images."""


class WorkFailed(ShiftproofError):
    """Some jobs were not done; all others are."""


class Opened(Protocol):
    """Work that was opened in a worker."""

    def __call__(self, jobs: list[Any]) -> list[Any]:
        """The answer to each of some jobs."""

    def close(self) -> None: ...


class Work(Protocol):
    """What is done with jobs; it is pickled, sent to workers and opened there."""

    def open(self) -> Opened:
        """Made ready in a worker; Unfit where that cannot be."""

    def size(self, job: Any) -> int:
        """Images of a job, or what else is counted."""

    def told(self, job: Any) -> str:
        """Which job it is, in words."""

    def fault(self, job: Any, answer: Any) -> str | None:
        """Asked here, of an answer from elsewhere: why that worker is unfit; None where it is not."""


class Engine(Protocol):
    """Does jobs somewhere."""

    needs_shared_store: bool
    """Whether workers have to see the store; otherwise one that does not sends its rows here."""

    openers: dict[str, Opener]
    """How workers open models, by fingerprint."""

    tell: Tell

    cost: Cost
    """What was done so far has cost."""

    def each(self, work: Work, jobs: Iterable[JobT], *, total: int, status: Tell) -> Iterator[list[tuple[JobT, Any]]]:
        """Every job with its answer, some at a time as they are done; `total` is the size of all, `status` takes a line.

        WorkFailed at the end where some were given up, with the reason.
        """

    def pickled(self, value: object) -> bytes:
        """The bytes of a value, functions of the user's included."""

    def close(self) -> None: ...


@runtime_checkable
class ShowsStatus(Protocol):
    """A progress bar that also has room for a few words about who works."""

    def status(self, text: str) -> None: ...


def status_of(progress: object) -> Tell:
    """Where words about who works go; nowhere where a progress has no room for them."""
    return progress.status if isinstance(progress, ShowsStatus) else lambda _: None


@contextmanager
def opened_engine(engine: str | EngineSettings | None, tell: Tell) -> Iterator[Engine | None]:
    """The engine that settings name, for one job; None where work is done here. At the end it tells what that cost."""
    settings = EngineSettings(engine=engine) if isinstance(engine, str) else engine or EngineSettings()
    name, _, address = settings.engine.partition("://")
    make: Callable[[str, EngineSettings, Tell], Engine | None] = catalog.ENGINES.load(name)
    made = make(address, settings, tell)
    try:
        yield made
    finally:
        if made is not None:
            made.close()


def do_here(address: str, settings: EngineSettings, tell: Tell) -> None:  # noqa: ARG001 as other engines
    """This machine: a thread and worker processes beside the model."""
    if address:
        raise BadInput(f"the local engine has no address, got {address!r}; another machine is ray://HOST:PORT")


@dataclass(frozen=True)
class Terms:
    """What a worker should have as the process that asks it has: versions, the current folder, the limit of pixels."""

    versions: tuple[tuple[str, str], ...]
    folder: str
    modules: tuple[str, ...]  # where Python looks for modules
    pixel_limit: str | None

    @classmethod
    def here(cls) -> Terms:
        return cls(versions_here(), os.getcwd(), tuple(sys.path), os.environ.get(LIMIT_VARIABLE))

    def meet(self, cores: int) -> None:
        """Settles this process, which is a worker's, to the terms; Unfit where its versions are others."""
        differ = [
            f"{name} {there} there, {here} here"
            for (name, here), (_, there) in zip(self.versions, versions_here(), strict=True)
            if here != there
        ]
        if differ:
            raise Unfit(f"its versions differ: {'; '.join(differ)}; install the same on every node")
        os.environ["SHIFTPROOF_CORES"] = str(cores)
        if os.path.isdir(self.folder):  # relative paths are those of the process that asks
            os.chdir(self.folder)
        sys.path += [place for place in self.modules if place not in sys.path]
        if self.pixel_limit is not None:
            os.environ[LIMIT_VARIABLE] = self.pixel_limit
        else:
            os.environ.pop(LIMIT_VARIABLE, None)
        limit_from_environment.cache_clear()


def versions_here() -> tuple[tuple[str, str], ...]:
    """What the numbers may depend on."""
    return (
        ("shiftproof", shiftproof.__version__),
        ("Python", ".".join(platform.python_version_tuple()[:2])),
        ("numpy", np.__version__),
    )


class Spent(NamedTuple):
    """What a piece of work took."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0


def measured(do: Opened, jobs: list[Any]) -> tuple[list[Any], Spent]:
    """The answers, and what they took."""
    started, used, (read, written) = time.monotonic(), time.process_time(), _bytes_moved()
    answers = do(jobs)
    read_now, written_now = _bytes_moved()
    took = time.monotonic() - started, time.process_time() - used
    return answers, Spent(*took, read_now - read, written_now - written)


def _bytes_moved() -> tuple[int, int]:
    """Bytes this process has read from files and written to them so far; zeros where the system does not tell."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            counts = dict(line.split(": ") for line in file)
            return int(counts["rchar"]), int(counts["wchar"])
    except (OSError, KeyError, ValueError):
        return 0, 0


@dataclass
class Cost:
    """What work cost: time that CPUs and GPUs were held, time that CPUs were used of it, bytes that workers moved."""

    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0
    used_seconds: float = 0.0  # of CPUs, by the processes that hold the model
    bytes_read: int = 0
    bytes_written: int = 0
    nodes: set[str] = field(default_factory=set)

    def add(self, spent: Spent) -> None:
        self.used_seconds += spent.cpu_seconds
        self.bytes_read += spent.bytes_read
        self.bytes_written += spent.bytes_written

    def told(self, engine: str) -> str:
        """In a line.

        >>> Cost(7200, 3600, 7000, 3 * 10**9, 2 * 10**7, {"a", "b"}).told("ray")
        'ray: 2.000 CPU hours and 1.000 GPU hours on 2 nodes; workers read 3.00 GB and wrote 0.02 GB'
        """
        gpus = f" and {self.gpu_seconds / 3600:.3f} GPU hours" if self.gpu_seconds else ""
        nodes = "1 node" if len(self.nodes) == 1 else f"{len(self.nodes):,} nodes"
        moved = f"; workers read {self.bytes_read / 1e9:.2f} GB and wrote {self.bytes_written / 1e9:.2f} GB"
        return f"{engine}: {self.cpu_seconds / 3600:.3f} CPU hours{gpus} on {nodes}{moved if self.bytes_read else ''}"


class Rates:
    """How fast each node is, for one line of progress."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._started = time.monotonic()
        self._told = self._started

    def add(self, node: str, images: int) -> None:
        self._done[node] = self._done.get(node, 0) + images

    def due(self, seconds: float = 1.0) -> bool:
        """Whether the last line is so many seconds old."""
        if time.monotonic() - self._told < seconds:
            return False
        self._told = time.monotonic()
        return True

    def told(self, workers: int, waiting: Iterable[tuple[str, float]], failed: int) -> str:
        """Workers, images a second by node, what has been waited for longest, and jobs that were given up.

        >>> rates = Rates(); rates.add("a", 10); rates.told(2, [("b", 90.0), ("a", 2.0)], 1).replace("/s", "")[:9]
        '2 workers'
        """
        seconds = max(time.monotonic() - self._started, 1e-9)
        speeds = sorted(((done / seconds, node) for node, done in self._done.items()), reverse=True)
        parts = ["1 worker" if workers == 1 else f"{workers:,} workers"]
        if speeds:
            parts.append(listed((f"{node} {_speed(speed)}" for speed, node in speeds), most=3))
        slow = sorted(((age, node) for node, age in waiting), reverse=True)[:1]
        parts += [f"waiting for {node} since {age:.0f} s" for age, node in slow if age > STRAGGLER_SECONDS]
        parts += [f"{failed:,} blocks failed"] if failed else []
        return ", ".join(parts)


STRAGGLER_SECONDS = 15 * PIECE_SECONDS
"""Seconds of one piece after which it is told who does it."""


def _speed(speed: float) -> str:
    return f"{speed:.0f}/s" if speed >= 10 else f"{speed:.2g}/s"


def failure_told(failed: list[tuple[str, str]]) -> WorkFailed:
    """The error at the end where jobs were given up, each told with its reason."""
    some = listed((f"{job} ({reason})" for job, reason in failed), most=3)
    return WorkFailed(
        f"{len(failed):,} blocks failed: {some}; all others are stored, and the same command tries these again"
    )


def opener_of(engine: Engine, model: Model) -> Opener:
    """How workers open this model: as it was opened here, or from what it is made of; BadInput where neither can be sent."""
    known = engine.openers.get(model.ref.fingerprint)
    if known is not None:
        return known
    members = {name: getattr(model, name) for name in getattr(type(model), "__dataclass_fields__", {})}
    opener = partial(type(model), **members)
    try:
        engine.pickled(opener)
    except Exception as problem:  # whatever the libraries of a model say of being pickled
        raise BadInput(
            f"{model.ref.name} cannot be sent to workers ({problem}); name it by a spec such as onnx:FILE, which they open "
            "themselves, or wrap a function that needs nothing but modules which are installed there"
        ) from problem
    return opener


@contextmanager
def token_in(folder: Path) -> Iterator[Path]:
    """A file by which a worker sees that a folder of that name is this one, on a file system that both share."""
    token = folder / f".shared-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        token.touch()
    except OSError as error:
        raise refusal(error, token) from error
    try:
        yield token.absolute()
    finally:
        token.unlink(missing_ok=True)
