"""Small trainings, each on one thread: so little work is not worth several."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from training.small_detectors import SmallDetectors, small_network
from training.small_jobs import SmallJobs

found_once = cache(entry_points)
"""Fabric asks every installed package for plug-ins before each training, which takes longer than some."""


@pytest.fixture
def small_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallJobs]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    registry = pytest.importorskip("lightning_fabric.utilities.registry", reason="lightning-fabric is not installed")
    monkeypatch.setattr(registry, "entry_points", found_once)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield SmallJobs(tmp_path)
    torch.set_num_threads(threads)


@pytest.fixture
def small_detectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDetectors]:
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    import torch

    from shiftproof.training.detectors import networks

    monkeypatch.setattr(networks, "_network", small_network)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield SmallDetectors(tmp_path)
    torch.set_num_threads(threads)
