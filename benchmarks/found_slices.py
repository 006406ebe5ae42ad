"""Slices that are found: none where there is none, and planted ones where there are. The tables of docs/slices.md.

    python benchmarks/found_slices.py [--runs 500] [--images 1000] [--only null,planted] [--photos DIR --store runs]

Images are drawn with facts, pixel facts, classes of ImageNet and features of which none has to do with whether a prediction
is right, alone and in clusters whose images share facts and errors; then a tenth of them, of one kind of slice each, loses
points of accuracy. `--photos` does the same with the facts, classes and features of real photos, of which the right ones are
drawn. CPU time is of one search.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import shiftproof as sp
from shiftproof.metrics import clopper_pearson
from shiftproof.reference import ilsvrc_classes
from shiftproof.studies.slices.search import branches
from shiftproof.studies.slices.study import Found, SliceStudy
from shiftproof.types import Classes, Clusters, DatasetRef, ModelRef, Predictions, Run, Top5

MODEL, DATASET = ModelRef("drawn", "0"), DatasetRef("drawn", "0")
CLASSES, ACCURACY, LOST = 60, 0.85, 0.3
FEATURES, KINDS = 64, 12
Members = NDArray[np.bool_]


def drawn(generator: np.random.Generator, images: int, *, clustered: bool) -> Predictions:
    """Images with facts, classes and features, all right; in clusters of 1 to 6 they share the facts and the class."""
    sizes = generator.integers(1, 7, images) if clustered else np.ones(images, int)
    cluster = np.repeat(np.arange(images), sizes)[:images]
    one = cluster if clustered else np.arange(images)
    known = ilsvrc_classes()
    places = np.arange(0, 1000, 1000 // CLASSES)[:CLASSES]
    classes = Classes(*(tuple(np.array(some)[places].tolist()) for some in (known.names, known.wnids)))
    labels = generator.integers(CLASSES, size=images)[one]
    kinds = generator.integers(KINDS, size=images)[one]
    centres = generator.normal(scale=2, size=(KINDS, FEATURES))
    facts = {
        "site": generator.choice(["pier", "dune", "mole", "quay"], size=images)[one].tolist(),
        "camera": generator.choice(["a", "b", "c"], size=images)[one].tolist(),
        "night": generator.choice([True, False], size=images)[one].tolist(),
        **{name: generator.normal(size=images)[one].tolist() for name in ("brightness", "contrast", "sharpness", "aspect")},
    }
    return Predictions(
        tuple(f"{place}.png" for place in range(images)),
        labels[:, None],
        "logits",
        Top5(labels[:, None], np.ones((images, 1)), np.ones(images)),
        classes,
        features=(centres[kinds] + generator.normal(size=(images, FEATURES))).astype(np.float32),
        facts=facts,
        grouped=Clusters("clip", tuple(map(str, cluster.tolist()))) if clustered else None,
    )


def with_errors(found: Predictions, right: NDArray[np.bool_]) -> Predictions:
    """The same, right where it is said."""
    truth = found.labels[:, 0]
    predicted = np.where(right, truth, (truth + 1) % len(found.classes or ()))
    return dataclasses.replace(found, top5=Top5(predicted[:, None], found.top5.scores[:, :1], found.top5.log_total))


def right_at(generator: np.random.Generator, found: Predictions, accuracy: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which images are right; those of one cluster are often right together."""
    numbers = found.clusters.numbers
    own = generator.random(len(found))
    if numbers is None:
        return own < accuracy
    shared = generator.random(int(numbers.max()) + 1)[numbers]
    return np.where(generator.random(len(found)) < 0.5, shared, own) < accuracy


def searched(found: Predictions) -> Found | str:
    return SliceStudy([MODEL], DATASET, keep="features").found(Run(MODEL, DATASET), lambda _: found)


def planted(found: Predictions, generator: np.random.Generator) -> Iterator[tuple[str, Members]]:
    """About a tenth of the images, by every kind of slice."""
    facts = {name: np.array(values) for name, values in found.facts.items()}
    numeric = [name for name, values in facts.items() if values.dtype.kind == "f"]
    name = numeric[int(generator.integers(len(numeric)))]
    yield "a number below its tenth part", facts[name] <= np.quantile(facts[name], 0.1)
    if "site" in facts:
        pair = (facts["site"] == generator.choice(["pier", "dune", "mole", "quay"])) & (
            facts["camera"] == generator.choice(["a", "b", "c"])
        )
        yield "a pair of facts", pair
    wnids = found.classes.wnids if found.classes else None
    if wnids:
        labels = found.labels[:, 0]
        shares = [(one, np.isin(labels, one.classes)) for one in branches(wnids, np.unique(labels).tolist())]
        fit = [members for _, members in shares if 0.07 <= members.mean() <= 0.13]
        if fit:
            yield "kinds of one noun", fit[int(generator.integers(len(fit)))]
    features = found.need_features()
    centre = features[int(generator.integers(len(features)))]
    apart = ((features - centre) ** 2).sum(axis=1)
    yield "neighbours by features", apart <= np.quantile(apart, 0.1)


def overlap(one: Members, other: Members) -> float:
    return float((one & other).sum() / max(1, (one | other).sum()))


def told(name: str, hits: int, runs: int, seconds: float) -> None:
    low, high = clopper_pearson(hits, runs)
    print(
        f"| {name} | {100 * hits / runs:.1f} % | {100 * low:.1f} to {100 * high:.1f} % | {runs} | {seconds / runs:.2f} s |",
        flush=True,
    )


def simulate(title: str, world: Callable[[np.random.Generator], Predictions], runs: int, only: str) -> None:
    if "null" in only:
        none, started = 0, time.process_time()
        for seed in range(runs):
            generator = np.random.default_rng(seed)
            found = world(generator)
            result = searched(with_errors(found, right_at(generator, found, np.full(len(found), ACCURACY))))
            none += isinstance(result, Found) and not result.slices
        told(f"{title}: no slice where there is none", none, runs, time.process_time() - started)
    if "planted" not in only:
        return
    hits: dict[str, list[bool]] = {}
    spent: dict[str, float] = {}
    for seed in range(max(1, runs // 5)):
        generator = np.random.default_rng(10_000 + seed)
        found = world(generator)
        for name, members in planted(found, generator):
            started = time.process_time()
            accuracy = np.where(members, ACCURACY - LOST, ACCURACY)
            result = searched(with_errors(found, right_at(generator, found, accuracy)))
            best = (
                max((overlap(one.members, members) for one in result.slices), default=0.0)
                if isinstance(result, Found)
                else 0
            )
            hits.setdefault(name, []).append(best >= 0.5)
            spent[name] = spent.get(name, 0.0) + time.process_time() - started
    for name, flags in hits.items():
        told(f"{title}: {name}, {100 * LOST:.0f} points worse, found", sum(flags), len(flags), spent[name])


def photos(place: str, store: str) -> Callable[[np.random.Generator], Predictions]:
    """Facts, classes and features of real photos."""
    from shiftproof.runs.image_facts import with_image_facts

    images = with_image_facts(sp.open_dataset(place), sp.Store(store))
    found = sp.predict(sp.load_model("lite:0"), images, store=store, keep="features")
    return lambda _: found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--only", default="null,planted")
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--store", default="runs")
    options = parser.parse_args()
    print("| images | share of runs | 95 % CI | runs | CPU a search |\n|---|---|---|---|---|")
    if options.photos:
        simulate("real photos", photos(str(options.photos), options.store), options.runs, options.only)
        return
    for clustered in (False, True):
        title = f"{options.images:,} drawn images{' in clusters' if clustered else ''}"
        simulate(title, partial(drawn, images=options.images, clustered=clustered), options.runs, options.only)


if __name__ == "__main__":
    main()
