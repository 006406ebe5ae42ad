"""The detection threshold of one OOD detector: how it is chosen, and what to expect of it."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.likelihood import split_half
from shiftproof.metrics.thresholds import cheapest_point, operating_point
from shiftproof.ood import ReadyDetector, needs_training
from shiftproof.studies import evidence
from shiftproof.studies.base import model_refs, settle
from shiftproof.studies.ood.goals import Goal, no_failure_detection
from shiftproof.studies.ood.scores import Judged, Scored, percent
from shiftproof.studies.ood.study import OODStudy
from shiftproof.types import (
    About,
    Classifier,
    Clusters,
    Condition,
    Dataset,
    DatasetRef,
    Fact,
    Finding,
    Keep,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    OODScores,
    Reading,
    Run,
    Skipped,
    Study,
    joined_clusters,
)

FP_COST, FN_COST, OOD_SHARE = "cost of a false positive", "cost of a false negative", "OOD share"
"""Conventions of a cost."""


@dataclass(frozen=True)
class ThresholdChoice:
    """One of three ways to choose a threshold, and the costs of errors.

    `ood_share` is the share of positives among future images; None: as among those that the threshold is chosen on.
    """

    false_alarms: float | None = None  # maximum false-positive rate
    rejected: float | None = None  # minimum true-positive rate
    cheapest: bool = False
    false_alarm_cost: float = 1.0
    miss_cost: float = 1.0
    ood_share: float | None = None

    def __post_init__(self) -> None:
        ways = (self.false_alarms is not None, self.rejected is not None, self.cheapest)
        if sum(ways) != 1:
            raise BadInput(
                "a threshold is chosen for a maximum false-positive rate (--false-alarms), a minimum true-positive rate "
                f"(--found) or the lowest expected cost (--cheapest): one of the three, got {sum(ways) or 'none'}"
            )
        self.pick(np.zeros(1), np.ones(1), self.ood_share)  # shares and costs out of range are told now

    def __str__(self) -> str:
        """The way in words.

        >>> str(ThresholdChoice(false_alarms=0.05)), str(ThresholdChoice(rejected=0.75)), str(ThresholdChoice(cheapest=True))
        ('FPR at most 5 %', 'TPR at least 75 %', 'lowest cost')
        """
        if self.false_alarms is not None:
            return f"FPR at most {percent(self.false_alarms)}"
        return "lowest cost" if self.rejected is None else f"TPR at least {percent(self.rejected)}"

    def pick(self, negatives: OODScores, positives: OODScores, ood_share: float | None) -> float:
        """The score from which on images are flagged; infinity where it is best to flag none."""
        point = (
            partial(cheapest_point, negatives, positives)
            if self.cheapest
            else partial(operating_point, negatives, positives, false_alarms=self.false_alarms, rejected=self.rejected)
        )
        return point(false_alarm_cost=self.false_alarm_cost, miss_cost=self.miss_cost, ood_share=ood_share).threshold

    def cost(self, false_alarm_rate: float, found_rate: float, ood_share: float) -> float:
        """Expected cost per image.

        >>> ThresholdChoice(cheapest=True, miss_cost=10).cost(0.05, 0.8, 0.01)  # .99 * .05, and .01 * .2 misses
        0.0695
        """
        alarms = (1 - ood_share) * self.false_alarm_cost * false_alarm_rate
        return alarms + ood_share * self.miss_cost * (1 - found_rate)

    def costs(self, ood_share: float) -> dict[str, str]:
        """Conventions of a cost.

        >>> ThresholdChoice(cheapest=True, miss_cost=10).costs(0.01)
        {'cost of a false positive': '1.0', 'cost of a false negative': '10', 'OOD share': '0.01'}
        """
        known = {FP_COST: self.false_alarm_cost, FN_COST: self.miss_cost, OOD_SHARE: ood_share}
        return {name: repr(value) for name, value in known.items()}


Thresholds: TypeAlias = tuple[float, float]
"""For images of the first half, and for those of the second."""


@dataclass(frozen=True)
class Group:
    """Images that are all negatives, or all positives."""

    scores: OODScores
    first_half: NDArray[np.bool_]  # (images,), by their ids
    clusters: Clusters

    @classmethod
    def of(cls, parts: Sequence[tuple[Scored, NDArray[np.bool_]]], detector: str) -> Group:
        """Some rows of each set."""
        scores = [scored.scores[detector][rows] for scored, rows in parts]
        halves = [split_half(scored.clusters.keys)[rows] for scored, rows in parts]
        clusters = joined_clusters([scored.clusters.take(rows) for scored, rows in parts])
        return cls(np.concatenate([np.zeros(0), *scores]), np.concatenate([np.zeros(0, bool), *halves]), clusters)

    def __len__(self) -> int:
        return len(self.scores)

    def half(self, first: bool) -> OODScores:
        """The scores of one half."""
        return np.asarray(self.scores[self.first_half == first])

    def flagged(self, metric: str, by: Thresholds, about: About, convention: Mapping[str, str]) -> Measurement:
        """Share of the images that reach their threshold."""
        reached = self.scores >= np.where(self.first_half, *by)
        return evidence.Subject(about, convention, self.clusters).share(metric, reached)


@dataclass(frozen=True)
class ThresholdSides:
    """Negatives (ID or correct) and positives (OOD or misclassified) of a threshold."""

    negatives: Group
    positives: Group

    @classmethod
    def of(cls, id_sets: Sequence[Scored], ood_set: Sequence[Scored], *, detector: str, goal: Goal) -> ThresholdSides:
        """ID against OOD images; or correct predictions against misclassifications and new classes."""
        everyone = {one.name: np.ones(len(one), bool) for one in (*id_sets, *ood_set)}
        negatives = [(one, one.correct if goal == "failure" else everyone[one.name]) for one in id_sets]
        mistakes = [(one, one.wrong) for one in id_sets] if goal == "failure" else []
        positives = [*mistakes, *((one, everyone[one.name]) for one in ood_set)]
        return cls(Group.of(negatives, detector), Group.of(positives, detector))

    def __len__(self) -> int:
        return len(self.negatives) + len(self.positives)

    @property
    def fewest_in_a_half(self) -> int:
        """How many images the smallest half of either side has."""
        return min(len(group.half(first)) for group in (self.negatives, self.positives) for first in (True, False))

    def told(self) -> str:
        """The images in words."""
        return f"{len(self.negatives):,} negatives and {len(self.positives):,} positives"

    def flagged(self, by: Thresholds, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """False-positive and true-positive rate, of those sides that there are."""
        for metric, group in (("operating_fpr", self.negatives), ("operating_tpr", self.positives)):
            if len(group):
                yield group.flagged(metric, by, about, convention)


WHERE_PICKED, HELD_OUT = "where picked", "held out"
JUDGED = {
    WHERE_PICKED: "on the images the threshold was chosen on, which is optimistic",
    HELD_OUT: "each image by a threshold chosen on the other half of the images, split by id",
}
"""How a threshold is evaluated, in short and in words."""

EXACT = "exact parameters"
"""Convention under which the detector's parameters stand as JSON, for `ExportedThreshold`."""

AT_LEAST = 10
"""Negatives, and positives, that either half needs before a threshold is chosen on it."""


@dataclass(frozen=True)
class OperatingPointStudy(Study):
    """A detector's threshold with its expected false-positive rate, true-positive rate and cost.

    It is chosen on the ID dataset and all OOD datasets together. At the goal "failure" correct predictions are the
    negatives; misclassifications and new classes are the positives. Datasets and `training` are those of the OOD study.
    """

    models: Sequence[ModelRef | Classifier]
    dataset: DatasetRef | Dataset
    detector: str
    choice: ThresholdChoice
    id_datasets: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    shifted: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    conditions: Sequence[Condition] = ()
    ood_datasets: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    training: DatasetRef | Dataset | None = None
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)  # by detector
    goal: Goal = "new-class"
    keep: Keep = "features"

    def __post_init__(self) -> None:
        asked = self._ood_study
        settle(
            self,
            models=asked.models,
            dataset=asked.dataset,
            id_datasets=asked.id_datasets,
            shifted=asked.shifted,
            conditions=asked.conditions,
            ood_datasets=asked.ood_datasets,
            training=asked.training,
        )
        if needs_training(self.detector) and self.training is None:
            raise BadInput(f"{self.detector} learns from training images, and none were given (--training)")
        if self.goal == "new-class" and not self.ood_datasets:
            raise BadInput("a threshold for new classes is chosen on OOD images (--ood)")

    def runs(self) -> list[Run]:
        """Every model on every set, and on the training images."""
        return self._ood_study.runs()

    def reading(self, run: Run) -> Reading | None:
        """As the OOD study reads it."""
        return self._ood_study.reading(run)

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._ood_study.seen_twice(load)
        for model in model_refs(self.models):
            judged = yield from self.judged(model, load)
            if judged is not None and self.detector in judged.detectors:
                yield from self.findings(judged)

    def judged(self, model: ModelRef, load: LoadPredictions) -> Generator[Note, None, Judged | None]:
        """One model's images as the detector scores them."""
        return self._ood_study.judged(model, load)

    def id_runs(self, model: ModelRef) -> dict[str, Run]:
        """The images of the classes that the model knows, by the names that they have in findings, shifted ones last."""
        return {one.name: one.run(model) for one in self._ood_study.variants if one.role != "ood"}

    @cached_property
    def _ood_study(self) -> OODStudy:
        """The study that asks everything of the same images: it knows which runs that takes."""
        return OODStudy(
            self.models,
            self.dataset,
            id_datasets=self.id_datasets,
            shifted=self.shifted,
            conditions=self.conditions,
            ood_datasets=self.ood_datasets,
            training=self.training,
            detectors=[self.detector],
            preset=self.preset,
            parameters=self.parameters,
            baseline=self.detector,
        )

    def findings(self, judged: Judged) -> Iterator[Measurement | Skipped]:
        """The threshold, then its rates: on all the images that it was chosen on, and on each dataset."""
        sides = self.sides(judged)
        if not (len(sides.negatives) and len(sides.positives)):
            yield from no_failure_detection(judged) if self.goal == "failure" else [Skipped("there are no OOD images")]
            return
        share = len(sides.positives) / len(sides) if self.choice.ood_share is None else self.choice.ood_share
        threshold = self.choice.pick(sides.negatives.scores, sides.positives.scores, share)
        about = {**judged.about, "goal": self.goal, "ood_detector": self.detector, "chosen": str(self.choice)}
        convention = judged.convention(judged.id_set, self.detector)
        picked = {"chosen on": sides.told(), **_exactly(judged.detectors[self.detector])}
        yield Measurement("operating_threshold", threshold, about, len(sides), {**convention, **picked})
        thresholds = {WHERE_PICKED: (threshold, threshold)}
        if sides.fewest_in_a_half >= AT_LEAST:
            thresholds[HELD_OUT] = self._exchanged(sides, share)
        else:
            yield Skipped(
                f"{judged.id_set.name}: the threshold is evaluated only on the images it was chosen on; for others, either "
                f"half needs {AT_LEAST} negatives and {AT_LEAST} positives"
            )
        for how, by in thresholds.items():
            where, beside = {**about, "judged": how}, {**convention, "judged": JUDGED[how]}
            alarms, found = sides.flagged(by, where, beside)
            yield from (alarms, found)
            cost = self.choice.cost(alarms.value, found.value, share)
            yield Measurement("operating_cost", cost, where, len(sides), {**beside, **self.choice.costs(share)})
            for name, one in self._by_set(judged):
                yield from one.flagged(by, {**where, "set": name}, beside)

    def _exchanged(self, sides: ThresholdSides, share: float) -> Thresholds:
        """For either half the threshold that is chosen on the other."""
        first, second = (
            self.choice.pick(sides.negatives.half(first), sides.positives.half(first), share) for first in (True, False)
        )
        return second, first

    def sides(self, judged: Judged) -> ThresholdSides:
        """The images that the threshold is chosen on."""
        return self._sides([judged.id_set], judged.ood)

    def _sides(self, id_sets: Sequence[Scored], ood_set: Sequence[Scored]) -> ThresholdSides:
        return ThresholdSides.of(id_sets, ood_set, detector=self.detector, goal=self.goal)

    def _by_set(self, judged: Judged) -> Iterator[tuple[str, ThresholdSides]]:
        yield from ((one.name, self._sides([one], [])) for one in judged.id_sets)
        yield from ((one.name, self._sides([], [one])) for one in judged.ood)


def _exactly(detector: ReadyDetector) -> dict[str, str]:
    """Every parameter to the last digit, as JSON; infinities as text."""
    known = detector.parameters
    endless = {name: str(value) for name, value in known.items() if isinstance(value, float) and not math.isfinite(value)}
    return {EXACT: json.dumps({**known, **endless})}
