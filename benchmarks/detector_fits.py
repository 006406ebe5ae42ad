"""Mahalanobis, ViM and nearest neighbours at the size of ImageNet: 2048 features, 1000 classes, up to 50,000 images.

    TRAINING="5000 20000 50000" python benchmarks/detector_fits.py

Aims: each fitted in less CPU time than pytorch-ood's at every number of training images. Few are the hardest: what does not
grow with them, as the singular values of the head, weighs most there. Mahalanobis scores at least 500 times as fast per
image as pytorch-ood's; nearest neighbours within 1.35 times the bare matrix product in numpy. Also scores of ViM, and
neighbours by pytorch-ood and faiss, with the most training images. CPU time per image on one thread of BLAS and torch, since
threads that wait for each other spin; interleaved, with an A/A control. pytorch-ood and faiss are skipped where they are not
installed. All of it takes some seven minutes of CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes without types

from harness import AGAIN, Contestant, cpu_race, figure, save
from peers import peer_detectors, tell_who_races
from shiftproof.metrics import auroc
from shiftproof.metrics.accuracy import to_top5
from shiftproof.ood import title_of
from shiftproof.ood.mahalanobis import fit_mahalanobis
from shiftproof.ood.nearest_neighbours import fit_knn, unit_length
from shiftproof.ood.vim import fit_vim
from shiftproof.types import Features, Head, Predictions

TRAINING_IMAGES = tuple(map(int, os.environ.get("TRAINING", "5000 20000 50000").split()))
IMAGES, FEATURES, CLASSES = 5_000, 2048, 1000
PEER_IMAGES = 64  # of pytorch-ood's Mahalanobis, which takes a second for a few
QUERIES = 1000


def network(generator: np.random.Generator) -> tuple[Head, Features]:
    """A head and what images of its classes look like to it, (classes, features)."""
    typical = np.maximum(generator.normal(0, 1, (CLASSES, FEATURES)), 0).astype(np.float32)
    weights = (0.02 * (typical - typical.mean(axis=0)) + 0.01 * generator.normal(size=typical.shape)).astype(np.float32)
    return Head(weights, 0.1 * generator.normal(size=CLASSES).astype(np.float32)), typical


def features_of(generator: np.random.Generator, centres: Features) -> Features:
    """Images about these centres; some directions of feature space vary a hundred times as much as others."""
    spreads = np.geomspace(1.0, 0.1, FEATURES, dtype=np.float32)
    noise = generator.standard_normal((len(centres), FEATURES), np.float32) * spreads
    return np.maximum(centres + noise, 0)


def predictions_of(features: Features, head: Head, labels: NDArray[np.integer] | None = None) -> Predictions:
    logits = features @ head.weights.T + head.bias
    ids = tuple(map(str, range(len(features))))
    given = np.full((len(ids), 1), -1) if labels is None else labels[:, None]
    return Predictions(ids, given, "logits", to_top5(logits, "logits"), logits=logits, features=features, head=head)


def fit_races(training: Predictions) -> dict[str, float]:
    """Every detector fitted, ours and theirs."""
    size = len(training)
    ours: dict[str, Callable[[Predictions], Any]] = {
        "mahalanobis": fit_mahalanobis,
        "vim": fit_vim,
        "knn": fit_knn,
    }
    races = {
        name: {f"{name} fit of {size:,}, shiftproof": Contestant(partial(fit, training), size)} for name, fit in ours.items()
    }
    if peer := peer_detectors():
        head = training.need_head()
        weights, bias = _tensors(head.weights, head.bias)
        features, labels = _tensors(training.need_features(), training.labels[:, 0])
        theirs: dict[str, Callable[[], Any]] = {
            "mahalanobis": lambda: peer.Mahalanobis(None),
            "vim": lambda: peer.ViM(None, d=1000, w=weights, b=bias),
            "knn": lambda: peer.KNN(None, k=50),
        }
        for name, made in theirs.items():
            fit = partial(lambda make: make().fit_features(features, labels), made)
            races[name][f"{name} fit of {size:,}, pytorch-ood"] = Contestant(fit, size)
    rounds = {"knn": 9}  # so short that fresh memory weighs
    timed = {
        name: cpu_race(race, "image", rounds=rounds.get(name, 5 if size < 10_000 else 3)) for name, race in races.items()
    }
    for name, found in timed.items():
        first = next(iter(found))
        if theirs_too := found.get(f"{name} fit of {size:,}, pytorch-ood"):
            work = f"fit of {title_of(name)}, {size:,} training images"
            figure(work, 1 / theirs_too, beside="pytorch-ood", aim="below 1", noise=found[AGAIN.format(first)])
    return {name: ratio for found in timed.values() for name, ratio in found.items()}


def mahalanobis_races(training: Predictions, asked: Predictions) -> dict[str, float]:
    fitted = fit_mahalanobis(training)
    print(f"mahalanobis: rank {fitted.whitening.rank}, whitened in {fitted.whitening.axes.dtype}")
    scores = {"mahalanobis scores, shiftproof": Contestant(lambda: fitted(asked), IMAGES)}
    if peer := peer_detectors():
        features, labels = _tensors(training.need_features(), training.labels[:, 0])
        theirs = peer.Mahalanobis(None).fit_features(features, labels)
        (some,) = _tensors(asked.need_features()[:PEER_IMAGES])
        # theirs leaves out the division by the number of images, and halves
        apart = np.abs(fitted(asked)[:PEER_IMAGES] / (2 * len(training) * theirs.predict_features(some).numpy()) - 1).max()
        print(f"mahalanobis: ours and theirs differ by at most {apart:.1e} of the score")
        scores["mahalanobis scores, pytorch-ood"] = Contestant(lambda: theirs.predict_features(some), PEER_IMAGES)
    return cpu_race(scores, "image", rounds=3)


def vim_races(training: Predictions, asked: Predictions, foreign: Predictions) -> dict[str, float]:
    fitted = fit_vim(training)
    scores = {"vim scores, shiftproof": Contestant(lambda: fitted(asked), IMAGES)}
    if peer := peer_detectors():
        weights, bias = _tensors(training.need_head().weights, training.need_head().bias)
        features, labels = _tensors(training.need_features(), training.labels[:, 0])
        theirs = peer.ViM(None, d=1000, w=weights, b=bias).fit_features(features, labels)
        inside, outside = _tensors(asked.need_features(), foreign.need_features())
        of_theirs = [theirs.predict_features(some).numpy() for some in (inside, outside)]
        apart = np.abs(fitted(asked) - of_theirs[0]).max() / np.ptp(of_theirs[0])
        aurocs = [auroc(fitted(asked), fitted(foreign)), auroc(*of_theirs)]
        print(
            f"vim: ours and theirs differ by at most {apart:.1e} of their range; AUROC {aurocs[0]:.6f} and {aurocs[1]:.6f}"
        )
        scores["vim scores, pytorch-ood"] = Contestant(lambda: theirs.predict_features(inside), IMAGES)
    return cpu_race(scores, "image", rounds=3)


def neighbour_races(training: Predictions, asked: Predictions) -> dict[str, float]:
    some = asked.take(np.arange(QUERIES))
    references, queries = (unit_length(one.need_features()).astype(np.float32) for one in (training, some))
    contestants = {"bare matrix product": Contestant(lambda: queries @ references.T, QUERIES)}
    fitted = {neighbours: fit_knn(training, neighbours=neighbours) for neighbours in (50, 1000)}
    for neighbours, knn in fitted.items():
        contestants[f"knn {neighbours}, shiftproof"] = Contestant(lambda knn=knn: knn(some), QUERIES)  # type: ignore[misc]
    in_file = fit_knn(training, neighbours=50, gigabytes=0)
    contestants["knn 50, shiftproof, from a file"] = Contestant(lambda: in_file(some), QUERIES)
    if peer := peer_detectors():
        features, labels, points = _tensors(training.need_features(), training.labels[:, 0], some.need_features())
        theirs = peer.KNN(None, k=50).fit_features(features, labels)
        apart = np.abs(fitted[50](some) / theirs.predict_features(points).numpy() - 1).max()
        print(f"knn: ours and pytorch-ood's differ by at most {apart:.1e} of the distance")
        contestants["knn 50, pytorch-ood"] = Contestant(lambda: theirs.predict_features(points), QUERIES)
    if find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatL2(FEATURES)
        index.add(references)
        for neighbours, knn in fitted.items():
            apart = np.abs(np.sqrt(index.search(queries, neighbours)[0][:, -1]) / knn(some) - 1).max()
            print(f"knn {neighbours}: ours and faiss's differ by at most {apart:.1e} of the distance")
            contestants[f"knn {neighbours}, faiss"] = Contestant(
                lambda neighbours=neighbours: index.search(queries, neighbours),  # type: ignore[misc]
                QUERIES,
            )
    return cpu_race(contestants, "image", rounds=3)


def _tensors(*arrays: NDArray[Any]) -> list[Any]:
    import torch

    return [torch.from_numpy(array) for array in arrays]


def main() -> None:
    tell_who_races()
    with threadpool_limits(1):  # torch's too, which is loaded by then
        races()


def races() -> None:
    generator = np.random.default_rng(0)
    head, typical = network(generator)
    figures: dict[str, float] = {}
    for size in TRAINING_IMAGES:
        labels = np.arange(size) % CLASSES
        training = predictions_of(features_of(generator, typical[labels]), head, labels)
        figures |= fit_races(training)
    labels = np.arange(IMAGES) % CLASSES
    asked = predictions_of(features_of(generator, typical[labels]), head)
    foreign = predictions_of(features_of(generator, typical[labels] * 0.7 + 0.1), head)
    figures |= mahalanobis_races(training, asked)
    figures |= vim_races(training, asked, foreign)
    figures |= neighbour_races(training, asked)
    save("detector_fits", figures)


if __name__ == "__main__":
    main()
