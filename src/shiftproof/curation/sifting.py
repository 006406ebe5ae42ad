"""What is left after each step of a choice, and everything else with the reason why it went."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

KEPT = "kept"

Item = TypeVar("Item")
Reason = TypeVar("Reason")


@dataclass(frozen=True)
class Step:
    """One step, named by what it leaves, and how much that is."""

    name: str
    left: int


@dataclass(frozen=True)
class Gone(Generic[Item, Reason]):
    """What went, in which step and why."""

    item: Item
    step: str
    reason: Reason


@dataclass(frozen=True)
class Sifted(Generic[Item, Reason]):
    """What is left, in the order in which it came, and how it came to that."""

    left: tuple[Item, ...]
    steps: tuple[Step, ...]
    gone: tuple[Gone[Item, Reason], ...] = ()

    @classmethod
    def start(cls, items: Iterable[Item]) -> Sifted[Item, Reason]:
        """Everything, before the first step."""
        items = tuple(items)
        return cls(items, (Step("start", len(items)),))

    def step(self, name: str, why: Callable[[Item], Reason | None]) -> Sifted[Item, Reason]:
        """The same after one more step; `why` gives the reason for which an item goes, None where it stays.

        >>> few = Sifted[int, str].start([1, 2, 3]).step("odd numbers", lambda number: None if number % 2 else "is even")
        >>> few.left, few.steps[-1].left, few.gone[0].reason
        ((1, 3), 2, 'is even')
        """
        judged = [(item, why(item)) for item in self.left]
        left = tuple(item for item, reason in judged if reason is None)
        gone = tuple(Gone(item, name, reason) for item, reason in judged if reason is not None)
        return Sifted(left, (*self.steps, Step(name, len(left))), self.gone + gone)

    def fates(self) -> list[tuple[Item, str, Reason | None]]:
        """Everything with what became of it: kept, or the step in which it went and why."""
        return [*((item, KEPT, None) for item in self.left), *((gone.item, gone.step, gone.reason) for gone in self.gone)]

    def ordered(self, key: Callable[[Item], Any]) -> Sifted[Item, Reason]:
        """The same in another order, which later steps may go by."""
        return replace(self, left=tuple(sorted(self.left, key=key)))
