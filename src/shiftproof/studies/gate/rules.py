"""Rules of the gate: what a model must reach, as typed, or as a file that lives beside the code."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from shiftproof.errors import BadInput, UnknownName
from shiftproof.files import read_text
from shiftproof.metrics.table import metric_info
from shiftproof.studies.gate.per_image import METRICS

FILE = "shiftproof.toml"
"""Where rules are looked for, in the working folder."""

EVERY_FACT = "all"
CLASS = "class"

Policy = Literal["pass", "fail"]
POLICIES = ("pass", "fail")


@dataclass(frozen=True)
class GateRule:
    """What a metric must reach, on all images or on each group of them.

    Limits are in points where the metric is a share, as it is printed: a `margin` of 1 is one point, a `least` of 80 means
    80 %.
    """

    metric: str = "top1_accuracy"
    margin: float | None = None  # how much worse than the baseline it may be
    least: float | None = None  # where higher is better
    most: float | None = None  # where lower is better
    slices: tuple[str, ...] = ()  # facts, each of whose groups is held to it; FACT=VALUE one group; class; all
    condition: str | None = None  # a corruption as fog:3
    undecided: Policy | None = None  # what the rule counts as where the images are too few to decide

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UnknownName("metric of a gate", self.metric, METRICS)
        info = metric_info(self.metric)
        if self.margin is None and self.least is None and self.most is None:
            raise BadInput(
                f"a rule for {self.metric} needs a limit: margin, or {'least' if info.direction == 'high' else 'most'}"
            )
        if self.margin is not None and not 0 <= self.margin < (100 if info.unit == "share" else float("inf")):
            raise BadInput(f"margin should be 0 or more points, got {self.margin:g}: how much worse the model may be")
        wrong, right = ("most", "least") if info.direction == "high" else ("least", "most")
        if getattr(self, wrong) is not None:
            better = "higher" if info.direction == "high" else "lower"
            raise BadInput(f"{self.metric} is better the {better} it is; set {right} instead of {wrong}")
        self._check_share(right, getattr(self, right))
        if self.undecided not in (None, *POLICIES):
            raise BadInput(f"undecided should be pass or fail, got {self.undecided!r}")
        if self.condition is not None:
            parsed_condition(self.condition)

    def _check_share(self, name: str, value: float | None) -> None:
        if value is None or metric_info(self.metric).unit != "share":
            return
        if 0 < value < 1:
            raise BadInput(
                f"{name} is in percent: {value:g} would be {value:g} %; write {100 * value:g} for {100 * value:g} %"
            )
        if not 0 <= value <= 100:
            raise BadInput(f"{name} of {self.metric} should be 0 to 100 %, got {value:g}")


def parsed_condition(text: str) -> tuple[str, int]:
    """Corruption and severity of a text such as fog:3.

    >>> parsed_condition("fog:3")
    ('fog', 3)
    """
    from shiftproof.catalog import CORRUPTIONS

    name, _, severity = text.partition(":")
    if not (severity.isdigit() and 1 <= int(severity) <= 5):
        raise BadInput(f"a condition is a corruption and its severity from 1 to 5, as fog:3; got {text!r}")
    if name not in CORRUPTIONS:
        raise UnknownName("corruption", name, CORRUPTIONS)
    return name, int(severity)


@dataclass(frozen=True)
class RuleFile:
    """What a file says: the rules, and what need not be typed each time."""

    rules: tuple[GateRule, ...] = ()
    model: str | None = None
    dataset: str | None = None
    against: str | None = None
    undecided: Policy | None = None
    store: str | None = None
    cluster: str | None = None


def read_rules(path: str | Path) -> RuleFile:
    """The table [gate] of a TOML file; what it cannot mean is told with the nearest name."""
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"no file of rules {path}; see docs/gate.md for one, or give --margin or --least")
    return parse_rules(read_text(path), str(path))


def parse_rules(text: str, where: str = FILE) -> RuleFile:
    """The same of a text.

    >>> found = parse_rules('''
    ... [gate]
    ... dataset = "photos/"
    ... against = "baseline.json"
    ... [[gate.rules]]
    ... margin = 1
    ... least = 80
    ... ''')
    >>> found.dataset, found.rules[0].margin
    ('photos/', 1)
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # numbers of thousands of digits, tables nested as deep
        raise BadInput(f"{where} is no TOML: {problem}") from problem
    if "gate" not in data:
        raise BadInput(f"{where} has no table [gate]; see docs/gate.md")
    table = data["gate"]
    if not isinstance(table, Mapping):
        raise BadInput(f"{where}: [gate] should be a table of settings and [[gate.rules]]")
    known = {one.name for one in fields(RuleFile)}
    for key, value in table.items():
        if key not in known:
            raise _within(where, UnknownName("setting of [gate]", key, known))
        if key != "rules" and not isinstance(value, str):
            raise BadInput(f"{where}: {key} should be a text, got {value!r}")
    if table.get("undecided") not in (None, *POLICIES):
        raise BadInput(f"{where}: undecided should be pass or fail, got {table['undecided']!r}")
    rules = table.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(one, Mapping) for one in rules):
        raise BadInput(f"{where}: each rule is a table [[gate.rules]]")
    made = tuple(_rule(one, f"{where}, rule {place}") for place, one in enumerate(rules, start=1))
    return RuleFile(**{**table, "rules": made})


def _rule(table: Mapping[str, Any], where: str) -> GateRule:
    known = {one.name for one in fields(GateRule)}
    for key, value in table.items():
        if key not in known:
            raise _within(where, UnknownName("setting of a rule", key, known))
        number = key in ("margin", "least", "most")
        texts = key == "slices" and isinstance(value, list) and all(isinstance(one, str) for one in value)
        if number and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise BadInput(f"{where}: {key} should be a number, got {value!r}")
        if not number and not isinstance(value, str) and not texts:
            raise BadInput(f"{where}: {key} should be a text, got {value!r}")
    slices = table.get("slices", ())
    try:
        return GateRule(**{**table, "slices": (slices,) if isinstance(slices, str) else tuple(slices)})
    except (BadInput, UnknownName) as problem:
        raise _within(where, problem) from problem


def _within(where: str, problem: BadInput | UnknownName) -> BadInput:
    return BadInput(f"{where}: {problem}")


def typed_rules(
    metrics: Sequence[str] = (),
    *,
    margin: float | None = None,
    least: float | None = None,
    most: float | None = None,
    slices: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> list[GateRule]:
    """The rules of one line: its limits hold for every metric on all images, on each slice and under each condition."""
    if not (metrics or slices or conditions) and margin is None and least is None and most is None:
        return []
    whole = [GateRule(metric, margin=margin, least=least, most=most) for metric in metrics or (GateRule.metric,)]
    return [
        *whole,
        *(dataclasses.replace(rule, slices=tuple(slices)) for rule in whole if slices),
        *(dataclasses.replace(rule, condition=condition) for condition in conditions for rule in whole),
    ]
