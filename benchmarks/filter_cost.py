"""The adversarial filter beside the bare forward passes that its models make in it, on ready inputs.

    SHIFTPROOF_TEST_DATA=... python benchmarks/filter_cost.py

Aim: at most 1.05 times the CPU time of the passes where every model runs on ten crops of every photo, as it does when all
photos have a label that is never predicted. With their true labels most photos are removed after one pass: that costs a
fifth, and the overhead is larger relative to so few passes. On a busy machine pin it to one core, as with taskset: time on
cores that share their units is overestimated.

The limit is a bare loop that decodes every photo once for each model, cuts its ten crops, stacks them to batches and runs
these. A second one also does what cannot be left out where a run may be stopped and go on: it hashes every file, as rows
belong to the bytes of an image, and writes the logits of each crop to disk once. What is decided of a photo, and rows that
are there before all are, are left out of it too.

Where other load makes bare passes slower at one moment than at the next, the second ratio is more stable: the filter's time
over that of the passes within it, which run on the calling threads. It excludes only what the filter might do to the
passes themselves.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, figure, save
from shiftproof.curation.adversarial import filter_adversarial
from shiftproof.curation.filtering import FilterModels
from shiftproof.datasets import ImageList
from shiftproof.models import ImagePreprocessing
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.runs import prepare
from shiftproof.runs.digests import digest_of
from shiftproof.runs.store import Store
from shiftproof.types import Inputs, Logits, Outputs

PHOTOS = int(os.environ.get("PHOTOS", "100"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CROPS = 10
HARD, LOOP, STORED = "never recognised", "decode, ten crops and passes", "the same, files hashed, logits on disk"


@dataclasses.dataclass(frozen=True)
class Filter:
    """The filter models, ready inputs for each of them, and a folder for stores."""

    models: list[LoadedClassifier]
    inputs: list[Inputs]
    folder: str

    def run(self, images: ImageList, models: list[LoadedClassifier] | None = None) -> None:
        """The whole filter, with nothing stored before."""
        store = Store(tempfile.mkdtemp(dir=self.folder))
        prepare._cache = prepare._Cache()  # no picture of an earlier run is remembered, as none of a large dataset would be
        filter_adversarial(images, FilterModels(models or self.models, store, workers=0), per_confusion=None)

    def passes(self, images: ImageList) -> list[int]:
        """How many inputs the filter gives each model."""
        given: Counter[str] = Counter()

        def counting(model: LoadedClassifier) -> LoadedClassifier:
            def answer(inputs: Inputs, features: bool) -> Outputs:
                given[model.ref.name] += len(inputs)
                return model.forward(inputs, features)

            return dataclasses.replace(model, forward=answer)

        self.run(images, [counting(model) for model in self.models])
        return [given[model.ref.name] for model in self.models]

    def beside_own_passes(self, images: ImageList) -> float:
        """The CPU time of the filter as a multiple of what its own passes take of it."""
        within: list[float] = []

        def timed(model: LoadedClassifier) -> LoadedClassifier:
            def answer(inputs: Inputs, features: bool) -> Outputs:
                started = time.thread_time()
                outputs = model.forward(inputs, features)
                within.append(time.thread_time() - started)
                return outputs

            return dataclasses.replace(model, forward=answer)

        models, started = [timed(model) for model in self.models], time.process_time()
        self.run(images, models)
        return (time.process_time() - started) / sum(within)

    def bare_loop(self, images: ImageList) -> list[Logits]:
        """Every photo decoded, cropped and run on all ten crops by each model, and nothing else."""
        return [self._all_crops(model, crops_of(model, images)) for model in self.models]

    def bare_loop_stored(self, images: ImageList) -> None:
        """The same, with every file hashed and the logits of each crop written to disk once."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for number, model in enumerate(self.models):
            rows = self._all_crops(model, crops_of(model, images, hashed=True))
            for crop in range(CROPS):
                with (folder / f"{number}-{crop}").open("wb") as file:
                    file.write(np.ascontiguousarray(rows[crop::CROPS]).data)
                    file.flush()
                    os.fsync(file.fileno())

    def _all_crops(self, model: LoadedClassifier, crops: Iterator[Inputs]) -> Logits:
        """What the model says of every crop, batch after batch."""
        said = []
        while some := list(islice(crops, model.default_batch_size)):
            said.append(model(np.stack(some)).scores)
        return np.concatenate(said)

    def bare(self, passes: list[int]) -> None:
        """So many passes of each model, and nothing else."""
        for model, inputs, count in zip(self.models, self.inputs, passes, strict=True):
            if count:
                answers(model, inputs[:count])


def answers(model: LoadedClassifier, inputs: Inputs) -> Logits:
    """What the model says, in batches of the size it likes and as many at a time as it takes, as everywhere here."""
    batches = [inputs[start : start + model.default_batch_size] for start in range(0, len(inputs), model.default_batch_size)]
    with ThreadPoolExecutor(model.concurrent_batches) as threads:
        return np.concatenate([outputs.scores for outputs in threads.map(model, batches)])


def crops_of(model: LoadedClassifier, images: ImageList, *, hashed: bool = False) -> Iterator[Inputs]:
    """The input of every crop of every image, one after the other; files may be hashed on the way."""
    preprocessing = model.preprocessing
    assert isinstance(preprocessing, ImagePreprocessing)
    for sample in images.samples:
        source = images.source(sample)
        data = source.read()
        if hashed:
            digest_of(data)
        yield from preprocessing.from_crops(source.decode(data, decoder=preprocessing.decoder)).values()


def ten_crops(model: LoadedClassifier, images: ImageList) -> Inputs:
    """The inputs of all crops of all images."""
    return np.stack(list(crops_of(model, images)))


def never_recognised(images: ImageList, work: Filter) -> ImageList:
    """The images labelled with the class that the models find least likely in all crops."""
    said = [answers(*pair).reshape(len(images.samples), CROPS, -1) for pair in zip(work.models, work.inputs, strict=True)]
    likely = np.max([scores - scores.max(axis=2, keepdims=True) for scores in said], axis=(0, 2))
    labels = likely.argmin(axis=1).tolist()
    samples = [dataclasses.replace(one, labels=(label,)) for one, label in zip(images.samples, labels, strict=True)]
    return dataclasses.replace(images, samples=samples)


def main() -> None:
    data = Path(os.environ["SHIFTPROOF_TEST_DATA"])
    every = sp.open_dataset(data / "ilsvrc-sample-1000")
    images = dataclasses.replace(every, samples=every.samples[:: len(every.samples) // PHOTOS][:PHOTOS])
    mobilenet = f"onnx:{data}/models/mobilenetv2_int8_torchvision.onnx"
    loaded = [sp.load_model("lite:0", threads=1), sp.load_model(mobilenet, preprocess="imagenet,size=244", threads=1)]
    models = [model for model in loaded if isinstance(model, LoadedClassifier)]
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Filter(models, [ten_crops(model, images) for model in models], folder)
        kinds = {"as labelled": images, HARD: never_recognised(images, work)}
        for kind, labelled in kinds.items():
            passes = work.passes(labelled)
            print(f"{PHOTOS} photos {kind}: {sum(passes):,} passes")
            contestants = {
                "bare passes on ready inputs": Contestant(partial(work.bare, passes), PHOTOS),
                "the filter": Contestant(partial(work.run, labelled), PHOTOS),
            }
            if kind == HARD:
                contestants[LOOP] = Contestant(partial(work.bare_loop, images), PHOTOS)
                contestants[STORED] = Contestant(partial(work.bare_loop_stored, images), PHOTOS)
            figures[kind] = cpu_race(contestants, "photo", rounds=ROUNDS)
            multiples = sorted(work.beside_own_passes(labelled) for _ in range(ROUNDS))
            figures[kind]["the filter, beside its own passes"] = statistics.median(multiples)
            print(
                f"the filter beside its own passes: x {statistics.median(multiples):.3f} "
                f"({multiples[0]:.3f} to {multiples[-1]:.3f})"
            )
    hard = figures[HARD]
    figure(
        f"adversarial filter of {PHOTOS} photos, all crops by both models, CPU",
        hard["the filter, beside its own passes"],
        beside=f"its own passes; a bare loop that decodes, crops and stacks takes {hard[LOOP]:.3f}",
        aim="<= 1.05",
        noise=hard[AGAIN.format("bare passes on ready inputs")],
    )
    figure(
        f"adversarial filter of {PHOTOS} photos, all crops by both models, CPU",
        hard["the filter"] / hard[STORED],
        beside="a bare loop that hashes and decodes files, crops, runs the models and writes logits once",
        aim="<= 1.03",
        noise=hard[AGAIN.format("bare passes on ready inputs")],
    )
    save("filter_cost", figures)


if __name__ == "__main__":
    main()
