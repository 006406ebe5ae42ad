"""What was found of the OOD detectors of one model on one dataset: which is ahead, which to draw, published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from shiftproof.catalog import OOD_DETECTORS
from shiftproof.ood import title_of
from shiftproof.reference import load_table
from shiftproof.reports.page import model_of, models_of, named
from shiftproof.studies.evidence import FALSE_ALARMS
from shiftproof.studies.ood.scores import ALL_OOD, MISTAKES_ALONE, ODIN_EPS
from shiftproof.types import About, Finding, Measurement

BEST, ALIKE = "★", "≈"
"""Marks of the best detector, and of all that are not significantly worse."""


class Case(NamedTuple):
    """One task of every detector: a goal, its ID and its OOD images."""

    goal: str
    id: str
    ood: str


@dataclass(frozen=True)
class Standing:
    """The AUROC of all detectors in one case, the highest first.

    `alike` are the detectors that are not significantly worse than the first, itself included; empty where none were tested.
    """

    aurocs: Sequence[Measurement]
    alike: frozenset[str]

    @property
    def best(self) -> Measurement:
        return self.aurocs[0]

    @property
    def stands_out(self) -> bool:
        """Whether the first is significantly better than every other one."""
        return len(self.alike) == 1

    def of(self, detector: str) -> Measurement | None:
        return next((one for one in self.aurocs if detector_of(one) == detector), None)

    def mark(self, detector: str) -> str:
        """The mark of a detector, if it is the best or not significantly worse."""
        if detector not in self.alike:
            return ""
        return BEST if self.stands_out else ALIKE


def standings(findings: Iterable[Finding]) -> dict[Case, Standing]:
    """The standing of one model's detectors in every case, in the order the cases first come."""
    findings = list(findings)
    aurocs: dict[Case, list[Measurement]] = {}
    for one in named(findings, "auroc"):
        if math.isfinite(one.value):
            aurocs.setdefault(case_of(one.about), []).append(one)
    chances: dict[Case, dict[tuple[str, str], float]] = {}
    for one in named(findings, "auroc_difference_p"):
        pair = detector_of(one), str(one.about.get("versus", ""))
        chances.setdefault(case_of(one.about), {})[pair] = one.value
    return {case: _standing(found, chances.get(case, {})) for case, found in aurocs.items()}


def _standing(found: Sequence[Measurement], chances: Mapping[tuple[str, str], float]) -> Standing:
    ordered = sorted(found, key=lambda one: -one.value)
    best, *others = (detector_of(one) for one in ordered)
    known = {other: chances.get((other, best), chances.get((best, other))) for other in others}
    if not others or None in known.values():
        return Standing(ordered, frozenset())
    close = {other for other, chance in known.items() if chance is not None and not chance < FALSE_ALARMS}
    return Standing(ordered, frozenset({best, *close}))


def case_of(about: About) -> Case:
    return Case(*(str(about.get(key, "")) for key in Case._fields))


def detector_of(finding: Finding) -> str:
    return str(finding.about.get("ood_detector", ""))


NEW_CLASS, FAILURE = "new-class", "failure"
GOALS = {NEW_CLASS: "New-class detection", FAILURE: "Failure detection"}
"""Titles of the goals."""
BASELINE = "msp"
CHANCE = 0.5
"""AUROC at chance."""
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
        """Every detector once, by its AUROC for new classes, highest first."""
        known = [case for goal in GOALS if (case := self.main_case(goal)) in self.standings]
        ordered = [detector_of(one) for case in known for one in self.standings[case].aurocs]
        return list(dict.fromkeys([*ordered, *filter(None, map(detector_of, self.findings))]))

    @cached_property
    def id_sets(self) -> list[str]:
        """The unchanged images first, then others of the same classes."""
        found = list(dict.fromkeys(case.id for case in self.standings))
        return [*filter(self.dataset.__eq__, found), *filter(self.dataset.__ne__, found)]

    @cached_property
    def styles(self) -> list[str]:
        """The shifted ones among them: those that were held against the unchanged images."""
        shifts = {str(one.about.get("shift", "")) for one in named(self.findings, "shift_auroc")}
        return [id_set for id_set in self.id_sets[1:] if id_set in shifts]

    @cached_property
    def dataset(self) -> str:
        return next((str(one.about["dataset"]) for one in self.findings if "dataset" in one.about), "")

    @cached_property
    def ood_sets(self) -> list[str]:
        """The OOD sets, all of them together first where there are several."""
        told = [str(one.about["ood"]) for one in self.findings if "ood" in one.about]
        found = [name for name in dict.fromkeys(told) if name != MISTAKES_ALONE]
        return [*filter(ALL_OOD.__eq__, found), *filter(ALL_OOD.__ne__, found)]

    @cached_property
    def ood(self) -> str:
        """All OOD images together, which most charts are of; misclassifications where there are none."""
        return next(iter(self.ood_sets), MISTAKES_ALONE)

    @cached_property
    def baseline(self) -> str:
        """The detector that others are compared with."""
        compared = [*named(self.findings, "rank_shift"), *named(self.findings, "auroc_difference")]
        rivals = [str(one.about["versus"]) for one in compared if "versus" in one.about]
        return rivals[0] if rivals else BASELINE

    def main_case(self, goal: str) -> Case:
        """Clean ID images against all OOD images."""
        return Case(goal, next(iter(self.id_sets), self.dataset), self.ood)

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


def written(detector: str) -> str:
    """A detector's name as papers write it; ODIN with perturbed inputs is one that the study itself adds.

    >>> written("vim"), written("odin_eps"), written("our_own")
    ('ViM', 'ODIN-eps', 'our_own')
    """
    return "ODIN-eps" if detector == ODIN_EPS else title_of(detector)


IMAGENET_OOD = {
    "in_1k__ood": "ImageNet, ImageNet-OOD",
    "in_1k__openimage_o": "ImageNet, OpenImage-O",
    "in_c__ood": "ImageNet-C, ImageNet-OOD",
    "in_r__ood": "ImageNet-R, ImageNet-OOD",
    "in_sketch__ood": "ImageNet-Sketch, ImageNet-OOD",
}
RESNET_50 = {"imagenet_ood": "ImageNet, ImageNet-OOD", "openimage_o": "ImageNet, OpenImage-O"}
"""Columns of the tables, and what they are of."""
DISCARDED = {"imagenet": "ImageNet", "imagenet_c": "ImageNet-C", "imagenet_r": "ImageNet-R"}
SOURCE = "Yang et al. 2024"


def published_aurocs(goal: str) -> dict[str, dict[str, float]]:
    """AUROC by detector, then by what it is of; with a ResNet-50 where nothing wider was published."""
    rows = [row for row in load_table("imagenet_ood_auroc") if row["goal"] == goal]
    more = [row for row in load_table("imagenet_ood_resnet50_auroc") if row["goal"] == goal]
    alone = {method: _shares(row, RESNET_50) for row in more if (method := row["method"])}
    return _by_detector({**alone, **{row["method"]: _shares(row, IMAGENET_OOD) for row in rows}})


def published_discarded() -> dict[str, dict[str, float]]:
    """Share of correct predictions discarded at 75 % rejected, by detector, then by set."""
    return _by_detector({row["method"]: _shares(row, DISCARDED) for row in load_table("imagenet_ood_discarded_at_75")})


def published_parts() -> dict[str, tuple[float, float]]:
    """AUROC of correct predictions and of misclassifications against new classes, by detector."""
    rows = load_table("imagenet_ood_decomposition")
    found = {row["method"]: (float(row["correct_id_vs_ood"]) / 100, float(row["incorrect_id_vs_ood"]) / 100) for row in rows}
    return _by_detector(found)


def _shares(row: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, float]:
    return {title: float(row[column]) / 100 for column, title in columns.items() if row[column]}


Published = TypeVar("Published")


def _by_detector(found: Mapping[str, Published]) -> dict[str, Published]:
    return {name: found[method] for name in OOD_DETECTORS if (method := title_of(name)) in found}
