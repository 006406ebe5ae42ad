"""How votes get into the database: those of several people with one commit, each once, and none for another person."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Engine, Row, select

from shiftproof.errors import BadInput
from shiftproof.review import statements
from shiftproof.review.batches import Batches
from shiftproof.review.schema import votes
from shiftproof.review.votes import ROUNDS, Sent, Vote, standing

ByWhom: TypeAlias = tuple[int, Sent]


class Added(NamedTuple):
    """A vote that was new, as the database tells of it: one id may have come from two people at once."""

    id: str
    reviewer: int
    item: str


class VotesTakenIn:
    """Adds votes; those that come while others are written wait, and are written together."""

    def __init__(self, engine: Engine, turn: threading.Lock) -> None:
        self._engine = engine
        told = (votes.c.id, votes.c.reviewer, votes.c.item)
        self._new_votes = statements.once(engine.dialect.name, votes).returning(*told)
        self._together: Batches[ByWhom, int] = Batches(self._add_together, turn)

    def add(self, reviewer: int, sent: Sent) -> int:
        """1 for a vote that is new, 0 for one that is here under the same id; BadInput for one that may not be."""
        return self._together.done((reviewer, sent))

    def _add_together(self, sent: Sequence[ByWhom]) -> list[int | Exception]:
        """Adds votes of several people with one commit, which is what takes long; 1 for each that is new, or the refusal."""
        try:
            with self._engine.begin() as connection:
                new = self._add_plain(connection, [one for one in sent if one[1].is_plain])
                return [self._outcome(connection, *one, new) for one in sent]
        except Exception:
            if len(sent) == 1:
                raise
            # another server stood in the way of one of them, or the database does not take one
            return [self._alone(one) for one in sent]

    def _alone(self, vote: ByWhom) -> int | Exception:
        try:
            return self._add_together([vote])[0]
        except Exception as problem:
            return problem

    def _add_plain(self, connection: Connection, sent: Sequence[ByWhom]) -> set[Added]:
        """Adds votes that say nothing of others, all at once; those that are new."""
        if not sent:
            return set()
        new = {Added(*row) for row in connection.execute(self._new_votes, [_row(*one) for one in sent])}
        if new:
            # in one order on every server, so that no two wait for each other
            answered = [{**place_of(one.reviewer, one.item), "now": True} for one in sorted(new)]
            connection.execute(statements.ANSWERED, answered)
        return new

    def _outcome(self, connection: Connection, reviewer: int, sent: Sent, new: set[Added]) -> int | Exception:
        """What became of a vote; BadInput is its sender's alone, and is told before anything is written."""
        try:
            if not sent.is_plain:
                return self._add_about_another(connection, reviewer, sent)
            if (added := Added(sent.id, reviewer, sent.item)) not in new:
                _is_own(connection, reviewer, sent.id, sent.item)
                return 0
        except BadInput as refusal:
            return refusal
        new.remove(added)  # the same may have come twice at once
        return 1

    def _add_about_another(self, connection: Connection, reviewer: int, sent: Sent) -> int:
        """Adds a vote that replaces another or takes it back."""
        if sent.supersedes is None:
            raise BadInput("a vote without an answer takes another one back; say which as supersedes")
        if not _is_own(connection, reviewer, sent.supersedes, sent.item):
            raise BadInput("a vote can only replace a vote of the same person on the same item")
        place = place_of(reviewer, sent.item)
        # whoever takes a vote back holds the person's row of the item, so that a vote at the same time is seen
        connection.execute(statements.HELD, place)
        if connection.execute(self._new_votes, [_row(reviewer, sent)]).first() is None:
            _is_own(connection, reviewer, sent.id, sent.item)
            return 0
        own = connection.execute(select(votes).where(votes.c.reviewer == reviewer, votes.c.item == sent.item))
        connection.execute(statements.ANSWERED, {**place, "now": bool(standing(map(vote_in, own)))})
        return 1


def _row(reviewer: int, sent: Sent) -> dict[str, Any]:
    return {
        "id": sent.id,
        "reviewer": reviewer,
        "item": sent.item,
        "round": sent.round,
        "answer": None if sent.answer is None else dict(sent.answer),
        "note": sent.note,
        "milliseconds": sent.milliseconds,
        "supersedes": sent.supersedes,
        "received": time.time() if sent.received is None else sent.received,
    }


def place_of(reviewer: int, item: str) -> dict[str, Any]:
    """Where it is kept whether a person has answered an item."""
    return {"of_reviewer": reviewer, "of_item": item}


def _is_own(connection: Connection, reviewer: int, vote_id: str, item: str) -> bool:
    """Whether there is such a vote; BadInput where it is another person's, or on another item."""
    found = connection.execute(statements.WHOSE_VOTE, {"vote": vote_id}).first()
    if found is not None and (found.reviewer, found.item) != (reviewer, item):
        raise BadInput("a vote can only replace a vote of the same person on the same item")
    return found is not None


def vote_in(row: Row[Any]) -> Vote:
    """The vote of a whole row; ValueError where it is damaged."""
    number, _, reviewer, _, round_, _, _, spent, _, _ = told = tuple(row)
    if round_ not in ROUNDS or type(number) is not int or type(reviewer) is not int or type(spent) not in (int, NoneType):
        raise ValueError(f"vote {number!r:.40} holds what no vote does")
    return Vote(told[1], number, reviewer, *told[3:])
