"""The gate on 50,000 images out of the store, and against a baseline file: CPU time of the whole command.

    python benchmarks/gate_speed.py [figures.json]

Aim: 2 s of CPU time, from the start of the process to its exit; measured 2.2 to 2.8 on a busy machine. Beside it
`shiftproof compare`, and the gate again as control.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

import shiftproof as sp
from harness import save
from shiftproof.types import Inputs, Logits

IMAGES, CLASSES = 50_000, 100
ROUNDS = 5
SQUASH = "squash,mean=0,std=1"


def draw(folder: Path) -> None:
    """Tiny photos of one colour each, a folder a class."""
    generator = np.random.default_rng(0)
    for place, colour in enumerate(generator.integers(0, 256, (IMAGES, 1, 1, 3), dtype=np.uint8)):
        path = folder / f"{place % CLASSES:03}" / f"{place:05}.png"
        path.parent.mkdir(exist_ok=True, parents=True)
        Pillow.fromarray(colour).save(path)


def scores(inputs: Inputs, *, seed: int) -> Logits:
    """Whatever, so that two models differ on a few percent of the images: what is timed is the reading of it."""
    mean = np.asarray(inputs, np.float32).mean(axis=(2, 3))
    return np.asarray(mean @ np.random.default_rng(seed).normal(size=(3, CLASSES)))


def cpu(words: list[str]) -> float:
    """Seconds of CPU that a command takes, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "shiftproof", *words], check=False, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name) / "photos", f"{name}/runs"
        draw(folder)
        classes = [f"{place:03}" for place in range(CLASSES)]
        for seed, version in enumerate(("old", "new")):
            model = sp.wrap_model(
                partial(scores, seed=seed), name=version, version="1", class_names=classes, size=(4, 4), preprocess=SQUASH
            )
            sp.predict(model, folder, store=store, batch_size=500)
        data, baseline = str(folder), f"{name}/baseline.json"
        gate = ["gate", "new", data, "--margin", "1", "--store", store]
        cpu(["gate", "old", data, "--store", store, "--write-baseline", baseline])
        commands = {
            "gate, stored model": [*gate, "--against", "old"],
            "gate, baseline file": [*gate, "--against", baseline],
            "gate, stored model (again)": [*gate, "--against", "old"],
            "compare": ["compare", "new", "old", data, "--studies", "comparison", "--store", store],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for one, words in commands.items():
                seconds[one].append(cpu(words))
        for one, found in seconds.items():
            print(f"{one:30} {statistics.median(found):.2f} s of CPU (least {min(found):.2f})")
        size = Path(baseline).stat().st_size
        print(f"baseline file: {size / IMAGES:.1f} bytes an image")
    figures = {one: statistics.median(found) for one, found in seconds.items()}
    save("gate_speed", {**figures, "bytes an image": size / IMAGES})


if __name__ == "__main__":
    main()
