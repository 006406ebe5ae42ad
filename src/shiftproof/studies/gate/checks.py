"""From rules to verdicts: each rule becomes one check or, by slices, many; each check passes, fails or stays open.

To pass, every check must pass at 5 % (an intersection-union test, which needs no correction). To fail, one is enough, after
Holm's correction for all of them. Everything in between is undecided: the images are too few.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import holm, mcnemar_p
from shiftproof.metrics.intervals import normal_quantile
from shiftproof.metrics.noninferiority import Judged
from shiftproof.metrics.table import metric_info
from shiftproof.studies.accuracy.study import Slices, slices_by
from shiftproof.studies.gate.per_image import METRICS, Columns, taken
from shiftproof.studies.gate.rules import CLASS, EVERY_FACT, GateRule, Policy
from shiftproof.types import Clusters, Fact

ERROR = 0.05
"""Chance of a false pass, and of a false fail over all checks together."""

POWER = 0.8

LEVEL = 1 - 2 * ERROR
"""Of the printed intervals: 90 %, of which either end is a one-sided limit at 5 %, as the verdicts are."""

Verdict = Literal["pass", "fail", "undecided"]
Limit = Literal["margin", "least", "most"]
VALUES: tuple[Limit, Limit] = ("least", "most")


@dataclass(frozen=True)
class Compared:
    """Images with what is kept of them: the new model's, and the old one's on those that both have."""

    new: Columns
    old: Columns | None  # of the rows `both`
    both: NDArray[np.intp]  # rows of the new model's images that the old one has too
    clusters: Clusters
    facts: Mapping[str, Sequence[Fact]]  # with their classes


@dataclass(frozen=True)
class Check:
    """One limit on one number, and what the images say of it."""

    metric: str
    kind: Limit
    limit: float  # as a fraction where the metric is a share
    condition: str | None
    fact: str | None
    group: str | None
    value: float  # of the new model
    baseline: float | None
    interval: tuple[float, float] | None  # 90 %, of the difference where there is a margin, else of the value
    p_pass: float
    p_fail: float  # after Holm's correction
    verdict: Verdict
    images: int
    clusters: int
    unit: str  # what one cluster is
    needed: int | None  # images that would decide it with 80 % power, if what was measured is so
    detectable: float | None  # with 80 % power: a drop, or a distance below the limit, that these images would notice
    undecided: Policy | None  # what the rule counts as where it is undecided

    @property
    def difference(self) -> float | None:
        return None if self.baseline is None else self.value - self.baseline

    @property
    def slice(self) -> str:
        """The group as it is typed; nothing for all images."""
        return "" if self.fact is None else f"{self.fact}={self.group}"

    @property
    def outcome(self) -> Verdict:
        """The verdict, with the policy of its rule."""
        return self.undecided or self.verdict if self.verdict == "undecided" else self.verdict


def checked(rules: Sequence[GateRule], compared: Mapping[str | None, Compared], policy: Policy | None = None) -> list[Check]:
    """Every check of the rules, with Holm's correction over all of them; `compared` is by condition."""
    found = [check for rule in rules for check in _checks(rule, compared[rule.condition], policy)]
    if not found:
        return []
    corrected = holm(np.array([check.p_fail for check in found]))
    return [_decided(check, float(p), len(found)) for check, p in zip(found, corrected, strict=True)]


def overall(checks: Sequence[Check]) -> Verdict:
    """The verdict on the model: the worst of its checks."""
    outcomes = {check.outcome for check in checks}
    return "fail" if "fail" in outcomes else "undecided" if "undecided" in outcomes else "pass"


class _Part(NamedTuple):
    """Some of the images: a group of a fact, or all of them."""

    fact: str | None
    group: str | None
    rows: NDArray[np.bool_]


def _checks(rule: GateRule, images: Compared, policy: Policy | None) -> Iterator[Check]:
    for part in _parts(rule, images):
        if rule.margin is not None:
            yield _of_margin(rule, images, part, policy)
        for kind in VALUES:
            if getattr(rule, kind) is not None:
                yield _of_value(rule, images, part, policy, kind)


def _parts(rule: GateRule, images: Compared) -> Iterator[_Part]:
    """The slices that a rule names; all images where it names none."""
    if not rule.slices:
        yield _Part(None, None, np.ones(len(images.clusters), bool))
    for named in rule.slices:
        fact, wanted = _fact_and_group(named, images)
        for slices in _slices_named(fact, images):
            if wanted and wanted not in slices.names:
                raise UnknownName(f"group of {fact}", wanted, slices.names)
            for place, group in enumerate(slices.names):
                if not wanted or group == wanted:
                    yield _Part(slices.fact, group, slices.groups == place)


def _fact_and_group(named: str, images: Compared) -> tuple[str, str]:
    """FACT=VALUE in its two parts, whichever sign of equality is between them; that of a known fact counts."""
    parts = named.split("=")
    splits = [("=".join(parts[:end]), "=".join(parts[end:])) for end in range(1, len(parts) + 1)]
    return next((split for split in splits if split[0] in images.facts), splits[0])


def _slices_named(fact: str, images: Compared) -> Iterator[Slices]:
    if fact == EVERY_FACT and fact not in images.facts:
        every = [slices_by(name, values) for name, values in images.facts.items() if name != CLASS]
        usable = [one for one in every if len(one.names) > 1 and not one.why_useless]
        if not usable:
            raise BadInput(
                "a rule is for every fact of the images, and they have none that makes groups; name class instead"
            )
        yield from usable
        return
    if fact not in images.facts:
        raise UnknownName("fact of the images", fact, [*images.facts, EVERY_FACT])
    found = slices_by(fact, images.facts[fact])
    if found.why_useless:
        raise BadInput(f"a rule by {fact} is of no use: {found.why_useless}")
    yield found


def _in_unit(metric: str, limit: float) -> float:
    return limit / 100 if metric_info(metric).unit == "share" else limit


def _of_margin(rule: GateRule, images: Compared, part: _Part, policy: Policy | None) -> Check:
    metric, margin = METRICS[rule.metric], _in_unit(rule.metric, rule.margin or 0.0)
    of_both = part.rows[images.both]
    rows = images.both[of_both]
    blank = _blank(rule, "margin", margin, part, images.clusters.take(rows), policy)
    if not len(rows):
        return blank
    new, old = taken(images.new, rows), taken(images.old or {}, of_both)
    tested = metric.judged_difference(new, old, images.clusters.take(rows).numbers)
    higher = metric_info(rule.metric).direction == "high"
    found = _tested(blank, tested, -margin if higher else margin, higher=higher)
    return dataclasses.replace(found, value=metric.value(new), baseline=metric.value(old))


def _of_value(rule: GateRule, images: Compared, part: _Part, policy: Policy | None, kind: Limit) -> Check:
    metric, limit = METRICS[rule.metric], _in_unit(rule.metric, getattr(rule, kind))
    clusters, new = images.clusters.take(part.rows), taken(images.new, part.rows)
    blank = _blank(rule, kind, limit, part, clusters, policy)
    found = _tested(blank, metric.judged(new, clusters.numbers), limit, higher=kind == "least")
    return dataclasses.replace(found, value=metric.value(new))


def _blank(rule: GateRule, kind: Limit, limit: float, part: _Part, clusters: Clusters, policy: Policy | None) -> Check:
    """A check before anything is known of it."""
    return Check(
        metric=rule.metric,
        kind=kind,
        limit=limit,
        condition=rule.condition,
        fact=part.fact,
        group=part.group,
        value=math.nan,
        baseline=None,
        interval=None,
        p_pass=1.0,
        p_fail=1.0,
        verdict="undecided",
        images=len(clusters),
        clusters=clusters.count,
        unit=clusters.case,
        needed=None,
        detectable=None,
        undecided=rule.undecided or policy,
    )


def _tested(blank: Check, tested: Judged, bound: float, *, higher: bool) -> Check:
    above, below = tested.p(bound)
    return dataclasses.replace(
        blank, interval=tested.interval(LEVEL), p_pass=above if higher else below, p_fail=below if higher else above
    )


def _decided(check: Check, p_fail: float, checks: int) -> Check:
    verdict: Verdict = "fail" if p_fail <= ERROR else "pass" if check.p_pass <= ERROR else "undecided"
    return dataclasses.replace(
        check, p_fail=p_fail, verdict=verdict, needed=_needed(check, checks), detectable=_detectable(check, checks)
    )


def _standard_error(check: Check) -> float | None:
    """Of the number that is tested, by the width of its interval."""
    if check.interval is None:
        return None
    return (check.interval[1] - check.interval[0]) / (2 * normal_quantile(1 - ERROR))


def _needed(check: Check, checks: int) -> int | None:
    """Images that decide with 80 % power, if the true number is the measured one; None where it lies at the limit."""
    error = _standard_error(check)
    tested = check.difference if check.kind == "margin" else check.value
    if error is None or tested is None or not error:
        return None
    higher = metric_info(check.metric).direction == "high"
    bound = check.limit if check.kind != "margin" else -check.limit if higher else check.limit
    distance = (tested - bound) if higher else (bound - tested)
    if abs(distance) < 1e-9:
        return None
    # to fail, the first step of Holm's correction must be passed too
    reach = normal_quantile(1 - ERROR if distance > 0 else 1 - ERROR / checks) + normal_quantile(POWER)
    return math.ceil(check.images * (reach * error / distance) ** 2)


def _detectable(check: Check, checks: int) -> float | None:
    """The drop below the baseline, or the distance on the wrong side of the limit, that fails with 80 % power."""
    error = _standard_error(check)
    if error is None or not check.images:
        return None
    reach = normal_quantile(1 - ERROR / checks) + normal_quantile(POWER)
    start = check.limit if check.kind == "margin" else 0.0
    drop = start + reach * error
    if check.kind == "margin" and METRICS[check.metric].is_share:
        for _ in range(20):  # where a drop is so large, at least as many images differ
            drop = min(1.0, start + reach * max(error, math.sqrt((drop - drop**2) / check.clusters)))
    return drop


MOST_SLICES = 3
MOST_PICTURES = 5
LEAST_IMAGES = 10


@dataclass(frozen=True)
class WorstSlice:
    """A group of images on which the new model is correct less often."""

    fact: str
    group: str
    images: int
    difference: float
    pictures: tuple[str, ...]  # ids of some that only the old model has right


def worst_slices(images: Compared, ids: Sequence[str]) -> tuple[tuple[WorstSlice, ...], int]:
    """The slices that lose most, by the one-sided sign test of their images, and how many were looked at."""
    if images.old is None:
        return (), 0
    new, old = images.new["correct"][images.both].astype(bool), images.old["correct"].astype(bool)
    every = [slices_by(fact, values) for fact, values in images.facts.items()]
    parts = [
        (slices.fact, group, rows)
        for slices in every
        if len(slices.names) > 1 and not slices.why_useless
        for place, group in enumerate(slices.names)
        if (rows := slices.groups[images.both] == place).sum() >= LEAST_IMAGES
    ]
    found = []
    for fact, group, rows in parts:
        lost, gained = rows & old & ~new, rows & new & ~old
        if lost.sum() > gained.sum():
            named = tuple(ids[images.both[place]] for place in np.flatnonzero(lost)[:MOST_PICTURES])
            difference = float(gained.sum() - lost.sum()) / float(rows.sum())
            rarity = mcnemar_p(int(lost.sum()), int(gained.sum()))
            found.append((rarity, difference, WorstSlice(fact, group, int(rows.sum()), difference, named)))
    found.sort(key=lambda one: one[:2])
    return tuple(one for *_, one in found[:MOST_SLICES]), len(parts)
