"""A filtering funnel: what each step leaves, and the reason why everything else was removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from shiftproof.files import csv_bytes, write_whole

KEPT = "kept"

Item = TypeVar("Item")
Reason = TypeVar("Reason")


@dataclass(frozen=True)
class Step:
    """One step, named after what it leaves, and how many items that are."""

    name: str
    left: int


@dataclass(frozen=True)
class Removed(Generic[Item, Reason]):
    """An item that was removed: in which step, and why."""

    item: Item
    step: str
    reason: Reason


@dataclass(frozen=True)
class Funnel(Generic[Item, Reason]):
    """The items that are left, in their order, and the steps so far."""

    left: tuple[Item, ...]
    steps: tuple[Step, ...]
    removed: tuple[Removed[Item, Reason], ...] = ()

    @classmethod
    def start(cls, items: Iterable[Item]) -> Funnel[Item, Reason]:
        """All items, before the first step."""
        items = tuple(items)
        return cls(items, (Step("start", len(items)),))

    def step(self, name: str, why: Callable[[Item], Reason | None]) -> Funnel[Item, Reason]:
        """The funnel after one more step; `why` returns the reason to remove an item, or None to keep it.

        >>> few = Funnel[int, str].start([1, 2, 3]).step("odd numbers", lambda number: None if number % 2 else "is even")
        >>> few.left, few.steps[-1].left, few.removed[0].reason
        ((1, 3), 2, 'is even')
        """
        decided = [(item, why(item)) for item in self.left]
        left = tuple(item for item, reason in decided if reason is None)
        removed = tuple(Removed(item, name, reason) for item, reason in decided if reason is not None)
        return Funnel(left, (*self.steps, Step(name, len(left))), self.removed + removed)

    def outcomes(self) -> list[tuple[Item, str, Reason | None]]:
        """Every item with its outcome: kept, or the step that removed it and why."""
        return [*((item, KEPT, None) for item in self.left), *((one.item, one.step, one.reason) for one in self.removed)]

    def ordered(self, key: Callable[[Item], Any]) -> Funnel[Item, Reason]:
        """The funnel with the items left sorted, which later steps may depend on."""
        return replace(self, left=tuple(sorted(self.left, key=key)))


def save_outcomes(
    path: Path, choice: Funnel[Item, str], columns: Sequence[str], cells: Callable[[Item], tuple[object, ...]]
) -> None:
    """Writes a CSV file with a row per item: its `cells` under the `columns`, the outcome and the reason."""
    rows = sorted((*cells(item), step, reason or "") for item, step, reason in choice.outcomes())
    write_whole(path, csv_bytes([(*columns, "step", "reason"), *rows]))
