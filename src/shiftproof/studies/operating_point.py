"""Where to put the threshold of one detector, and what to expect of it there."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from shiftproof.detectors import ReadyDetector, needs_training
from shiftproof.errors import BadInput
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import image_set_ref, model_refs
from shiftproof.studies.flagging import Thresholds, ThresholdSides
from shiftproof.studies.novelty_goals import Goal, why_no_failure
from shiftproof.studies.novelty_scores import DetectorPanel, Judged, Scored
from shiftproof.studies.novelty_variants import Variant
from shiftproof.studies.out_of_distribution import OutOfDistributionStudy
from shiftproof.studies.telling import Load, TellingStudy, Told
from shiftproof.studies.threshold_choice import ThresholdChoice
from shiftproof.types import (
    Classifier,
    Condition,
    Fact,
    Finding,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Reading,
    Run,
)

WHERE_PICKED, HELD_OUT = "where picked", "held out"
JUDGED = {
    WHERE_PICKED: "by the threshold as it is, which flatters it on the images that it was picked on",
    HELD_OUT: "each image by a threshold picked on the other half of the images, which half by its id",
}
"""How a threshold is judged, in short and in words."""

AT_LEAST = 10
"""Images to let through, and images to flag, that either half needs before a threshold is picked on it."""


@dataclass(frozen=True)
class OperatingPointStudy(TellingStudy):
    """A detector's threshold, and the false alarms, the images found and the cost that are to be expected of it.

    It is picked on the inside set and all outside sets together. At the goal "failure" correct answers are let through, and
    wrong ones and new classes are to be flagged. The sets and `training` are those of the study of novelty.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    detector: str
    choice: ThresholdChoice
    more_inside: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    shifted: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    conditions: Sequence[Condition] = ()
    out_sets: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    training: ImageSetRef | ImageSet | None = None
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)  # by detector
    goal: Goal = "new-class"
    keep: Keep = "features"

    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        novelty = self._novelty
        for name in ("models", "image_set", "more_inside", "shifted", "conditions", "out_sets", "training"):
            object.__setattr__(self, name, getattr(novelty, name))
        if needs_training(self.detector) and self.training is None:
            raise BadInput(f"{self.detector} learns from training images, and none were given (--training)")
        if self.goal == "new-class" and not self.out_sets:
            raise BadInput("a threshold for new classes is picked on images of some (--out-images)")

    def runs(self) -> list[Run]:
        """Every model on every set, and on the training images."""
        return self._novelty.runs()

    def reading(self, run: Run) -> Reading | None:
        """As the study of novelty reads it."""
        return self._novelty.reading(run)

    def findings(self, load: Load, told: Told) -> Iterator[Finding]:
        told.warnings.extend(self._novelty.seen_twice(load))
        for model in model_refs(self.models):
            judged = self._judged(model, load, told)
            if judged is not None:
                yield from self._findings(judged, told)

    @cached_property
    def _novelty(self) -> OutOfDistributionStudy:
        """The study that asks everything of the same images: it knows which runs that takes."""
        return OutOfDistributionStudy(
            self.models,
            self.image_set,
            more_inside=self.more_inside,
            shifted=self.shifted,
            conditions=self.conditions,
            out_sets=self.out_sets,
            training=self.training,
            detectors=[self.detector],
            preset=self.preset,
            parameters=self.parameters,
            baseline=self.detector,
        )

    def _judged(self, model: ModelRef, load: Load, told: Told) -> Judged | None:
        """The images as the detector sees them; None where it cannot."""
        training = None
        if self.training is not None:
            training = getattr(load, "training", load)(Run(model, image_set_ref(self.training)))
        panel = DetectorPanel([self.detector], training, preset=self.preset, parameters=self.parameters)
        scored: list[tuple[Variant, Scored]] = []
        for variant in self._novelty.variants:
            predictions = load(variant.run(model))
            nothing = evidence.nothing_read(variant.run(model), predictions)
            if nothing:
                told.left_out.append(nothing)
                continue
            scored.append((variant, Scored.of(variant, model, predictions, panel.scores(predictions))))
        told.leave_out(panel.left_out, of=model.name)
        told.pass_on(panel.ready, of=model.name)
        if panel.left_out or not scored or scored[0][0] != self._novelty.variants[0]:
            return None
        about = {"model": model.name, "image_set": image_set_ref(self.image_set).name}
        return Judged.of(about, scored, panel.ready, baseline=self.detector)

    def _findings(self, judged: Judged, told: Told) -> Iterator[Measurement]:
        """The threshold, then what it does: to all the images that it was picked on, and to each set."""
        sides = self._sides([judged.inside], judged.outside)
        if not (len(sides.familiar) and len(sides.foreign)):
            told.left_out.extend(why_no_failure(judged) if self.goal == "failure" else ["there are no outside images"])
            return
        share = len(sides.foreign) / len(sides) if self.choice.outside_share is None else self.choice.outside_share
        threshold = self.choice.pick(sides.familiar.scores, sides.foreign.scores, share)
        about = {**judged.about, "goal": self.goal, "detector": self.detector, "chosen": str(self.choice)}
        convention = judged.convention(judged.inside, self.detector)
        picked = {"picked on": sides.told(), **_exactly(judged.detectors[self.detector])}
        yield Measurement("operating_threshold", threshold, about, len(sides), {**convention, **picked})
        thresholds = {WHERE_PICKED: (threshold, threshold)}
        if sides.fewest_in_a_half >= AT_LEAST:
            thresholds[HELD_OUT] = self._exchanged(sides, share)
        else:
            told.left_out.append(
                f"{judged.inside.name}: the threshold is judged only where it was picked; to judge it on other images, "
                f"either half needs {AT_LEAST} to let through and {AT_LEAST} to flag"
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
        """For either half the threshold that is picked on the other."""
        first, second = (
            self.choice.pick(sides.familiar.half(first), sides.foreign.half(first), share) for first in (True, False)
        )
        return second, first

    def _sides(self, insides: Sequence[Scored], outside: Sequence[Scored]) -> ThresholdSides:
        return ThresholdSides.of(insides, outside, detector=self.detector, goal=self.goal)

    def _by_set(self, judged: Judged) -> Iterator[tuple[str, ThresholdSides]]:
        yield from ((one.name, self._sides([one], [])) for one in judged.insides)
        yield from ((one.name, self._sides([], [one])) for one in judged.outside)


def _exactly(detector: ReadyDetector) -> dict[str, str]:
    """Every parameter by the name that --set knows it by, to the last digit."""
    known = {f"{detector.name}.{name}": value for name, value in detector.parameters.items()}
    endless = {name: str(value) for name, value in known.items() if isinstance(value, float) and not math.isfinite(value)}
    return {name: json.dumps(value) for name, value in {**known, **endless}.items()}
