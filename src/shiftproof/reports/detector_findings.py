"""What was found of the detectors of one model on one image set, and which of them are worth drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftproof.reports.page import model_of, models_of, named
from shiftproof.reports.standings import Case, Standing, detector_of, standings
from shiftproof.studies.novelty_variants import ALL_OUTSIDE, MISTAKES_ALONE
from shiftproof.types import Finding, Measurement

NEW_CLASS, FAILURE = "new-class", "failure"
GOALS = {NEW_CLASS: "New classes", FAILURE: "Failures"}
"""Goals, and what is to be found."""
BASELINE = "msp"
BLIND = 0.5
"""AUROC of a detector that tosses coins."""
MOST_DRAWN = 5
"""Detectors drawn as lines, the baseline not counted; more could not be told apart."""


@dataclass(frozen=True)
class DetectorFindings:
    """One model's findings; what a chart leaves out stands in the tables."""

    model: str
    findings: Sequence[Finding]

    @cached_property
    def standings(self) -> dict[Case, Standing]:
        return standings(self.findings)

    @cached_property
    def detectors(self) -> list[str]:
        """Every detector once, the best at finding new classes first."""
        known = [case for goal in GOALS if (case := self.main_case(goal)) in self.standings]
        ordered = [detector_of(one) for case in known for one in self.standings[case].aurocs]
        return list(dict.fromkeys([*ordered, *filter(None, map(detector_of, self.findings))]))

    @cached_property
    def insides(self) -> list[str]:
        """The unchanged images first, then others of the same classes."""
        found = list(dict.fromkeys(case.inside for case in self.standings))
        return [*filter(self.image_set.__eq__, found), *filter(self.image_set.__ne__, found)]

    @cached_property
    def styles(self) -> list[str]:
        """The shifted ones among them: those that were held against the unchanged images."""
        shifts = {str(one.about.get("shift", "")) for one in named(self.findings, "shift_auroc")}
        return [inside for inside in self.insides[1:] if inside in shifts]

    @cached_property
    def image_set(self) -> str:
        return next((str(one.about["image_set"]) for one in self.findings if "image_set" in one.about), "")

    @cached_property
    def outsides(self) -> list[str]:
        """The outside sets, all of them together first where there are several."""
        told = [str(one.about["outside"]) for one in self.findings if "outside" in one.about]
        found = [name for name in dict.fromkeys(told) if name != MISTAKES_ALONE]
        return [*filter(ALL_OUTSIDE.__eq__, found), *filter(ALL_OUTSIDE.__ne__, found)]

    @cached_property
    def outside(self) -> str:
        """Everything foreign together, which most charts are of; mistakes where nothing foreign was shown."""
        return next(iter(self.outsides), MISTAKES_ALONE)

    @cached_property
    def baseline(self) -> str:
        """The detector that others are compared with."""
        compared = [*named(self.findings, "rank_shift"), *named(self.findings, "auroc_difference")]
        rivals = [str(one.about["versus"]) for one in compared if "versus" in one.about]
        return rivals[0] if rivals else BASELINE

    def main_case(self, goal: str) -> Case:
        """Unchanged images against everything foreign."""
        return Case(goal, next(iter(self.insides), self.image_set), self.outside)

    def main(self, goal: str) -> Standing | None:
        return self.standings.get(self.main_case(goal))

    def standing(self, goal: str) -> Standing:
        """The main one, where it is known to be there."""
        return self.standings[self.main_case(goal)]

    def few(self, goal: str = NEW_CLASS, *, most: int = MOST_DRAWN) -> list[str]:
        """The best detectors, and the baseline in its place among them."""
        standing = self.main(goal)
        ordered = [detector_of(one) for one in standing.aurocs] if standing else self.detectors
        return [one for place, one in enumerate(ordered) if place < most or one == self.baseline]

    def two(self) -> list[str]:
        """The best detector and the baseline, or the next best where these are the same."""
        others = [one for one in self.few() if one != self.baseline]
        return [*others[:1], *(one for one in self.few() if one == self.baseline)] or self.detectors[:2]

    def numbers(self, metric: str, **about: str) -> list[Measurement]:
        """The measurements of a metric that are about all of this, in the order of the detectors."""
        found = [one for one in named(self.findings, metric) if about.items() <= one.about.items()]
        return sorted(found, key=lambda one: self.detectors.index(detector_of(one)) if detector_of(one) else -1)


def by_model(findings: Sequence[Finding]) -> list[DetectorFindings]:
    """The findings of each model; what is about all of them together is in none."""
    return [
        DetectorFindings(model, [one for one in findings if model_of(one) == model])
        for model in filter(None, models_of(findings))
    ]
