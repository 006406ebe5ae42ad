"""The two goals of an OOD detector: new-class detection and failure detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.delong import auroc_differences
from shiftproof.metrics.roc import Side, auroc, roc_curve, separation
from shiftproof.metrics.selective import (
    Confidence,
    augrc,
    aurc,
    coverage_at_risk,
    coverage_interval,
    e_aurc,
    risk_coverage,
    selection_intervals,
)
from shiftproof.metrics.two_sample import aupr_intervals, fpr_interval
from shiftproof.studies import evidence
from shiftproof.studies.ood.scores import MISTAKES_ALONE, Cases, Choices, Judged, Scored, percent
from shiftproof.types import About, Curve, Finding, Measurement, OODScores, Skipped, joined_clusters

Goal = Literal["new-class", "failure"]

POSITIVE: dict[Side, str] = {"in": "ID", "out": "OOD"}

MOST_POINTS = 200
"""Of a curve: more than a screen can show."""


@dataclass(frozen=True)
class Sides:
    """Negatives and positives of one goal, as every detector scores them."""

    goal: Goal
    id_set: Scored
    ood: str
    negatives: Mapping[str, OODScores]  # by detector
    positives: Mapping[str, OODScores]
    told: Mapping[str, str]
    cases: Cases

    @property
    def images(self) -> int:
        return sum(len(next(iter(side.values()))) for side in (self.negatives, self.positives))

    def about(self, detector: str) -> dict[str, str | int]:
        return {"goal": self.goal, "ood_detector": detector, "id": self.id_set.name, "ood": self.ood}


def goals_of(judged: Judged) -> Iterator[Sides]:
    """Both goals for every ID variant against every OOD set; without one, misclassifications are the only positives."""
    for id_set in judged.id_sets if judged.detectors else ():
        for ood_set in judged.ood_sets:
            yield new_class(id_set, ood_set)
        for other in judged.ood_sets or (None,):
            sides = failure(id_set, other)
            yield from [sides] if sides else []


def new_class(id_set: Scored, ood_set: Scored) -> Sides:
    """Every ID image against every OOD image."""
    told = {"positive": "OOD", "id": id_set.told(), "ood": ood_set.told()}
    cases = Cases.of(id_set.clusters, ood_set.clusters)
    return Sides("new-class", id_set, ood_set.name, id_set.scores, ood_set.scores, told, cases)


def failure(id_set: Scored, ood_set: Scored | None) -> Sides | None:
    """Correct predictions against misclassifications and OOD images, pooled as many as there are; None without either."""
    correct, wrong, new = int(id_set.correct.sum()), int(id_set.wrong.sum()), len(ood_set or ())
    if not correct or not wrong + new:
        return None
    positives = {
        name: scores[id_set.wrong] if ood_set is None else np.concatenate([scores[id_set.wrong], ood_set.scores[name]])
        for name, scores in id_set.scores.items()
    }
    parts = f" (failure: {wrong:,} wrong + {new:,} new)" if ood_set else ""
    told = {"positive": "OOD", "id": f"{correct:,} correct images", "ood": f"{wrong + new:,} images{parts}"}
    negatives = {name: scores[id_set.correct] for name, scores in id_set.scores.items()}
    beyond = [id_set.clusters.take(id_set.wrong), *([ood_set.clusters] if ood_set else [])]
    cases = Cases.of(id_set.clusters.take(id_set.correct), joined_clusters(beyond))
    return Sides("failure", id_set, ood_set.name if ood_set else MISTAKES_ALONE, negatives, positives, told, cases)


def no_failure_detection(judged: Judged) -> Iterator[Skipped]:
    """Where failures cannot be detected, and why."""
    for id_set in judged.id_sets:
        if not id_set.labelled.any():
            yield Skipped(f"{id_set.name}: failure detection needs labels, and no image has one")
        elif not id_set.correct.any():
            why = f"failure detection needs correct predictions, and {judged.about['model']} has none"
            yield Skipped(f"{id_set.name}: {why}")
        elif not id_set.wrong.any() and not judged.ood:
            why = f"failure detection needs misclassifications, and {judged.about['model']} has none"
            yield Skipped(f"{id_set.name}: {why}")


def goal_findings(judged: Judged, choices: Choices) -> Iterator[Finding]:
    """What is printed of every detector at every goal, how the detectors compare, and curves for the ID set itself."""
    for sides in goals_of(judged):
        for name in judged.detectors:
            about = {**judged.about, **sides.about(name)}
            convention = {**judged.convention(sides.id_set, name), **sides.told}
            yield from _separation(sides, name, about, convention, choices)
            if sides.goal == "failure":
                yield from _selection(sides, name, about, convention, risk=choices.risk)
        yield from _differences(sides, judged)
        if sides.id_set is judged.id_set and sides.ood in (MISTAKES_ALONE, *(one.name for one in judged.ood_sets[-1:])):
            yield from _curves(sides, judged)


def best_detector(sides: Sides) -> str:
    """The one of the highest AUROC; of equals, the first."""
    return max(sides.negatives, key=lambda name: auroc(sides.negatives[name], sides.positives[name]))


def _separation(
    sides: Sides, name: str, about: About, convention: Mapping[str, str], choices: Choices
) -> Iterator[Measurement]:
    negatives, positives = sides.negatives[name], sides.positives[name]
    tpr, area = choices.tpr, choices.area
    found = separation(negatives, positives, tpr=tpr, area=area)
    yield choices.auroc("auroc", negatives, positives, about, convention, sides.cases)
    told = {**convention, "area": area.replace("-", " ")}
    cases, clusters = sides.cases, sides.cases.by_side
    precision: list[tuple[str, float, Side]] = [("aupr_out", found.aupr_out, "out"), ("aupr_in", found.aupr_in, "in")]
    of_areas = aupr_intervals(negatives, positives, positives=("out", "in"), area=area, **clusters)
    for (metric, value, positive), ends in zip(precision, of_areas, strict=True):
        yield cases.number(metric, value, "jackknife", ends, about, {**told, "positive": POSITIVE[positive]})
    about, told = {**about, "tpr": percent(tpr)}, {**convention, "tpr": percent(tpr)}
    alarms: list[tuple[str, float, Side]] = [("fpr_at_tpr", found.fpr, "out"), ("fpr_in_at_tpr", found.fpr_in, "in")]
    for metric, value, positive in alarms:
        ends = fpr_interval(negatives, positives, tpr=tpr, positive=positive, **clusters)
        beside = {**told, "positive": POSITIVE[positive]}
        yield cases.number(metric, value, "of the threshold and of what it flags", ends, about, beside)


def _selection(
    sides: Sides, name: str, about: About, convention: Mapping[str, str], *, risk: float
) -> Iterator[Measurement]:
    sureness, correct = _answers(sides, name)
    cases, clusters = sides.cases, sides.cases.joint.numbers
    areas: list[tuple[str, Callable[[Confidence, NDArray[np.bool_]], float]]]
    areas = [("aurc", aurc), ("e_aurc", e_aurc), ("augrc", augrc)]
    for (metric, area), ends in zip(areas, selection_intervals(sureness, correct, clusters=clusters), strict=True):
        yield cases.number(metric, area(sureness, correct), "jackknife", ends, about, convention)
    answered, about = coverage_at_risk(sureness, correct, risk), {**about, "risk": percent(risk)}
    ends = coverage_interval(sureness, correct, risk, clusters=clusters)
    yield cases.number("coverage_at_risk", answered, "exact tests of the risk", ends, about, convention)


def _answers(sides: Sides, name: str) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """The confidence that a detector gives each prediction, and whether it is correct; of a new class none is."""
    negatives, positives = sides.negatives[name], sides.positives[name]
    return -np.concatenate([negatives, positives]), np.arange(sides.images) < len(negatives)


def _differences(sides: Sides, judged: Judged) -> Iterator[Measurement]:
    """Every detector compared with the baseline, and with the best one: CIs and p-values that hold for all together."""
    for versus in dict.fromkeys([judged.baseline, best_detector(sides)]):
        others = [name for name in judged.detectors if name != versus]
        if versus not in judged.detectors or not others:
            continue
        id_set, ood_set = (
            np.stack([side[name] for name in (versus, *others)]) for side in (sides.negatives, sides.positives)
        )
        found = auroc_differences(id_set, ood_set, **sides.cases.by_side)
        together = f"DeLong, for all {len(found)} comparisons together by max-T"
        for name, one in zip(others, found, strict=True):
            about = {**judged.about, **sides.about(name), "versus": versus}
            convention = {**judged.convention(sides.id_set, name), **sides.told}
            yield sides.cases.number("auroc_difference", one.difference, together, one.interval, about, convention)
            if one.p is not None:
                told = {**convention, "test": f"{together}, by the same draws as its interval"}
                yield evidence.Subject(about, told, sides.cases.joint).number("auroc_difference_p", one.p)


def _curves(sides: Sides, judged: Judged) -> Iterator[Curve]:
    for name in judged.detectors:
        flagged, found = roc_curve(sides.negatives[name], sides.positives[name], points=MOST_POINTS)
        curves = [("roc", "false-positive rate", "true-positive rate", flagged, found)]
        if sides.goal == "failure":
            answered, risk = risk_coverage(*_answers(sides, name), points=MOST_POINTS)
            curves.append(("risk_coverage", "coverage", "risk", answered, risk))
        told = {**judged.convention(sides.id_set, name), **sides.told}
        subject = evidence.Subject({**judged.about, **sides.about(name)}, told, sides.cases.joint)
        for title, across, up, x, y in curves:
            yield subject.curve(title, (across, up), x, y, [sides.images] * len(x))
