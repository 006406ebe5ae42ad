"""How often a verdict shows a weakness where there is none: at most 5 % of simulated models may.

    python benchmarks/false_findings.py [--simulations 500] [--seed 0]

Predictions are drawn with every rate exactly at its standard: classes and groups 10 points below the accuracy on all images,
confidence 5 points above accuracy, corruptions that take 5 points for each step of severity, frames that lose 5 points
against their anchors, predictions that flip on a tenth of the frames, an AUROC of 70 %. The studies measure them as they
measure a store, and `sp.profile` judges the results. Images are independent, or four of a patient share a third of
their variance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import shiftproof as sp
from shiftproof.metrics.accuracy import to_top5
from shiftproof.types import (
    Caution,
    Classes,
    Clusters,
    Condition,
    DatasetRef,
    Fact,
    Finding,
    ModelRef,
    Predictions,
    Run,
    Skipped,
    Study,
)

MODEL, PHOTOS, FRAMES = ModelRef("model", "m"), DatasetRef("photos", "p"), DatasetRef("frames", "f")
SEQUENCES, NEW = DatasetRef("sequences", "s"), DatasetRef("new", "n")
CLASSES = Classes(tuple(f"class {place}" for place in range(10)))
CORRUPTIONS = ("fog", "contrast", "gaussian_noise", "zoom_blur")
ACCURACY, BEHIND, STEP, OVER, LOSS, FLIPS, AUROC = 0.75, 0.10, 0.05, 0.05, 0.05, 0.10, 0.70
SHARED = 1 / 3
"""Of the variance: among images of a patient, frames of a clip, and versions of one photo."""

Numbers = NDArray[np.floating]


@dataclass(frozen=True)
class World:
    """Predictions of one model, drawn once."""

    generator: np.random.Generator
    images: int
    clustered: bool

    @property
    def groups(self) -> Clusters | None:
        """Four images of a patient, of different classes and sites."""
        return (
            Clusters("patient", tuple(str(row % (self.images // 4)) for row in range(self.images)))
            if self.clustered
            else None
        )

    def normal(self, shared: Numbers | None = None) -> Numbers:
        """A standard normal number for each image, part of it in common with its other versions and its cluster."""
        own = self.generator.normal(size=self.images)
        return own if shared is None else np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * own

    def shared(self) -> Numbers:
        """What the versions of an image have in common, and those of one patient among each other."""
        if not self.clustered:
            return self.generator.normal(size=self.images)
        of_patient = np.tile(self.generator.normal(size=self.images // 4), 4)
        return np.asarray(np.sqrt(SHARED) * of_patient + np.sqrt(1 - SHARED) * self.generator.normal(size=self.images))

    def findings(self) -> Iterator[Finding]:
        labels = np.arange(self.images) % len(CLASSES)
        sites = (np.arange(self.images) // len(CLASSES)) % 2
        rate = ACCURACY + np.where(labels % 2, BEHIND, -BEHIND) + np.where(sites, BEHIND, -BEHIND)
        shared = self.shared()
        facts = {"site": tuple("north" if site else "south" for site in sites)}

        def photos(run: Run) -> Predictions:
            lost = STEP * run.condition.severity
            correct = ndtr(self.normal(shared)) < rate - lost
            sure = np.clip(ACCURACY - lost + OVER + self.generator.uniform(-0.1, 0.1, self.images), 0.15, 0.99)
            return predictions(labels, correct, sure, facts, self.groups)

        kept: dict[Condition, Predictions] = {}

        def load(run: Run) -> Predictions:
            return kept.setdefault(run.condition, kept.get(run.condition) or photos(run))

        yield from measured(sp.AccuracyStudy([MODEL], PHOTOS), load)
        yield from measured(sp.CalibrationStudy([MODEL], PHOTOS), load)
        corruption = sp.CorruptionStudy([MODEL], PHOTOS, corruptions=CORRUPTIONS, edition="imagenet-224")
        yield from measured(corruption, load)
        yield from measured(sp.TemporalStudy([MODEL], FRAMES, largest_k=3), lambda _: self.frames())
        yield from measured(sp.PerturbationStudy([MODEL], SEQUENCES), lambda _: self.sequences())
        ood = sp.OODStudy([MODEL], PHOTOS, ood_datasets={"new": NEW}, detectors=["msp"], keep="logits")
        yield from measured(ood, self.new_classes(labels))

    def frames(self) -> Predictions:
        """Two anchors a clip, and three frames before and after each."""
        clips = self.images // 8
        anchors = np.repeat(np.arange(2 * clips), 7)
        offsets = np.tile(np.arange(-3, 4), 2 * clips)
        of_clip = np.sqrt(SHARED) * self.generator.normal(size=clips)[anchors // 2]
        drawn = of_clip + np.sqrt(1 - SHARED) * self.generator.normal(size=len(anchors))
        correct = ndtr(drawn) < np.where(offsets == 0, ACCURACY, ACCURACY - LOSS)
        facts = {
            "anchor": tuple(f"{one}/0" for one in anchors),
            "offset": tuple(offsets.tolist()),
            "clip": tuple(f"clip {one // 2}" for one in anchors),
        }
        labels = anchors % len(CLASSES)
        return predictions(
            labels,
            correct,
            np.full(len(anchors), 0.8),
            facts,
            ids=[f"{a}/{o}" for a, o in zip(anchors, offsets, strict=True)],
        )

    def sequences(self) -> Predictions:
        """Predictions that flip on a tenth of the frames, in some sequences more often than in others."""
        count, frames = self.images // 4, 31
        rates = self.generator.beta(2, 18, size=count)  # FLIPS on average
        rows, facts = [], {name: list[Fact]() for name in ("sequence", "frame", "perturbation")}
        for name in ("tilt", "scale"):
            flips = self.generator.uniform(size=(count, frames)) < rates[:, None]
            flips[:, 0] = False
            rows.append(np.cumsum(flips, axis=1) % 2)
            for sequence in range(count):
                facts["sequence"] += [f"photo {sequence}"] * frames
                facts["frame"] += list(range(frames))
                facts["perturbation"] += [name] * frames
        predicted = np.concatenate(rows).ravel()
        every = {name: tuple(values) for name, values in facts.items()}
        return predictions(predicted, np.ones(len(predicted), bool), np.full(len(predicted), 0.8), every)

    def new_classes(self, labels: NDArray[np.integer]) -> Callable[[Run], Predictions]:
        """Images of new classes of somewhat lower confidence, and failures too."""
        apart = np.sqrt(2) * ndtri(AUROC)
        correct = self.generator.uniform(size=self.images) < ACCURACY
        scores = self.generator.normal(size=self.images) - np.where(correct, apart, 0.0)

        def load(run: Run) -> Predictions:
            if run.dataset == NEW:
                # against all ID images, a mixture, the same AUROC
                found = self.generator.normal(size=self.images) + new_class_shift()
                return predictions(labels, np.ones(self.images, bool), squeezed(found), {}, labelled=False)
            return predictions(labels, correct, squeezed(scores), {})

        return load


def new_class_shift() -> float:
    """How far OOD scores of new classes lie above those of failures, for the AUROC against all ID images together."""
    few, many = -5.0, 5.0
    apart = np.sqrt(2) * ndtri(AUROC)
    for _ in range(50):
        middle = (few + many) / 2
        at = ACCURACY * ndtr((middle + apart) / np.sqrt(2)) + (1 - ACCURACY) * ndtr(middle / np.sqrt(2))
        few, many = (middle, many) if at < AUROC else (few, middle)
    return few


def squeezed(scores: Numbers) -> Numbers:
    """Confidence that falls as the OOD score rises."""
    return np.asarray(0.2 + 0.75 * ndtr(-scores / 2))


def predictions(
    labels: NDArray[np.integer],
    correct: NDArray[np.bool_],
    sure: Numbers,
    facts: Mapping[str, tuple[Fact, ...]],
    grouped: Clusters | None = None,
    *,
    ids: list[str] | None = None,
    labelled: bool = True,
) -> Predictions:
    count = len(labels)
    predicted = np.where(correct, labels, (labels + 1) % len(CLASSES))
    chances = np.repeat(((1 - sure) / (len(CLASSES) - 1))[:, None], len(CLASSES), axis=1)
    chances[np.arange(count), predicted] = sure
    logits = np.log(chances)
    names = tuple(ids or (f"{row:05d}.png" for row in range(count)))
    told = np.where(labelled, labels, -1)[:, None]
    return Predictions(names, told, "logits", to_top5(logits, "logits"), CLASSES, logits, facts=facts, grouped=grouped)


def measured(study: Study, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
    return (found for found in study.measure(load) if not isinstance(found, (Skipped, Caution)))


def simulate(simulations: int, *, images: int, clustered: bool, seed: int = 0) -> tuple[int, dict[str, int], int]:
    """How many simulated models have any weakness, how many of each kind, and how many candidates each has."""
    shown, kinds, candidates = 0, dict[str, int](), 0
    for simulation in range(simulations):
        world = World(np.random.default_rng([seed, simulation, images, clustered]), images, clustered)
        (verdict,) = sp.profile(sp.Results(tuple(world.findings())))
        shown, candidates = shown + bool(verdict.weaknesses), verdict.candidates
        for one in verdict.weaknesses:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
    return shown, kinds, candidates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for images in (100, 400):
        for clustered in (False, True):
            shown, kinds, candidates = simulate(options.simulations, images=images, clustered=clustered, seed=options.seed)
            told = ", ".join(f"{kind} {number}" for kind, number in kinds.items()) or "none"
            cases = "in clusters of 4" if clustered else "independent"
            share = 100 * shown / options.simulations
            print(f"{images} images, {cases}, {candidates} candidates: {shown} ({share:.1f} %) with a finding; {told}")


if __name__ == "__main__":
    main()
