"""A world of drawn networks and images, known and novel, for OOD studies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from shiftproof.types import CLEAN, Condition, DatasetRef, Finding, Head, Measurement, ModelRef, Predictions, Run, Top5

TOY, OTHER = ModelRef("toy", "fingerprint of toy"), ModelRef("other", "fingerprint of other")
PHOTOS, SKETCHES, HATS, SHOES, TRAINING = (
    DatasetRef(name, f"fingerprint of {name}") for name in ("photos", "sketches", "hats", "shoes", "training")
)
FOG = Condition("fog", 3, edition="imagenet-224")
FEATURES, CLASSES = 12, 4


class Network:
    """A drawn network and drawn images: those of a known class lie about its centre, others about the origin."""

    def __init__(self, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.head = Head(generator.normal(size=(CLASSES, FEATURES)), generator.normal(size=CLASSES) / 10)

    def answers(self, name: str, images: int, *, far: float, labelled: bool = True, blur: float = 1.0) -> Predictions:
        generator = np.random.default_rng(sum(map(ord, name)))
        labels = generator.integers(CLASSES, size=images)
        features = far * self.head.weights[labels] / 3 + blur * generator.normal(size=(images, FEATURES))
        logits = features @ self.head.weights.T + self.head.bias
        order = np.argsort(-logits, axis=1)
        return Predictions(
            ids=tuple(f"{name}/{place:03}.png" for place in range(images)),
            labels=(labels if labelled else np.full(images, -1))[:, None],
            gives="logits",
            top5=Top5(order, np.take_along_axis(logits, order, 1), np.logaddexp.reduce(logits, axis=1)),
            logits=logits,
            features=features,
            head=self.head,
            convention={"classes": f"all {CLASSES}"},
        )


class World:
    """What every model says of every set, and a memory of what was asked."""

    def __init__(self) -> None:
        self.networks: dict[str, Network] = {}
        self.asked: list[Run] = []

    def __call__(self, run: Run) -> Predictions:
        self.asked.append(run)
        seed = sum(map(ord, run.model.fingerprint))
        network = self.networks.setdefault(run.model.name, Network(seed))
        name = run.dataset.name if run.condition == CLEAN else str(run.condition)
        known: dict[str, dict[str, Any]] = {
            "photos": {"images": 150, "far": 1.0},
            "more photos": {"images": 80, "far": 0.9},
            "fog 3": {"images": 150, "far": 0.5},
            "sketches": {"images": 90, "far": 0.7},
            "hats": {"images": 60, "far": 0.0, "labelled": False},
            "shoes": {"images": 45, "far": 0.2, "labelled": False, "blur": 1.5},
            "training": {"images": 320, "far": 1.0},
        }
        return network.answers("photos" if run.condition != CLEAN else name, **known[name])


ALL_SETS: dict[str, Any] = {
    "shifted": {"sketches": SKETCHES},
    "conditions": [FOG],
    "ood_datasets": {"hats": HATS, "shoes": SHOES},
    "training": TRAINING,
}


def numbers(findings: Iterable[Finding], metric: str, **about: str | int) -> list[Measurement]:
    return [
        found
        for found in findings
        if isinstance(found, Measurement) and found.metric == metric and about.items() <= found.about.items()
    ]


def value(findings: Iterable[Finding], metric: str, **about: str | int) -> float:
    (found,) = numbers(findings, metric, **about)
    return found.value
