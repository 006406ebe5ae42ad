"""How many cores and how much memory this process may use, and what uses only one core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes without types


def usable_cores() -> int:
    """The cores of this process, which on a shared machine are fewer than there are.

    SHIFTPROOF_CORES says so for a worker of an engine, which has some of its node's.
    """
    given = os.environ.get("SHIFTPROOF_CORES", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _granted() or cores)


def usable_memory(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory of the machine, or of the container where that has less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 * 2**30
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            return min(memory, int((group / file).read_text()))  # the word max is none
    return memory


MEMORY_OF_A_BATCH = 2**30
"""Bytes of the machine's memory for a batch in a model; EfficientNet-Lite0 takes 60 MB for 8 images between its layers."""


def batches_in_memory(size: float = 1.0) -> int:
    """How many batches of so many times a model's own size may run at a time without filling the memory."""
    return int(usable_memory() // (MEMORY_OF_A_BATCH * size))


def _granted(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The cores whose time this process may use where a container is limited, as with ``docker run --cpus 4``; else None."""
    for file in ("cpu.max", "cpu/cpu.cfs_quota_us"):
        with suppress(OSError, ValueError):
            told = (group / file).read_text().split()
            told += [] if len(told) > 1 else (group / "cpu/cpu.cfs_period_us").read_text().split()
            quota, period = map(int, told)  # the word max is none
            return max(1, -(-quota // period)) if quota > 0 else None
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While this holds, matrices are factorised on one core.

    Half of an eigenvalue or singular value decomposition is one step after the other: on two cores it takes three times the
    CPU time where these are shared, since the other thread spins, and is hardly done sooner where they are not.
    """
    global _limited  # the libraries have one number of threads for the whole process
    with _LIMITING:
        if _limited == 0:
            _limits.append(_blas().limit(limits=1, user_api="blas"))
        _limited += 1
    try:
        yield
    finally:
        with _LIMITING:
            _limited -= 1
            if _limited == 0:
                _limits.pop().restore_original_limits()


def eigenvectors(
    matrix: NDArray[np.floating], smallest: int | None = None
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Eigenvalues of a symmetric matrix, rising, and eigenvectors of all or of the `smallest`, a column each; on one core.

    By the algorithm of ``numpy.linalg.eigh`` and with its digits, in nine tenths of the time, or seven for half the vectors.

    >>> import numpy as np
    >>> values, vectors = eigenvectors(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> values, abs(vectors)
    (array([1., 2.]), array([[0., 1.],
           [1., 0.]]))
    """
    from scipy.linalg import eigh  # slow to import

    with one_blas_thread():
        if len(matrix) >= _LARGE:
            return _eigenvectors_in_steps(matrix, smallest)
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
    return values, vectors.copy(order="C")[:, :smallest]  # as numpy lays them: products of others are rounded otherwise


_LARGE = 512
"""Rows of a matrix from which on the steps taken one by one are faster; products of smaller ones are rounded otherwise."""

_EDGE = 24
"""Columns more than are wanted: those at the edge of a product are rounded otherwise than within it."""


def _eigenvectors_in_steps(
    matrix: NDArray[np.floating], smallest: int | None
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The three steps of LAPACK's dsyevd, of which the last, a third of the time, is taken for the vectors wanted."""
    import numpy as np
    from scipy.linalg import LinAlgError, lapack

    rows = len(matrix)
    columns = rows if smallest is None else min(rows, smallest + _EDGE)
    reflectors, diagonal, beside, factors, _ = lapack.dsytrd(matrix, lower=1, lwork=64 * rows)
    values, turned, failed = lapack.dstevd(diagonal, beside, overwrite_d=1, overwrite_e=1)
    if failed:
        raise LinAlgError("eigenvalues did not converge")
    vectors = np.empty((rows, columns))
    vectors[0] = turned[0, :columns]  # which no reflector moves
    vectors[1:] = lapack.dormqr("L", "N", reflectors[1:, :-1], factors, turned[1:, :columns], lwork=rows**2)[0]
    return values, vectors[:, :smallest]


_LIMITING = Lock()
_limits: list[Any] = []
_limited = 0  # blocks of `one_blas_thread` that hold: the last one to end gives the threads back


@cache
def _blas() -> ThreadpoolController:
    import numpy.linalg  # noqa: F401 whose library is looked for
    import scipy.linalg  # noqa: F401 which brings one of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
