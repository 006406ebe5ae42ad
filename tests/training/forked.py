"""Trainings in processes forked from this one, which has imported torch and not used it: that takes longer than they do."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from shiftproof.models.classifiers import torch as _networks  # noqa: F401  # else each of the processes imports it anew
from shiftproof.training import pictures as _pictures  # noqa: F401
from shiftproof.training.networks import course, engine
from training.small_jobs import SHAKEN, SmallJobs

KILLS = 10
PATIENCE = 600


def train(jobs: SmallJobs, network: str, out: str, epochs: int, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    course.CHECKPOINT_SECONDS = 0.0
    trained = engine.train_network(jobs((SHAKEN,), network=network, folder=jobs.folder / out, epochs=epochs))
    if int(os.environ.get("RANK", 0)) == 0:
        np.savez(jobs.folder / f"{out}.npz", **trained.end)  # type: ignore[arg-type]


def start(jobs: SmallJobs, network: str, out: str, epochs: int, **environment: str) -> BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=train, args=(jobs, network, out, epochs, environment))
    process.start()
    return process


def ended(*processes: BaseProcess) -> list[int | None]:
    """Their exit codes."""
    for process in processes:
        process.join(PATIENCE)
    return [process.exitcode for process in processes]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def together(jobs: SmallJobs) -> list[int | None]:
    """Trains in one process, and in two that train together; exit codes of all."""
    alone = ended(start(jobs, "plain", "one", 3))
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    shared |= {"TORCHELASTIC_RUN_ID": "a test", "GROUP_RANK": "0"}
    both = [start(jobs, "plain", "two", 3, **shared, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(2)]
    return alone + ended(*both)


def killed(jobs: SmallJobs) -> list[int | None]:
    """Trains once undisturbed, and again as often as it takes to be killed ten times; exit codes of all."""
    codes, rng = ended(start(jobs, "normed", "whole", 12)), random.Random(0)
    for turn in range(10 * KILLS):  # on a busy machine one training may be at its end before it was killed ten times
        finished = False
        while not finished:  # a file of weights does not tell: it may have been killed while writing it
            process = start(jobs, "normed", f"parts{turn}", 12)
            checkpoint = jobs.folder / f"parts{turn}" / "checkpoints" / "training.pt"
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            # from the first checkpoint of its own on, so that each process gets a little further
            while process.is_alive() and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.05))
            if codes.count(-signal.SIGKILL) < KILLS and process.is_alive():
                process.kill()
            codes += ended(process)
            finished = codes[-1] != -signal.SIGKILL
        if codes.count(-signal.SIGKILL) == KILLS:
            break
    return codes


if __name__ == "__main__":
    made = SmallJobs(Path(sys.argv[1]))
    print(json.dumps({"together": together(made), "killed": killed(made)}))  # noqa: T201
