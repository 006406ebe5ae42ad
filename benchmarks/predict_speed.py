"""End-to-end prediction beside the bare onnxruntime session on ready tensors: the overhead around the model.

    SHIFTPROOF_TEST_DATA=... python benchmarks/predict_speed.py

Aim: at least 0.90 of the bare rate by CPU time, workers included, with Pillow's decoder and antialiased resizing, and 0.95
with OpenCV's; they are offered as ``--preprocess engine=opencv,decoder=opencv``. The physical rest is a loop that decodes,
resizes, normalises and runs the session, and does nothing else: at least 0.97 of its rate. It runs on one thread, and with a
batch a core as predict does, since cores that work side by side share caches and memory. Steps before the model are also
timed alone, as shares of the session's time. PHOTOS and ROUNDS shorten it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, figure, save
from shiftproof.datasets.image_list import some_of
from shiftproof.files import cache_folder
from shiftproof.runs.digests import digest_of, stamp_of
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, ImageSource

BARE = "a session of one thread, ready tensors, batch 8"


def main() -> None:
    folder_of_photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    images = some_of(sp.open_dataset(folder_of_photos), int(os.environ.get("PHOTOS", "1000")))
    model, fast = sp.load_model("lite:0"), sp.load_model("lite:0", preprocess="engine=opencv,decoder=opencv")
    some = [images.source(sample) for sample in images.samples[:256]]
    for one in (model, fast):
        one(np.zeros((1, 3, 224, 224), np.float32))  # makes the graph where it is not cached yet, and the session
    ready = np.stack([model.preprocessing.from_image(source.decode(source.read())) for source in some])
    graph = next(cache_folder().glob("models/lite0-*.onnx"))
    one_thread = onnxruntime.SessionOptions()
    one_thread.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, one_thread, providers=["CPUExecutionProvider"])
    by_default = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])  # all cores, which spin
    name = session.get_inputs()[0].name

    # with Pillow's decoder OpenCV is not loaded, and normalising then cannot use it
    apart: dict[str, dict[str, Any]] = {"Pillow": {"cv2": None}, "OpenCV": {}}

    def bare(session: onnxruntime.InferenceSession, batch: int) -> None:
        for start in range(0, len(images.samples), batch):
            at = start % len(ready)
            session.run(["logits"], {name: ready[at : at + min(batch, len(images.samples) - start)]})

    def least(which: Classifier, decoder: str, threads: int = 1) -> None:
        def batch(start: int) -> None:
            room, sources = np.empty_like(ready[:8]), [images.source(one) for one in images.samples[start : start + 8]]
            for out, source in zip(room, sources, strict=False):
                decoded = source.decode(source.read(), decoder=which.preprocessing.decoder)
                which.preprocessing.from_image(decoded, out)  # type: ignore[call-arg]
            session.run(["logits"], {name: room[: len(sources)]})

        with mock.patch.dict(sys.modules, apart[decoder]), ThreadPoolExecutor(threads) as pool:
            list(pool.map(batch, range(0, len(images.samples), 8)))

    def end_to_end(which: Classifier, decoder: str) -> None:
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules, apart[decoder]):
            fill(which, images, store=Store(folder))

    works = {
        BARE: lambda: bare(session, 8),
        "the same, batch 32": lambda: bare(session, 32),
        "onnxruntime's defaults, batch 8": lambda: bare(by_default, 8),
        "a bare loop from the files, Pillow": lambda: least(model, "Pillow"),
        "a bare loop from the files, Pillow, a batch a core": lambda: least(model, "Pillow", model.concurrent_batches),
        "predict, Pillow (the published way)": lambda: end_to_end(model, "Pillow"),
        "a bare loop from the files, OpenCV": lambda: least(fast, "OpenCV"),
        "a bare loop from the files, OpenCV, a batch a core": lambda: least(fast, "OpenCV", fast.concurrent_batches),
        "predict, OpenCV": lambda: end_to_end(fast, "OpenCV"),
    }
    photos = len(images.samples)
    contestants = {name: Contestant(work, photos) for name, work in works.items()}
    taken = cpu_race(contestants, "photo", rounds=int(os.environ.get("ROUNDS", "4")))
    batches = [ready[start : start + 8] for start in range(0, len(ready), 8)]
    taken_by_session = min(_cpu_of(lambda one: session.run(["logits"], {name: one}), batches) for _ in range(5)) / len(ready)
    for decoder, which, ours, aim in (
        ("Pillow", model, "predict, Pillow (the published way)", 0.90),
        ("OpenCV", fast, "predict, OpenCV", 0.95),
    ):
        work, noise = f"predict, Lite0, {photos:,} photos, decoded by {decoder}, rate by CPU time", taken[AGAIN.format(BARE)]
        figure(work, 1 / taken[ours], beside=BARE, aim=f">= {aim:.2f}", noise=noise)
        for loop in (f"a bare loop from the files, {decoder}{side_by_side}" for side_by_side in ("", ", a batch a core")):
            figure(work, taken[loop] / taken[ours], beside=loop, aim=">= 0.97", noise=noise)
        with mock.patch.dict(sys.modules, apart[decoder]):
            steps = shares(which, some)
        for step, seconds in steps.items():
            part = 100 * seconds / taken_by_session
            figure(
                f"{step}, {decoder}, CPU time a photo",
                part,
                unit="%",
                beside="a session of one thread",
                aim="the physical rest",
            )
    save("predict_speed", taken)


def shares(model: Classifier, sources: Sequence[ImageSource]) -> dict[str, float]:
    """CPU seconds a photo of each step before the model, one after the other; the best of five."""
    preprocessing: Any = model.preprocessing
    data = [source.read() for source in sources]
    images = [source.decode(one, decoder=preprocessing.decoder) for source, one in zip(sources, data, strict=True)]
    cut = [preprocessing.cut(image) for image in images]
    out = np.empty((3, 224, 224), np.float32)
    steps: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "reading": (lambda source: source.read(), sources),
        "hashing": (lambda source: (stamp_of(source[0]), digest_of(source[1])), list(zip(sources, data, strict=True))),
        "decoding": (lambda one: sources[0].decode(one, decoder=preprocessing.decoder), data),
        "resizing and cropping": (preprocessing.cut, images),
        "normalising": (lambda image: preprocessing._normalised(image, out), cut),
    }
    return {name: min(_cpu_of(step, things) for _ in range(5)) / len(sources) for name, (step, things) in steps.items()}


def _cpu_of(step: Callable[[Any], object], things: Sequence[Any]) -> float:
    began = time.thread_time()
    for thing in things:
        step(thing)
    return time.thread_time() - began


if __name__ == "__main__":
    main()
