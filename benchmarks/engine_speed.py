"""What an engine costs: two nodes of one CPU against one, and the process that hands out the work against those that do it.

A Ray cluster of three nodes on this machine, of which one and two work in turn on the same photos under corruptions. The
efficiency is the speed of two over twice that of one, by the clock, which means something only where two cores are free, and
by CPU time an image, which does on a busy machine too. In every round the same is done without an engine in one thread, as
`plan --probe` does: what its forecast says of one and two such machines is held beside what they took, by CPU.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"})  # on the loopback address
os.environ.setdefault("OMP_NUM_THREADS", "1")

from ray.cluster_utils import Cluster

import harness
import shiftproof as sp
from shiftproof.datasets.image_list import some_of
from shiftproof.options import EngineSettings, PredictionSettings
from shiftproof.runs.engines import opened_engine
from shiftproof.runs.forecast import Speed, forecast
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.store import Store

PHOTOS = int(os.environ.get("PHOTOS", "100"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
CONDITIONS = [
    sp.Condition(name, 3, edition="imagenet-224", picture="imagenet-224") for name in ("fog", "contrast", "pixelate")
]


class Turn(NamedTuple):
    """What a turn took: by the clock, of the CPU in the workers, and in the process that hands out the work."""

    seconds: float
    workers: float
    driver: float


@contextmanager
def cluster(count: int) -> Iterator[str]:
    one = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    started = Cluster(
        initialize_head=True, head_node_args={**one, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    )
    try:
        for _ in range(count - 1):
            started.add_node(wait=False, **one)
        yield started.address
    finally:
        started.shutdown()


def turn(engine: Any, model: Any, images: Any) -> Turn:
    with tempfile.TemporaryDirectory() as folder:
        used, driver, started = engine.cost.used_seconds, time.process_time(), time.perf_counter()
        fill_conditions(model, images, dict.fromkeys(CONDITIONS), store=Store(folder), engine=engine)
        seconds = time.perf_counter() - started
        return Turn(seconds, engine.cost.used_seconds - used, time.process_time() - driver)


def turn_here(model: Any, images: Any) -> float:
    """CPU seconds without an engine, all in one thread."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        settings = PredictionSettings(workers=0, quiet=True)
        fill_conditions(model, images, dict.fromkeys(CONDITIONS), store=Store(folder), settings=settings)
        return time.process_time() - started


def main() -> None:
    if find_spec("ray") is None:
        print("ray is not installed: pip install 'shiftproof[ray]'")
        return
    photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    images, few = (some_of(sp.open_dataset(str(photos)), count) for count in (PHOTOS, 16))
    model, rows = sp.load_model("lite:0", threads=1), PHOTOS * len(CONDITIONS)
    with cluster(3) as address, ExitStack() as stack:
        engines: dict[str, Any] = {}
        for name, workers in (("one node", 1), ("two nodes", 2)):
            settings = EngineSettings(engine=f"ray://{address}", max_workers=workers)
            engines[name] = stack.enter_context(opened_engine(settings, lambda _: None))
            engines[name].openers[model.ref.fingerprint] = lambda: sp.load_model("lite:0")
            turn(engines[name], model, few)  # everybody has the model open
        engines[harness.AGAIN.format("one node")] = engines["one node"]
        turns: dict[str, list[Turn]] = {name: [] for name in engines}
        turn_here(model, few)
        here: list[float] = []
        for _ in range(ROUNDS):
            here.append(turn_here(model, images))
            for name, engine in engines.items():
                turns[name].append(turn(engine, model, images))
    figures = {name: report(name, some, turns["one node"], rows) for name, some in turns.items()}
    for name, some in turns.items():
        nodes = 2 if name == "two nodes" else 1
        took = [
            forecast(name, rows, nodes, Speed(rows / one)).hours * 3600 / ((found.workers + found.driver) / nodes)
            for one, found in zip(here, some, strict=True)
        ]
        figures[name]["forecast over CPU taken"] = statistics.median(took)
        print(f"{name:20} forecast over CPU taken {', '.join(f'{one:.3f}' for one in took)}", flush=True)
    harness.save("engine_speed", figures)


def report(name: str, turns: list[Turn], base: list[Turn], rows: int) -> dict[str, float]:
    """Medians over rounds, each against the first contestant of its round."""
    nodes = 2 if name == "two nodes" else 1
    pairs = list(zip(turns, base, strict=True))
    figures = {
        "images a second": rows / statistics.median(one.seconds for one in turns),
        "efficiency by the clock": statistics.median(first.seconds / one.seconds / nodes for one, first in pairs),
        "efficiency by CPU": statistics.median(
            (first.workers + first.driver) / (one.workers + one.driver) for one, first in pairs
        ),
        "driver's share of the workers' CPU": statistics.median(one.driver / one.workers for one in turns),
    }
    print(f"{name:20} " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items()), flush=True)
    return figures


if __name__ == "__main__":
    main()
