"""All pm-k analyses of 45 models on 1,109 anchors with 21 frames each, beside a plain loop for pm-10 accuracy.

    python benchmarks/pm_k_speed.py

Aims: every analysis for every k in less than a second of CPU; the whole study, with its intervals by resampling and its
filmstrips, in less than three. The loop follows the
definition, for k = 10 only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from harness import Contestant, cpu_race, save
from shiftproof.metrics import (
    clopper_pearson,
    conditional_robustness,
    effective_robustness,
    errors_by_offset,
    hardest_frames,
    per_class_accuracy,
    pm_k_correct,
    pm_k_sweep,
)
from shiftproof.studies.temporal.study import TemporalStudy
from shiftproof.types import Classes, DatasetRef, Fact, ModelRef, Predictions, Top5

ANCHORS, REACH, MODELS, CLASSES = 1109, 10, 45, 30

OFFSETS = np.tile(np.arange(-REACH, REACH + 1), ANCHORS)
GROUPS = np.repeat([f"val/ILSVRC2015_val_{number:08}/000042.JPEG" for number in range(ANCHORS)], 2 * REACH + 1)


def made_up_answers() -> np.ndarray:
    """Answers to frames of which some are hard and some clips are harder, (models, frames)."""
    generator = np.random.default_rng(0)
    skill, clip = generator.normal(1.5, 0.5, (MODELS, 1)), np.repeat(generator.normal(size=ANCHORS), 2 * REACH + 1)
    return skill - clip + generator.normal(scale=0.5, size=(MODELS, len(OFFSETS))) > 0


CORRECT = made_up_answers()
LABELS = np.repeat(np.random.default_rng(1).integers(CLASSES, size=ANCHORS), 2 * REACH + 1)
IDS = tuple(f"{group}/{offset}" for group, offset in zip(GROUPS, OFFSETS, strict=True))
NAMED = Classes(tuple(map(str, range(CLASSES))))
FACTS: dict[str, tuple[Fact, ...]] = {
    "anchor": tuple(GROUPS.tolist()),
    "offset": tuple(OFFSETS.tolist()),
    "frame_type": tuple("IPB"[number % 3] for number in range(len(OFFSETS))),
}
LOG_TOTAL = np.full(len(OFFSETS), 3.1)


def by_loop() -> list[float]:
    sets: dict[str, list[int]] = {}
    for row, group in enumerate(GROUPS):
        sets.setdefault(group, []).append(row)
    return [sum(all(correct[row] for row in rows) for rows in sets.values()) / len(sets) for correct in CORRECT]


def sweep() -> list[float]:
    return list(pm_k_sweep(CORRECT, OFFSETS, GROUPS).accuracy[:, -1])


def everything() -> None:
    tally = pm_k_sweep(CORRECT, OFFSETS, GROUPS)
    clopper_pearson(*tally)
    pm_k_sweep(CORRECT, OFFSETS, GROUPS, include_anchor=False)
    answers = pm_k_correct(CORRECT, OFFSETS, GROUPS, k=REACH)
    for right in answers.right:
        per_class_accuracy(LABELS[answers.anchors], right, classes=CLASSES)
    clopper_pearson(*conditional_robustness(CORRECT, OFFSETS, GROUPS))
    errors_by_offset(CORRECT, OFFSETS)
    rows = hardest_frames(CORRECT, OFFSETS, GROUPS, k=REACH)
    CORRECT[:, rows].mean(axis=1)
    original, perturbed = tally.accuracy[:, 0], tally.accuracy[:, -1]
    for model in zip(original, perturbed, strict=True):
        effective_robustness(*model, original, perturbed)
        effective_robustness(*model, original, perturbed, axes="probit")


def answers_of(correct: np.ndarray) -> Predictions:
    """What a store would give for one model."""
    top5 = Top5(np.where(correct, LABELS, (LABELS + 1) % CLASSES)[:, None], np.full((len(LABELS), 1), 3.0), LOG_TOTAL)
    return Predictions(IDS, LABELS[:, None], "logits", top5, NAMED, facts=FACTS)


MODEL_REFS = [ModelRef(f"model {number}", str(number)) for number in range(MODELS)]
ANSWERS = {ref: answers_of(correct) for ref, correct in zip(MODEL_REFS, CORRECT, strict=True)}


def study() -> None:
    list(TemporalStudy(MODEL_REFS, DatasetRef("frames", "frames")).measure(lambda run: ANSWERS[run.model]))


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    assert sweep() == by_loop()
    contestants = {"pm-10 by a loop": by_loop, "pm-0 to pm-10": sweep, "every analysis": everything}
    multiples = cpu_race({name: Contestant(work, 1) for name, work in contestants.items()}, "call")
    seconds = {"every analysis": cpu_seconds(everything), "the study": cpu_seconds(study)}
    for name, taken in seconds.items():
        print(f"\n{name} of {MODELS} models on {len(OFFSETS):,} frames: {taken:.2f} s of CPU")
    save("pm_k_speed", {"multiples of the loop": multiples, "CPU seconds": seconds})


if __name__ == "__main__":
    main()
