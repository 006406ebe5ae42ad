"""Work of many threads that is done together: each gets its own outcome, and none waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from patience import PATIENCE
from shiftproof.review.batches import Batches


def test_those_who_come_while_one_is_at_it_are_done_together() -> None:
    begun, go_on = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def double(jobs: Sequence[int]) -> list[int | Exception]:
        batches.append(list(jobs))
        begun.set()
        go_on.wait(timeout=PATIENCE)
        return [2 * job for job in jobs]

    work: Batches[int, int] = Batches(double, threading.Lock())
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(work.done, 0)
        begun.wait(timeout=PATIENCE)
        others = [pool.submit(work.done, job) for job in range(1, 9)]
        while work.waiting < 8:
            pass
        go_on.set()
        assert [first.result(), *(other.result() for other in others)] == [2 * job for job in range(9)]
    assert list(map(len, batches)) == [1, 8]


def test_an_error_of_a_batch_is_met_by_all_who_are_in_it() -> None:
    turn = threading.Lock()
    batches: list[int] = []

    def broken(jobs: Sequence[int]) -> list[int | Exception]:
        batches.append(len(jobs))
        raise OSError("the disk is full")

    work: Batches[int, int] = Batches(broken, turn)
    with ThreadPoolExecutor(3) as pool:
        with turn:
            jobs = [pool.submit(work.done, job) for job in range(3)]
            while work.waiting < 3:
                pass
        assert [str(job.exception(timeout=PATIENCE)) for job in jobs] == ["the disk is full"] * 3
    assert batches == [3]


def test_an_error_of_one_is_met_by_its_own_thread_and_an_error_of_all_by_all() -> None:
    def half(jobs: Sequence[int]) -> list[int | Exception]:
        return [ValueError(job) if job % 2 else job // 2 for job in jobs]

    def broken(_jobs: Sequence[int]) -> list[int | Exception]:
        raise OSError("the disk is full")

    work: Batches[int, int] = Batches(half, threading.Lock())
    assert work.done(4) == 2
    with pytest.raises(ValueError, match="3"):
        work.done(3)
    with pytest.raises(OSError, match="full"):
        Batches(broken, threading.Lock()).done(1)
