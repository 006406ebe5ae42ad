"""Worker processes: order, failures, ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from patience import PATIENCE, wait_until
from shiftproof.errors import MissingExtra, ShiftproofError
from shiftproof.runs import workers as parallel
from shiftproof.runs.workers import Arrays, WorkerDied, Workers


def squares(job: int) -> tuple[Arrays, int]:
    time.sleep(0.01 * (job % 3))
    return [np.full((job + 1, 3), job * job, np.float32), np.arange(job, dtype=np.uint8)], job


def alike(job: int) -> tuple[Arrays, int]:
    return [np.full((2, 5), job + place, np.uint8) for place in range(job)], job


def echoes(job: bytes) -> tuple[Arrays, bytes]:
    return [], job


def fails_on_three(job: int) -> tuple[Arrays, int]:
    if job == 3:
        raise ValueError("three")
    return [], job


def fails_awkwardly(job: int) -> tuple[Arrays, int]:
    if job:
        raise MissingExtra("this", "demo")

    class Local(Exception):
        pass

    raise Local("of this function")


def dies(job: int) -> tuple[Arrays, int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return [], job


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import a job's function by module name, so this file must be importable by its own."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    for function in (squares, alike, slow, echoes, fails_on_three, fails_awkwardly, dies, in_its_place):
        monkeypatch.setattr(function, "__module__", "test_parallel")


@pytest.mark.parametrize("count", [None, 0, 1, 3])
def test_answers_come_in_order_with_their_arrays(count: int | None) -> None:
    with Workers(count) as workers:
        for expected, block in enumerate(workers.blocks(squares, range(20))):
            assert (block.job, block.said) == (expected, expected)
            assert block.batch[0].shape == (expected + 1, 3)
            assert (block.batch[0] == expected**2).all()
            assert block.batch[1].tolist() == list(range(expected))
        assert [block.said for block in workers.blocks(squares, [7, 5])] == [7, 5], "the same workers serve again"


@pytest.mark.parametrize("count", [0, 2])
def test_arrays_of_one_shape_come_as_one_batch(count: int) -> None:
    with Workers(count) as workers:
        for block in workers.blocks(alike, [3, 1, 0, 7]):
            if block.job == 0:
                assert len(block.batch) == 0
                continue
            assert isinstance(block.batch, np.ndarray)
            assert block.batch.shape == (block.job, 2, 5)
            assert block.batch[:, 0, 0].tolist() == list(range(block.job, 2 * block.job))


def slow(job: int) -> tuple[Arrays, int]:
    time.sleep(0.04)
    return [], os.getpid()


def test_processes_are_started_only_while_answers_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0  # a clock of our own: on a busy machine anything may take long
    wait = starved = 0.0

    def waiting(receive: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def late(worker: Any) -> Any:
            nonlocal now
            now += wait
            return receive(worker)

        return late

    def started(worker: Any) -> bool:
        if not worker._ready:
            worker._say_ready()
        return True

    monkeypatch.setattr(parallel, "time", SimpleNamespace(monotonic=lambda: now, thread_time=lambda: 0.0))
    monkeypatch.setattr(parallel._Worker, "is_ready", started)
    monkeypatch.setattr(parallel, "_starved", lambda _: starved * now)
    for kind in (parallel._Thread, parallel._Worker):
        monkeypatch.setattr(kind, "receive", waiting(kind.receive))
        monkeypatch.setattr(kind, "has_answer", lambda _: False)
    with Workers() as workers:
        workers._most = 3
        wait, starved = 0.2, 0.9
        for _ in workers.blocks(alike, range(12)):
            pass  # there is no core for one more process
        assert len(workers._workers) == 0
        wait = starved = 0.0
        for _ in workers.blocks(alike, range(12)):
            now += 0.05  # the one who asks is the slow one
        assert len(workers._workers) == 0
        wait = 0.2
        who = {block.said for block in workers.blocks(slow, range(60))}
        assert len(who - {os.getpid()}) == len(workers._workers) == 3


def test_work_goes_on_while_a_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel._Worker, "is_ready", lambda _: False)
    with Workers() as workers:
        workers._wanted = 1
        assert {block.said for block in workers.blocks(slow, range(4))} == {os.getpid()}
        assert len(workers._workers) == 1
        monkeypatch.undo()
        wait_until(workers._workers[0].is_ready)
        monkeypatch.setattr(slow, "__module__", "test_parallel")
        assert os.getpid() not in {block.said for block in workers.blocks(slow, range(4))}


def test_where_no_more_processes_can_be_started_those_that_are_there_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shared_file = 0, parallel._shared_file

    def few() -> int:
        nonlocal made
        made += 1
        if made > parallel.MEMORIES + 4:
            raise OSError(errno.EMFILE, "Too many open files")
        return shared_file()

    monkeypatch.setattr(parallel, "_shared_file", few)
    with Workers() as workers:
        workers._most = workers._wanted = 8
        said = [block.said for block in workers.blocks(squares, range(12))]
        assert (said, len(workers._workers), workers._most) == (list(range(12)), 1, 1)
        open_files = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    made = parallel.MEMORIES + 4
    with Workers(2) as workers, pytest.raises(OSError, match="Too many open files"):
        list(workers.blocks(squares, range(3)))
    assert not open_files or len(os.listdir("/proc/self/fd")) < open_files  # none of those that failed stays open


@pytest.mark.parametrize(("own", "workers"), [(0.0, []), (0.9, [2, 4, 8, 16, 20])])
def test_waiting_counts_beside_what_the_one_who_waits_does_itself(
    own: float, workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does nothing itself half of the time waits for the model; who is busy waits only where images are late."""
    now = 0.0
    monkeypatch.setattr(parallel, "time", SimpleNamespace(monotonic=lambda: now, thread_time=lambda: own * now))
    monkeypatch.setattr(parallel, "_starved", lambda _: 0.0)
    pool, seen = Workers(), [0]
    pool._most = 20

    class Late:
        has_replied, task = True, None

        def has_answer(self) -> bool:
            return False

        def is_ready(self) -> bool:
            return True

        def receive(self) -> tuple[parallel.Batch, Any]:
            nonlocal now
            now += 0.1
            return [], None

    late: Any = Late()
    for _ in range(400):
        pool._received(late)
        now += 0.15
        pool._workers = [late] * pool._wanted
        seen += [pool._wanted] if pool._wanted != seen[-1] else []
    assert seen[1:] == workers


def test_an_abandoned_loop_leaves_no_answers_behind() -> None:
    with Workers(2) as workers:
        for block in workers.blocks(squares, range(10)):
            if block.job == 1:
                break
        del block
        assert [block.said for block in workers.blocks(squares, [4])] == [4]


def test_jobs_and_answers_may_be_larger_than_what_a_socket_holds() -> None:
    jobs = [bytes([number]) * 3_000_000 for number in range(5)]
    said: list[bytes] = []

    def work() -> None:
        with Workers(1) as workers:
            said.extend(block.said for block in workers.blocks(echoes, jobs))

    working = threading.Thread(target=work, daemon=True)
    working.start()
    working.join(PATIENCE)
    assert said == jobs


def test_an_error_in_a_job_is_raised_here() -> None:
    with Workers(2) as workers, pytest.raises(ValueError, match="three"):
        list(workers.blocks(fails_on_three, range(6)))


@pytest.mark.parametrize(
    ("job", "kind", "text"), [(0, RuntimeError, "of this function"), (1, ShiftproofError, "this needs")]
)
def test_an_error_that_cannot_travel_says_the_same(job: int, kind: type[Exception], text: str) -> None:
    with Workers(1) as workers, pytest.raises(kind, match=text):
        list(workers.blocks(fails_awkwardly, [job]))


def test_workers_do_not_import_from_the_folder_they_start_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("types", "numpy"):
        (tmp_path / f"{module}.py").write_text("raise ImportError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    with Workers(1) as workers:
        assert [block.job for block in workers.blocks(squares, [4])] == [4]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not say which cores are ours")
@pytest.mark.parametrize(("cores", "workers"), [(3, 3), (500, 64)])
def test_there_is_a_worker_for_each_core_we_may_use(cores: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert Workers()._most == workers


def test_ctrl_c_on_the_terminal_reaches_no_worker() -> None:
    with Workers(1) as workers:
        list(workers.blocks(squares, [4]))
        assert os.getpgid(workers._workers[0].task or 0) != os.getpgrp()  # 0 is this process


def test_a_worker_that_dies_is_one_sentence() -> None:
    with Workers(1) as workers, pytest.raises(WorkerDied, match="fewer --workers"):
        list(workers.blocks(dies, [0]))


def test_without_shared_memory_arrays_come_through_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    from shiftproof.runs import workers as parallel

    class Full(parallel._Memory):
        def place(self, arrays: parallel.Batch) -> Any:
            raise OSError(28, "No space left on device")

    import pickle

    layout, inline, said, failure = parallel._answer(pickle.dumps(("test_parallel:squares", 0, 2)), [Full(0)])
    assert layout == []
    assert failure is None
    assert said == 2
    assert inline is not None
    assert (inline[0] == 4).all()


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        sys.path[:0] = sys.argv[1:]
        from shiftproof.runs.workers import Workers
        from test_parallel import squares
        squares.__module__ = "test_parallel"
        workers = Workers(2)
        for block in workers.blocks(squares, range(50)):
            if block.job == 5:
                print(*[worker.task for worker in workers._workers], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    parent = subprocess.run(
        [sys.executable, script, Path(__file__).parent, Path(__file__).parents[1]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert parent.returncode == -signal.SIGKILL
    children = [int(word) for word in parent.stdout.split()]
    assert len(children) == 2
    wait_until(lambda: not any(_runs(child) for child in children), "a worker outlived its parent")


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def in_its_place(job: int) -> tuple[parallel.Batch, bool]:
    """A batch of `job` images, of which one cannot be read, in the room it was given."""
    room = parallel.room_for((job, 4), np.dtype(np.int16))
    room[...] = job
    return room[: job - 1], room.flags.owndata


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_batch_that_is_written_in_its_place_is_not_copied(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "stacked", lambda batch, _: batch)
    with Workers(count) as workers:
        for block in workers.blocks(in_its_place, [3, 8, 5, 8, 2], held=2):
            assert isinstance(block.batch, np.ndarray)
            assert block.batch.shape == (block.job - 1, 4)
            assert (block.batch == block.job).all()
            assert block.said == (count == 0), "a process writes where its parent reads"


@pytest.mark.parametrize("held_before", [None, 1])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_number_of_results_can_be_held(count: int, held_before: int | None) -> None:
    held = 2 * parallel.MEMORIES
    with Workers(count) as workers:
        if held_before is not None:  # then the workers have memory for fewer
            list(workers.blocks(alike, range(1, 5), held=held_before))
        shown = []
        for block in workers.blocks(alike, range(1, 3 * held), held=held):
            shown.append(block)
            for one in shown[-held:]:
                assert [int(row.flat[0]) for row in one.batch] == list(range(one.job, 2 * one.job))
