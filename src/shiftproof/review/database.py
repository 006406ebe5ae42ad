"""Where a review is kept: SQLite beside the project, or any database by its URL."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import Column, Connection, Row, Select, Table, Text, cast, delete, func, select, update

from shiftproof.curation.review_classes import looks_like, reviewer_name
from shiftproof.errors import BadInput, StoreError
from shiftproof.review import statements
from shiftproof.review.ballots import Ballots, Numbers
from shiftproof.review.engines import engine_for, make_ready, reading_engine, sound_rows
from shiftproof.review.holdings import Held, Holding, Holdings
from shiftproof.review.read_ballots import VOTES_BY_ITEM, ballots_from, numbers_in
from shiftproof.review.schema import CHOICE, assignments, comments, facts, looks, lookups, reviewers, votes
from shiftproof.review.taking_in import VotesTakenIn, place_of, vote_in
from shiftproof.review.votes import Sent, Vote

Role = Literal["reviewer", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)

TOKEN_BYTES = 24
MOST_NAMED = 10_000
"""Items that a question names; databases take a limited number."""


@dataclass(frozen=True)
class Reviewer:
    """A person who was invited."""

    id: int
    name: str
    role: Role
    consented: bool
    trained: bool
    qualified: float | None  # the share that was right in a qualification; None before one


class BeforeVote(NamedTuple):
    """What decides whether a vote may be taken."""

    given: bool  # whether the item was given to the person
    too_late: bool  # whether the person has seen what others said of the item, or people talk about it
    here: bool  # whether the very vote came before


class Tally(NamedTuple):
    """How far a person is."""

    given: int  # items
    answered: int  # items on which a vote of the person stands
    seconds_each: float | None  # the mean of the last votes


@dataclass(frozen=True)
class Comment:
    """What one person wrote about an item."""

    reviewer: int
    item: str
    text: str
    received: float


class Database:
    """The reviewers, who judges what, and the votes."""

    def __init__(self, url: str | Path) -> None:
        self._engine = engine_for(url)
        self._reading = reading_engine(self._engine)
        turn = threading.Lock()
        # one writer at a time is all that SQLite allows: waiting here is fairer and quicker than its busy loop
        self._turn: AbstractContextManager[Any] = turn if self._engine.dialect.name == "sqlite" else nullcontext()
        self._taken_in = VotesTakenIn(self._engine, turn)
        self._holdings = Holdings()
        make_ready(self._engine)

    def close(self) -> None:
        self._engine.dispose()
        self._reading.dispose()

    def secret(self) -> bytes:
        """A key of this review, made when it is first asked for: forms are signed with it."""
        self._add_once(facts, {"name": "secret", "value": secrets.token_hex(32)})
        with self._reading.connect() as connection:
            found = connection.execute(select(facts.c.value).where(facts.c.name == "secret")).scalar_one()
        try:
            return bytes.fromhex(found)
        except ValueError as problem:
            raise StoreError("the review's database is damaged: what its forms are signed with is no key") from problem

    def invite(self, name: str, role: Role = "reviewer") -> str:
        """A token for a new person, or a new one for a known person, whose old one is then worth nothing.

        BadInput for a name that looks like another's: votes of two people would be read as those of one.
        """
        others = [person.name for person in self.reviewers()]
        if name not in others:  # those of older versions may be spelled in other ways
            name = reviewer_name(name)
            twin = next((other for other in others if other != name and looks_like(other) == looks_like(name)), None)
            if twin is not None:
                raise BadInput(f"{name!r:.220} looks like {twin!r:.220}, who is invited already: write it so or otherwise")
        if not name or len(name) > 200:
            raise BadInput(f"a reviewer needs a name of at most 200 letters, got {name!r:.220}")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        now = {"role": role, "token_digest": token_digest(token)}
        self._add_once(reviewers, {"name": name, "created": time.time(), **now})
        with self._turn, self._engine.begin() as connection:
            connection.execute(update(reviewers).where(reviewers.c.name == name).values(**now))
        return token

    def reviewer_with(self, token: str) -> Reviewer | None:
        """Whose token this is; it is found by its digest, so that no comparison can be timed."""
        with self._reading.connect() as connection:
            row = connection.execute(statements.OWNER_OF_TOKEN, {"digest": token_digest(token)}).first()
        return None if row is None else _reviewer(row)

    def reviewers(self) -> list[Reviewer]:
        """Everybody who was invited, in that order."""
        with self._reading.connect() as connection, sound_rows(self._engine):
            return [_reviewer(row) for row in connection.execute(select(reviewers).order_by(reviewers.c.id))]

    def mark(
        self,
        reviewer: int,
        *,
        consented: bool = False,
        trained: bool = False,
        qualified: float | None = None,
    ) -> None:
        """Remembers that a person agreed to a test, has done the training round, or was qualified so well."""
        now, passed = time.time(), {"consented": consented, "trained": trained}
        values: dict[str, float] = {name: now for name, done in passed.items() if done}
        if qualified is not None:
            values["qualified"] = qualified
        if values:
            with self._turn, self._engine.begin() as connection:
                connection.execute(update(reviewers).where(reviewers.c.id == reviewer).values(**values))

    def hand_out(self, reviewer: int, choose: Callable[[Holding], Sequence[str]]) -> list[str]:
        """Gives a person the items that are chosen by who has each so far; nobody else is given any meanwhile."""
        with self._turn, self._holdings.changing(self._engine) as (connection, held):
            return _give(connection, held, reviewer, choose(held.of(reviewer)))

    def hand_out_to_all(
        self, reviewer: int, choose: Callable[[Holding], Sequence[str]], turn: Callable[[int, str], Any]
    ) -> dict[int, list[str]]:
        """Gives the items that are chosen for a person to everybody who takes part, to each in an order of their own.

        What is new to each of them.
        """
        with self._turn, self._holdings.changing(self._engine) as (connection, held):
            items = choose(held.of(reviewer))
            here = connection.execute(select(reviewers.c.id).where(reviewers.c.present.is_not(None))).scalars()
            people = {reviewer, *here}
            orders = {person: sorted(items, key=partial(turn, person)) for person in sorted(people)}
            return {person: _give(connection, held, person, order) for person, order in orders.items()}

    def arrive(self, reviewer: int) -> None:
        """Remembers that a person takes part from now on, if they did not."""
        with self._turn, self._engine.begin() as connection:
            connection.execute(statements.ARRIVE, {"who": reviewer, "now": time.time()})

    def release(self, reviewer: int) -> int:
        """Takes back what a person was given and did not answer, for others; how many items that were.

        The person takes part no more, until they ask for items again.
        """
        left = delete(assignments).where(assignments.c.reviewer == reviewer, ~assignments.c.answered)
        with self._turn, self._holdings.changing(self._engine) as (connection, held):
            gone = connection.execute(left.returning(assignments.c.item)).scalars().all()
            held.remove(reviewer, gone)
            connection.execute(update(reviewers).where(reviewers.c.id == reviewer).values(present=None))
        return len(gone)

    def awaited(self) -> set[str]:
        """The items that somebody was given and has not answered."""
        with self._reading.connect() as connection:
            return set(connection.execute(select(assignments.c.item).where(~assignments.c.answered).distinct()).scalars())

    def given(self, reviewer: int) -> Holding:
        """How many people have each item that somebody has, and what this person has."""
        return self._holdings.of(reviewer, self._reading)

    def assigned_to(self, reviewer: int) -> list[str]:
        """The items of one person, in the person's own order."""
        mine = select(assignments.c.item).where(assignments.c.reviewer == reviewer).order_by(assignments.c.position)
        with self._reading.connect() as connection:
            return [row.item for row in connection.execute(mine)]

    def waiting(self, reviewer: int, count: int, *, besides: Iterable[str] = ()) -> list[str]:
        """The next items of a person on which no vote of theirs stands, but for some."""
        asked = {"reviewer": reviewer, "besides": list(besides), "count": count}
        with self._reading.connect() as connection:
            return list(connection.execute(statements.WAITING, asked).scalars())

    def is_given(self, reviewer: int, item: str) -> bool:
        """Whether an item was given to a person."""
        with self._reading.connect() as connection:
            return bool(connection.execute(statements.IS_GIVEN, {"reviewer": reviewer, "item": item}).scalar())

    def before_vote(self, reviewer: int, item: str, vote_id: str) -> BeforeVote:
        """What decides whether a vote of a person may be taken."""
        with self._reading.connect() as connection:
            found = connection.execute(statements.BEFORE_VOTE, {"reviewer": reviewer, "item": item, "vote": vote_id}).one()
        return BeforeVote(*map(bool, found))

    def tally(self, reviewer: int, *, last: int = 20) -> Tally:
        """How far a person is, and the pace of the last votes."""
        with self._reading.connect() as connection:
            given, done, milliseconds = connection.execute(statements.TALLY, {"reviewer": reviewer, "last": last}).one()
        return Tally(int(given), int(done), None if milliseconds is None else float(milliseconds) / 1000)

    def settle(self, reviewer: int, items: Collection[str], answered: Callable[[list[Vote]], Set[str]]) -> None:
        """Says anew which of some items of a person count as answered, by the person's votes on them.

        A vote on another item may speak for them.
        """
        mine = assignments.c.reviewer == reviewer
        if len(items) <= MOST_NAMED:
            mine &= assignments.c.item.in_(items)
        # writing comes first: whoever settles holds the rows, so that a vote at the same time is seen, or comes after
        hold = update(assignments).where(mine).values(answered=assignments.c.answered)
        asked = select(votes).where(votes.c.reviewer == reviewer)
        with self._turn, self._engine.begin() as connection:
            held = connection.execute(hold.returning(assignments.c.item, assignments.c.answered)).all()
            now = answered([vote_in(row) for row in _of_items(connection, asked, votes.c.item, items)])
            about = frozenset(items)
            changed = [row.item for row in held if row.item in about and row.answered != (row.item in now)]
            if changed:
                rows = [{**place_of(reviewer, item), "now": item in now} for item in changed]
                connection.execute(statements.ANSWERED, rows)

    def assigned(self, items: Sequence[str] | None = None) -> dict[str, list[int]]:
        """The people each item was given to; of some items alone, where they are named."""
        people = func.aggregate_strings(cast(assignments.c.reviewer, Text), ",").label("people")
        asked = select(assignments.c.item, people).group_by(assignments.c.item)
        with self._reading.connect() as connection, sound_rows(self._engine):
            rows = _of_items(connection, asked, assignments.c.item, items)
            return {row.item: sorted(map(int, (row.people or "").split(","))) for row in rows}

    def unanswered(self) -> dict[int, int]:
        """How many items people were given on which no vote of theirs stands; nobody who has none."""
        asked = select(assignments.c.reviewer, func.count().label("items")).where(~assignments.c.answered)
        with self._reading.connect() as connection:
            return {row.reviewer: row.items for row in connection.execute(asked.group_by(assignments.c.reviewer))}

    def add(self, reviewer: int, sent: Iterable[Sent]) -> int:
        """Adds votes, and says how many are new; one that is here already, under the same id, is not added again.

        A vote may replace or take back only a vote of the same person on the same item: BadInput otherwise.
        """
        return sum(self._taken_in.add(reviewer, one) for one in sent)

    def votes(
        self,
        *,
        after: int = 0,
        reviewer: int | None = None,
        items: Sequence[str] | None = None,
        last: int | None = None,
    ) -> list[Vote]:
        """All votes with a number above `after`, in the order they came; of one person, on some items, or the `last` few."""
        asked = (
            select(votes).where(votes.c.number > after).order_by(votes.c.number if last is None else votes.c.number.desc())
        )
        if reviewer is not None:
            asked = asked.where(votes.c.reviewer == reviewer)
        with self._reading.connect() as connection, sound_rows(self._engine):
            found = [vote_in(row) for row in _of_items(connection, asked.limit(last), votes.c.item, items)]
        return sorted(found, key=lambda vote: vote.number)

    def ballots(self, items: Sequence[str] | None = None) -> Ballots:
        """All votes as columns; those on some items alone, where they are named."""
        with self._reading.connect() as connection, sound_rows(self._engine):
            return ballots_from(list(_of_items(connection, VOTES_BY_ITEM, votes.c.item, items)))

    def last_seen(self) -> dict[int, float]:
        """When the last vote of each person came."""
        last = select(func.max(votes.c.number)).group_by(votes.c.reviewer)
        with self._reading.connect() as connection:
            asked = select(votes.c.reviewer, votes.c.received).where(votes.c.number.in_(last))
            return {row.reviewer: row.received for row in connection.execute(asked)}

    def numbers_since(self, moment: float) -> Numbers:
        """The numbers of the votes that came then or later, in no order."""
        asked = select(func.aggregate_strings(cast(votes.c.number, Text), ",")).where(votes.c.received >= moment)
        with self._reading.connect() as connection:
            return numbers_in(connection.execute(asked).scalar() or "")

    def items_chosen(self, choices: Iterable[str]) -> set[tuple[str, str]]:
        """Items, each with one of some choices that somebody made there, whether it stands or not."""
        with self._reading.connect() as connection:
            asked = select(votes.c.item, CHOICE).where(CHOICE.in_(list(choices))).distinct()
            return {(item, choice) for item, choice in connection.execute(asked)}

    def items_with_votes(self, least: int) -> set[str]:
        """Items on which there are so many votes, or more, whether they stand or not."""
        with self._reading.connect() as connection:
            asked = select(votes.c.item).group_by(votes.c.item).having(func.count() >= least)
            return set(connection.execute(asked).scalars())

    def count(self) -> int:
        """How many votes there are, those that take others back among them."""
        with self._reading.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(votes)).scalar() or 0)

    def comment(self, reviewer: int, comment_id: str, item: str, text: str) -> None:
        """Adds what a person wrote about an item; the same one twice is one."""
        row = {"id": comment_id, "reviewer": reviewer, "item": item, "text": text, "received": time.time()}
        self._add_once(comments, row)

    def comments(self, item: str | None = None) -> list[Comment]:
        """What was written about an item, or about any, in the order it came."""
        asked = select(comments).order_by(comments.c.number)
        if item is not None:
            asked = asked.where(comments.c.item == item)
        with self._reading.connect() as connection:
            return [Comment(row.reviewer, row.item, row.text, row.received) for row in connection.execute(asked)]

    def look(self, reviewer: int, items: Iterable[str]) -> None:
        """Remembers that a person sees what others said of some items."""
        for item in sorted(set(items) - self.looked_at(reviewer)):
            self._add_once(looks, {"reviewer": reviewer, "item": item})

    def looked_at(self, reviewer: int | None = None) -> set[str]:
        """The items of which a person, or anybody, has seen what others said."""
        asked = select(looks.c.item).distinct()
        if reviewer is not None:
            asked = asked.where(looks.c.reviewer == reviewer)
        with self._reading.connect() as connection:
            return set(connection.execute(asked).scalars())

    def look_up(self, reviewer: int, lookup_id: str, key: str) -> None:
        """Remembers that a person looked up a class during a test."""
        self._add_once(lookups, {"id": lookup_id, "reviewer": reviewer, "class": key, "received": time.time()})

    def lookups(self) -> dict[int, int]:
        """How often each person looked up a class."""
        asked = select(lookups.c.reviewer, func.count().label("times")).group_by(lookups.c.reviewer)
        with self._reading.connect() as connection:
            return {row.reviewer: row.times for row in connection.execute(asked)}

    def _add_once(self, table: Table, row: Mapping[str, Any]) -> None:
        with self._turn, self._engine.begin() as connection:
            connection.execute(statements.once(self._engine.dialect.name, table), row)


def _give(connection: Connection, held: Held, reviewer: int, items: Iterable[str]) -> list[str]:
    """Gives a person those of some items that are new to them, behind what they have; these items."""
    new = [item for item in dict.fromkeys(items) if item not in held.own[reviewer]]
    last = connection.execute(statements.LAST_PLACE, {"reviewer": reviewer}).scalar()
    start = 0 if last is None else last + 1
    rows = [{"reviewer": reviewer, "item": item, "position": start + place} for place, item in enumerate(new)]
    if rows:
        connection.execute(statements.GIVE, rows)
        held.add(reviewer, new)
    return new


def token_digest(token: str) -> str:
    """What is kept of a token: whoever reads the database cannot come in with it."""
    return hashlib.sha256(token.encode()).hexdigest()


def _of_items(
    connection: Connection, asked: Select[Any], column: Column[str], items: Collection[str] | None
) -> Iterator[Row[Any]]:
    """The rows that are about some items, or about any; of too many to be named in a question, all are read."""
    if items is None or len(items) > MOST_NAMED:
        named = None if items is None else frozenset(items)
        return (row for row in connection.execute(asked) if named is None or row.item in named)
    return iter(connection.execute(asked.where(column.in_(items))))


def _reviewer(row: Row[Any]) -> Reviewer:
    if not isinstance(row.name, str) or row.role not in ROLES or not isinstance(row.qualified, float | None):
        raise ValueError(f"reviewer {row.id} has no name, or what no reviewer has")
    return Reviewer(row.id, row.name, row.role, row.consented is not None, row.trained is not None, row.qualified)
