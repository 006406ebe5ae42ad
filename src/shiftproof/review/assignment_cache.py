"""An in-memory cache of the assignments: reading them from the database takes longer the more people take part."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import sqlalchemy as sa

from shiftproof.review.schema import assignments, facts

_IS_VERSION = facts.c.name == "handed out"
_VERSION = sa.cast(facts.c.value, sa.BigInteger)
NEXT_VERSION = sa.update(facts).where(_IS_VERSION).values(value=sa.cast(_VERSION + 1, sa.Text)).returning(_VERSION)
CURRENT_VERSION = sa.select(_VERSION).where(_IS_VERSION)
ALL_ASSIGNMENTS = sa.select(assignments.c.reviewer, assignments.c.item)
LAST_POSITIONS = (
    sa.select(assignments.c.reviewer, sa.func.max(assignments.c.position).label("last"))
    .where(assignments.c.reviewer.in_(sa.bindparam("reviewers", expanding=True)))
    .group_by(assignments.c.reviewer)
)
INSERT_ASSIGNMENTS = sa.insert(assignments)
# a statement of each row would be sent and answered by itself
INSERT_ARRAYS = sa.text(
    "INSERT INTO assignments (reviewer, item, position)"
    " SELECT * FROM unnest(CAST(:reviewer AS int[]), CAST(:item AS text[]), CAST(:position AS int[]))"
)


class AssignedItems(NamedTuple):
    """The number of reviewers of each assigned item, and the items of one reviewer."""

    reviewers: Counter[str]
    own: Set[str]


@dataclass
class Assignments:
    """All assignments, as of a version."""

    version: int = -1
    reviewers: Counter[str] = field(default_factory=Counter)  # number of them, by item
    own: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, reviewer: int) -> AssignedItems:
        return AssignedItems(self.reviewers.copy(), frozenset(self.own[reviewer]))

    def note(self, reviewer: int, items: Iterable[str]) -> list[str]:
        """Those of some items that are new to a reviewer, who has them from now on; `insert` is to follow."""
        own = self.own[reviewer]
        new = [item for item in dict.fromkeys(items) if item not in own]
        own.update(new)
        self.reviewers.update(new)
        return new

    def insert(self, connection: sa.Connection, given: Collection[tuple[int, Sequence[str]]]) -> None:
        """Writes new items behind those that each reviewer has; of one who is there twice, in this order."""
        people = {reviewer for reviewer, new in given if new}
        if not people:
            return
        found = connection.execute(LAST_POSITIONS, {"reviewers": sorted(people)})
        last = {row.reviewer: row.last for row in found}
        rows = []
        for reviewer, new in given:
            start = last.get(reviewer, -1) + 1
            last[reviewer] = start + len(new) - 1
            rows += [{"reviewer": reviewer, "item": item, "position": start + index} for index, item in enumerate(new)]
        if connection.dialect.name == "postgresql":
            connection.execute(INSERT_ARRAYS, {name: [row[name] for row in rows] for name in rows[0]})
        else:
            connection.execute(INSERT_ASSIGNMENTS, rows)

    def remove(self, reviewer: int, items: Iterable[str]) -> None:
        self.own[reviewer].difference_update(items)
        self.reviewers.subtract(items)


class AssignmentCache:
    """The assignments, read again only where another process changed them: the database counts the changes."""

    def __init__(self) -> None:
        self._known = Assignments()
        self._lock = threading.Lock()

    @contextmanager
    def changing(self, engine: sa.Engine) -> Iterator[tuple[sa.Connection, Assignments]]:
        """A transaction in which nobody else assigns or releases, and the assignments, to be changed along with it."""
        with self._lock:
            known, self._known = self._known, Assignments()  # nothing is known where the transaction fails
            with engine.begin() as connection:
                # the write comes first and locks the row, so that an item's last place is not assigned twice
                version = int(connection.execute(NEXT_VERSION).scalar_one())
                current = known if known.version == version - 1 else _read(connection)
                current.version = version
                yield connection, current
            self._known = current

    def of(self, reviewer: int, engine: sa.Engine) -> AssignedItems:
        """The assignments now."""
        with self._lock, engine.connect() as connection:
            version = int(connection.execute(CURRENT_VERSION).scalar_one())
            if self._known.version != version:
                self._known = _read(connection)
                self._known.version = version  # from before the read: a change since is read once more at worst
            return self._known.of(reviewer)


def _read(connection: sa.Connection) -> Assignments:
    own = defaultdict(set)
    for reviewer, item in connection.execute(ALL_ASSIGNMENTS):
        own[reviewer].add(item)
    return Assignments(reviewers=Counter(chain.from_iterable(own.values())), own=own)
