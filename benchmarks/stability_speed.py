"""Flip probability and top-5 distance of 10,000 sequences of 31 frames, from stored top-5.

    python benchmarks/stability_speed.py

Aim: under 2 s of CPU, the study with its 1000 resamples included. Beside it the walk over frames one at a time, on a part of
the sequences, and the study of ten times as many frames: all ten perturbations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import race, save
from shiftproof.corruptions import IMAGENET_P
from shiftproof.metrics import flip_probability, sequence_top5_distance
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.types import DatasetRef, ModelRef, Predictions, Top5

SEQUENCES, FRAMES, CLASSES = 10_000, 31, 1000
PART = 100  # sequences of the slow walk
Classes = NDArray[np.int32]


def wandering(generator: np.random.Generator, sequences: int) -> Classes:
    """Lists of five classes of which two neighbours swap, or one leaves, now and then, (sequences, frames, 5)."""
    lists = generator.permuted(np.broadcast_to(np.arange(CLASSES, dtype=np.int32), (sequences, CLASSES)), axis=1)[:, :6]
    frames = [lists]
    rows = np.arange(sequences)
    for _ in range(FRAMES - 1):
        after = frames[-1].copy()
        place = generator.integers(5, size=sequences)
        moved = generator.random(sequences) < 0.4
        after[rows[moved], place[moved]] = frames[-1][rows[moved], place[moved] + 1]
        after[rows[moved], place[moved] + 1] = frames[-1][rows[moved], place[moved]]
        frames.append(after)
    return np.ascontiguousarray(np.stack(frames, axis=1)[:, :, :5])


def by_metrics(top5: Classes) -> tuple[float, float]:
    return flip_probability(top5[:, :, 0]), float(sequence_top5_distance(top5).mean())


def frame_by_frame(top5: Classes) -> tuple[float, float]:
    flips, distances = [], []
    for sequence in top5.tolist():
        pairs = list(pairwise(sequence))
        flips.append(np.mean([before[0] != after[0] for before, after in pairs]))
        each = [sum(abs(i - (after.index(c) if c in after else 5)) for i, c in enumerate(before)) for before, after in pairs]
        distances.append(np.mean(each))
    return float(np.mean(flips)), float(np.mean(distances))


def predictions_of(tables: dict[str, Classes]) -> Predictions:
    """The rows of all sequences as they come out of the store."""
    classes = np.concatenate([table.reshape(-1, 5) for table in tables.values()])
    rows = [(name, f"{s:05d}.JPEG", f) for name, table in tables.items() for s in range(len(table)) for f in range(FRAMES)]
    names, sequences, frames = zip(*rows, strict=True)
    facts = {"perturbation": names, "sequence": sequences, "frame": frames, "level": (1,) * len(rows)}
    return Predictions(
        ids=tuple(map("/".join, zip(sequences, names, map(str, frames), strict=True))),
        labels=np.full((len(rows), 1), -1),
        gives="logits",
        top5=Top5(classes, np.zeros(classes.shape, np.float32), np.zeros(len(rows))),
        facts=facts,
    )


def by_study(answers: Predictions) -> int:
    study = PerturbationStudy([ModelRef("model", "1")], DatasetRef("frames", "2"))
    return len(list(study.measure(lambda _: answers)))


def cpu_seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    generator = np.random.default_rng(0)
    top5 = wandering(generator, SEQUENCES)
    assert np.allclose(by_metrics(top5[:PART]), frame_by_frame(top5[:PART]))
    ratios = race(
        {
            "by the metrics": lambda: [by_metrics(top5[:PART]) for _ in range(10)],
            "frame by frame": lambda: [frame_by_frame(top5[:PART]) for _ in range(10)],
        },
        work=10 * PART * FRAMES,
    )
    figures: dict[str, object] = {name: ratio.median for name, ratio in ratios.items()}
    one = predictions_of({"tilt": top5})
    ten = predictions_of({name: wandering(generator, SEQUENCES) for name in IMAGENET_P})
    for what, work in [
        ("metrics, one perturbation", lambda: by_metrics(top5)),
        ("study, one perturbation at three difficulties", lambda: by_study(one)),
        ("study, all ten perturbations", lambda: by_study(ten)),
    ]:
        seconds = [cpu_seconds(work) for _ in range(3)]
        figures[what] = min(seconds)
        print(
            f"{what}: {min(seconds):.2f} to {max(seconds):.2f} s of CPU for {SEQUENCES:,} sequences of {FRAMES} frames each"
        )
    save("stability_speed", figures)


if __name__ == "__main__":
    main()
