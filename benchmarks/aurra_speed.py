"""AURRA of a million predictions beside a plain argsort and cumulative sum, in which the order of ties is arbitrary.

    python benchmarks/aurra_speed.py

Aim: not slower than the plain version on any kind of score. Beside it a stable sort, which is reproducible, and the
confidence interval by resampling, in CPU seconds.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness import race, save
from shiftproof.metrics import aurra, aurra_bounds, aurra_interval

IMAGES = 1_000_000


def plain(confidence: NDArray[np.floating], correct: NDArray[np.bool_], kind: Literal["stable"] | None = None) -> float:
    order = np.argsort(confidence, kind=kind)[::-1]
    return float((np.cumsum(correct[order]) / np.arange(1, len(order) + 1)).mean())


def scores_of_every_kind() -> dict[str, NDArray[np.floating]]:
    generator = np.random.default_rng(0)
    confidence = generator.beta(3, 1, IMAGES)
    return {
        "confidence": confidence,
        "confidence in single precision": confidence.astype(np.float32),
        "confidence in three digits": np.round(confidence, 3),
        "scores of either sign": generator.normal(size=IMAGES),
        "scores of either sign in single precision": generator.normal(size=IMAGES).astype(np.float32),
    }


def main() -> None:
    correct = np.random.default_rng(1).random(IMAGES) < 0.76
    figures: dict[str, object] = {}
    for kind, scores in scores_of_every_kind().items():
        low, high = aurra_bounds(scores, correct)
        found = plain(scores, correct)
        assert low - 1e-9 <= found <= high + 1e-9
        print(f"\n{kind}: {aurra(scores, correct):.6f}, by the order of equals {low:.6f} to {high:.6f}; plain: {found:.6f}")
        contestants = {
            "plain argsort": partial(plain, scores, correct),
            "aurra": partial(aurra, scores, correct),
            "stable argsort": partial(plain, scores, correct, "stable"),
        }
        figures[kind] = {name: ratio._asdict() for name, ratio in race(contestants, rounds=9, work=IMAGES).items()}
    started = time.process_time()
    aurra_interval(scores_of_every_kind()["confidence"], correct)
    figures["interval, CPU seconds"] = time.process_time() - started
    print(f"\ninterval of {IMAGES:,} answers: {figures['interval, CPU seconds']:.2f} s of CPU")
    save("aurra_speed", figures)


if __name__ == "__main__":
    main()
