"""Forked worker processes: what they share, what they must not, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forked_jobs import draws, fail, forker_of, note, open_file, pids, refuse_forks, start_thread, threads, who
from patience import wait_until
from shiftproof.runs import processes, workers
from shiftproof.runs.workers import WorkerDied, Workers

pytestmark = pytest.mark.skipif(not processes.FORKED, reason="workers are forked on Linux only")


def exists(process: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    return Path(f"/proc/{process}").exists()


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def sockets(process: int) -> list[str]:
    links = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()]
    return [link for link in links if link.startswith("socket:")]


def test_what_jobs_need_is_imported_once_and_in_no_worker() -> None:
    with Workers(3) as pool:
        said = [block.said for block in pool.blocks(who, range(12), warm_up=note)]
        forker = forker_of(pool)
        assert sorted({worker for worker, _, _ in said}) == sorted(pids(pool))
    assert len({worker for worker, _, _ in said}) == 3
    assert {imported for _, imported, _ in said} == {forker}
    assert all(warmed == [forker] for _, _, warmed in said)


def test_an_error_in_the_warming_up_is_left_to_the_jobs() -> None:
    with Workers(2) as pool:
        said = [block.said for block in pool.blocks(who, range(4), warm_up=fail)]
        assert {imported for _, imported, _ in said} == {forker_of(pool)}


@pytest.mark.parametrize("unsafe", [start_thread, open_file])
def test_a_process_with_threads_or_files_of_its_own_is_not_copied(unsafe: Callable[[], None]) -> None:
    with Workers(2) as pool:
        said = [block.said for block in pool.blocks(who, range(6), warm_up=unsafe)]
        forker = forker_of(pool)
        ends = pids(pool)
    assert forker not in {worker for worker, _, _ in said}
    assert all(worker == imported and warmed == [] for worker, imported, warmed in said), "each imported by itself"
    assert not any(map(exists, [forker, *ends]))


def test_without_proc_each_worker_is_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_listed = """
        import os
        def listdir(path):
            raise FileNotFoundError(path)
        os.listdir = listdir
        """
    monkeypatch.setattr(processes, "START", textwrap.dedent(nothing_listed) + processes.START)
    with Workers(2) as pool:
        said = [block.said for block in pool.blocks(who, range(6), warm_up=note)]
        assert {worker for worker, _, _ in said} == set(pids(pool))
    assert all(worker == imported and warmed == [] for worker, imported, warmed in said)


def test_elsewhere_each_worker_is_a_plain_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "FORKED", False)
    with Workers(2) as pool:
        said = [block.said for block in pool.blocks(who, range(6), warm_up=note)]
        ends = pids(pool)
        assert pool._forker is None
    assert all(worker == imported and warmed == [] for worker, imported, warmed in said)
    assert len({worker for worker, _, _ in said}) == 2
    assert not any(map(exists, ends))


def test_workers_have_one_thread_and_draw_other_numbers() -> None:
    with Workers(3) as pool:
        assert {block.said[0] for block in pool.blocks(threads, range(6))} == {"1"}
        tasks = [len(os.listdir(f"/proc/{process}/task")) for process in pids(pool)]
        assert tasks == [2, 2, 2], "of which one only reads jobs ahead"
        drawn = dict(block.said for block in pool.blocks(draws, range(6)))
        assert len(set(drawn.values())) == len(drawn) == 3


def test_a_worker_holds_no_socket_but_its_own() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with Workers(4) as pool:
        list(pool.blocks(who, range(8)))
        held = [sockets(process) for process in [forker_of(pool), *pids(pool)]]
        assert [len(one) for one in held] == [1] * 5
        assert len({one[0] for one in held}) == 5
        files = [len(os.listdir(f"/proc/{process}/fd")) for process in pids(pool)]
        assert len(set(files)) == 1, "those of the first are not inherited by the last"
        # and so the first ends alone when its socket is closed, while the others go on
        first, *rest = pool._workers
        first._connection.close()
        wait_until(lambda: not runs(first.task or 0))
        assert all(runs(worker.task or 0) for worker in rest)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_process_is_left_after_the_pool_is_closed() -> None:
    with Workers(3) as pool:
        list(pool.blocks(who, range(6)))
        ends = [forker_of(pool), *pids(pool)]
        assert all(map(runs, ends))
    assert not any(map(exists, ends)), "nor a zombie"


def test_a_worker_that_does_not_end_when_the_pool_is_closed_is_killed() -> None:
    with Workers(2) as pool:
        list(pool.blocks(who, range(4)))
        ends = [forker_of(pool), *pids(pool)]
        os.kill(ends[1], signal.SIGSTOP)
    assert not any(map(exists, ends))


def test_a_killed_worker_is_told_with_its_exit_code_and_the_next_loop_has_others() -> None:
    with Workers(3) as pool:
        list(pool.blocks(who, range(6)))
        forker, killed, *others = [forker_of(pool), *pids(pool)]
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="exit code -9"):
            list(pool.blocks(who, range(60)))
        said = {block.said[0] for block in pool.blocks(who, range(6))}
        assert len(said) == 3
        assert said.isdisjoint({forker, killed, *others})
        assert not any(map(exists, [forker, killed, *others]))


def test_what_workers_print_goes_nowhere_where_the_parent_has_no_output(tmp_path: Path) -> None:
    code = """
        import sys
        sys.path[:0] = sys.argv[2:]
        from pathlib import Path
        from forked_jobs import mutter
        from shiftproof.runs.workers import Workers
        with Workers(2) as pool:
            Path(sys.argv[1]).write_text(str([block.said for block in pool.blocks(mutter, range(6))]))
        """
    said = tmp_path / "said"
    program = [sys.executable, "-c", textwrap.dedent(code), str(said), str(Path(__file__).parents[1])]
    subprocess.run(["sh", "-c", 'exec "$@" >&-', "", *program], check=True, timeout=60)
    assert said.read_text() == "[9, 9, 9, 9, 9, 9]"


def test_workers_of_a_parent_that_ignores_its_children_are_waited_for() -> None:
    """As some daemons do; what is ignored is inherited."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with Workers(2) as pool:
            list(pool.blocks(who, range(4)))
            os.kill(pids(pool)[0], signal.SIGKILL)
            with pytest.raises(WorkerDied, match="exit code -9"):
                list(pool.blocks(who, range(60)))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_workers_go_on_without_the_process_that_forked_them() -> None:
    with Workers(2) as pool:
        list(pool.blocks(who, range(4)))
        ends, forker = pids(pool), forker_of(pool)
        os.kill(forker, signal.SIGKILL)
        wait_until(lambda: not runs(forker))  # until then it can be asked for a worker, which would die with it
        assert {block.said[0] for block in pool.blocks(who, range(20))} == set(ends)
        pool._wanted = pool._most = 3  # and those that start later are plain processes
        assert any(worker == imported for worker, imported, _ in (block.said for block in pool.blocks(who, range(20))))
        ends = pids(pool)
    wait_until(lambda: not any(map(runs, ends)), "a worker outlived its pool")


def test_a_forking_process_that_dies_while_it_starts_is_one_sentence() -> None:
    die = partial(os.kill, 0, signal.SIGKILL)  # its group, in which it is alone
    with Workers(2) as pool, pytest.raises(WorkerDied, match="fewer --workers"):
        list(pool.blocks(who, range(4), warm_up=die))


@pytest.mark.parametrize("forker_first", [False, True])
def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path, forker_first: bool) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        sys.path[:0] = sys.argv[2:]
        from shiftproof.runs.workers import Workers
        from forked_jobs import forker_of, pids, who
        workers = Workers(3)
        for block in workers.blocks(who, range(50)):
            if block.job == 9:
                print(forker_of(workers), *pids(workers), flush=True)
                if sys.argv[1] == "forker first":
                    os.kill(forker_of(workers), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    how = "forker first" if forker_first else "parent alone"
    command = [sys.executable, str(script), how, str(Path(__file__).parents[1])]
    parent = subprocess.run(command, capture_output=True, text=True, check=False)
    assert parent.returncode == -signal.SIGKILL
    ends = [int(word) for word in parent.stdout.split()]
    assert len(ends) == 4
    wait_until(lambda: not any(map(runs, ends)), "a process outlived its parent")


def test_where_no_more_can_be_forked_those_that_are_there_go_on() -> None:
    with Workers(2) as pool, pytest.raises(OSError, match="temporarily unavailable"):
        list(pool.blocks(who, range(6), warm_up=refuse_forks))
    with Workers() as pool:
        pool._most, pool._wanted = 4, 2
        assert {block.said[0] for block in pool.blocks(who, range(6), warm_up=refuse_forks)} == {os.getpid()}
        wait_until(lambda: not pool._ready() and not pool._workers)
        assert pool._most == pool._wanted == 0
        assert {block.said[0] for block in pool.blocks(who, range(6), warm_up=refuse_forks)} == {os.getpid()}


@pytest.mark.parametrize(("cores", "early"), [(workers.MANY_CORES - 1, False), (workers.MANY_CORES, True)])
def test_on_many_cores_imports_begin_before_a_worker_is_missing(cores: int, early: bool) -> None:
    with Workers() as pool:
        pool._most = cores
        list(pool.blocks(who, range(2)))
        assert (pool._forker is not None, pool._workers) == (early, [])
        forker = forker_of(pool) if early else 0
    assert not early or not exists(forker)


def test_workers_that_start_later_find_what_is_needed_by_then() -> None:
    with Workers(1) as pool:
        assert [block.said[2] for block in pool.blocks(who, range(2))] == [[], []]
        for _ in range(2):  # what is loaded is not loaded again
            list(pool.blocks(who, range(2), warm_up=note))
        pool._wanted = pool._most = 3
        said = {block.said[0]: block.said[2] for block in pool.blocks(who, range(12), warm_up=note)}
        assert sorted(said.values()) == [[], [forker_of(pool)], [forker_of(pool)]]


def test_any_number_of_results_can_be_held_by_one_worker() -> None:
    with Workers(1) as pool:
        held = processes.MOST_FILES + 20  # more than a message takes
        assert [block.job for block in pool.blocks(who, range(held + 5), held=held)] == list(range(held + 5))


@pytest.mark.parametrize("names", ["clean", "gaussian_noise", "clean,elastic_transform"])
def test_all_that_jobs_need_is_loaded_before_they_run_and_leaves_no_thread_or_file(
    names: str, draw_photos: Callable[..., Path]
) -> None:
    """In a fresh process, as the one that forks workers is."""
    code = """
        import os, pickle, sys
        from shiftproof.datasets import open_dataset
        from shiftproof.models.preprocessing import ImagePreprocessing
        from shiftproof.runs.prepare import Job, prepare, warm_up_for
        from shiftproof.types import CLEAN, Condition
        images, preprocessing = open_dataset(sys.argv[1]), ImagePreprocessing()
        names = sys.argv[2].split(",")
        conditions = [CLEAN if name == "clean" else Condition(name, 2, output="jpeg85") for name in names]
        files = set(os.listdir("/proc/self/fd"))
        pickle.loads(pickle.dumps(warm_up_for(conditions, preprocessing)))()
        assert set(os.listdir("/proc/self/fd")) == files
        assert len(os.listdir("/proc/self/task")) == 1
        before = set(sys.modules)
        for condition in conditions:
            assert len(prepare(Job.of(images, images.samples[:2], condition, preprocessing))[0]) == 2
        print(*sorted(set(sys.modules) - before))
        """
    command = [sys.executable, "-c", textwrap.dedent(code), str(draw_photos()), names]
    done = subprocess.run(command, env=processes.ONE_THREAD | os.environ, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")
