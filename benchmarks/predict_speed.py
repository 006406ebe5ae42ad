"""End-to-end prediction beside the bare onnxruntime session on ready tensors: the overhead around the model.

    SHIFTPROOF_TEST_DATA=... python benchmarks/predict_speed.py

Aim: at least 0.90 of the bare rate by CPU time, workers included, with Pillow's decoder and antialiased resizing, and 0.95
with OpenCV's; they are offered as ``--preprocess engine=opencv,decoder=opencv``. The physical rest is a loop that decodes,
resizes, normalises and runs the session, and does nothing else: at least 0.97 of its rate. PHOTOS and ROUNDS shorten it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, figure, save
from shiftproof.datasets.image_list import some_of
from shiftproof.files import cache_folder
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.types import Classifier

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

    def bare(session: onnxruntime.InferenceSession, batch: int) -> None:
        for start in range(0, len(images.samples), batch):
            at = start % len(ready)
            session.run(["logits"], {name: ready[at : at + min(batch, len(images.samples) - start)]})

    def least(which: Classifier) -> None:
        room = np.empty_like(ready[:8])
        for start in range(0, len(images.samples), 8):
            sources = [images.source(sample) for sample in images.samples[start : start + 8]]
            for out, source in zip(room, sources, strict=False):
                decoded = source.decode(source.read(), decoder=which.preprocessing.decoder)
                which.preprocessing.from_image(decoded, out)  # type: ignore[call-arg]
            session.run(["logits"], {name: room[: len(sources)]})

    def end_to_end(which: Classifier) -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill(which, images, store=Store(folder))

    works = {
        BARE: lambda: bare(session, 8),
        "the same, batch 32": lambda: bare(session, 32),
        "onnxruntime's defaults, batch 8": lambda: bare(by_default, 8),
        "a bare loop from the files, Pillow": lambda: least(model),
        "predict, Pillow (the published way)": lambda: end_to_end(model),
        "a bare loop from the files, OpenCV": lambda: least(fast),
        "predict, OpenCV": lambda: end_to_end(fast),
    }
    photos = len(images.samples)
    contestants = {name: Contestant(work, photos) for name, work in works.items()}
    taken = cpu_race(contestants, "photo", rounds=int(os.environ.get("ROUNDS", "4")))
    for decoder, ours, aim in (("Pillow", "predict, Pillow (the published way)", 0.90), ("OpenCV", "predict, OpenCV", 0.95)):
        work, noise = f"predict, Lite0, {photos:,} photos, decoded by {decoder}, rate by CPU time", taken[AGAIN.format(BARE)]
        figure(work, 1 / taken[ours], beside=BARE, aim=f">= {aim:.2f}", noise=noise)
        loop = f"a bare loop from the files, {decoder}"
        figure(work, taken[loop] / taken[ours], beside=loop, aim=">= 0.97", noise=noise)
    save("predict_speed", taken)


if __name__ == "__main__":
    main()
