"""Every vote out of the database, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Row, Select, Text, case, cast, func, select

from shiftproof.review.ballots import NONE, Ballots, Numbers
from shiftproof.review.schema import votes
from shiftproof.review.votes import ROUNDS, answer_in

_before = votes.alias()

_NUMBERS: Mapping[str, ColumnElement[int]] = {
    "number": votes.c.number,
    "person": votes.c.reviewer,
    "round": case({name: place for place, name in enumerate(ROUNDS)}, value=votes.c.round),
    "milliseconds": func.coalesce(votes.c.milliseconds, NONE),
    "before": func.coalesce(_before.c.number, NONE),
}

# a row for each item, what its votes have of one kind in one text: a row for each vote takes several times as long to read
VOTES_BY_ITEM: Select[Any] = (
    select(
        votes.c.item,
        *(func.aggregate_strings(cast(column, Text), ",").label(name) for name, column in _NUMBERS.items()),
        # JSON has no ends of lines of its own, as it is written here
        func.aggregate_strings(func.coalesce(cast(votes.c.answer, Text), "null"), "\n").label("answers"),
    )
    .select_from(votes.outerjoin(_before, _before.c.id == votes.c.supersedes))
    .group_by(votes.c.item)
)


def ballots_from(rows: Sequence[Row[Any]]) -> Ballots:
    """The votes of such rows; ValueError, TypeError or BadInput where they are damaged."""
    said = [row.answers.split("\n") for row in rows]
    place: dict[str, int] = {}
    answer = np.array([place.setdefault(text, len(place)) for texts in said for text in texts], np.int64)
    answers = [answer_in(text) for text in place]
    columns = {name: numbers_in(",".join(getattr(row, name) for row in rows)) for name in _NUMBERS}
    if strange := [name for name, column in columns.items() if len(column) != len(answer)]:
        raise ValueError(f"some votes have no {strange[0]}")
    if (columns["number"] < 1).any():
        raise ValueError("votes are counted from 1, and one has a number below it")
    ballots = Ballots(
        [row.item for row in rows],
        answers,
        item=np.repeat(np.arange(len(rows)), [len(texts) for texts in said]),
        answer=answer,
        **columns,
    )
    return ballots.some(np.argsort(-ballots.number))


def numbers_in(text: str) -> Numbers:
    """Whole numbers that a database joined by commas.

    >>> numbers_in("7,8,-1"), len(numbers_in(""))
    (array([ 7,  8, -1]), 0)
    """
    return np.fromstring(text, np.int64, sep=",")
