"""What studies with detectors have to say beside their numbers: what was left out and why, and what to know of the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from weakref import WeakKeyDictionary

from shiftproof.detectors import ReadyDetector
from shiftproof.types import Finding, Predictions, Run

Load: TypeAlias = Callable[[Run], Predictions]


@dataclass(frozen=True)
class Told:
    """Sentences, as they come up while something is measured."""

    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def leave_out(self, reasons: Mapping[str, str], *, of: str) -> None:
        """What a model cannot have, and why.

        >>> told = Told()
        >>> told.leave_out({"knn": "it learns from training images"}, of="lite:0")
        >>> told.left_out
        ['knn is left out for lite:0: it learns from training images']
        """
        self.left_out.extend(f"{what} is left out for {of}: {why}" for what, why in reasons.items())

    def pass_on(self, detectors: Mapping[str, ReadyDetector], *, of: str) -> None:
        """What the detectors of a model have to say themselves."""
        self.warnings.extend(f"{name} for {of}: {note}" for name, one in detectors.items() for note in one.notes)


@dataclass(frozen=True)
class TellingStudy(ABC):
    """A study that keeps what came up while it measured: to fit all detectors again only to tell would take as long."""

    _told: WeakKeyDictionary[Load, Told] = field(default_factory=WeakKeyDictionary, init=False, compare=False, repr=False)

    def measure(self, load: Load) -> Iterator[Finding]:
        told = Told()
        yield from self.findings(load, told)
        self._told[load] = told

    @abstractmethod
    def findings(self, load: Load, told: Told) -> Iterator[Finding]:
        """What is measured; what there is to say beside it is added to `told`."""

    def skipped(self, load: Load) -> Iterator[str]:
        yield from dict.fromkeys(self._said(load).left_out)

    def warnings(self, load: Load) -> Iterator[str]:
        """What to know of detectors and sets before numbers are trusted."""
        yield from dict.fromkeys(self._said(load).warnings)

    def _said(self, load: Load) -> Told:
        if load not in self._told:
            deque(self.measure(load), maxlen=0)
        return self._told[load]
