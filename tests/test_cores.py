"""How many cores a process takes itself to have."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from shiftproof import cores


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "400000 100000\n"}, 4),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu.max": "what is this"}, None),
        ({}, None),
    ],
)
def test_a_limited_container_has_the_cores_it_is_granted(tmp_path: Path, files: dict[str, str], granted: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores._granted(tmp_path) == granted


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_affinity_and_a_workers_share_are_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIFTPROOF_CORES", raising=False)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    monkeypatch.setenv("SHIFTPROOF_CORES", "7")
    assert cores.usable_cores() == 7


def test_matrices_are_factorised_on_one_thread_and_multiplied_on_as_many_as_before() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    np.linalg.eigh(np.eye(2))
    scipy.linalg.eigh(np.eye(2))  # which brings a library of its own

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with cores.one_blas_thread():
            assert 1 in threads()
        assert threads() == before


def test_threads_come_back_after_blocks_that_overlap_nest_or_fail() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    np.linalg.eigh(np.eye(2))

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = cores.one_blas_thread(), cores.one_blas_thread()  # as in two threads
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert 1 in threads()
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(ValueError, match="wrong"), cores.one_blas_thread(), cores.one_blas_thread():
            raise ValueError("wrong")
        assert threads() == before


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"memory.max": "max\n"}, None),
        ({"memory.max": "1048576\n"}, 2**20),
        ({"memory/memory.limit_in_bytes": "2097152\n"}, 2**21),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ({}, None),
    ],
)
def test_a_limited_container_has_the_memory_it_is_granted(tmp_path: Path, files: dict[str, str], told: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert cores.usable_memory(tmp_path) == (told or machine)


@pytest.mark.parametrize("rows", [40, 600])  # at once, and step by step
@pytest.mark.parametrize("smallest", [None, 0, 1, 300, 599])
def test_eigenvectors_are_those_of_numpy_however_many_are_wanted(rows: int, smallest: int | None) -> None:
    spread = np.random.default_rng(0).normal(size=(2 * rows, rows)) * np.geomspace(1, 0.1, rows)
    matrix = spread.T @ spread
    lower = np.tril(matrix) + np.triu(np.ones_like(matrix), 1)  # what is above the diagonal is not read
    (values, vectors), (all_values, all_vectors) = cores.eigenvectors(lower, smallest), np.linalg.eigh(matrix)
    count = rows if smallest is None else min(rows, smallest)
    assert vectors.shape == (rows, count)
    np.testing.assert_allclose(values, all_values, rtol=1e-11)
    np.testing.assert_allclose(np.abs((vectors * all_vectors[:, :count]).sum(axis=0)), 1, rtol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values[:count], atol=1e-11 * values[-1])
