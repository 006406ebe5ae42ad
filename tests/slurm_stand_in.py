"""Commands of Slurm that run what is submitted here and at once, and keep no accounts; for where there is no Slurm."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ONE_TASK = {"NTASKS": "1", "JOB_NUM_NODES": "1", "NODEID": "0", "PROCID": "0", "LOCALID": "0"}


def install(folder: Path) -> Path:
    """A folder of commands that stands for Slurm when it comes first in the PATH."""
    folder.mkdir()
    for name in COMMANDS:
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} {folder} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def sbatch(folder: Path, *given: str) -> None:
    """Starts the jobs of a script, one or an array."""
    number, script = str(time.time_ns() % 10**9), Path(given[-1])
    array = re.search(r"--array=0-(\d+)", script.read_text())
    for index in range(int(array[1]) + 1 if array else 1):
        more = {"ARRAY_JOB_ID": number, "ARRAY_TASK_ID": str(index)} if array else {}
        own = {f"SLURM_{key}": value for key, value in {"JOB_ID": number, **ONE_TASK, **more}.items()}
        started = subprocess.Popen(
            ["sh", script],
            env=os.environ | own,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (folder / f"job-{number}_{index}" if array else folder / f"job-{number}").write_text(str(started.pid))
    sys.stdout.write(f"Submitted batch job {number}\n")


def squeue(folder: Path, *_: str) -> None:
    """The jobs that run."""
    for job in folder.glob("job-*"):
        if _runs(int(job.read_text())):
            sys.stdout.write(f"{job.name.removeprefix('job-')}\n")


def scancel(folder: Path, *given: str) -> None:
    """Ends a job."""
    pid = int((folder / f"job-{given[-1]}").read_text())
    if _runs(pid):
        os.killpg(pid, signal.SIGTERM)


def srun(_: Path, *given: str) -> None:
    """Runs a task, and writes where it is told; fails where the stand-in is told to."""
    places, words = {}, list(given)
    while words[0].startswith("-"):
        option = words.pop(0)
        if option in ("--output", "--error"):
            places[option] = words.pop(0)
    names = {"A": "SLURM_ARRAY_JOB_ID", "a": "SLURM_ARRAY_TASK_ID", "j": "SLURM_JOB_ID"}
    values = {"t": "0"} | {key: os.environ.get(name, "") for key, name in names.items()}
    out, error = (
        open(re.sub("%([Aajt])", lambda found: values[found[1]], places[option]), "a")  # noqa: SIM115 - as long as the task
        for option in ("--output", "--error")
    )
    if reason := os.environ.get("SLURM_STAND_IN_FAILS"):
        sys.exit(error.write(reason))
    sys.exit(subprocess.run(words, check=False, stdout=out, stderr=error).returncode)


def sacct(*_: object) -> None:
    """There are no accounts."""
    sys.exit("Slurm accounting storage is disabled")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


COMMANDS = {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "srun": srun, "sacct": sacct}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
