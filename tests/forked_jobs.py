"""Jobs for worker processes that say who they are, and what is called before workers are forked."""

from __future__ import annotations

import errno
import os
import threading
from typing import NoReturn

import numpy as np

from shiftproof.runs.workers import Arrays, Workers

IMPORTED_BY = os.getpid()
warmed_by: list[int] = []


def who(job: object) -> tuple[Arrays, tuple[int, int, list[int]]]:
    return [], (os.getpid(), IMPORTED_BY, warmed_by)


def draws(job: int) -> tuple[Arrays, tuple[int, float]]:
    return [], (os.getpid(), np.random.random())


def threads(job: int) -> tuple[Arrays, tuple[str | None, int]]:
    return [], (os.environ.get("OMP_NUM_THREADS"), np.random.default_rng(0).random((500, 500)).dot(np.eye(500)).ndim)


def mutter(job: object) -> tuple[Arrays, int]:
    """As a library does that knows nothing of Python."""
    return [], os.write(1, b"something")


def note() -> None:
    warmed_by.append(os.getpid())


def fail() -> NoReturn:
    raise RuntimeError


def start_thread() -> None:
    note()
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def open_file() -> None:
    note()
    os.open(__file__, os.O_RDONLY)


def refuse_forks() -> None:
    def fork() -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    os.fork = fork


def forker_of(pool: Workers) -> int:
    assert pool._forker is not None
    return pool._forker._process._process.pid


def pids(pool: Workers) -> list[int]:
    return [worker.task for worker in pool._workers if worker.task is not None]
