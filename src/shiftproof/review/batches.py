"""Work that comes from many threads at once and costs less when it is done together, as commits to a disk do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


class _Waiting(Generic[Job, Outcome]):
    def __init__(self, job: Job) -> None:
        self.job = job
        self.outcome: list[Outcome | Exception] = []  # empty until it is done


class Batches(Generic[Job, Outcome]):
    """Does jobs in batches: whoever has the turn does all that wait, so the others find theirs done when it is their turn.

    `do` answers with an outcome for each job, or the error that its thread is to meet.
    """

    def __init__(self, do: Callable[[Sequence[Job]], Sequence[Outcome | Exception]], turn: threading.Lock) -> None:
        self._do, self._turn = do, turn
        self._waiting: list[_Waiting[Job, Outcome]] = []
        self._list = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many jobs wait for whoever has the turn."""
        return len(self._waiting)

    def done(self, job: Job) -> Outcome:
        """The outcome of a job, when it is done."""
        mine: _Waiting[Job, Outcome] = _Waiting(job)
        with self._list:
            self._waiting.append(mine)
        with self._turn:
            if not mine.outcome:
                self._do_all()
        (outcome,) = mine.outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _do_all(self) -> None:
        with self._list:
            batch, self._waiting = self._waiting, []
        try:
            outcomes = self._do([one.job for one in batch])
        except Exception as problem:
            outcomes = [problem] * len(batch)
        for one, outcome in zip(batch, outcomes, strict=True):
            one.outcome.append(outcome)
