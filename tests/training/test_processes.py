"""Trainings in processes of their own: two that train together, and one that is killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")

from training.small_jobs import SmallJobs


def exit_codes(trainings: str, folder: Path) -> list[int]:
    """Of trainings that `training.forked` starts in the folder."""
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "training.forked", trainings, str(folder)]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    codes: list[int] = json.loads(said.splitlines()[-1])
    return codes


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    SmallJobs(tmp_path)  # makes them once: two processes would write the same files
    return tmp_path


@pytest.mark.real
def test_two_processes_train_as_one_does_but_for_rounding(pictures: Path) -> None:
    assert exit_codes("together", pictures) == [0, 0, 0]
    one, two = (np.load(pictures / f"{name}.npz") for name in ("one", "two"))
    assert set(one.files) == set(two.files)
    for name in one.files:
        assert two[name] == pytest.approx(one[name], abs=1e-5)


@pytest.mark.real
def test_a_training_killed_at_random_moments_ends_with_the_same_weights(pictures: Path) -> None:
    codes = exit_codes("killed", pictures)
    assert codes.count(-signal.SIGKILL) == 10
    assert set(codes) == {0, -signal.SIGKILL}
    whole, *parts = (np.load(path) for path in [pictures / "whole.npz", *sorted(pictures.glob("parts*.npz"))])
    assert len(parts) == codes.count(0) - 1 > 0
    assert all(np.array_equal(whole[name], part[name]) for part in parts for name in whole.files)
