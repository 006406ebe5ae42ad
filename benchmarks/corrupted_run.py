"""All 75 cells of some photos through Lite0, beside the bare forward passes: the overhead of generating corruptions.

    SHIFTPROOF_TEST_DATA=... python benchmarks/corrupted_run.py

Aim: with two workers at most 15 % more time than the bare passes, which get ready tensors in batches of the same size.
Decoding, cropping, corrupting, JPEG encoding and the store are all included.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import shiftproof as sp
from harness import race, save
from shiftproof.datasets.image_list import ImageList
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers

PHOTOS = 16


def main() -> None:
    everything = sp.open_dataset(Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000")
    images = ImageList(
        "some", everything.samples[:: len(everything.samples) // PHOTOS][:PHOTOS], everything.classes, everything.find
    )
    model = sp.load_model("lite:0")
    study = sp.CorruptionStudy([model], images)
    cells = dict.fromkeys(study.conditions()[1:])
    sources = [images.source(sample) for sample in images.samples]
    ready = np.stack([model.preprocessing.from_image(source.decode(source.read())) for source in sources])
    batch, at_once = model.default_batch_size, model.concurrent_batches

    def bare() -> None:
        jobs = [ready[start : start + batch] for start in range(0, len(ready), batch)] * len(cells)
        with ThreadPoolExecutor(at_once) as threads:
            list(threads.map(model, jobs))

    def run(workers: Workers) -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill_conditions(model, images, cells, store=Store(folder), workers=workers)

    with Workers(2) as two, Workers(0) as thread:
        for workers in (two, thread):
            run(workers)  # kernels are compiled and loaded
        ratios = race(
            {
                "bare forward passes": bare,
                "75 cells, two workers": lambda: run(two),
                "75 cells, a thread": lambda: run(thread),
            },
            rounds=int(os.environ.get("ROUNDS", "5")),
            work=len(cells) * len(ready),
        )
    for name, ratio in ratios.items():
        print(f"{name}: {1 / ratio.median - 1:+.1%} of the time of the bare passes")
    save("corrupted_run", {name: ratio.median for name, ratio in ratios.items()})


if __name__ == "__main__":
    main()
