"""Revisions of a reviewed dataset: votes on unchanged items are carried over, so that only new items are reviewed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from shiftproof.curation.project import Item, Project, from_fields, text_of
from shiftproof.curation.reviewers import reviewer_name
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.review.assignment import update_group_answers
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.verdicts import Verdict, verdicts
from shiftproof.review.votes import SubmittedVote, Vote

FILE = "revision.json"
"""In the folder of a project that is a later revision."""

COMPARED = ("images", "label", "beside", "role")
"""Fields that must be equal for an item to count as unchanged."""


@dataclass(frozen=True)
class Revision:
    """The revision number of a project, and the outcomes of the revision before it."""

    number: int = 1
    earlier: Mapping[str, str] | None = None  # outcomes by item id; None in the first revision
    items: int = 0  # in both revisions
    votes: int = 0  # carried over


@dataclass(frozen=True)
class Changes:
    """Changes between two revisions, as item ids."""

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    reversed: tuple[str, ...]  # decided in both revisions, with different outcomes


def continue_from(project: Project, database: Database, old: Project, old_database: Database) -> Revision:
    """Carries over reviewers, assignments and votes on items that are unchanged between two projects.

    The same id is not enough: pictures and class must be equal too. Votes that were carried over before are not added again,
    so this can be repeated while the older review goes on.
    """
    if project.screen_name != old.screen_name:
        raise BadInput(
            f"{old.title} asks {old.screen_name} and {project.title} {project.screen_name}; votes mean different things"
        )
    same = {item.id for item in project.items if _is_same(item, old.by_id.get(item.id))}
    if not same:
        raise BadInput(f"no item of {old.title} is in {project.title}; were both made from the same images?")
    votes, assigned = old_database.votes(), old_database.assigned()
    people = old_database.reviewers()
    known = {person.name for person in database.reviewers()}
    # older versions did not normalise names
    name_of = {person.id: person.name if person.name in known else reviewer_name(person.name) for person in people}
    for person in people:
        if name_of[person.id] not in known:
            database.invite(name_of[person.id], person.role)
    number = {person.name: person.id for person in database.reviewers()}
    for person in people:
        new_id = number[name_of[person.id]]
        given = [item for item, holders in assigned.items() if person.id in holders and item in same]
        own = [vote for vote in votes if vote.reviewer == person.id and vote.item in same]
        _carry_over(database, new_id, person, given, own)
        update_group_answers(project, database, new_id, given)
        database.mark_unblinded(new_id, same & old_database.unblinded_items(person.id))
    outcomes = {item: verdict.outcome for item, verdict in verdicts(old, votes, assigned).items()}
    carried = sum(vote.item in same for vote in votes)
    revision = Revision(load_revision(old.folder).number + 1, outcomes, len(same), carried)
    write_whole(project.folder / FILE, (json.dumps(asdict(revision), indent=1, ensure_ascii=False) + "\n").encode())
    return revision


def _carry_over(database: Database, number: int, person: Reviewer, given: Sequence[str], votes: Iterable[Vote]) -> None:
    """Assigns a reviewer their former items, with the votes on them under their ids."""
    database.assign(number, lambda _: given)
    database.mark(number, consented=person.consented, trained=person.trained, qualified=person.qualified)
    kept = [field.name for field in fields(SubmittedVote)]
    database.add(number, (SubmittedVote(**{name: getattr(vote, name) for name in kept}) for vote in votes))


def load_revision(folder: Path) -> Revision:
    """The revision of the project in a folder; the first where there is no record."""
    if not os.path.lexists(folder / FILE):
        return Revision()
    try:
        return from_fields(Revision, json.loads(text_of(folder, FILE)))
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise BadInput(f"{folder / FILE} cannot be read: {problem}") from problem


def changes(revision: Revision, found: Mapping[str, Verdict]) -> Changes | None:
    """What changed since the revision before; None in the first revision."""
    if revision.earlier is None:
        return None
    before = {item for item, outcome in revision.earlier.items() if outcome == "kept"}
    now = {item for item, verdict in found.items() if verdict.outcome == "kept"}
    decided = ("kept", "rejected")
    changed = [
        item
        for item, outcome in revision.earlier.items()
        if item in found and outcome in decided and found[item].outcome in decided and found[item].outcome != outcome
    ]
    return Changes(tuple(sorted(now - before)), tuple(sorted(before - now)), tuple(sorted(changed)))


def _is_same(item: Item, other: Item | None) -> bool:
    """Whether reviewers are asked the same about both."""
    return other is not None and all(getattr(item, part) == getattr(other, part) for part in COMPARED)
