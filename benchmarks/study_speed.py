"""Studies of stored predictions beside the bare arithmetic on the same rows: every OOD detector, every corruption.

    python benchmarks/study_speed.py [figures.json]

OOD: 2,000 training, 2,000 in-distribution and 1,000 other images with 1280 features and 1000 classes. Corruption: 1,000
images unchanged and under 75 conditions. The floors beside them are what cannot be left out: each detector fitted and
scoring once on rows in memory, and the files of all runs read. No image is opened. CPU time of all threads, interleaved,
with an A/A control.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file

import shiftproof as sp
from harness import Contestant, cpu_race, save
from shiftproof.catalog import OOD_DETECTORS
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.accuracy import to_top5
from shiftproof.ood import ready
from shiftproof.runs.digests import digest_of
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classifier, Condition, Features, Head, Inputs, Keep, Logits, Predictions, Results, Study

FEATURES, CLASSES = 1280, 1000
OOD_IMAGES = {"training": 2000, "photos": 2000, "others": 1000}
CELL_IMAGES = 1000


def the_model() -> Classifier:
    def scores(inputs: Inputs) -> Logits:
        raise AssertionError(f"every row is stored, and {len(inputs)} were asked for")

    names = [f"class {number}" for number in range(CLASSES)]
    return sp.wrap_model(scores, name="stored", version="1", class_names=names, size=(8, 8), gives="logits")


class World:
    """Manifests whose images are never opened, and a store with rows of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.model = folder, Store(folder / "runs"), the_model()
        self.generator = np.random.default_rng(0)
        self.typical = np.maximum(self.generator.normal(0, 1, (CLASSES, FEATURES)), 0).astype(np.float32)
        weights = 0.02 * (self.typical - self.typical.mean(axis=0)) + 0.01 * self.generator.normal(size=self.typical.shape)
        self.head = Head(weights.astype(np.float32), 0.1 * self.generator.normal(size=CLASSES).astype(np.float32))
        self.store.save_model(StoredModel.of(self.model, CLASSES), self.head)
        Image.new("RGB", (8, 8)).save(folder / "a.png")
        self.answers = {name: self._answers(name, images) for name, images in OOD_IMAGES.items()}
        self.sets = {name: self._manifest(name, images) for name, images in {**OOD_IMAGES, "cells": CELL_IMAGES}.items()}
        for answered in self.answers.values():
            self._append(CLEAN, answered, "features")
        self.corruption = sp.CorruptionStudy([self.model], self.sets["cells"])
        for place, condition in enumerate(dict.fromkeys(self.corruption.conditions())):
            right = 0.8 - 0.1 * (condition.severity or 0) - 0.002 * place
            self._append(condition, self._guesses(right), "top5")

    @property
    def ood(self) -> Study:
        return sp.OODStudy(
            [self.model], self.sets["photos"], ood_datasets={"others": self.sets["others"]}, training=self.sets["training"]
        )

    def measure(self, study: Study) -> Results:
        return sp.measure(study, store=self.store, datasets=self.sets.values())

    def detectors(self) -> None:
        """Every detector that the study has, on rows in memory."""
        training, *asked = self.answers.values()
        for name in OOD_DETECTORS.usable:
            with suppress(NotKept, BadInput):
                fitted = ready(name, training)
                for some in asked:
                    fitted(some)

    def read_cells(self) -> None:
        """The files of the corrupted runs, as they are on disk."""
        for run in (self.store.run(self.model.ref, condition) for condition in self.corruption.conditions()):
            for path in run.folder.glob("*.safetensors"):
                load_file(path)

    def _answers(self, name: str, images: int) -> Predictions:
        labels = np.arange(images) % CLASSES
        features = self._features(labels, 0.7 if name == "others" else 1.0)
        logits = features @ self.head.weights.T + self.head.bias
        ids = tuple(f"{name}/{row}.png" for row in range(images))
        top5 = to_top5(logits, "logits")
        return Predictions(ids, labels[:, None], "logits", top5, logits=logits, features=features, head=self.head)

    def _features(self, labels: NDArray[np.integer], share: float) -> Features:
        spreads = 2 * np.geomspace(1.0, 0.1, FEATURES, dtype=np.float32)
        centres = share * self.typical[labels]
        noise = self.generator.standard_normal(centres.shape, np.float32) * spreads
        return np.asarray(np.maximum(centres + noise, 0))

    def _guesses(self, right: float) -> Predictions:
        labels = np.arange(CELL_IMAGES) % CLASSES
        logits = self.generator.standard_normal((CELL_IMAGES, CLASSES), np.float32)
        logits[
            np.arange(CELL_IMAGES), np.where(self.generator.random(CELL_IMAGES) < right, labels, (labels + 7) % CLASSES)
        ] += 9
        ids = tuple(f"cells/{row}.png" for row in range(CELL_IMAGES))
        return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"))

    def _manifest(self, name: str, images: int) -> ImageList:
        rows = (f"{name}/{row}.png,a.png,class {row % CLASSES},{_digest(f'{name}/{row}.png')}" for row in range(images))
        path = self.folder / f"{name}.csv"
        path.write_text("id,path,label,blake2b\n" + "\n".join(rows) + "\n")
        return sp.open_dataset(path)

    def _append(self, condition: Condition, answered: Predictions, keep: Keep) -> None:
        top5 = answered.top5
        arrays = {"top5_classes": top5.classes.astype(np.int32), "top5_scores": top5.scores, "log_total": top5.log_total}
        if keep == "features":
            arrays |= {"logits": answered.need_logits(), "features": answered.need_features()}
        rows = Rows(answered.ids, [_digest(key) for key in answered.ids], arrays)
        self.store.run(self.model.ref, condition).append(rows, keep)


def _digest(key: str) -> str:
    return digest_of(key.encode())


def main() -> None:
    rounds = int(os.environ.get("ROUNDS", "5"))
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        of_ood, of_cells = world.measure(world.ood), world.measure(world.corruption)
        print(f"OOD: {len(of_ood.measurements):,} numbers; corruption: {len(of_cells.measurements):,} numbers")
        rows = sum(OOD_IMAGES.values())
        figures = {
            "OOD": cpu_race(
                {
                    "detectors alone, rows in memory": Contestant(world.detectors, rows),
                    "OOD study": Contestant(lambda: world.measure(world.ood), rows),
                },
                "row",
                rounds=rounds,
            ),
            "corruption": cpu_race(
                {
                    "files read": Contestant(world.read_cells, CELL_IMAGES * 76),
                    "corruption study": Contestant(lambda: world.measure(world.corruption), CELL_IMAGES * 76),
                },
                "row",
                rounds=rounds,
            ),
        }
    save("study_speed", figures)


if __name__ == "__main__":
    main()
