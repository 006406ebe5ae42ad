"""What a guard costs an image: CPU time of `guard.check` on one core, alone and in batches, beside a bare softmax in numpy.

    OMP_NUM_THREADS=1 python benchmarks/guard_speed.py [figures.json]

Aim: at most 1 ms an image. 1,000 classes and 1,280 features as of EfficientNet-Lite0, made-up numbers; KNN with a bank of
2,000. The bare softmax, in double precision as calibration needs it, is what nobody can do without; again as control.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness import save
from shiftproof.metrics.accuracy import to_top5
from shiftproof.ood import ready
from shiftproof.ood.kept import keep_detector
from shiftproof.studies.guard.guard import Calibration, Guard, GuardedModel, GuardRecord, Point
from shiftproof.studies.guard.making import needed_of
from shiftproof.studies.threshold.expected import Expected, Share
from shiftproof.types import Fact, Head, Predictions

CLASSES, FEATURES, TRAINING = 1000, 1280, 6000
ROUNDS, TIMES = 5, 20
DETECTORS = (
    "msp",
    "energy",
    "gen",
    "react",
    "ash_s",
    "dice",
    "she",
    "kl_matching",
    "mahalanobis",
    "relative_mahalanobis",
    "vim",
    "knn",
    "openmax",
)


def made_up(images: int, head: Head, seed: int) -> Predictions:
    generator = np.random.default_rng(seed)
    labels = np.arange(images) % CLASSES
    features = np.maximum(generator.normal(size=(images, FEATURES)) + 0.2 * head.weights[labels], 0).astype(np.float32)
    logits = features @ head.weights.T + head.bias
    ids = tuple(map(str, range(images)))
    return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"), None, logits, features, head)


def guard_of(name: str, training: Predictions) -> Guard:
    parameters: dict[str, dict[str, Fact]] = {
        "knn": {"bank": 2000},
        "openmax": {"mean_of": "all"},
        "vim": {"dimension": 512},
    }
    detector = ready(name, training, parameters=parameters.get(name))
    features, head = needed_of(detector, training)
    share = Share(0.05, None, None, 1)
    record = GuardRecord(
        GuardedModel("made-up", "0", "logits", CLASSES, FEATURES if features else 0, "none"),
        keep_detector(detector).plain,
        "new-class",
        1.0,
        1.0,
        0.5,
        (Point("by hand", 0.0, Expected("", share, share, 0.0, {})),),
        Calibration(1.3, 1, 0.0, 0.0),
        0.9,
        0.1,
        (),
        (),
        (),
        "",
        {},
    )
    return Guard(record, detector, np.zeros(1), head)


def milliseconds(work: Callable[[], object], images: int) -> float:
    """Of CPU, an image; the least of some rounds, since only others can make one longer."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(TIMES):
            work()
        found.append((time.process_time() - start) / TIMES / images * 1000)
    return min(found)


def softmax(logits: NDArray[np.floating]) -> object:
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main() -> None:
    generator = np.random.default_rng(0)
    head = Head(generator.normal(size=(CLASSES, FEATURES)).astype(np.float32) / 30, np.zeros(CLASSES, np.float32))
    training, images = made_up(TRAINING, head, 1), made_up(32, head, 2)
    logits, features = images.need_logits(), images.need_features()
    figures: dict[str, dict[str, float]] = {}
    for name in ("softmax", *DETECTORS, "softmax again"):
        if name.startswith("softmax"):
            found = [milliseconds(partial(softmax, logits[:size]), size) for size in (1, 32)]
        else:
            check = guard_of(name, training).check
            found = [milliseconds(partial(check, logits[:size], features[:size]), size) for size in (1, 32)]
        figures[name] = {"alone": found[0], "of 32": found[1]}
        print(f"| {name} | {found[0]:.3f} | {found[1]:.3f} |", flush=True)
    save("guard_speed", figures)


if __name__ == "__main__":
    main()
