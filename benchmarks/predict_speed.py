"""End-to-end prediction beside the bare onnxruntime session on ready tensors: the overhead around the model.

    SHIFTPROOF_TEST_DATA=... python benchmarks/predict_speed.py

Aim: at least 0.85 of the bare rate, with Pillow's antialiased resizing. The same with OpenCV's decoder and resizer shows
what a faster one would bring; it is offered as ``--preprocess engine=opencv,decoder=opencv``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import shiftproof as sp
from harness import race, save
from shiftproof.files import cache_folder
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.types import Classifier


def main() -> None:
    photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    images = sp.open_dataset(photos)
    model, fast = sp.load_model("lite:0"), sp.load_model("lite:0", preprocess="engine=opencv,decoder=opencv")
    some = [images.source(sample) for sample in images.samples[:256]]
    model(np.zeros((1, 3, 224, 224), np.float32))  # makes the graph where it is not cached yet
    ready = np.stack([model.preprocessing.from_image(source.decode(source.read())) for source in some])
    # onnxruntime's own defaults: all cores in one session
    graph = next(cache_folder().glob("models/lite0-*.onnx"))
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def bare(batch: int) -> None:
        for start in range(0, len(images.samples), batch):
            at = start % len(ready)
            session.run(["logits"], {name: ready[at : at + min(batch, len(images.samples) - start)]})

    def end_to_end(which: Classifier) -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill(which, images, store=Store(folder))

    ratios = race(
        {
            "bare session, ready tensors, batch 8": lambda: bare(8),
            "bare session, ready tensors, batch 32": lambda: bare(32),
            "predict, Pillow (the published way)": lambda: end_to_end(model),
            "predict, OpenCV": lambda: end_to_end(fast),
        },
        rounds=int(os.environ.get("ROUNDS", "4")),
        work=len(images.samples),
    )
    save("predict_speed", {name: ratio.median for name, ratio in ratios.items()})


if __name__ == "__main__":
    main()
