"""The adversarial filter beside the bare forward passes of its models on ready inputs: what everything around them costs.

    SHIFTPROOF_TEST_DATA=... python benchmarks/filter_cost.py

Aim: at most 1.1 times the CPU time of the bare passes. Every photo is labelled with a class that nobody takes it for, so
that every model is asked about all ten crops of every photo: the most that the filter can have to do. With the photos'
own labels most of them go after one pass; the last line says how much of the bare passes that saves.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import shiftproof as sp
from harness import Contestant, cpu_race, save
from shiftproof.curation.adversarial import filter_adversarial
from shiftproof.curation.filter_models import FilterModels
from shiftproof.image_sets import ImageList
from shiftproof.models import ImagePreparation
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.store import Store
from shiftproof.types import Inputs, Logits

PHOTOS = int(os.environ.get("PHOTOS", "96"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CROPS = 10


def ten_crops(model: LoadedClassifier, images: ImageList) -> Inputs:
    """The inputs that the filter gives a model, one after the other."""
    preparation = model.preparation
    assert isinstance(preparation, ImagePreparation)
    sources = (images.source(sample) for sample in images.samples)
    tens = (preparation.from_crops(source.decode(source.read())) for source in sources)
    return np.stack([crop for ten in tens for crop in ten.values()])


def asked(model: LoadedClassifier, inputs: Inputs) -> Logits:
    """What the model answers, in batches of the size it likes and as many at a time as it takes, as everywhere here."""
    batches = [inputs[start : start + model.good_batch] for start in range(0, len(inputs), model.good_batch)]
    with ThreadPoolExecutor(model.at_once) as threads:
        return np.concatenate([outputs.scores for outputs in threads.map(model, batches)])


def nobodys(images: ImageList, models: list[LoadedClassifier], inputs: list[Inputs]) -> ImageList:
    """The images labelled with the class that the models find least likely in all crops."""
    scores = [asked(*pair).reshape(len(images.samples), CROPS, -1) for pair in zip(models, inputs, strict=True)]
    likely = np.max([one - one.max(axis=2, keepdims=True) for one in scores], axis=(0, 2))
    samples = [
        dataclasses.replace(sample, labels=(int(place),))
        for sample, place in zip(images.samples, likely.argmin(axis=1), strict=True)
    ]
    return dataclasses.replace(images, samples=samples)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        save("filter_cost", measured(folder))


def measured(folder: str) -> dict[str, float]:
    """CPU times as multiples of the bare passes; stores are made in the folder."""
    data = Path(os.environ["SHIFTPROOF_TEST_DATA"])
    every = sp.open_images(data / "ilsvrc-sample-1000")
    images = dataclasses.replace(every, samples=every.samples[:: len(every.samples) // PHOTOS][:PHOTOS])
    loaded = [
        sp.load_model("lite:0", threads=1),
        sp.load_model(f"onnx:{data}/models/mobilenetv2_int8_torchvision.onnx", prepare="imagenet,size=244", threads=1),
    ]
    models = [model for model in loaded if isinstance(model, LoadedClassifier)]
    inputs = [ten_crops(model, images) for model in models]
    hard = nobodys(images, models, inputs)

    def bare() -> None:
        for model, some in zip(models, inputs, strict=True):
            asked(model, some)

    def filtered(labelled: ImageList) -> int:
        filters = FilterModels(models, Store(tempfile.mkdtemp(dir=folder)), workers=0)
        return len(filter_adversarial(labelled, filters, per_confusion=None).choice.left)

    left = filtered(hard)
    assert left == PHOTOS, f"every photo should go through all crops of all models, but {PHOTOS - left} did not"
    return cpu_race(
        {
            "bare passes on ready inputs": Contestant(bare, PHOTOS),
            "the filter, nothing recognised": Contestant(lambda: filtered(hard), PHOTOS),
            "the filter, photos as labelled": Contestant(lambda: filtered(images), PHOTOS),
        },
        "photo",
        rounds=ROUNDS,
    )


if __name__ == "__main__":
    main()
