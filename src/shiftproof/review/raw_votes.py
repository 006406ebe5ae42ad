"""Every vote as it came, to be worked with elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shiftproof.curation.tables import table_bytes
from shiftproof.files import defused
from shiftproof.review.database import Database
from shiftproof.review.votes import Vote, standing

COLUMNS = ("number", "id", "reviewer", "item", "round", "choice", "answer", "note", "milliseconds", "supersedes", "received")


def votes_as_json(database: Database) -> bytes:
    """All votes in the order they came, each with the name of who gave it and whether it counts."""
    return (json.dumps(_rows(database), ensure_ascii=False, indent=1) + "\n").encode()


def votes_as_csv(database: Database) -> bytes:
    """The same as a table; texts that a spreadsheet would take for a formula begin with an apostrophe."""
    rows = [[_cell(row[column]) for column in (*COLUMNS, "counts")] for row in _rows(database)]
    return table_bytes([(*COLUMNS, "counts"), *rows])


def _rows(database: Database) -> list[dict[str, Any]]:
    names = {person.id: person.name for person in database.reviewers()}
    votes = database.votes()
    counting = {vote.id for some in _by_round(votes).values() for vote in standing(some).values()}
    return [_row(vote, names, counts=vote.id in counting) for vote in votes]


def _by_round(votes: list[Vote]) -> dict[bool, list[Vote]]:
    """Votes of the training count for themselves."""
    return {training: [vote for vote in votes if (vote.round == "training") == training] for training in (True, False)}


def _row(vote: Vote, names: Mapping[int, str], *, counts: bool) -> dict[str, Any]:
    told = {column: getattr(vote, column) for column in COLUMNS}
    return {**told, "reviewer": names[vote.reviewer], "counts": counts}


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return defused(value)
