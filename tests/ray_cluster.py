"""A Ray cluster of nodes with one CPU each on this machine, and models that tell where they ran."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shiftproof.models import wrap_model
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Inputs

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""A cluster on the loopback address, which talks to nobody."""

PATIENT = {
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_health_check_failure_threshold": "20",
}
"""However busy the machine is, what is slow is not taken for dead; what is dead closes its sockets at once."""

os.environ.update(LOOPBACK | PATIENT)

MEMORY = 100 * 2**20
BATCH = 4
DEADLINE = 150.0
"""Seconds after which something that should have happened has not; far beyond what it takes on a busy machine."""

Stall = Callable[[str, Path], None]
"""What a model does before each batch, by the node it is on and a folder of notes."""


@contextmanager
def nodes(count: int = 2) -> Iterator[Any]:
    """A cluster of so many nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
    try:
        for _ in range(count - 1):
            add_node(cluster)
        yield cluster
    finally:
        cluster.shutdown()


def add_node(cluster: Any) -> Any:
    """One more, which may take its time to be seen."""
    return patiently(lambda: cluster.add_node(wait=False, num_cpus=1, object_store_memory=MEMORY))


def patiently(start: Callable[[], Any]) -> Any:
    """What it starts; again where Ray gives up after its half a minute, which on a busy machine is not enough."""
    for _ in range(9):
        try:
            return start()
        except Exception as problem:  # Ray raises no narrower one
            if "timed out during startup" not in str(problem):
                raise
    return start()


def noting_model(notes: Path, stall: Stall = lambda _node, _notes: None) -> Classifier:
    """A model that notes each batch as a file, by node and number of images, before it computes it."""
    notes.mkdir(exist_ok=True)

    def scores(inputs: Inputs) -> Any:
        node = on_node()
        (notes / f"batch-{node}-{len(inputs)}-{time.time_ns()}-{os.getpid()}").touch()
        stall(node, notes)
        means = np.asarray(inputs, np.float64).mean(axis=(2, 3))
        return np.concatenate([means, means**2], axis=1)

    return wrap_model(scores, name="noting", version="1", class_names=list("abcdef"), size=(16, 16), preprocess="unit")


def on_node() -> str:
    """The node that this process is on; its number where that is no worker of Ray."""
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id() if ray is not None and ray.is_initialized() else os.getpid())


def noted(notes: Path) -> list[tuple[str, int]]:
    """Each batch that was begun: the node, and its number of images."""
    parts = [path.name.split("-") for path in sorted(notes.glob("batch-*"))]
    return [(part[1], int(part[2])) for part in parts]


def wait_for(happened: Callable[[], Any]) -> Any:
    """What it gives, once that is true; AssertionError after the deadline."""
    until = time.monotonic() + DEADLINE
    while not (found := happened()):
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.05)
    return found


def once(notes: Path, name: str) -> bool:
    """Whether this is the first call with this name, among all processes."""
    try:
        os.close(os.open(notes / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def actors() -> list[int]:
    """The processes of workers on the cluster that this process started."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            titles[int(folder.name)] = (folder / "cmdline").read_text(errors="replace")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return [one for one, title in titles.items() if title.startswith("ray::Actor") and os.getpid() in _above(one, parents)]


def _above(process: int, parents: dict[int, int]) -> Iterator[int]:
    while process := parents.get(process, 0):
        yield process


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stored(root: Path) -> dict[str, list[Any]]:
    """All that the files of rows hold, by folder; not the order in which their library writes names."""
    from safetensors import safe_open

    Store(root).check()
    found: dict[str, list[Any]] = {}
    for path in sorted(root.glob("rows/*/*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            arrays = {name: (array.dtype.str, array.tobytes()) for name in file.keys() for array in [file.get_tensor(name)]}  # noqa: SIM118
            found.setdefault(path.parent.name, []).append((file.metadata(), arrays))
    return found
