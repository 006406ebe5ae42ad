"""End-to-end prediction beside the bare onnxruntime session on ready tensors: the overhead around the model.

    SHIFTPROOF_TEST_DATA=... python benchmarks/predict_speed.py

Aim: at least 0.90 of the bare rate by CPU time, workers included, with Pillow's decoder and antialiased resizing, and 0.95
with OpenCV's; they are offered as ``--preprocess engine=opencv,decoder=opencv``. The physical rest beside it is to decode
the files and no more. Then the same by the clock, which on a busy machine says little. PHOTOS and ROUNDS make it shorter.
"""

from __future__ import annotations

import os
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

import shiftproof as sp
from harness import Contestant, cpu_race, race, save
from shiftproof.datasets.image_list import some_of
from shiftproof.files import cache_folder
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.types import Classifier


def main() -> None:
    folder_of_photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    images = some_of(sp.open_dataset(folder_of_photos), int(os.environ.get("PHOTOS", "1000")))
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

    def decoded() -> None:
        for source in map(images.source, images.samples):
            with Image.open(BytesIO(source.read())) as picture:
                picture.load()

    works = {
        "bare session, ready tensors, batch 8": lambda: bare(8),
        "bare session, ready tensors, batch 32": lambda: bare(32),
        "predict, Pillow (the published way)": lambda: end_to_end(model),
        "predict, OpenCV": lambda: end_to_end(fast),
    }
    rounds, photos = int(os.environ.get("ROUNDS", "4")), len(images.samples)
    in_cpu = {name: Contestant(work, photos) for name, work in {**works, "files decoded by Pillow alone": decoded}.items()}
    of_cpu = cpu_race(in_cpu, "photo", rounds=rounds)
    for name in ("predict, Pillow (the published way)", "predict, OpenCV"):
        print(f"{name}: {1 / of_cpu[name]:.3f} of the bare rate by CPU")
    ratios = race(works, rounds=rounds, work=photos)
    save("predict_speed", {"CPU": of_cpu, "wall": {name: ratio.median for name, ratio in ratios.items()}})


if __name__ == "__main__":
    main()
