"""The verdict on models: marks for a scorecard, and the weaknesses that the evidence shows.

Every study brings axes and candidates of its own (`StudyKind.verdict`). Here they are held against their standards, all
candidates together: a weakness is a candidate whose confidence bound, at a level corrected for how many there are
(Bonferroni), still lies on the worse side of its standard. So of models with every rate at its standard at most one in
twenty has any.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from shiftproof import catalog
from shiftproof.errors import BrokenPlugin
from shiftproof.metrics.levels import End, bound, one_sided_p
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, figure, images, span
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
TAKES_STUDIES = ("run", "measure", "report", "compare")
"""Commands that go on with the options of a study."""


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
    kind: str  # what it is one of, in the plural, as classes
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
    command: str = ""  # that was typed

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

    def published_as(self, found: Measurement) -> str | None:
        """The published dataset that a number is about."""
        card = self.datasets.get(str(found.about.get("dataset", "")))
        return None if card is None else card.published

    def next_step(self, told: str, *options: str) -> NextStep:
        """What to do, with the command that was typed gone on with by these options, or with one to fill in."""
        if not options:
            return NextStep(told)
        typed = shlex.split(self.command)
        if typed[1:2] and typed[1] in TAKES_STUDIES:
            return NextStep(told, shlex.join([*_without(typed, options), *options]))
        return NextStep(told, f"shiftproof run MODEL DATASET {shlex.join(options)}")


def _without(typed: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command without the options that are given anew, and their values.

    >>> _without(["shiftproof", "run", "--studies", "ood", "photos", "--output=a.html"], ["--studies", "x", "-o", "b"])
    ['shiftproof', 'run', 'photos']
    """
    names = {*options, *(["--output"] if "-o" in options else [])}
    takes_value = {name: not value.startswith("-") for name, value in pairwise([*options, "-"])}
    kept, past = [], False
    for word in typed:
        name, _, value = word.partition("=")
        if not past and not (name.startswith("-") and name in names):
            kept.append(word)
        past = not past and name.startswith("-") and name in names and not value and takes_value.get(name, True)
    return kept


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
        Judged(name, found, cards.get(name), {card.name: card for card in results.datasets}, results.command)
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
    told = f"rule: weak {worse} {_plain(weak, unit)}, good {near} {_plain(good, unit)}{because}"
    return Standard(told, weak, good, worse)


def published(values: Iterable[float], who: str, *, worse: Literal["above", "below"]) -> Standard:
    """Marks by where published models lie: weak is worse than three quarters of them, good is better than three quarters.

    >>> published([0.5, 0.6, 0.7, 0.8, 0.9], "5 models", worse="below")
    ... # doctest: +ELLIPSIS
    Standard(told='5 models: weak is the worst quarter, good the best', weak=0.6, good=0.8, worse='below', published=(...))
    """
    known = sorted(values)
    low, high = (float(end) for end in np.quantile(known, [0.25, 0.75]))
    weak, good = (high, low) if worse == "above" else (low, high)
    return Standard(f"{who}: weak is the worst quarter, good the best", weak, good, worse, tuple(known))


def column(table: str, name: str) -> list[float]:
    """A column of a published table in percent, as shares, where there are values."""
    return [float(row[name]) / 100 for row in load_table(table) if row[name]]


def limit(told: str, weak: float, *, worse: Literal["above", "below"]) -> Standard:
    """A limit for candidates, and why it lies there."""
    return Standard(told, weak, worse=worse)


def points(value: float) -> str:
    """A difference of shares without a sign.

    >>> points(-0.312)
    '31.2 points'
    """
    return f"{100 * abs(value):.1f} points"


def _plain(value: float, unit: Any) -> str:
    return points(value) if unit == "points" else figure(value, unit)


def mark_told(axis: Axis) -> str:
    """The mark in words, as far as the confidence interval supports one.

    >>> from shiftproof.types import Interval
    >>> standard = Standard("rule", weak=0.7, good=0.9)
    >>> for low, high in [(0.91, 0.95), (0.6, 0.8), (0.5, 0.95)]:
    ...     found = Measurement("auroc", 0.75, {}, 50, {}, Interval(low, high))
    ...     print(mark_told(Axis("ood", "OOD", found, "ood", standard)))
    good
    typical to weak
    undecided
    """
    if axis.standard is None:
        return "not judged"
    if not axis.marks:
        return "too few images"
    return " to ".join((axis.marks[0], axis.marks[-1])[: len(axis.marks)]) if len(axis.marks) < 3 else "undecided"


def limit_told(axis: Axis) -> str:
    r"""From where on a number is weak, in short.

    >>> found = Measurement("auroc", 0.75, {}, 50, {})
    >>> limit_told(Axis("ood", "OOD", found, "ood", Standard("rule", weak=0.7)))
    'below 70.0\u202f% (rule)'
    """
    if axis.standard is None:
        return ""
    by = "published models" if axis.standard.published else "rule"
    return f"{axis.standard.worse} {_plain(axis.standard.weak, metric_info(axis.found.metric).unit)} ({by})"


def axis_key(axis: Axis) -> tuple[str, str, str]:
    """Equal for the same line of several models' scorecards."""
    return axis.name, axis.title, str(axis.found.about.get("dataset", ""))


def number_told(found: Measurement) -> str:
    r"""A number with its confidence interval.

    >>> from shiftproof.types import Interval
    >>> number_told(Measurement("top1_accuracy", 0.9, {}, 50, {}, Interval(0.78, 0.97)))
    '90.0\u202f% (78.0 to 97.0\u202f%)'
    """
    unit = metric_info(found.metric).unit
    return f"{figure(found.value, unit)} ({span(found.ends, unit)})" if found.ends else figure(found.value, unit)


def evidence_told(weakness: Weakness, candidates: int) -> str:
    """The confidence interval behind a weakness, the limit it is beyond, and how surely."""
    found, standard, unit = weakness.found, weakness.standard, metric_info(weakness.found.metric).unit
    chance = "p < 0.001" if weakness.p < 0.001 else f"p = {weakness.p:.2g}"
    behind = " of ".join([images(found.images), *([str(found.about["dataset"])] if "dataset" in found.about else [])])
    return (
        f"95 % CI {span(found.ends, unit)}, {behind}. "
        f"{standard.told[:1].upper()}{standard.told[1:]}, here {_plain(standard.weak, unit)}. "
        f"Beyond it by at least {points(weakness.beyond)} ({chance}, corrected for {count(candidates)} numbers)."
    )


def marks_summed_up(verdict: Profile) -> str:
    """Which axes are weak, which good, and which neither; a sentence for each."""
    by_mark: dict[str, list[str]] = {"weak": [], "typical": [], "good": []}
    for axis in verdict.axes:
        if axis.mark:
            by_mark[axis.mark].append(axis.title.lower() if axis.title[1:2].islower() else axis.title)
    told = [f"{mark.capitalize()}: {', '.join(dict.fromkeys(titles))}." for mark, titles in by_mark.items() if titles]
    judged = sum(axis.standard is not None for axis in verdict.axes)
    left = judged - sum(axis.mark is not None for axis in verdict.axes)
    if left:
        told.append(f"Too uncertain to call: {left} of {judged}.")
    return " ".join(told) or "Nothing here has a standard to be judged by."


def none_told(verdict: Profile) -> str:
    """That nothing was found, and what that is worth."""
    if not verdict.candidates:
        return "No number here has a standard that it could fall short of."
    return (
        f"No weakness that {images(verdict.images)} could show: of {count(verdict.candidates)} numbers looked at, none is "
        "surely on the worse side of its standard. More images could show smaller ones."
    )


def some_told(verdict: Profile) -> str:
    """What the weaknesses are a choice of."""
    return (
        f"Of {count(verdict.candidates)} numbers looked at, these are surely on the worse side of their standards, the "
        "farthest first; the chance of any by chance alone is at most 5 %."
    )


def of_datasets(found: Iterable[Measurement]) -> Iterator[tuple[str, list[Measurement]]]:
    """Measurements by the dataset they are about."""
    groups: dict[str, list[Measurement]] = {}
    for one in found:
        groups.setdefault(str(one.about.get("dataset", "")), []).append(one)
    yield from groups.items()
