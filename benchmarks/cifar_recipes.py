"""Recipes x seeds on CIFAR-10 photos, a small residual network from scratch, judged on corruptions that took no part.

    python benchmarks/cifar_recipes.py PHOTOS.zip --folder cifar-recipes
    python benchmarks/cifar_recipes.py PHOTOS.zip --estimate      # images a second by recipe, how long all would take

8,000 photos to train with (of which 400 are the validation split) and 2,000 to test, by a seeded split of each class.
What was stopped goes on; a recipe or a seed more is added by naming it. The table stands beside the errors published for
AugMix on CIFAR-10-C with a WRN-40-2 of 200 epochs: standard 26.9, cutout 26.8, mixup 22.3, AugMix 11.2.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import shiftproof as sp
from shiftproof.cli.emit import Bar
from shiftproof.corruptions.selection import corruptions_named, trained_with
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import View
from shiftproof.metrics.accuracy import is_correct
from shiftproof.randomness import rng_for
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill_conditions
from shiftproof.training.comparison import CLEAN, TrainedRecipe, compare_recipes
from shiftproof.types import Condition, Measurement, Run

RECIPES = "baseline,cutout,mixup,cutmix,augmix"
TEST_OF_A_CLASS = 200


def unpacked(photos: Path, folder: Path) -> Path:
    """The folder of photos; of a .zip file one that it is unpacked into."""
    if photos.suffix != ".zip":
        return photos
    place = folder / "photos"
    if not place.exists():
        with zipfile.ZipFile(photos) as archive, tempfile.TemporaryDirectory(dir=_made(folder)) as unfinished:
            archive.extractall(unfinished)
            Path(unfinished).joinpath("test").rename(place)
    return place


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def split(images: ImageList, limit: int | None) -> tuple[View, View]:
    """Photos to train with and photos to test, by class, in an order drawn from a fixed seed."""
    parts: tuple[list[sp.types.Sample], list[sp.types.Sample]] = ([], [])
    for label in sorted({sample.labels for sample in images.samples}):
        own = [sample for sample in images.samples if sample.labels == label]
        order = rng_for(str(label), "cifar recipes", 0).permutation(len(own))
        test = TEST_OF_A_CLASS if limit is None else max(1, limit // 5)
        parts[0].extend(own[place] for place in order[test : None if limit is None else test + limit])
        parts[1].extend(own[place] for place in order[:test])
    training, test_part = (sorted(part, key=lambda sample: sample.id) for part in parts)
    return View(images, images.classes, training, "cifar-10 training"), View(
        images, images.classes, test_part, "cifar-10 test"
    )


def options(asked: argparse.Namespace, recipe: str, epochs: int, seeds: int) -> sp.TrainOptions:
    return sp.TrainOptions(
        level="network",
        recipe=recipe,
        seeds=seeds,
        epochs=epochs,
        batch_size=asked.batch_size,
        learning_rate=asked.learning_rate,
        validation=0.05,
    )


def estimate(asked: argparse.Namespace, images: ImageList) -> None:
    """Trains each recipe for an epoch on a tenth of the photos, the second time for its seconds."""
    some, _ = split(images, 80)
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for recipe in asked.recipes.split(","):
            said = options(asked, recipe, 2, 1)
            trained = sp.train(asked.network, some, Path(folder) / recipe, options=said, store=Path(folder) / "runs")
            seconds = trained.record.curves[-1]["seconds"]
            images_used = len(some.samples) - len(trained.record.split["validation"])
            rate = images_used // asked.batch_size * asked.batch_size / seconds
            whole = 7600 * asked.epochs * asked.seeds / rate
            total += whole
            print(
                f"{recipe:12} {rate:7.0f} images/s, {whole / 60:5.1f} minutes for {asked.seeds} x {asked.epochs} epochs",
                flush=True,
            )
    print(f"{'all':12} {total / 60:5.1f} minutes of training on this machine as busy as it is now")


def correct(folder: Path, test: View, conditions: list[Condition], store: sp.Store) -> NDArray[np.bool_]:
    """Which photos a trained network gets right, (conditions, photos)."""
    model = sp.load_model(str(folder), name=f"{folder.parent.name} {folder.name}")
    fill_conditions(model, test, dict.fromkeys(conditions), store=store, keep="top5", progress=Bar())
    rows = []
    for condition in conditions:
        found = load_predictions(Run(model.ref, test.ref, condition), test, store=store, keep="top5")
        rows.append(is_correct(found.labels, found.top5.classes))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--folder", type=Path, default=Path("cifar-recipes"))
    parser.add_argument("--network", default="scratch:resnet-8")
    parser.add_argument("--recipes", default=RECIPES, help="the first is the baseline of the others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--severities", default="1,3,5")
    parser.add_argument("--corruptions", default="imagenet-c,extra,cifar-c-bar", help="as `shiftproof run --corruptions`")
    parser.add_argument("--limit", type=int, help="photos of a class, to try the script")
    parser.add_argument("--estimate", action="store_true")
    asked = parser.parse_args()
    images = sp.open_dataset(unpacked(Path(asked.photos), asked.folder))
    assert isinstance(images, ImageList)
    if asked.estimate:
        estimate(asked, images)
        return
    training, test = split(images, asked.limit)
    store, started = sp.Store(asked.folder / "runs"), time.monotonic()
    shifts = [
        Condition(name, int(severity), edition="cifar-32", picture="cifar-32")
        for name in corruptions_named(asked.corruptions)
        for severity in asked.severities.split(",")
    ]
    conditions = [Condition("clean", picture="cifar-32"), *shifts]
    trained_recipes = []
    for recipe in asked.recipes.split(","):
        said = options(asked, recipe, asked.epochs, asked.seeds)
        out = asked.folder / recipe.replace(":", "-").replace("?", "-")
        trained = sp.train(asked.network, training, out, options=said, store=store, progress=Bar(), tell=print)
        folders = [one.folder for one in trained.parts or (trained,)]
        right = np.array([correct(folder, test, conditions, store) for folder in folders])  # (seeds, conditions, photos)
        by_shift = {CLEAN: right[:, 0]} | {str(shift): right[:, 1 + place] for place, shift in enumerate(shifts)}
        seen = {str(shift) for shift in shifts if shift.name in trained_with(trained.record.seen.augmentations)}
        trained_recipes.append(TrainedRecipe(recipe, by_shift, frozenset(seen)))
        show(trained_recipes, time.monotonic() - started)
        save(asked, trained_recipes, time.monotonic() - started)
    baseline, *others = trained_recipes
    for finding in compare_recipes(baseline, others, dataset="cifar-10 test"):
        if isinstance(finding, Measurement) and finding.metric in {"recipe_gain", "recipe_clean_change"}:
            low, high = (finding.interval.low, finding.interval.high) if finding.interval else (float("nan"),) * 2
            print(
                f"{finding.about['recipe']:12} {finding.metric:20} {100 * finding.value:+.1f} points "
                f"({100 * low:+.1f} to {100 * high:+.1f}); {finding.convention['standard error']}"
            )


def show(recipes: list[TrainedRecipe], seconds: float) -> None:
    """Accuracies, means over seeds; the error on ImageNet-C's fifteen is what the published table has."""
    told = f"({seconds / 60:.1f} minutes so far)"
    print(f"\n{'recipe':12} {'clean':>7} {'shifted':>8} {'error on the 15':>16}   shifted, by seed   {told}")
    for one in recipes:
        accuracies = {shift: 100 * right.mean(axis=1) for shift, right in one.correct.items()}  # of each seed
        by_seed = np.mean([accuracies[shift] for shift in one.shifts], axis=0)
        fifteen = [accuracies[shift].mean() for shift in one.shifts if shift.rpartition(" ")[0] in sp.IMAGENET_C]
        error = 100 - np.mean(fifteen) if fifteen else float("nan")
        seeds = " ".join(f"{seed:.1f}" for seed in by_seed)
        print(f"{one.name:12} {accuracies[CLEAN].mean():7.1f} {by_seed.mean():8.1f} {error:16.1f}   {seeds}", flush=True)


def save(asked: argparse.Namespace, recipes: list[TrainedRecipe], seconds: float) -> None:
    table = {
        one.name: {shift: right.mean(axis=1).tolist() for shift, right in one.correct.items()}  # of each seed
        for one in recipes
    }
    told = {name: str(value) for name, value in vars(asked).items() if name != "photos"}
    (asked.folder / "accuracies.json").write_text(
        json.dumps({"asked": told, "seconds": seconds, "accuracy": table}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
