"""Peak memory of fitting on 20,000 and on 80,000 stored training images with 2048 features: it should not grow with them.

    python benchmarks/training_memory.py

Mahalanobis, ViM and nearest neighbours (kept in a file, then searched for 1000 images) are each fitted in a process of
their own, straight from a store of made-up rows. What grows is only the list of the images; its slope and the time of a row
give what the 1.28 million of ImageNet would take, whose features alone are 10.5 GB. The smaller one runs twice (A/A).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness import save
from shiftproof.datasets.image_list import DatasetBase
from shiftproof.errors import UnreadableImage
from shiftproof.metrics.accuracy import to_top5
from shiftproof.ood import ready
from shiftproof.runs.load import StoredTraining, load_training
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classes, DatasetRef, Fact, Head, ImageSource, ModelRef, Run, Sample

FEATURES, CLASSES = 2048, 1000
SIZES = {"20,000": 20_000, "20,000 (again)": 20_000, "80,000": 80_000}
ALL_OF_IMAGENET = 1_281_167
QUERIES = 1000
FILE_ROWS = 640  # about 8 MB, as sealed files are
MODEL = ModelRef("made up", "0" * 32)
PARAMETERS: dict[str, dict[str, Fact]] = {"walk alone": {}, "mahalanobis": {}, "vim": {}, "knn": {"gigabytes": 0.0}}


@dataclass(frozen=True)
class MadeUpImages(DatasetBase):
    """Training images that are only names."""

    count: int
    classes = Classes(tuple(f"class {number}" for number in range(CLASSES)))
    ref = DatasetRef("made up", "1" * 32)

    @property
    def samples(self) -> list[Sample]:  # type: ignore[override]
        return [Sample(image_id(number), (number % CLASSES,)) for number in range(self.count)]

    def source(self, sample: Sample) -> ImageSource:
        raise UnreadableImage(f"{sample.id} has no pixels: only its name is needed here")


def image_id(number: int) -> str:
    return f"n{number % CLASSES:08d}/n{number % CLASSES:08d}_{number}.JPEG"


def digest(number: int) -> str:
    return f"{number:032x}"


def rows(start: int, stop: int, head: Head) -> Rows:
    """Images about the centres of their classes."""
    generator = np.random.default_rng(start)
    labels = np.arange(start, stop) % CLASSES
    features = np.maximum(generator.standard_normal((len(labels), FEATURES), np.float32) + 20 * head.weights[labels], 0)
    logits = features @ head.weights.T
    top5 = to_top5(logits, "logits")
    arrays = {
        "top5_classes": top5.classes.astype(np.int32),
        "top5_scores": top5.scores,
        "log_total": top5.log_total.astype(np.float32),
        "logits": logits,
        "features": features,
    }
    numbers = range(start, stop)
    return Rows([image_id(number) for number in numbers], [digest(number) for number in numbers], arrays)


def fill(store: Store, images: int) -> None:
    generator = np.random.default_rng(0)
    head = Head(0.03 * generator.standard_normal((CLASSES, FEATURES), np.float32), np.zeros(CLASSES, np.float32))
    store.save_model(StoredModel(MODEL, "logits", {}, classes=MadeUpImages.classes, outputs=CLASSES), head)
    for start in range(0, images, FILE_ROWS):
        store.run(MODEL, CLEAN).append(rows(start, min(start + FILE_ROWS, images), head), "features")


def training_of(store: Store, images: int) -> StoredTraining:
    digests = {image_id(number): digest(number) for number in range(images)}
    return load_training(Run(MODEL, MadeUpImages.ref), MadeUpImages(images), store=store, digests=digests)


def fit(store: Store, images: int, name: str) -> Iterator[tuple[str, float]]:
    """What a process of its own finds of itself."""
    training = training_of(store, images)
    started = time.process_time()
    if name == "walk alone":
        assert sum(len(block) for block in training.blocks()) == images
    else:
        fitted = ready(name, training, parameters=PARAMETERS[name])
    yield "microseconds a row", (time.process_time() - started) / images * 1e6
    if name == "knn":
        asked = next(training.blocks()).take(np.arange(QUERIES))
        started = time.process_time()
        fitted(asked)
        yield "search, nanoseconds a row and image", (time.process_time() - started) / images / QUERIES * 1e9
    yield "peak megabytes", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(*arguments: str) -> dict[str, float]:
    ran = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def main() -> None:
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for images in dict.fromkeys(SIZES.values()):
            fill(Store(f"{folder}/{images}"), images)
        for name in PARAMETERS:
            for size, images in SIZES.items():
                found = figures[f"{name}, {size}"] = in_a_process(f"{folder}/{images}", str(images), name)
                told = ", ".join(f"{what} {value:.1f}" for what, value in found.items())
                print(f"{name:14} {size:>14} images: {told}", flush=True)
            few, many = (figures[f"{name}, {size}"] for size in ("20,000", "80,000"))
            slope = (many["peak megabytes"] - few["peak megabytes"]) / 60_000
            peak = many["peak megabytes"] + max(slope, 0) * (ALL_OF_IMAGENET - 80_000)
            minutes = many["microseconds a row"] * ALL_OF_IMAGENET / 60e6
            print(
                f"{name:14} all of ImageNet: {slope * 1e6:.0f} bytes a row more, so {peak:.0f} MB; {minutes:.0f} CPU minutes"
            )
            figures[f"{name}, all of ImageNet"] = {"peak megabytes": peak, "minutes": minutes}
    save("training_memory", figures)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(dict(fit(Store(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))))
    else:
        main()
