"""Heads trained by several recipes on CIFAR photos, judged on photos and corruptions that took no part.

    python benchmarks/trained_heads.py PHOTOS.zip --folder trained-heads

Ten corruptions are trained with, four are kept out. Every head sees the same features of the same test photos, so gains
are paired by photo, and a photo under all conditions is one cluster. What was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from scipy.stats import t as student

import shiftproof as sp
from shiftproof.cli.emit import Bar
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import View, unlabelled
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill_conditions
from shiftproof.training.trained import read_weights
from shiftproof.types import Condition, Run

SEEN = "gaussian_noise/shot_noise/defocus_blur/glass_blur/zoom_blur/snow/frost/brightness/elastic_transform/pixelate"
UNSEEN = ("motion_blur", "fog", "contrast", "jpeg_compression")
RECIPES = {
    "linear-probe": "clean pictures alone",
    f"corrupted:{SEEN}": "ten corruptions",
    f"corrupted:{SEEN}+wise-ft:0.5": "half way to that",
    "augmix": "augmix",
    "baseline": "crops and flips",
}


def some(images: ImageList, each: int, start: int, name: str) -> View:
    """So many photos of each class, from a place in it on."""
    labels = sorted({sample.labels for sample in images.samples})
    of_class = {label: [sample for sample in images.samples if sample.labels == label] for label in labels}
    return View(images, images.classes, [one for label in labels for one in of_class[label][start : start + each]], name)


def cpu_seconds() -> float:
    """Of this process and its finished workers."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("trained-heads"))
    parser.add_argument("--model", default="lite:0")
    parser.add_argument("--train", type=int, default=50, help="photos of each class, a fifth of them for validation")
    parser.add_argument("--test", type=int, default=30, help="photos of each class")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--severities", default="1,3,5")
    parser.add_argument("--recipes", default=",".join(map(str, range(len(RECIPES)))), help="which of the recipes")
    asked = parser.parse_args()
    photos = sp.open_dataset(str(asked.photos))
    training = some(photos, asked.train, 0, "training photos")
    test = some(photos, asked.test, 500, "test photos")
    store = sp.Store(asked.folder / "runs")
    heads: dict[str, list[Path]] = {}
    for place in map(int, asked.recipes.split(",")):
        recipe, title = list(RECIPES.items())[place]
        started, spent = time.monotonic(), cpu_seconds()
        options = sp.TrainOptions(recipe=recipe, seeds=asked.seeds)
        out = asked.folder / f"{place}-{asked.train}-{asked.seeds}"
        trained = sp.train(asked.model, training, out, options=options, store=store, progress=Bar(), tell=print)
        heads[title] = [one.folder for one in trained.parts or (trained,)]
        print(f"{title}: {time.monotonic() - started:.0f} s, {cpu_seconds() - spent:.0f} CPU-s, {dict(trained.accuracy)}")

    how = {"edition": "imagenet-224", "picture": "imagenet-224"}
    conditions = [Condition("clean", picture="imagenet-224")]
    conditions += [Condition(name, int(one), **how) for name in UNSEEN for one in asked.severities.split(",")]  # type: ignore[arg-type]
    model, bare = sp.load_model(asked.model), unlabelled(test)
    fill_conditions(model, bare, dict.fromkeys(conditions), store=store, keep="features", progress=Bar())
    labels = np.array([sample.labels[0] for sample in test.samples])
    right: dict[str, np.ndarray] = {}  # (seeds, photos, conditions)
    for title, folders in heads.items():
        layers = [read_weights(folder) for folder in folders]
        columns = []
        for condition in conditions:
            found = load_predictions(Run(model.ref, bare.ref, condition), bare, store=store, keep="features")
            features = found.need_features()
            columns.append([(features @ one["weight"].T + one["bias"]).argmax(axis=1) == labels for one in layers])
        right[title] = np.array(columns).transpose(1, 2, 0).astype(float)
    base = next(iter(right))
    print(f"{len(labels)} photos; gains with 95 % CI")
    print(f"{'recipe':24} {'clean':>7} {'unseen':>7}   {'gain on unseen':25}  gain on clean")
    for title, values in right.items():
        means = values.mean(axis=0)  # of the seeds
        gains = means - right[base].mean(axis=0)
        told = [interval(gains[:, 1:].mean(axis=1)), interval(gains[:, 0])]
        print(f"{title:24} {100 * means[:, 0].mean():7.1f} {100 * means[:, 1:].mean():7.1f}   {told[0]:25}  {told[1]}")


def interval(gains: np.ndarray) -> str:
    """The mean of one number a photo, in points, with Student's interval."""
    half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{100 * gains.mean():+.1f} ({100 * (gains.mean() - half):+.1f} to {100 * (gains.mean() + half):+.1f})"


if __name__ == "__main__":
    main()
