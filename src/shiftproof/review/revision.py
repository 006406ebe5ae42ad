"""A later revision of a set: votes on what was asked before are taken over, so that people judge only what is new."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from shiftproof.curation.project import Item, Project, from_fields, text_of
from shiftproof.curation.review_classes import reviewer_name
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.handing_out import settle_groups
from shiftproof.review.verdicts import Verdict, verdicts
from shiftproof.review.votes import Sent, Vote

FILE = "revision.json"
"""In the folder of a project that continues another."""

ASKED = ("images", "label", "beside", "role")
"""What of an item decides what people are asked."""


@dataclass(frozen=True)
class Revision:
    """Which revision of a set a project is, and what had become of the items of the one before it."""

    number: int = 1
    earlier: Mapping[str, str] | None = None  # the outcome of each item by its id; None in the first revision
    items: int = 0  # that both revisions ask about
    votes: int = 0  # that were taken over with them


@dataclass(frozen=True)
class Changes:
    """What kept items have changed between two revisions, by their ids."""

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    reversed: tuple[str, ...]  # in both projects, decided in both, and otherwise now


def continue_from(project: Project, database: Database, old: Project, old_database: Database) -> Revision:
    """Takes over people, what they were given and their votes on items that are the same in both projects.

    The same id is not enough: the pictures and the class must be those that people judged. Votes that are here already are
    not added again, so this can be repeated while the older review goes on.
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
    # names of an older version may be spelled in other ways
    name_of = {person.id: person.name if person.name in known else reviewer_name(person.name) for person in people}
    for person in people:
        if name_of[person.id] not in known:
            database.invite(name_of[person.id], person.role)
    number = {person.name: person.id for person in database.reviewers()}
    for person in people:
        here = number[name_of[person.id]]
        given = [item for item, holders in assigned.items() if person.id in holders and item in same]
        own = [vote for vote in votes if vote.reviewer == person.id and vote.item in same]
        _take_over(database, here, person, given, own)
        settle_groups(project, database, here, given)
        database.look(here, same & old_database.looked_at(person.id))
    outcomes = {item: verdict.outcome for item, verdict in verdicts(old, votes, assigned).items()}
    taken = sum(vote.item in same for vote in votes)
    revision = Revision(load_revision(old.folder).number + 1, outcomes, len(same), taken)
    write_whole(project.folder / FILE, (json.dumps(asdict(revision), indent=1, ensure_ascii=False) + "\n").encode())
    return revision


def _take_over(database: Database, number: int, person: Reviewer, given: Sequence[str], votes: Iterable[Vote]) -> None:
    """Gives a person what was given to them before, with the votes on it under the ids that they had."""
    database.hand_out(number, lambda _: given)
    database.mark(number, consented=person.consented, trained=person.trained, qualified=person.qualified)
    kept = [field.name for field in fields(Sent)]
    database.add(number, (Sent(**{name: getattr(vote, name) for name in kept}) for vote in votes))


def load_revision(folder: Path) -> Revision:
    """Which revision the project in a folder is; the first where nothing says otherwise."""
    if not os.path.lexists(folder / FILE):
        return Revision()
    try:
        return from_fields(Revision, json.loads(text_of(folder, FILE)))
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise BadInput(f"{folder / FILE} cannot be read: {problem}") from problem


def changes(revision: Revision, found: Mapping[str, Verdict]) -> Changes | None:
    """What is kept now and was not, what was and is no more, and what people decided otherwise; None in a first revision."""
    if revision.earlier is None:
        return None
    before = {item for item, outcome in revision.earlier.items() if outcome == "kept"}
    now = {item for item, verdict in found.items() if verdict.outcome == "kept"}
    decided = ("kept", "rejected")
    turned = [
        item
        for item, outcome in revision.earlier.items()
        if item in found and outcome in decided and found[item].outcome in decided and found[item].outcome != outcome
    ]
    return Changes(tuple(sorted(now - before)), tuple(sorted(before - now)), tuple(sorted(turned)))


def _is_same(item: Item, other: Item | None) -> bool:
    """Whether people would be asked the same of both."""
    return other is not None and all(getattr(item, part) == getattr(other, part) for part in ASKED)
