"""All 75 cells of some photos through Lite0, beside the bare forward passes: the overhead of generating corruptions.

    SHIFTPROOF_TEST_DATA=... python benchmarks/corrupted_run.py

Aim: at most 8 % more CPU time than the bare passes, which get ready tensors in batches of the same size. Decoding, cropping,
corrupting, JPEG encoding and the store are all included, and so are workers and their start. The limit beside it is a loop
that decodes, corrupts, normalises and runs the session, and does nothing else: at most 3 % more than that. Apart from these:
starting the command, the study of what is stored, and its report. PHOTOS and ROUNDS make it shorter, or longer: with 100
photos, what is done once a condition counts less.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import numpy as np

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, cpu_seconds, figure, save
from shiftproof.corruptions.apply import apply
from shiftproof.corruptions.editions import DEFAULT_EDITION, edition_of
from shiftproof.datasets.image_list import ImageList
from shiftproof.reports.build import save_report
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers
from shiftproof.types import Classifier

LOOP = "a loop that corrupts and runs the session"

PHOTOS = int(os.environ.get("PHOTOS", "16"))


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

    def least() -> None:
        rooms = cycle([np.empty_like(ready[:batch]) for _ in range(2 * at_once + 1)])
        running: deque[Future[object]] = deque()
        with ThreadPoolExecutor(at_once) as threads:
            for start in range(0, len(sources), batch):
                decoded = [source.decode(source.read()) for source in sources[start : start + batch]]
                pictures = [np.array(edition_of(DEFAULT_EDITION).picture(image)) for image in decoded]
                for cell in cells:
                    room = next(rooms)[: len(pictures)]
                    for out, picture, sample in zip(room, pictures, images.samples[start:], strict=False):
                        model.preprocessing.from_picture(apply(cell, picture, key=sample.id), out)  # type: ignore[call-arg]
                    running.append(threads.submit(model, room))
                    if len(running) == 2 * at_once:
                        running.popleft().result()

    def run(workers: int | None) -> None:
        with tempfile.TemporaryDirectory() as folder, Workers(workers) as pool:
            fill_conditions(model, images, cells, store=Store(folder), workers=pool)

    run(0)  # kernels are compiled and loaded
    passes = len(cells) * len(ready)
    works = {
        "bare forward passes": bare,
        LOOP: least,
        "75 cells, workers as needed": lambda: run(None),
        "75 cells, a thread": lambda: run(0),
    }
    multiples = cpu_race(
        {name: Contestant(work, passes) for name, work in works.items()}, "pass", rounds=int(os.environ.get("ROUNDS", "5"))
    )
    for name, multiple in multiples.items():
        print(f"{name}: {multiple - 1:+.1%} of the CPU time of the bare passes")
    ours, noise = multiples["75 cells, workers as needed"], multiples[AGAIN.format("bare forward passes")]
    work = f"75 cells of {PHOTOS} photos through Lite0, CPU time"
    figure(work, ours, beside="bare forward passes", aim="<= 1.08", noise=noise)
    figure(work, ours / multiples[LOOP], beside=LOOP, aim="<= 1.03", noise=noise)
    save("corrupted_run", {"multiples": multiples, "CPU seconds apart": _apart(model, images, study)})


def _apart(model: Classifier, images: ImageList, study: sp.CorruptionStudy) -> dict[str, float]:
    """CPU seconds of what a whole command does besides: its start, the study, the report."""
    with tempfile.TemporaryDirectory() as folder:
        store, path = Store(folder), Path(folder) / "report.html"
        fill_conditions(model, images, dict.fromkeys(study.conditions()), store=store)
        results: list[sp.Results] = []
        command = [sys.executable, "-m", "shiftproof", "run", "--help"]
        steps: dict[str, Callable[[], object]] = {
            "start of the command": lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
            "study": lambda: results.append(sp.measure(study, store=store, datasets=[images])),
            "report": lambda: save_report(path, results[-1]),
        }
        seconds: dict[str, float] = {}
        for name, step in steps.items():
            began = cpu_seconds()
            step()
            seconds[name] = cpu_seconds() - began
            print(f"{name}: {seconds[name]:.2f} CPU s, once")
    return seconds


if __name__ == "__main__":
    main()
