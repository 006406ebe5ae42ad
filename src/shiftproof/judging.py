"""The verdict on models: marks for a scorecard, and the weaknesses that the evidence shows.

Every study brings axes and candidates of its own (`StudyKind.verdict`). Here they are held against their standards, all
candidates together: a weakness is a candidate whose confidence bound, at a level corrected for how many there are
(Bonferroni), still lies on the worse side of its standard. So of models with every rate at its standard at most one in
twenty has any.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from shiftproof import catalog
from shiftproof.errors import BrokenPlugin
from shiftproof.metrics.levels import End, bound, one_sided_p
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import size
from shiftproof.reference import load_table
from shiftproof.types import (
    EXAMPLES,
    About,
    Axis,
    DatasetCard,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Measurement,
    ModelCard,
    NextStep,
    Profile,
    Results,
    Standard,
    Weakness,
)

FALSE_ALARMS = 0.05
"""The chance that any weakness is there by chance alone, where every rate is at its standard."""
MOST_SHOWN = 7
MOST_OF_A_KIND = 2
"""More of one kind would hide what else is wrong."""
LEAST_IMAGES = 10
"""Clusters that a class or group needs before it is a candidate."""


class Example(NamedTuple):
    """A picture, and the dataset it is opened from."""

    item: GalleryItem
    dataset: DatasetRef


class Said(NamedTuple):
    """What is said of a candidate that turned out to be a weakness."""

    sentence: str
    next_step: NextStep
    example: Example | None = None


@dataclass(frozen=True)
class Candidate:
    """A number that would be a weakness on the worse side of its standard."""

    found: Measurement
    standard: Standard
    kind: str  # what it is one of, as classes: few of a kind are shown
    topic: str  # candidates of one topic are one finding: the severities of a corruption
    section: str  # key of the report's section that has more of it
    say: Callable[[Judged, Measurement], Said]  # asked of weaknesses alone


@dataclass(frozen=True)
class Judged:
    """What was found of one model, and what is known of it."""

    model: str
    findings: Sequence[Finding]
    card: ModelCard | None = None
    datasets: Mapping[str, DatasetCard] = field(default_factory=dict)  # by name

    @cached_property
    def _by_metric(self) -> Mapping[str, Sequence[Measurement]]:
        found: dict[str, list[Measurement]] = {}
        for one in self.findings:
            if isinstance(one, Measurement):
                found.setdefault(one.metric, []).append(one)
        return found

    def numbers(self, metric: str, **about: str | int) -> list[Measurement]:
        """The measurements of a metric that are about all of this."""
        return [one for one in self._by_metric.get(metric, ()) if about.items() <= one.about.items()]

    def overall(self, metric: str) -> list[Measurement]:
        """Those about a model on a dataset and nothing more."""
        return [one for one in self._by_metric.get(metric, ()) if one.about.keys() <= {"model", "dataset"}]

    def example(self, of: Measurement, shows: About, gallery: str = EXAMPLES) -> Example | None:
        """The first picture of such a gallery that is about this, and of the same dataset."""
        wanted = {"dataset": of.about.get("dataset", ""), **shows}
        for one in self._galleries.get(gallery, ()):
            if wanted.items() <= one.about.items() and one.items:
                return Example(one.items[0], one.items[0].dataset or one.dataset)
        return None

    @cached_property
    def _galleries(self) -> Mapping[str, Sequence[Gallery]]:
        found: dict[str, list[Gallery]] = {}
        for one in self.findings:
            if isinstance(one, Gallery):
                found.setdefault(one.name, []).append(one)
        return found

    @property
    def knows_imagenet(self) -> bool:
        """Whether its classes are the 1000 of ILSVRC-2012, so that published models of these compare."""
        return self.card is not None and self.card.label_space == "imagenet"

    def dataset(self, found: Measurement) -> DatasetCard | None:
        """The card of the dataset that a number is about."""
        return self.datasets.get(str(found.about.get("dataset", "")))


@dataclass(frozen=True)
class Judge:
    """What a study contributes to the verdict on a model."""

    axes: Callable[[Judged], Iterable[Axis]] = lambda _: ()
    candidates: Callable[[Judged], Iterable[Candidate]] = lambda _: ()


def profile(results: Results) -> tuple[Profile, ...]:
    """The verdict on each model: its scorecard, and its weaknesses with the worst first.

    The correction is for the candidates of all models together.
    """
    judges = [judge for _, judge in catalog.STUDIES.loaded(_judge_of) if judge is not None]
    models = _models(results)
    looked_at = [[one for judge in judges for one in judge.candidates(judged)] for judged in models]
    total = sum(map(len, looked_at))
    return tuple(
        Profile(
            judged.model,
            tuple(axis for judge in judges for axis in judge.axes(judged)),
            _weaknesses(judged, candidates, total),
            total,
            max((one.found.images for one in candidates), default=0),
        )
        for judged, candidates in zip(models, looked_at, strict=True)
        if judged.findings
    )


def _judge_of(kind: Any) -> Judge | None:
    judge = kind.load_verdict()  # of a StudyKind, which is not known here
    if judge is None or isinstance(judge, Judge):
        return judge
    raise BrokenPlugin(f"study {kind.title!r}", str(kind.verdict), "its verdict should be a Judge")


def _models(results: Results) -> list[Judged]:
    """Every model that was measured, but for networks that a study made of one."""
    cards = {card.name: card for card in results.models}
    by_model: dict[str, list[Finding]] = {}
    for finding in results.shown:
        if "model" in finding.about:
            by_model.setdefault(str(finding.about["model"]), []).append(finding)
    return [
        Judged(name, found, cards.get(name), {card.name: card for card in results.datasets})
        for name, found in by_model.items()
        if name not in cards or cards[name].companion is None
    ]


def _weaknesses(judged: Judged, candidates: Sequence[Candidate], total: int) -> tuple[Weakness, ...]:
    """The worst of those that are on the worse side of their standard, one of a topic and few of a kind."""
    topics: dict[tuple[str, ...], tuple[float, Candidate]] = {}
    for candidate in candidates:
        beyond = _beyond(candidate, FALSE_ALARMS / total)
        key = (candidate.kind, candidate.topic, str(candidate.found.about.get("dataset", "")))
        if beyond > 0 and (key not in topics or beyond > topics[key][0]):
            topics[key] = beyond, candidate
    seen, shown = Counter[str](), list[Weakness]()
    for beyond, candidate in sorted(topics.values(), key=lambda one: -one[0]):
        seen[candidate.kind] += 1
        if seen[candidate.kind] <= MOST_OF_A_KIND and len(shown) < MOST_SHOWN:
            shown.append(_weakness(judged, candidate, beyond, total))
    last = {one.kind: one for one in shown}
    told = Counter(one.kind for one in shown)
    return tuple(replace(one, more=seen[one.kind] - told[one.kind]) if one is last[one.kind] else one for one in shown)


def _nearer(standard: Standard) -> End:
    """The end of an interval that is nearer to the standard, where the number is on its worse side."""
    return "low" if standard.worse == "above" else "high"


def _beyond(candidate: Candidate, tail: float) -> float:
    """How far the bound is on the worse side of the standard; minus infinity where there is none."""
    standard = candidate.standard
    at = bound(candidate.found, _nearer(standard), tail)
    return -math.inf if at is None else standard.excess(at, standard.weak)


def _weakness(judged: Judged, candidate: Candidate, beyond: float, total: int) -> Weakness:
    found, standard, said = candidate.found, candidate.standard, candidate.say(judged, candidate.found)
    p = one_sided_p(found, _nearer(standard), standard.weak)
    item, dataset = said.example or (None, None)
    return Weakness(
        sentence=said.sentence,
        found=found,
        standard=standard,
        interval=_together(found, total),
        beyond=beyond,
        p=min(1.0, p * total),
        kind=candidate.kind,
        section=candidate.section,
        next_step=said.next_step,
        example=item,
        dataset=dataset,
    )


def _together(found: Measurement, total: int) -> Interval:
    """The interval whose ends are one-sided bounds, corrected for all candidates."""
    ends = (bound(found, end, FALSE_ALARMS / total) for end in get_args(End))
    low, high = (math.nan if at is None else at for at in ends)
    usual = found.interval or Interval(low, high)
    method = f"{usual.method}, one-sided bounds with Bonferroni's correction for {total} numbers"
    return Interval(low, high, 1 - FALSE_ALARMS, method, usual.cases)


def rule(metric: str, *, weak: float, good: float, worse: Literal["above", "below"], why: str = "") -> Standard:
    r"""Marks by two limits that somebody set, which is said.

    >>> rule("auroc", weak=0.7, good=0.9, worse="below").told
    'rule: weak below 70.0\u202f%, good from 90.0\u202f%'
    """
    unit = metric_info(metric).unit
    near = "up to" if worse == "above" else "from"
    because = f" ({why})" if why else ""
    told = f"rule: weak {worse} {size(weak, unit)}, good {near} {size(good, unit)}{because}"
    return Standard(told, weak, good, worse)


MOST_PUBLISHED = 60
"""Values of published models that a standard holds; of more, their quantiles, which draw the same picture."""


def published(values: Iterable[float], who: str, *, worse: Literal["above", "below"]) -> Standard:
    """Marks by where published models lie: weak is worse than three quarters of them, good is better than three quarters.

    >>> published([0.5, 0.6, 0.7, 0.8, 0.9], "5 models", worse="below")
    ... # doctest: +ELLIPSIS
    Standard(told='5 models: weak is the worst quarter, good the best', weak=0.6, good=0.8, worse='below', published=(...))
    """
    known = sorted(values)
    low, high = (float(end) for end in np.quantile(known, [0.25, 0.75]))
    weak, good = (high, low) if worse == "above" else (low, high)
    shown = (
        known if len(known) <= MOST_PUBLISHED else np.quantile(known, np.linspace(0, 1, MOST_PUBLISHED)).round(4).tolist()
    )
    return Standard(f"{who}: weak is the worst quarter, good the best", weak, good, worse, tuple(shown))


def column(table: str, name: str) -> list[float]:
    """A column of a published table in percent, as shares, where there are values."""
    return [float(row[name]) / 100 for row in load_table(table) if row[name]]
