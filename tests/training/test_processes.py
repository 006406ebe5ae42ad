"""Trainings in processes of their own: two that train together, and one that is killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")

from training.small_jobs import SmallJobs

TRAINING = """
import sys
from pathlib import Path
import numpy as np
from training.small_jobs import SHAKEN, SmallJobs
from shiftproof.training.networks import course, engine

folder, network, out, epochs = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
course.CHECKPOINT_SECONDS = 0.0
job = SmallJobs(folder)((SHAKEN,), network=network, folder=out, epochs=epochs)
trained = engine.train_network(job)
if int(__import__("os").environ.get("RANK", 0)) == 0:
    np.savez(out.with_suffix(".npz"), **trained.end)
"""


def environment(**more: str) -> dict[str, str]:
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | more


def command(folder: Path, network: str, out: str, epochs: int = 3) -> list[str]:
    return [sys.executable, "-c", TRAINING, str(folder), network, str(folder / out), str(epochs)]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    SmallJobs(tmp_path)  # makes them once: two processes would write the same files
    return tmp_path


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


@pytest.mark.real
def test_two_processes_train_as_one_does_but_for_rounding(pictures: Path) -> None:
    subprocess.run(command(pictures, "plain", "one"), env=environment(), check=True)
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    shared |= {"TORCHELASTIC_RUN_ID": "a test", "GROUP_RANK": "0"}
    processes = [
        subprocess.Popen(command(pictures, "plain", "two"), env=environment(**shared, RANK=str(rank), LOCAL_RANK=str(rank)))
        for rank in range(2)
    ]
    assert [process.wait(timeout=600) for process in processes] == [0, 0]
    one, two = (np.load(pictures / f"{name}.npz") for name in ("one", "two"))
    assert set(one.files) == set(two.files)
    for name in one.files:
        assert two[name] == pytest.approx(one[name], abs=1e-5)


@pytest.mark.real
def test_a_training_killed_at_random_moments_ends_with_the_same_weights(pictures: Path) -> None:
    subprocess.run(command(pictures, "normed", "whole", 12), env=environment(), check=True)
    whole, rng, kills = np.load(pictures / "whole.npz"), random.Random(0), 0
    for turn in range(10):  # on a busy machine one training may be at its end before it was killed ten times
        while not (pictures / f"parts{turn}.npz").exists():
            process = subprocess.Popen(command(pictures, "normed", f"parts{turn}", 12), env=environment())
            checkpoint = pictures / f"parts{turn}" / "checkpoints" / "training.pt"
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            # from the first checkpoint of its own on, so that each process gets a little further
            while process.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.05))
            if kills < 10 and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.wait(timeout=600)
        parts = np.load(pictures / f"parts{turn}.npz")
        assert all(np.array_equal(whole[name], parts[name]) for name in whole.files)
        if kills == 10:
            break
    assert kills == 10
