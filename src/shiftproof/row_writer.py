"""Batches to the model and its answers to the store, committed so often that a kill costs little."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.answers import Answered, Model, asker_of
from shiftproof.parallel import Block
from shiftproof.preparing import Job, Read
from shiftproof.store import Store, StoredModel
from shiftproof.stored_rows import Rows, StoredRun, joined_rows
from shiftproof.types import Condition, Keep, ObjectDetector, Precision, SetAside

PATIENCE = 10.0
"""Seconds of work that a kill may cost where rows of many conditions are gathered."""

GATHERED = 64
"""Rows of one condition that are enough for a file of their own."""


class RowWriter:
    """Gives batches to the model and its answers to the store.

    Rows of a batch under one condition are committed at once. Of mixed batches they are gathered until there are enough
    of a condition for a file, but none waits longer than `PATIENCE`, and leaving the writer commits what there is.
    """

    def __init__(self, model: Model, store: Store, keep: Keep, precision: Precision, *, sealed: bool) -> None:
        self._model, self._store, self._keep, self._precision = model, store, keep, precision
        self._asker = asker_of(model, keep, precision)
        self._sealed = sealed
        self._runs: dict[Condition, StoredRun] = {}
        self._waiting: dict[Condition, list[Rows]] = {}
        self._gathered: Counter[Condition] = Counter()  # rows that wait
        self._committed = time.monotonic()
        self._touched: set[Condition] = set()
        self._stamps: list[tuple[str | None, str | None]] = []
        self._introduced = False
        self.written = 0

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._commit_waiting()
        if kind is None:
            self._finish()

    def stored(self, condition: Condition) -> StoredRun:
        """The rows of the model under a condition."""
        if condition not in self._runs:
            self._runs[condition] = self._store.run(self._model.ref, condition, self._precision)
            self._runs[condition].tidy()
        return self._runs[condition]

    def ask(self, block: Block[Job]) -> Answered | None:
        """The model's answers to one batch; None where no image of it could be read."""
        sizes = [seen.size for seen in block.said if seen.size is not None]
        return self._asker(block.batch, sizes) if len(block.batch) else None

    def write(self, job: Job, read: Sequence[Read], answers: Answered | None) -> list[SetAside]:
        """Commits the rows of a batch, or lets them wait for others; the images of it that were set aside."""
        if answers is not None:
            self._introduce(answers.columns)
        places: dict[Condition, list[int]] = {}
        for place, condition in enumerate(job.conditions):
            places.setdefault(condition, []).append(place)
        given = np.cumsum([not seen.reason for seen in read]) - 1  # the place of each readable image in the model's batch
        aside: list[SetAside] = []
        for condition, mine in places.items():
            rows, now_aside = self._rows_of([(job.samples[place].id, read[place], given[place]) for place in mine], answers)
            aside += now_aside
            self._waiting.setdefault(condition, []).append(rows)
            self._gathered[condition] += len(rows.ids)
            if len(places) == 1 or self._gathered[condition] >= GATHERED:
                self._commit(condition)
        if time.monotonic() - self._committed > PATIENCE:
            self._commit_waiting()
        self._remember((seen.stamp, seen.digest) for seen in read)
        return aside

    def _rows_of(self, images: Sequence[tuple[str, Read, int]], answers: Answered | None) -> tuple[Rows, list[SetAside]]:
        """What goes into the store of some images of a batch, each by its id, what became of it and its place there."""
        aside = [(key, seen.digest, seen.reason) for key, seen, _ in images if seen.reason]
        good = [(key, seen.digest or "", place) for key, seen, place in images if not seen.reason]
        arrays: dict[str, NDArray[Any]] = {}
        if answers is not None and good:
            sound = answers.sound()
            unsound = "the model answered with values that are not numbers"
            aside += [(key, digest, unsound) for key, digest, place in good if not sound[place]]
            good = [one for one in good if sound[one[2]]]
            arrays = answers.arrays(np.array([place for _, _, place in good], int))
        # a file that could not even be read has no digest to be remembered by, and may be back tomorrow
        lasting = [(key, digest, str(reason)) for key, digest, reason in aside if digest]
        rows = Rows([key for key, _, _ in good], [digest for _, digest, _ in good], arrays, lasting)
        return rows, [SetAside(key, str(reason)) for key, _, reason in aside]

    def _commit(self, condition: Condition) -> None:
        rows = joined_rows([some for some in self._waiting.pop(condition, []) if some.ids or some.aside])
        self._gathered[condition] = 0
        if rows is not None:
            self.stored(condition).append(rows, self._keep)
            self._touched.add(condition)
            self.written += len(rows.ids)

    def _commit_waiting(self) -> None:
        for condition in list(self._waiting):
            self._commit(condition)
        self._committed = time.monotonic()

    def _finish(self) -> None:
        self._remember([], least=1)
        self._introduce(None)
        if self._sealed:
            for condition in self._touched:
                self.stored(condition).seal()

    def _introduce(self, columns: int | None) -> None:
        """Tells the store what the model is, before its first row, and also where there is none to add."""
        if not self._introduced:
            head = None if isinstance(self._model, ObjectDetector) or self._keep != "features" else self._model.head
            self._store.save_model(StoredModel.of(self._model, columns), head)
            self._introduced = True

    def _remember(self, pairs: Iterable[tuple[str | None, str | None]], least: int = 1024) -> None:
        self._stamps += pairs
        if len(self._stamps) >= least:
            self._store.digests.remember(self._stamps)
            self._stamps = []
