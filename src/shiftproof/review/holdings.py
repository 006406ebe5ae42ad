"""Who was given what, known in memory: reading it from the database takes longer the more people judge."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, Engine, Text, cast, select, update

from shiftproof.review.schema import assignments, facts

_CHANGES = facts.c.name == "handed out"
_COUNT = cast(facts.c.value, BigInteger)
ONE_MORE = update(facts).where(_CHANGES).values(value=cast(_COUNT + 1, Text)).returning(_COUNT)
CHANGES = select(_COUNT).where(_CHANGES)
EVERYTHING = select(assignments.c.reviewer, assignments.c.item)


class Holding(NamedTuple):
    """How many people have each item that somebody has, and what one person has."""

    people: Counter[str]
    own: Set[str]


@dataclass
class Held:
    """All that was given out, as it stood after so many changes of it."""

    changes: int = -1
    people: Counter[str] = field(default_factory=Counter)
    own: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, reviewer: int) -> Holding:
        return Holding(self.people.copy(), frozenset(self.own[reviewer]))

    def add(self, reviewer: int, items: Iterable[str]) -> None:
        self.own[reviewer].update(items)
        self.people.update(items)

    def remove(self, reviewer: int, items: Iterable[str]) -> None:
        self.own[reviewer].difference_update(items)
        self.people.subtract(items)


class Holdings:
    """What is held, read anew only where another server or command changed it: the database counts the changes."""

    def __init__(self) -> None:
        self._held = Held()
        self._turn = threading.Lock()

    @contextmanager
    def changing(self, engine: Engine) -> Iterator[tuple[Connection, Held]]:
        """A transaction in which nobody else gives out or takes back, and what is held, to be changed along with it."""
        with self._turn:
            known, self._held = self._held, Held()  # nothing is known where the transaction fails
            with engine.begin() as connection:
                # writing comes first: whoever gives out holds this row, so two people are not given an item's last place
                changes = int(connection.execute(ONE_MORE).scalar_one())
                held = known if known.changes == changes - 1 else _read(connection)
                held.changes = changes
                yield connection, held
            self._held = held

    def of(self, reviewer: int, engine: Engine) -> Holding:
        """What is held now."""
        with self._turn, engine.connect() as connection:
            changes = int(connection.execute(CHANGES).scalar_one())
            if self._held.changes != changes:
                self._held = _read(connection)
                self._held.changes = changes  # of before it was read: what changed since is read once more at worst
            return self._held.of(reviewer)


def _read(connection: Connection) -> Held:
    own = defaultdict(set)
    for reviewer, item in connection.execute(EVERYTHING):
        own[reviewer].add(item)
    return Held(people=Counter(chain.from_iterable(own.values())), own=own)
