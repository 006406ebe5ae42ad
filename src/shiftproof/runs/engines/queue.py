"""Jobs that wait for a worker: in pieces of some seconds, those of dead workers first."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shiftproof.runs.engines import MOST_JOBS, MOST_TRIES, PIECE_SECONDS, PIECES_A_SECOND, PIECES_AT_MOST, Work


@dataclass(eq=False)
class Piece:
    """Some jobs that one worker gets at a time."""

    jobs: list[Any]
    size: int
    tries: int = 0  # workers that died over it
    sent: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        return time.monotonic() - self.sent


class JobQueue:
    """Jobs that are not handed out yet."""

    def __init__(self, work: Work, jobs: Iterable[Any], total: int) -> None:
        self._work, self._jobs, self._left = work, iter(jobs), total
        self._returned: deque[Piece] = deque()
        self._ahead: deque[Any] = deque()
        self._seconds: float | None = None  # that a job takes, lately
        self.failed: list[tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._returned or self._has_next())

    def _has_next(self) -> bool:
        if not self._ahead:
            self._ahead.extend(job for job in (next(self._jobs, None),) if job is not None)
        return bool(self._ahead)

    def take(self, workers: int) -> Piece | None:
        """The next piece, smaller towards the end so that each of so many workers has some; None where none is left."""
        if self._returned:
            piece = self._returned.popleft()
            piece.sent = time.monotonic()
            return piece
        wanted = self._jobs_in(max(PIECE_SECONDS, workers / PIECES_A_SECOND))
        least = self._jobs_in(workers / PIECES_AT_MOST)
        share = self._left / (2 * max(1, workers))
        piece = Piece([], 0)
        while len(piece.jobs) < wanted and (len(piece.jobs) < least or piece.size < share) and self._has_next():
            job = self._ahead.popleft()
            piece.jobs.append(job)
            piece.size += self._work.size(job)
        self._left -= piece.size
        return piece if piece.jobs else None

    def _jobs_in(self, seconds: float) -> int:
        """How many jobs a worker does in so many seconds, at least one; one while it is not known how long they take."""
        return 1 if self._seconds is None else int(min(MOST_JOBS, max(1.0, seconds / max(self._seconds, 1e-6))))

    def done(self, piece: Piece, seconds: float) -> None:
        """Keeps in mind how long a job takes."""
        each = seconds / len(piece.jobs)
        self._seconds = each if self._seconds is None else 0.8 * self._seconds + 0.2 * each

    def give_back(self, piece: Piece, reason: str | None) -> None:
        """A piece that was not done; with a `reason` its worker died over it, and it is tried job by job, a few times."""
        if reason is None:
            self._returned.append(piece)
            return
        for job in piece.jobs:
            if piece.tries + 1 >= MOST_TRIES:
                self.failed.append((self._work.told(job), reason))
            else:
                self._returned.append(Piece([job], self._work.size(job), piece.tries + 1))
