"""Trainings in processes of their own: two that train together, and one that is killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")


class Trained(NamedTuple):
    """What trainings left in a folder, and the exit codes of their processes."""

    folder: Path
    exit_codes: dict[str, list[int]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """All trainings that `training.forked` starts: to import what they need takes it longer than most of them."""
    folder = tmp_path_factory.mktemp("trained")
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "training.forked", str(folder)]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Trained(folder, json.loads(said.splitlines()[-1]))


@pytest.mark.real
def test_two_processes_train_as_one_does_but_for_rounding(trained: Trained) -> None:
    assert trained.exit_codes["together"] == [0, 0, 0]
    one, two = (np.load(trained.folder / f"{name}.npz") for name in ("one", "two"))
    assert set(one.files) == set(two.files)
    for name in one.files:
        assert two[name] == pytest.approx(one[name], abs=1e-5)


@pytest.mark.real
def test_a_training_killed_at_random_moments_ends_with_the_same_weights(trained: Trained) -> None:
    codes, folder = trained.exit_codes["killed"], trained.folder
    assert codes.count(-signal.SIGKILL) == 10
    assert set(codes) == {0, -signal.SIGKILL}
    whole, *parts = (np.load(path) for path in [folder / "whole.npz", *sorted(folder.glob("parts*.npz"))])
    assert len(parts) == codes.count(0) - 1 > 0
    assert all(np.array_equal(whole[name], part[name]) for part in parts for name in whole.files)
