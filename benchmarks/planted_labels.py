"""Planted label errors among the first that are shown: the table of docs/labels.md.

    SHIFTPROOF_TEST_DATA=... python benchmarks/planted_labels.py [--seeds 10] [--heads 5] [--store runs]

5 % of the labels are replaced by other classes at random. On 1,000 photos of ImageNet, one of each class, EfficientNet-Lite0
judges; on 2,000 images of CIFAR-10 heads do, cross-validated on its features. Beside our order are those of cleanlab's other
scores, on the same probabilities. What is in the store is not predicted again; CPU time is of a search in stored rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cleanlab.rank import get_label_quality_scores  # type: ignore[import-untyped]

import shiftproof as sp
from shiftproof.datasets.subsets import View
from shiftproof.studies.labels.study import Judged, LabelStudy
from shiftproof.studies.measure import loader_of
from shiftproof.types import Classifier, Dataset, Run

DATA = Path(os.environ["SHIFTPROOF_TEST_DATA"])
WRONG, SHOWN = 0.05, 0.1
SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def planted(images: Dataset, seed: int) -> tuple[View, set[str]]:
    """The images with wrong labels, and which these are."""
    generator, samples = np.random.default_rng(seed), list(images.samples)
    classes = len(images.classes or ())
    rows = generator.choice(len(samples), round(WRONG * len(samples)), replace=False).tolist()
    for row in rows:
        label = (samples[row].labels[0] + int(generator.integers(1, classes))) % classes
        samples[row] = dataclasses.replace(samples[row], labels=(label,))
    return View(images, images.classes, samples, f"planted {seed}"), {samples[row].id for row in rows}


def cifar(folder: Path, each: int) -> Dataset:
    """So many test images of each class."""
    taken: Counter[str] = Counter()
    with zipfile.ZipFile(DATA / "cifar10-test-10000.zip") as archive:
        for name in sorted(archive.namelist()):
            parts = name.split("/")
            if len(parts) == 3 and parts[2] and taken[parts[1]] < each:
                taken[parts[1]] += 1
                archive.extract(name, folder)
    return sp.open_dataset(folder / "test")


def spent() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def tried(name: str, model: Classifier, images: Dataset, seeds: int, store: sp.Store, *, head: bool) -> None:
    sp.predict(model, images, store=store, keep="features")
    shares: dict[str, list[float]] = {}
    started = spent()
    for seed in range(seeds):
        view, wrong = planted(images, seed)
        study = LabelStudy([model], view, head=head)
        found = study.judged(Run(model.ref, view.ref), loader_of(study, store=store, datasets=[view]))
        if not isinstance(found, Judged):
            raise SystemExit(found)

        def share(order: np.ndarray, found: Judged = found, wrong: set[str] = wrong) -> float:
            first = order[: round(SHOWN * len(found.labels))].tolist()
            return len({found.predictions.ids[place] for place in first} & wrong) / len(wrong)

        shares.setdefault("ours", []).append(share(found.ranked.order))
        for score in SCORES:
            theirs = get_label_quality_scores(found.labels[:, 0], found.probabilities, method=score)
            shares.setdefault(f"cleanlab, {score}", []).append(share(np.argsort(theirs, kind="stable")))
    seconds = (spent() - started) / seeds
    for way, several in shares.items():
        told = f"{100 * np.mean(several):.1f} % | {100 * min(several):.0f} %"
        print(f"| {name} | {way} | {told} | {seeds} | {seconds:.1f} s |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--heads", type=int, default=5, help="seeds where heads are fitted")
    parser.add_argument("--store", default="runs")
    options = parser.parse_args()
    model, store = sp.load_model("lite:0"), sp.Store(options.store)
    print("| images | order | found, mean | least | seeds | CPU a search |\n|---|---|---|---|---|---|")
    jobs: list[tuple[str, Callable[[Path], Dataset], int, bool]] = [
        ("1,000 photos", lambda _: sp.open_dataset(DATA / "ilsvrc-sample-1000"), options.seeds, False),
        ("2,000 of CIFAR-10, heads", lambda folder: cifar(folder, 200), options.heads, True),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, opened, seeds, head in jobs:
            tried(name, model, opened(Path(folder)), seeds, store, head=head)


if __name__ == "__main__":
    main()
