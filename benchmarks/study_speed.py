"""Studies of stored predictions beside the bare arithmetic on the same rows: every OOD detector, every corruption.

    python benchmarks/study_speed.py [figures.json]

OOD: 2,000 training, 2,000 in-distribution and 1,000 other images with 1280 features and 1000 classes. Corruption: 1,000
images unchanged and under 75 conditions. The floors beside them are what cannot be left out: the products, factorisations
and sorts that the numbers of an OOD study are made of, as bare calls of NumPy and SciPy on rows in memory; and the files of
all runs of a corruption study, read with their ids. No image is opened. CPU time of all threads, interleaved, with an A/A
control. Give BLAS one thread on a busy machine (OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1): threads that wait spin.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from scipy.linalg import cho_factor, eigh

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, cpu_seconds, figure, save
from shiftproof.datasets.image_list import ImageList
from shiftproof.metrics.accuracy import to_top5
from shiftproof.runs.digests import digest_of
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classifier, Condition, Features, Head, Inputs, Keep, Logits, Predictions, Results, Study

FEATURES, CLASSES = 1280, 1000
OOD_IMAGES = {"training": 2000, "photos": 2000, "others": 1000}
CELL_IMAGES = 1000
DETECTORS = 23
"""Those that such predictions suffice for."""

OOD = "OOD study of 5,000 stored rows, all detectors"
CORRUPTION = "corruption study of 1,000 photos in 76 cells, from the store"
FLOORS = {OOD: "at most 1.1", CORRUPTION: "no aim: the numbers, intervals and checks are beyond it"}
BEFORE = {
    OOD: "7.7 CPU-s with one BLAS thread and 12 to 13 with two, before",
    CORRUPTION: "1.1 to 1.7 CPU-s before",
}


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

    def bare_arithmetic(self) -> None:
        """What the numbers of the OOD study cannot do without, on rows in memory and with nothing around it."""
        training, *asked = self.answers.values()
        known, weights = training.need_features(), self.head.weights
        for scatter in (_scatter(known), _scatter(known), _scatter(known)):  # ViM's, Mahalanobis' and its background
            axes = eigh(scatter, driver="evd", check_finite=False)[1].astype(np.float32)
        squared = weights.astype(float) @ weights.astype(float).T  # the head's origin
        np.linalg.eigvalsh(squared), cho_factor(squared)
        outside = np.ascontiguousarray(axes[:, :768])
        np.square(known @ outside).sum(axis=1)
        scored = [self._bare_scores(some.need_features(), some.need_logits(), known, axes, outside) for some in asked]
        inside, beyond = (some.need_features() for some in asked)
        root = np.linalg.qr(inside.astype(float) - inside.mean(axis=0), mode="r")  # Fréchet distance
        np.linalg.svd(root @ (beyond - beyond.mean(axis=0, dtype=float)).T, compute_uv=False)
        (beyond @ inside.T).argmax(axis=1)  # nearest ID image
        right = np.arange(len(inside)) % 5 > 0
        for name in range(DETECTORS):
            ids, others = (scores[name % len(scores)] for scores in scored)
            for goal in ((ids, others), (ids[right], np.concatenate([ids[~right], others]))):
                _bare_numbers(*goal)

    def _bare_scores(
        self, features: Features, logits: Logits, known: Features, axes: Features, outside: Features
    ) -> list[NDArray[np.floating]]:
        weights, scores = self.head.weights.T, list[NDArray[np.floating]]()
        powers = np.exp(logits.astype(float))
        shares = powers / powers.sum(axis=1, keepdims=True)
        scores += [shares.max(axis=1), -np.log(powers.sum(axis=1)), -(shares * np.log(shares)).sum(axis=1)]
        least = np.partition(shares, -100, axis=1)[:, -100:]
        scores.append(((least * (1 - least)) ** 0.1).sum(axis=1))
        scores.append((shares @ shares[np.arange(CLASSES) % len(shares)].T).max(axis=1))  # KL matching
        cuts = np.partition(features, (832, 1088, 1152), axis=1)
        for cut in (cuts[:, [832]], cuts[:, [1088]], cuts[:, [1152]], 1.0, 2.0, 3.0):  # ASH, SCALE, ReAct, DICE
            scores.append(np.log(np.exp((np.where(features >= cut, features, 0) @ weights).astype(float)).sum(axis=1)))
        scores.append((features @ weights).max(axis=1))  # cosine
        points = features @ axes
        scores.append((points @ axes[:, :CLASSES]).max(axis=1))  # class centres
        scores.append(np.square(features @ axes).sum(axis=1))  # background
        scores.append(np.square(features @ outside).sum(axis=1))  # ViM
        near = features @ known.T
        near.partition(len(known) - 1000, axis=1)
        scores.append(near[:, len(known) - 1000])
        wide = logits.astype(float)
        for rank in range(10):  # OpenMax: ten class means an image
            apart = wide - wide[np.arange(len(wide)) - rank - 1]
            scores.append(np.sqrt(np.einsum("ij,ij->i", apart, apart)) + np.einsum("ij,ij->i", wide, apart))
        return scores

    def read_cells(self) -> None:
        """The files of the corrupted runs, as they are on disk, with the ids and digests of their rows."""
        for run in (self.store.run(self.model.ref, condition) for condition in self.corruption.conditions()):
            for path in run.folder.glob("*.safetensors"):
                with safe_open(path, framework="numpy") as file:
                    told = file.metadata()
                    json.loads(told["ids"]), json.loads(told["digests"])
                    (file.get_tensor("top5_classes")[:, 0] == np.arange(CELL_IMAGES)).mean()

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


def _scatter(rows: Features) -> NDArray[np.float64]:
    apart = rows - rows.mean(axis=0, dtype=float)
    return np.asarray(apart.T @ apart)


def _bare_numbers(ids: NDArray[np.floating], others: NDArray[np.floating]) -> None:
    """One sort, and AUROC, AUPR of both sides and the area of selective prediction without each of sixty blocks."""
    order = np.argsort(np.concatenate([ids, others]))
    is_other = (order >= len(ids)).astype(np.int64)
    kept = np.broadcast_to(is_other, (60, len(order))) * 1
    found = np.cumsum(kept, axis=1)
    share = found / np.arange(1, len(order) + 1)
    (kept * share).sum(axis=1), ((1 - kept) * share).sum(axis=1), share.mean(axis=1)


def _digest(key: str) -> str:
    return digest_of(key.encode())


def timed(title: str, study: Callable[[], object], floor: str, bare: Callable[[], object], rows: int) -> dict[str, float]:
    rounds = int(os.environ.get("ROUNDS", "5"))
    contestants = {floor: Contestant(bare, rows), title: Contestant(study, rows)}
    ratios = cpu_race(contestants, "row", rounds=rounds)
    figure(title, ratios[title], beside=floor, aim=FLOORS[title], noise=ratios[AGAIN.format(floor)])
    started = cpu_seconds()
    study()
    figure(title, cpu_seconds() - started, beside=BEFORE[title], aim="a third", unit="CPU-s")
    return ratios


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        of_ood, of_cells = world.measure(world.ood), world.measure(world.corruption)
        print(f"OOD: {len(of_ood.measurements):,} numbers; corruption: {len(of_cells.measurements):,} numbers")
        rows = sum(OOD_IMAGES.values())
        figures = {
            "OOD": timed(
                OOD, lambda: world.measure(world.ood), "bare calls of NumPy and SciPy", world.bare_arithmetic, rows
            ),
            "corruption": timed(
                CORRUPTION,
                lambda: world.measure(world.corruption),
                "files of all runs read",
                world.read_cells,
                CELL_IMAGES * 76,
            ),
        }
    save("study_speed", figures)


if __name__ == "__main__":
    main()
