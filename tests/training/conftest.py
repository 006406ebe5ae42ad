"""Small trainings, each on one thread: so little work is not worth several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from training.small_jobs import SmallJobs


@pytest.fixture
def small_jobs(tmp_path: Path) -> Iterator[SmallJobs]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield SmallJobs(tmp_path)
    torch.set_num_threads(threads)
