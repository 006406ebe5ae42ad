"""The table of votes: votes of one request are one transaction, concurrent requests share a commit (group commit)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from shiftproof.errors import BadInput
from shiftproof.review.schema import assignments, votes
from shiftproof.review.validation import load_answer
from shiftproof.review.votes import NONE, ROUNDS, Integers, SubmittedVote, Vote, VoteColumns, standing

# statements are built once: building one takes longer than running it
VOTE_OWNER = sa.select(votes.c.reviewer, votes.c.item).where(votes.c.id == sa.bindparam("vote"))

# an UPDATE has a parameter named after each column, so these have names of their own
_of = (assignments.c.reviewer == sa.bindparam("of_reviewer")) & (assignments.c.item == sa.bindparam("of_item"))
LOCK_ASSIGNMENT = sa.select(assignments.c.item).where(_of).with_for_update()
# also where the value is the same: a row that is not updated is not waited for while another transaction changes it
SET_ANSWERED = sa.update(assignments).where(_of).values(answered=sa.bindparam("now"))

_PLAIN_COLUMNS: Mapping[str, str] = {
    "id": "text",
    "reviewer": "int",
    "item": "text",
    "round": "text",
    "answer": "json",
    "note": "text",
    "milliseconds": "int",
    "received": "float8",
}
_names = ", ".join(_PLAIN_COLUMNS)

# numbered in the order of the arrays, and assignments locked in one order on every server, so that no two deadlock
ADD_PLAIN = sa.text(f"""
WITH new AS (
  INSERT INTO votes ({_names})
  SELECT {_names} FROM unnest({", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in _PLAIN_COLUMNS.items())})
  WITH ORDINALITY AS sent ({_names}, place) ORDER BY place
  ON CONFLICT DO NOTHING RETURNING id, reviewer, item
), held AS (
  SELECT reviewer, item FROM assignments JOIN new USING (reviewer, item) ORDER BY reviewer, item FOR UPDATE OF assignments
), done AS (
  UPDATE assignments AS own SET answered = true FROM held WHERE own.reviewer = held.reviewer AND own.item = held.item
)
SELECT id, reviewer, item FROM new""")  # noqa: S608 our words
"""Votes that supersede none, given as arrays, for PostgreSQL: one round trip, a transaction in itself."""


@cache
def insert_once(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """INSERT ... ON CONFLICT DO NOTHING, in a dialect."""
    add = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return add(table).on_conflict_do_nothing()


Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


class _Waiting(Generic[Job, Outcome]):
    def __init__(self, job: Job) -> None:
        self.job = job
        self.outcome: list[Outcome | Exception] = []  # empty until it is done


class Batches(Generic[Job, Outcome]):
    """Jobs of many threads, done in batches: whoever holds the lock does every job that waits.

    `do` returns an outcome for each job, or the exception to raise in its thread.
    """

    def __init__(self, do: Callable[[Sequence[Job]], Sequence[Outcome | Exception]], lock: threading.Lock) -> None:
        self._do, self._lock = do, lock
        self._waiting: list[_Waiting[Job, Outcome]] = []
        self._list_lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for the lock."""
        return len(self._waiting)

    def run(self, job: Job) -> Outcome:
        """The outcome of a job; blocks until it is done."""
        mine: _Waiting[Job, Outcome] = _Waiting(job)
        with self._list_lock:
            self._waiting.append(mine)
        with self._lock:
            if not mine.outcome:
                self._run_all()
        (outcome,) = mine.outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _run_all(self) -> None:
        with self._list_lock:
            batch, self._waiting = self._waiting, []
        try:
            outcomes = self._do([one.job for one in batch])
        except Exception as problem:
            outcomes = [problem] * len(batch)
        for one, outcome in zip(batch, outcomes, strict=True):
            one.outcome.append(outcome)


class Submission(NamedTuple):
    """The votes of one request, in their order."""

    reviewer: int
    votes: Sequence[SubmittedVote]

    @property
    def leading(self) -> list[SubmittedVote]:
        """The votes before the first that supersedes another."""
        return list(takewhile(lambda vote: vote.is_plain, self.votes))


VoteOutcome: TypeAlias = bool | BadInput
"""Whether a vote is new (not when it was sent before), or why it is refused."""


class _Added(NamedTuple):
    """A new vote, as the database returns it: two reviewers may have sent the same id at once."""

    id: str
    reviewer: int
    item: str


class VoteWriter:
    """Adds votes; requests that arrive during a commit share the next one."""

    def __init__(self, engine: sa.Engine, lock: threading.Lock) -> None:
        self._engine, self._by_arrays = engine, engine.dialect.name == "postgresql"
        # one statement is a transaction already: without the round trips of another around it
        self._autocommit = engine.execution_options(isolation_level="AUTOCOMMIT") if self._by_arrays else engine
        self._insert = insert_once(engine.dialect.name, votes).returning(votes.c.id, votes.c.reviewer, votes.c.item)
        self._batches: Batches[Submission, list[VoteOutcome]] = Batches(self._write, lock)

    def add(self, reviewer: int, submitted: Sequence[SubmittedVote]) -> list[VoteOutcome]:
        """What became of each vote of a request: all that are not refused are committed together, or none is."""
        return self._batches.run(Submission(reviewer, submitted)) if submitted else []

    def _write(self, submissions: Sequence[Submission]) -> list[list[VoteOutcome] | Exception]:
        """Writes several requests in one transaction; each alone where the database refuses that."""
        try:
            one_statement = self._by_arrays and all(vote.is_plain for one in submissions for vote in one.votes)
            with (self._autocommit if one_statement else self._engine).begin() as connection:
                plain = [(one.reviewer, vote) for one in submissions for vote in one.leading]
                new = self._insert_plain(connection, plain)
                return [self._finish(connection, one, new) for one in submissions]
        except Exception:
            if len(submissions) == 1:
                raise
            # another server held a lock that one of them needs, or the database cannot store one
            return [self._write_alone(one) for one in submissions]

    def _write_alone(self, submission: Submission) -> list[VoteOutcome] | Exception:
        try:
            return self._write([submission])[0]
        except Exception as problem:
            return problem

    def _finish(self, connection: sa.Connection, submission: Submission, new: set[_Added]) -> list[VoteOutcome]:
        """The outcomes of a request whose leading votes are inserted; writes the others in their order."""
        reviewer, start = submission.reviewer, len(submission.leading)
        outcomes = [self._plain_outcome(connection, reviewer, vote, new) for vote in submission.votes[:start]]
        for vote in submission.votes[start:]:
            if vote.is_plain:
                added = self._insert_plain(connection, [(reviewer, vote)])
                outcomes.append(self._plain_outcome(connection, reviewer, vote, added))
            else:
                outcomes.append(self._insert_superseding(connection, reviewer, vote))
        return outcomes

    def _insert_plain(self, connection: sa.Connection, sent: Sequence[tuple[int, SubmittedVote]]) -> set[_Added]:
        """Inserts votes that supersede none; those that are new."""
        if not sent:
            return set()
        if self._by_arrays:
            rows = [{**_row(*one), "answer": json.dumps(one[1].answer)} for one in sent]
            columns = {name: [row[name] for row in rows] for name in _PLAIN_COLUMNS}
            return {_Added(*row) for row in connection.execute(ADD_PLAIN, columns)}
        new = {_Added(*row) for row in connection.execute(self._insert, [_row(*one) for one in sent])}
        if new:
            # in one order on every server, so that no two deadlock
            answered = [{**assignment_key(one.reviewer, one.item), "now": True} for one in sorted(new)]
            connection.execute(SET_ANSWERED, answered)
        return new

    def _plain_outcome(self, connection: sa.Connection, reviewer: int, vote: SubmittedVote, new: set[_Added]) -> VoteOutcome:
        added = _Added(vote.id, reviewer, vote.item)
        if added in new:
            new.remove(added)  # the same vote may be in the batch twice
            return True
        try:
            _exists(connection, reviewer, vote.id, vote.item)
        except BadInput as refusal:
            return refusal
        return False

    def _insert_superseding(self, connection: sa.Connection, reviewer: int, vote: SubmittedVote) -> VoteOutcome:
        """Inserts a vote that replaces or undoes another; a refusal comes before anything is written."""
        try:
            check_superseded(vote, lambda vote_id: _exists(connection, reviewer, vote_id, vote.item))
            key = assignment_key(reviewer, vote.item)
            # the row of the assignment is locked first, so that a concurrent vote on the item is seen
            connection.execute(LOCK_ASSIGNMENT, key)
            if connection.execute(self._insert, [_row(reviewer, vote)]).first() is None:
                _exists(connection, reviewer, vote.id, vote.item)
                return False
        except BadInput as refusal:
            return refusal
        own = connection.execute(sa.select(votes).where(votes.c.reviewer == reviewer, votes.c.item == vote.item))
        connection.execute(SET_ANSWERED, {**key, "now": bool(standing(map(load_vote, own)))})
        return True


NOT_OWN = "a vote can only replace a vote of the same person on the same item"

VoteKey: TypeAlias = tuple[int, str]
"""The reviewer and the item of a vote."""


def check_superseded(vote: SubmittedVote, exists: Callable[[str], bool]) -> None:
    """BadInput where a vote undoes none, or supersedes one that does not exist."""
    if vote.supersedes is None and vote.answer is None:
        raise BadInput("a vote without an answer undoes another one; name it as supersedes")
    if vote.supersedes is not None and not exists(vote.supersedes):
        raise BadInput(NOT_OWN)


def check_own(found: VoteKey | None, own: VoteKey) -> bool:
    """Whether a vote was found; BadInput where it is another reviewer's, or on another item."""
    if found is not None and found != own:
        raise BadInput(NOT_OWN)
    return found is not None


def load_key(connection: sa.Connection, vote_id: str) -> VoteKey | None:
    """The reviewer and the item of a stored vote; None where there is none of this id."""
    found = connection.execute(VOTE_OWNER, {"vote": vote_id}).first()
    return None if found is None else (found.reviewer, found.item)


def _exists(connection: sa.Connection, reviewer: int, vote_id: str, item: str) -> bool:
    return check_own(load_key(connection, vote_id), (reviewer, item))


def _row(reviewer: int, vote: SubmittedVote) -> dict[str, Any]:
    answer = None if vote.answer is None else dict(vote.answer)
    received = time.time() if vote.received is None else vote.received
    return {**vars(vote), "reviewer": reviewer, "answer": answer, "received": received}


def assignment_key(reviewer: int, item: str) -> dict[str, Any]:
    """Parameters that select the row of an assignment."""
    return {"of_reviewer": reviewer, "of_item": item}


def load_vote(row: sa.Row[Any]) -> Vote:
    """The vote of a whole row; ValueError where it is damaged."""
    number, _, reviewer, _, round_, _, _, spent, _, _ = values = tuple(row)
    if round_ not in ROUNDS or type(number) is not int or type(reviewer) is not int or type(spent) not in (int, NoneType):
        raise ValueError(f"vote {number!r:.40} holds invalid values")
    return Vote(values[1], number, reviewer, *values[3:])


_superseded = votes.alias()

_INTEGER_COLUMNS: Mapping[str, sa.ColumnElement[int]] = {
    "number": votes.c.number,
    "reviewer": votes.c.reviewer,
    "round": sa.case({name: index for index, name in enumerate(ROUNDS)}, value=votes.c.round),
    "milliseconds": sa.func.coalesce(votes.c.milliseconds, NONE),
    "supersedes": sa.func.coalesce(_superseded.c.number, NONE),
}

# one row per item, its votes aggregated into one string per column: one row per vote takes several times as long to fetch
VOTES_BY_ITEM: sa.Select[Any] = (
    sa.select(
        votes.c.item,
        *(sa.func.aggregate_strings(sa.cast(column, sa.Text), ",").label(name) for name, column in _INTEGER_COLUMNS.items()),
        # JSON as it is written here has no line breaks
        sa.func.aggregate_strings(sa.func.coalesce(sa.cast(votes.c.answer, sa.Text), "null"), "\n").label("answers"),
    )
    .select_from(votes.outerjoin(_superseded, _superseded.c.id == votes.c.supersedes))
    .group_by(votes.c.item)
)


def load_columns(rows: Sequence[sa.Row[Any]]) -> VoteColumns:
    """The votes in rows of VOTES_BY_ITEM; ValueError, TypeError or BadInput where they are damaged."""
    texts = [row.answers.split("\n") for row in rows]
    index: dict[str, int] = {}
    answer = np.array([index.setdefault(text, len(index)) for some in texts for text in some], np.int64)
    answers = [load_answer(text) for text in index]
    columns = {name: parse_integers(",".join(getattr(row, name) for row in rows)) for name in _INTEGER_COLUMNS}
    if damaged := [name for name, column in columns.items() if len(column) != len(answer)]:
        raise ValueError(f"some votes have no {damaged[0]}")
    if (columns["number"] < 1).any():
        raise ValueError("votes are numbered from 1, and one has a lower number")
    found = VoteColumns(
        [row.item for row in rows],
        answers,
        item=np.repeat(np.arange(len(rows)), [len(some) for some in texts]),
        answer=answer,
        **columns,
    )
    return found.take(np.argsort(-found.number))


def parse_integers(text: str) -> Integers:
    """Integers that a database joined with commas.

    >>> parse_integers("7,8,-1"), len(parse_integers(""))
    (array([ 7,  8, -1]), 0)
    """
    return np.fromstring(text, np.int64, sep=",")
