"""The database of a review: SQLite in the project's folder, or any other by its URL."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import sqlalchemy as sa

from shiftproof.curation.reviewers import looks_like, reviewer_name
from shiftproof.errors import BadInput, StoreError
from shiftproof.review import vote_table
from shiftproof.review.assignment_cache import AssignedItems, AssignmentCache
from shiftproof.review.schema import (
    CHOICE,
    assignments,
    comments,
    engine_for,
    facts,
    looks,
    lookups,
    make_ready,
    reading_engine,
    reviewers,
    sound_rows,
    votes,
)
from shiftproof.review.votes import Integers, SubmittedVote, Vote, VoteColumns

Role = Literal["reviewer", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)

AnyRow: TypeAlias = sa.Row[*tuple[Any, ...]]

TOKEN_BYTES = 24
MAX_PARAMETERS = 10_000
"""Items in an IN clause; databases take a limited number."""


@dataclass(frozen=True)
class Reviewer:
    """An invited reviewer."""

    id: int
    name: str
    role: Role
    consented: bool
    trained: bool
    qualified: float | None  # accuracy in the qualification; None before it


class VoteCheck(NamedTuple):
    """What decides whether a vote is accepted."""

    is_assigned: bool  # the item, to the reviewer
    too_late: bool  # the reviewer has seen the votes of others, or adjudication of the item has begun
    is_stored: bool  # the very vote was sent before


class _Wish(NamedTuple):
    """A reviewer who is to be assigned items, and what picks them from the assignments so far."""

    reviewer: int
    choose: Callable[[AssignedItems], Sequence[str]]


class Tally(NamedTuple):
    """Progress of a reviewer."""

    assigned: int  # items
    answered: int  # items on which a vote of the reviewer stands
    seconds_each: float | None  # mean of the latest votes


@dataclass(frozen=True)
class Comment:
    """A comment of a reviewer on an item."""

    reviewer: int
    item: str
    text: str
    received: float


# statements are built once: building one takes longer than running it
_reviewer: sa.BindParameter[int] = sa.bindparam("reviewer")
_item: sa.BindParameter[str] = sa.bindparam("item")
_vote: sa.BindParameter[str] = sa.bindparam("vote")

REVIEWER_BY_TOKEN = sa.select(reviewers).where(reviewers.c.token_digest == sa.bindparam("digest"))

UNANSWERED = (
    sa.select(assignments.c.item)
    .where(assignments.c.reviewer == _reviewer, ~assignments.c.answered)
    .where(assignments.c.item.not_in(sa.bindparam("exclude", expanding=True)))
    .order_by(assignments.c.position)
    .limit(sa.bindparam("count"))
)

_assigned = sa.exists().where(assignments.c.reviewer == _reviewer, assignments.c.item == _item)
_commented = sa.exists().where(comments.c.item == _item)
_adjudicated = sa.exists().where(votes.c.item == _item, votes.c.round == "open")
_unblinded = sa.exists().where(looks.c.reviewer == _reviewer, looks.c.item == _item)
_stored = sa.exists().where(votes.c.id == _vote, votes.c.reviewer == _reviewer, votes.c.item == _item)

MARK_PRESENT = (
    sa.update(reviewers)
    .where(reviewers.c.id == sa.bindparam("who"), reviewers.c.present.is_(None))
    .values(present=sa.bindparam("now"))
)
IS_ASSIGNED = sa.select(_assigned)
VOTE_CHECK = sa.select(_assigned, _commented | _adjudicated | _unblinded, _stored)

_recent = (
    sa.select(votes.c.milliseconds)
    .where(votes.c.reviewer == _reviewer, votes.c.milliseconds.is_not(None))
    .order_by(votes.c.number.desc())
    .limit(sa.bindparam("last"))
    .subquery()
)

TALLY = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.case((assignments.c.answered, 1), else_=0)), 0),
    sa.select(sa.func.avg(_recent.c.milliseconds)).scalar_subquery(),
).where(assignments.c.reviewer == _reviewer)


class Database:
    """Reviewers, assignments, votes and comments."""

    def __init__(self, url: str | Path) -> None:
        self._engine = engine_for(url)
        self._reading = reading_engine(self._engine)
        lock = threading.Lock()
        # SQLite has one writer at a time: waiting for a lock is fairer and quicker than its busy loop
        self._write_lock: AbstractContextManager[Any] = lock if self._engine.dialect.name == "sqlite" else nullcontext()
        self._vote_writer = vote_table.VoteWriter(self._engine, lock)
        self._assignments = AssignmentCache()
        # who wants items while others get theirs shares the next transaction with all who wait
        turn = lock if self._engine.dialect.name == "sqlite" else threading.Lock()
        self._assigner: vote_table.Batches[_Wish, list[str]] = vote_table.Batches(self._assign_all, turn)
        make_ready(self._engine)

    def close(self) -> None:
        self._engine.dispose()
        self._reading.dispose()

    def secret(self) -> bytes:
        """The signing key of this review, generated on first use."""
        self._add_once(facts, {"name": "secret", "value": secrets.token_hex(32)})
        try:
            return bytes.fromhex(self._values(sa.select(facts.c.value).where(facts.c.name == "secret"))[0])
        except ValueError as problem:
            raise StoreError("the review's database is damaged: its signing key is not hexadecimal") from problem

    def invite(self, name: str, role: Role = "reviewer") -> str:
        """A token for a new reviewer, or a new one for a known reviewer, which revokes the old one.

        BadInput for a name that looks like another's: votes of two people would be read as those of one.
        """
        others = [person.name for person in self.reviewers()]
        if name not in others:  # older versions did not normalise names
            name = reviewer_name(name)
            twin = next((other for other in others if other != name and looks_like(other) == looks_like(name)), None)
            if twin is not None:
                raise BadInput(f"{name!r:.220} looks like {twin!r:.220}, who is invited already; use another name")
        if not name or len(name) > 200:
            raise BadInput(f"a reviewer needs a name of at most 200 characters, got {name!r:.220}")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        now = {"role": role, "token_digest": token_digest(token)}
        self._add_once(reviewers, {"name": name, "created": time.time(), **now})
        with self._write_lock, self._engine.begin() as connection:
            connection.execute(sa.update(reviewers).where(reviewers.c.name == name).values(**now))
        return token

    def reviewer_with(self, token: str) -> Reviewer | None:
        """The reviewer of a token; it is looked up by its digest, so that no comparison can be timed."""
        return next(map(_load_reviewer, self._rows(REVIEWER_BY_TOKEN, digest=token_digest(token))), None)

    def reviewers(self) -> list[Reviewer]:
        """All reviewers, in the order of invitation."""
        with sound_rows(self._engine):
            return [_load_reviewer(row) for row in self._rows(sa.select(reviewers).order_by(reviewers.c.id))]

    def mark(
        self,
        reviewer: int,
        *,
        consented: bool = False,
        trained: bool = False,
        qualified: float | None = None,
    ) -> None:
        """Records that a reviewer consented, finished the training round, or reached an accuracy in the qualification."""
        now, passed = time.time(), {"consented": consented, "trained": trained}
        values: dict[str, float] = {name: now for name, done in passed.items() if done}
        if qualified is not None:
            values["qualified"] = qualified
        if values:
            with self._write_lock, self._engine.begin() as connection:
                connection.execute(sa.update(reviewers).where(reviewers.c.id == reviewer).values(**values))

    def assign(self, reviewer: int, choose: Callable[[AssignedItems], Sequence[str]]) -> list[str]:
        """Assigns the items that `choose` picks from the assignments so far; nobody else is assigned any meanwhile."""
        return self._assigner.run(_Wish(reviewer, choose))

    def _assign_all(self, wishes: Sequence[_Wish]) -> list[list[str] | Exception]:
        """Assigns to several reviewers in one transaction, one after the other; to each alone where one fails."""
        try:
            with self._assignments.changing(self._engine) as (connection, current):
                chosen = [
                    (wish.reviewer, current.note(wish.reviewer, wish.choose(current.of(wish.reviewer)))) for wish in wishes
                ]
                current.insert(connection, chosen)
            return [items for _, items in chosen]
        except Exception as problem:
            if len(wishes) == 1:
                return [problem]
            return [outcome for wish in wishes for outcome in self._assign_all([wish])]

    def assign_to_all(
        self,
        reviewer: int,
        choose: Callable[[AssignedItems], Sequence[str]],
        order: Callable[[int], Callable[[str], Any]],
    ) -> dict[int, list[str]]:
        """Assigns the items chosen for a reviewer to everybody who takes part, each in an order of their own.

        Returns the new items of each reviewer.
        """
        with self._write_lock, self._assignments.changing(self._engine) as (connection, current):
            items = choose(current.of(reviewer))
            present = connection.execute(sa.select(reviewers.c.id).where(reviewers.c.present.is_not(None))).scalars()
            people = sorted({reviewer, *present})
            given = {person: current.note(person, sorted(items, key=order(person))) for person in people}
            current.insert(connection, given.items())
            return given

    def mark_present(self, reviewer: int) -> None:
        """Records that a reviewer takes part from now on, if they did not."""
        with self._write_lock, self._engine.begin() as connection:
            connection.execute(MARK_PRESENT, {"who": reviewer, "now": time.time()})

    def release(self, reviewer: int) -> int:
        """Releases the unanswered items of a reviewer to others; the number of items.

        The reviewer no longer takes part, until they ask for items again.
        """
        unanswered = sa.delete(assignments).where(assignments.c.reviewer == reviewer, ~assignments.c.answered)
        with self._write_lock, self._assignments.changing(self._engine) as (connection, current):
            released = connection.execute(unanswered.returning(assignments.c.item)).scalars().all()
            current.remove(reviewer, released)
            connection.execute(sa.update(reviewers).where(reviewers.c.id == reviewer).values(present=None))
        return len(released)

    def unanswered_items(self) -> set[str]:
        """The items that somebody was assigned and has not answered."""
        return set(self._values(sa.select(assignments.c.item).where(~assignments.c.answered).distinct()))

    def assigned_items(self, reviewer: int) -> AssignedItems:
        """The number of reviewers of each assigned item, and the items of this reviewer."""
        return self._assignments.of(reviewer, self._reading)

    def assigned_to(self, reviewer: int) -> list[str]:
        """The items of one reviewer, in the reviewer's own order."""
        mine = sa.select(assignments.c.item).where(assignments.c.reviewer == reviewer).order_by(assignments.c.position)
        return self._values(mine)

    def next_items(self, reviewer: int, count: int, *, exclude: Iterable[str] = ()) -> list[str]:
        """The next assigned items of a reviewer on which no vote of theirs stands."""
        return self._values(UNANSWERED, reviewer=reviewer, exclude=list(exclude), count=count)

    def is_assigned(self, reviewer: int, item: str) -> bool:
        """Whether an item is assigned to a reviewer."""
        return bool(self._values(IS_ASSIGNED, reviewer=reviewer, item=item)[0])

    def vote_check(self, reviewer: int, item: str, vote_id: str) -> VoteCheck:
        """What decides whether a vote is accepted."""
        (found,) = self._rows(VOTE_CHECK, reviewer=reviewer, item=item, vote=vote_id)
        return VoteCheck(*map(bool, found))

    def vote_key(self, vote_id: str) -> vote_table.VoteKey | None:
        """The reviewer and the item of a vote; None where there is none of this id."""
        with self._reading.connect() as connection:
            return vote_table.load_key(connection, vote_id)

    def tally(self, reviewer: int, *, last: int = 20) -> Tally:
        """Progress of a reviewer, and the pace of the latest votes."""
        ((assigned, answered, milliseconds),) = self._rows(TALLY, reviewer=reviewer, last=last)
        return Tally(int(assigned), int(answered), None if milliseconds is None else float(milliseconds) / 1000)

    def update_answered(self, reviewer: int, items: Collection[str], answered: Callable[[list[Vote]], Set[str]]) -> None:
        """Updates which of some items count as answered, by the reviewer's votes on them.

        A vote on another item of a group may answer them too.
        """
        mine = assignments.c.reviewer == reviewer
        if len(items) <= MAX_PARAMETERS:
            mine &= assignments.c.item.in_(items)
        # the write comes first and locks the rows, so that a concurrent vote is seen or comes after
        lock = sa.update(assignments).where(mine).values(answered=assignments.c.answered)
        asked = sa.select(votes).where(votes.c.reviewer == reviewer)
        with self._write_lock, self._engine.begin() as connection:
            locked = connection.execute(lock.returning(assignments.c.item, assignments.c.answered)).all()
            now = answered([vote_table.load_vote(row) for row in _of_items(connection, asked, votes.c.item, items)])
            about = frozenset(items)
            changed = [row.item for row in locked if row.item in about and row.answered != (row.item in now)]
            if changed:
                rows = [{**vote_table.assignment_key(reviewer, item), "now": item in now} for item in changed]
                connection.execute(vote_table.SET_ANSWERED, rows)

    def assigned(self, items: Sequence[str] | None = None) -> dict[str, list[int]]:
        """The reviewers of each assigned item, or of some items."""
        people = sa.func.aggregate_strings(sa.cast(assignments.c.reviewer, sa.Text), ",").label("people")
        asked = sa.select(assignments.c.item, people).group_by(assignments.c.item)
        with self._reading.connect() as connection, sound_rows(self._engine):
            rows = _of_items(connection, asked, assignments.c.item, items)
            return {row.item: sorted(map(int, (row.people or "").split(","))) for row in rows}

    def unanswered(self) -> dict[int, int]:
        """The number of unanswered items of each reviewer who has any."""
        asked = sa.select(assignments.c.reviewer, sa.func.count().label("items")).where(~assignments.c.answered)
        return {row.reviewer: row.items for row in self._rows(asked.group_by(assignments.c.reviewer))}

    def submit(self, reviewer: int, submitted: Sequence[SubmittedVote]) -> list[vote_table.VoteOutcome]:
        """Adds the votes of one request in one transaction; whether each is new, or why it is refused.

        A vote that is stored already, under the same id, is not added again. A vote may supersede only a vote of the same
        reviewer on the same item.
        """
        return self._vote_writer.add(reviewer, submitted)

    def add(self, reviewer: int, submitted: Iterable[SubmittedVote]) -> int:
        """Adds votes in one transaction, and returns how many are new; BadInput where one is refused."""
        outcomes = self.submit(reviewer, list(submitted))
        for outcome in outcomes:
            if isinstance(outcome, BadInput):
                raise outcome
        return sum(outcome is True for outcome in outcomes)

    def votes(
        self,
        *,
        after: int = 0,
        reviewer: int | None = None,
        items: Sequence[str] | None = None,
        last: int | None = None,
    ) -> list[Vote]:
        """The votes numbered above `after`, in order of arrival; of one reviewer, on some items, or the `last` few."""
        order = votes.c.number if last is None else votes.c.number.desc()
        asked = sa.select(votes).where(votes.c.number > after).order_by(order)
        if reviewer is not None:
            asked = asked.where(votes.c.reviewer == reviewer)
        with self._reading.connect() as connection, sound_rows(self._engine):
            found = [vote_table.load_vote(row) for row in _of_items(connection, asked.limit(last), votes.c.item, items)]
        return sorted(found, key=lambda vote: vote.number)

    def vote_columns(self, items: Sequence[str] | None = None) -> VoteColumns:
        """All votes as columns, or those on some items."""
        with self._reading.connect() as connection, sound_rows(self._engine):
            return vote_table.load_columns(list(_of_items(connection, vote_table.VOTES_BY_ITEM, votes.c.item, items)))

    def last_seen(self) -> dict[int, float]:
        """When the latest vote of each reviewer arrived."""
        last = sa.select(sa.func.max(votes.c.number)).group_by(votes.c.reviewer)
        asked = sa.select(votes.c.reviewer, votes.c.received).where(votes.c.number.in_(last))
        return {row.reviewer: row.received for row in self._rows(asked)}

    def numbers_since(self, moment: float) -> Integers:
        """The numbers of the votes received since a moment, in no order."""
        asked = sa.select(sa.func.aggregate_strings(sa.cast(votes.c.number, sa.Text), ",")).where(votes.c.received >= moment)
        return vote_table.parse_integers(self._values(asked)[0] or "")

    def items_chosen(self, choices: Iterable[str]) -> set[tuple[str, str]]:
        """Pairs of an item and a choice that somebody made there, whether the vote stands or not."""
        asked = sa.select(votes.c.item, CHOICE).where(CHOICE.in_(list(choices))).distinct()
        return {(item, choice) for item, choice in self._rows(asked)}

    def items_with_votes(self, least: int) -> set[str]:
        """Items with at least so many votes, whether they stand or not."""
        return set(self._values(sa.select(votes.c.item).group_by(votes.c.item).having(sa.func.count() >= least)))

    def count(self) -> int:
        """Number of votes, including those that undo others."""
        return int(self._values(sa.select(sa.func.count()).select_from(votes))[0])

    def add_comment(self, reviewer: int, comment_id: str, item: str, text: str) -> None:
        """Adds a comment on an item, once per id."""
        row = {"id": comment_id, "reviewer": reviewer, "item": item, "text": text, "received": time.time()}
        self._add_once(comments, row)

    def comments(self, item: str | None = None) -> list[Comment]:
        """The comments on an item, or on any, in order of arrival."""
        asked = sa.select(comments).order_by(comments.c.number)
        if item is not None:
            asked = asked.where(comments.c.item == item)
        return [Comment(row.reviewer, row.item, row.text, row.received) for row in self._rows(asked)]

    def mark_unblinded(self, reviewer: int, items: Iterable[str]) -> None:
        """Records that a reviewer sees the votes of others on some items."""
        for item in sorted(set(items) - self.unblinded_items(reviewer)):
            self._add_once(looks, {"reviewer": reviewer, "item": item})

    def unblinded_items(self, reviewer: int | None = None) -> set[str]:
        """The items on which a reviewer, or anybody, has seen the votes of others."""
        asked = sa.select(looks.c.item).distinct()
        if reviewer is not None:
            asked = asked.where(looks.c.reviewer == reviewer)
        return set(self._values(asked))

    def add_lookup(self, reviewer: int, lookup_id: str, key: str) -> None:
        """Records that a reviewer looked up a class during a test."""
        self._add_once(lookups, {"id": lookup_id, "reviewer": reviewer, "class": key, "received": time.time()})

    def lookups(self) -> dict[int, int]:
        """Number of class look-ups of each reviewer."""
        asked = sa.select(lookups.c.reviewer, sa.func.count().label("times")).group_by(lookups.c.reviewer)
        return {row.reviewer: row.times for row in self._rows(asked)}

    def _rows(self, asked: sa.Executable, **values: Any) -> Sequence[AnyRow]:
        with self._reading.connect() as connection:
            return connection.execute(asked, values).all()

    def _values(self, asked: sa.Executable, **values: Any) -> list[Any]:
        """The first column of the rows."""
        return [row[0] for row in self._rows(asked, **values)]

    def _add_once(self, table: sa.Table, row: Mapping[str, Any]) -> None:
        with self._write_lock, self._engine.begin() as connection:
            connection.execute(vote_table.insert_once(self._engine.dialect.name, table), row)


def token_digest(token: str) -> str:
    """What is stored of a token: whoever reads the database cannot log in with it."""
    return hashlib.sha256(token.encode()).hexdigest()


def _of_items(
    connection: sa.Connection, asked: sa.Select[Any], column: sa.Column[str], items: Collection[str] | None
) -> Iterator[sa.Row[Any]]:
    """The rows on some items, or on any; of too many for an IN clause, all rows are read and filtered."""
    if items is None or len(items) > MAX_PARAMETERS:
        named = None if items is None else frozenset(items)
        return (row for row in connection.execute(asked) if named is None or row.item in named)
    return iter(connection.execute(asked.where(column.in_(items))))


def _load_reviewer(row: AnyRow) -> Reviewer:
    if not isinstance(row.name, str) or row.role not in ROLES or not isinstance(row.qualified, float | None):
        raise ValueError(f"reviewer {row.id} has an invalid name, role or qualification")
    return Reviewer(row.id, row.name, row.role, row.consented is not None, row.trained is not None, row.qualified)
