"""Which detector is ahead, and which others chance alone may have put behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shiftproof.reports.page import named
from shiftproof.types import About, Finding, Measurement

FALSE_ALARMS = 0.05
"""The chance of calling one of several equally good detectors the best."""
BEST, ALIKE = "★", "≈"
"""Marks of the best detector, and of all that may well be it."""


class Case(NamedTuple):
    """One question put to every detector: what is to be found, among which images."""

    goal: str
    inside: str
    outside: str


@dataclass(frozen=True)
class Standing:
    """The answers of all detectors to one question, the highest AUROC first.

    `alike` are the detectors that cannot be told from the first, which is one of them; empty where nobody compared.
    """

    aurocs: Sequence[Measurement]
    alike: frozenset[str]

    @property
    def best(self) -> Measurement:
        return self.aurocs[0]

    @property
    def stands_out(self) -> bool:
        """Whether the first is better than every other one by more than chance."""
        return len(self.alike) == 1

    def of(self, detector: str) -> Measurement | None:
        return next((one for one in self.aurocs if detector_of(one) == detector), None)

    def mark(self, detector: str) -> str:
        """The sign beside a detector's number, if it is the best or may well be."""
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
    return str(finding.about.get("detector", ""))
