"""The two goals of a detector: to find images of new classes, and to find answers that should not be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.delong import auroc_differences
from shiftproof.metrics.roc import roc_curve
from shiftproof.metrics.selective import (
    augrc,
    augrc_interval,
    aurc,
    aurc_interval,
    coverage_at_risk,
    coverage_interval,
    e_aurc,
    e_aurc_interval,
    risk_coverage,
)
from shiftproof.metrics.separation import Side, auroc, separation
from shiftproof.metrics.two_sample import aupr_interval, fpr_interval
from shiftproof.studies.novelty_choices import Cases, Choices, percent
from shiftproof.studies.novelty_scores import Judged, Scored
from shiftproof.studies.novelty_variants import MISTAKES_ALONE
from shiftproof.types import About, AnomalyScores, Curve, Finding, Measurement, joined_clusters

Goal = Literal["new-class", "failure"]

MOST_POINTS = 200
"""Of a curve: more than a screen can show."""


@dataclass(frozen=True)
class Sides:
    """Who should look familiar and who foreign, as every detector scores them."""

    goal: Goal
    inside: Scored
    outside: str
    familiar: Mapping[str, AnomalyScores]  # by detector
    foreign: Mapping[str, AnomalyScores]
    told: Mapping[str, str]
    cases: Cases

    @property
    def images(self) -> int:
        return sum(len(next(iter(side.values()))) for side in (self.familiar, self.foreign))

    def about(self, detector: str) -> dict[str, str | int]:
        return {"goal": self.goal, "detector": detector, "inside": self.inside.name, "outside": self.outside}


def goals_of(judged: Judged) -> Iterator[Sides]:
    """Both goals for every inside variant against every outside set; without one, the mistakes are to be found alone."""
    for inside in judged.insides if judged.detectors else ():
        for outside in judged.outsides:
            yield new_class(inside, outside)
        for other in judged.outsides or (None,):
            sides = failure(inside, other)
            yield from [sides] if sides else []


def new_class(inside: Scored, outside: Scored) -> Sides:
    """Every image of the known classes against every image of others."""
    told = {"positive": "outside", "inside": inside.told(), "outside": outside.told()}
    cases = Cases.of(inside.clusters, outside.clusters)
    return Sides("new-class", inside, outside.name, inside.scores, outside.scores, told, cases)


def failure(inside: Scored, outside: Scored | None) -> Sides | None:
    """Correct answers against wrong ones and images of other classes, pooled as many as there are; None without either."""
    correct, wrong, new = int(inside.correct.sum()), int(inside.wrong.sum()), len(outside or ())
    if not correct or not wrong + new:
        return None
    foreign = {
        name: scores[inside.wrong] if outside is None else np.concatenate([scores[inside.wrong], outside.scores[name]])
        for name, scores in inside.scores.items()
    }
    parts = f" (failure: {wrong:,} wrong + {new:,} new)" if outside else ""
    told = {"positive": "outside", "inside": f"{correct:,} correct images", "outside": f"{wrong + new:,} images{parts}"}
    familiar = {name: scores[inside.correct] for name, scores in inside.scores.items()}
    beyond = [inside.clusters.take(inside.wrong), *([outside.clusters] if outside else [])]
    cases = Cases.of(inside.clusters.take(inside.correct), joined_clusters(beyond))
    return Sides("failure", inside, outside.name if outside else MISTAKES_ALONE, familiar, foreign, told, cases)


def why_no_failure(judged: Judged) -> Iterator[str]:
    """Where failures cannot be looked for, and why."""
    for inside in judged.insides:
        if not inside.labelled.any():
            yield f"{inside.name}: failure detection needs labels, and no image has one"
        elif not inside.correct.any():
            yield f"{inside.name}: failure detection needs correct answers, and {judged.about['model']} gives none"
        elif not inside.wrong.any() and not judged.outside:
            yield f"{inside.name}: failure detection needs mistakes, and {judged.about['model']} makes none"


def goal_findings(judged: Judged, choices: Choices) -> Iterator[Finding]:
    """What is printed of every detector at every goal, how the detectors compare, and curves for the inside set itself."""
    for sides in goals_of(judged):
        for name in judged.detectors:
            about = {**judged.about, **sides.about(name)}
            convention = {**judged.convention(sides.inside, name), **sides.told}
            yield from _separation(sides, name, about, convention, choices)
            if sides.goal == "failure":
                yield from _selection(sides, name, about, convention, risk=choices.risk)
        yield from _differences(sides, judged)
        if sides.inside is judged.inside and sides.outside in (MISTAKES_ALONE, *(one.name for one in judged.outsides[-1:])):
            yield from _curves(sides, judged)


def best_detector(sides: Sides) -> str:
    """The one of the highest AUROC; of equals, the first."""
    return max(sides.familiar, key=lambda name: auroc(sides.familiar[name], sides.foreign[name]))


def _separation(
    sides: Sides, name: str, about: About, convention: Mapping[str, str], choices: Choices
) -> Iterator[Measurement]:
    familiar, foreign = sides.familiar[name], sides.foreign[name]
    tpr, area, images = choices.tpr, choices.area, sides.images
    found = separation(familiar, foreign, tpr=tpr, area=area)
    yield choices.auroc("auroc", familiar, foreign, about, convention, sides.cases)
    told = {**convention, "area": area.replace("-", " ")}
    cases, clusters = sides.cases, sides.cases.by_side
    precision: list[tuple[str, float, Side]] = [("aupr_out", found.aupr_out, "out"), ("aupr_in", found.aupr_in, "in")]
    for metric, value, positive in precision:
        within = aupr_interval(familiar, foreign, positive=positive, area=area, **clusters)
        beside = {"positive": f"{positive}side", **cases.told("jackknife", within)}
        yield Measurement(metric, value, about, images, {**told, **beside}, within, cases.count)
    about, told = {**about, "tpr": percent(tpr)}, {**convention, "tpr": percent(tpr)}
    alarms: list[tuple[str, float, Side]] = [("fpr_at_tpr", found.fpr, "out"), ("fpr_in_at_tpr", found.fpr_in, "in")]
    for metric, value, positive in alarms:
        within = fpr_interval(familiar, foreign, tpr=tpr, positive=positive, **clusters)
        beside = {"positive": f"{positive}side", **cases.told("of the threshold and of what it flags", within)}
        yield Measurement(metric, value, about, images, {**told, **beside}, within, cases.count)


def _selection(
    sides: Sides, name: str, about: About, convention: Mapping[str, str], *, risk: float
) -> Iterator[Measurement]:
    sureness, correct = _answers(sides, name)
    cases, clusters, images = sides.cases, sides.cases.joint.numbers, sides.images
    for metric, area, interval in (
        ("aurc", aurc, aurc_interval),
        ("e_aurc", e_aurc, e_aurc_interval),
        ("augrc", augrc, augrc_interval),
    ):
        within = interval(sureness, correct, clusters=clusters)
        told = {**convention, **cases.told("jackknife", within)}
        yield Measurement(metric, area(sureness, correct), about, images, told, within, cases.count)
    answered, about = coverage_at_risk(sureness, correct, risk), {**about, "risk": percent(risk)}
    within = coverage_interval(sureness, correct, risk, clusters=clusters)
    told = {**convention, **cases.told("exact tests of the share wrong", within)}
    yield Measurement("coverage_at_risk", answered, about, images, told, within, cases.count)


def _answers(sides: Sides, name: str) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """How sure a detector lets every answer be, and whether it is right; of a new class none is."""
    familiar, foreign = sides.familiar[name], sides.foreign[name]
    return -np.concatenate([familiar, foreign]), np.arange(sides.images) < len(familiar)


def _differences(sides: Sides, judged: Judged) -> Iterator[Measurement]:
    """Every detector beside the baseline, and beside the best one: intervals and p-values that hold for all together."""
    for versus in dict.fromkeys([judged.baseline, best_detector(sides)]):
        others = [name for name in judged.detectors if name != versus]
        if versus not in judged.detectors or not others:
            continue
        inside, outside = (np.stack([side[name] for name in (versus, *others)]) for side in (sides.familiar, sides.foreign))
        found = auroc_differences(inside, outside, **sides.cases.by_side)
        together = f"DeLong, for all {len(found)} comparisons together by max-T"
        for name, one in zip(others, found, strict=True):
            about = {**judged.about, **sides.about(name), "versus": versus}
            convention = {**judged.convention(sides.inside, name), **sides.told}
            told, cases = {**convention, **sides.cases.told(together, one.interval)}, sides.cases.count
            yield Measurement("auroc_difference", one.difference, about, sides.images, told, one.interval, cases)
            if one.p is not None:
                told = {**convention, "test": f"{together}, by the same draws as its interval"}
                yield Measurement("auroc_difference_p", one.p, about, sides.images, told, clusters=cases)


def _curves(sides: Sides, judged: Judged) -> Iterator[Curve]:
    for name in judged.detectors:
        flagged, found = roc_curve(sides.familiar[name], sides.foreign[name], points=MOST_POINTS)
        curves = [("roc", "share of inside images flagged", "share of outside images found", flagged, found)]
        if sides.goal == "failure":
            answered, risk = risk_coverage(*_answers(sides, name), points=MOST_POINTS)
            curves.append(("risk_coverage", "share answered", "share of answers wrong", answered, risk))
        for title, across, up, x, y in curves:
            yield Curve(
                title,
                {**judged.about, **sides.about(name)},
                across,
                up,
                x=tuple(x.tolist()),
                y=tuple(y.tolist()),
                images=sides.images,
                convention={**judged.convention(sides.inside, name), **sides.told},
                counts=(sides.images,) * len(x),
            )
