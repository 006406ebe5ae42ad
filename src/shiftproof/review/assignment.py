"""Assignment of items to reviewers: enough reviewers for each item, and an order of their own for each reviewer."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import partial

from shiftproof.curation.project import Project
from shiftproof.review.assignment_cache import AssignedItems
from shiftproof.review.database import Database
from shiftproof.review.verdicts import Verdict, closed_groups, derived_votes, verdicts
from shiftproof.review.votes import Vote, standing

CHUNK = 50
"""Items that a reviewer is assigned at a time: few enough that nobody holds what others could do."""

GOLD_EVERY = 10
"""One item of so many is a gold item, where the project has such items left for the reviewer."""


def assign_items(
    project: Project,
    database: Database,
    reviewer: int,
    *,
    chunk: int = CHUNK,
    closed: Set[str] = frozenset(),
    order: Sequence[str] | None = None,
) -> list[str]:
    """Assigns the next items to a reviewer: first those that others have already, so that verdicts come soon.

    Nobody gets an item twice, or one of a closed group, and no item goes to more than `readers_each` reviewers. Gold items
    are mixed in and go to everybody, unless they are a qualification. Where flags are verified and nothing is left to read,
    flagged items follow, which go to everybody who takes part. `order` is `asked_in_order`, where it is known already.
    """
    if order is None:
        order = asked_in_order(project, reviewer)
    assigned = _assign_unread(project, database, reviewer, chunk, closed, order)
    if assigned or project.verify is None:
        return assigned
    return _assign_flagged(project, database, reviewer, chunk, find_flagged(project, database), closed)


def _assign_unread(
    project: Project, database: Database, reviewer: int, chunk: int, closed: Set[str], order: Sequence[str]
) -> list[str]:
    gold = () if project.pass_mark is not None else project.gold
    sort_key = own_order(project, reviewer)

    def choose(assigned: AssignedItems) -> list[str]:
        # a stable sort: among items with as many reviewers, the reviewer's own order decides
        free = sorted(free_items(project, assigned, closed, order), key=assigned.reviewers.__getitem__, reverse=True)
        # each chunk is in the reviewer's own order, or it would always begin with the items of others
        chosen = sorted(free[:chunk], key=sort_key)
        known = sorted((item for item in gold if item not in assigned.own), key=sort_key)
        return _mixed(chosen, known[: len(chosen) // GOLD_EVERY or bool(chosen)], reviewer, project.seed)

    return database.assign(reviewer, choose)


def _assign_flagged(
    project: Project, database: Database, reviewer: int, chunk: int, flagged: Flagged, closed: Set[str]
) -> list[str]:
    def choose(assigned: AssignedItems) -> list[str]:
        return sorted(flagged.free(assigned, closed), key=own_order(project, reviewer))[:chunk]

    assigned = database.assign_to_all(reviewer, choose, partial(own_order, project))
    for person, items in assigned.items():
        update_group_answers(project, database, person, items)  # an earlier vote may answer a new item
    return assigned[reviewer]


@dataclass(frozen=True)
class Flagged:
    """Items that a reader rejected or was unsure about."""

    project: Project
    items: Sequence[str]
    awaited: Set[str]  # assigned to somebody who has not answered
    unblinded: Set[str]  # in adjudication: nobody new could vote on these blindly

    def free(self, assigned: AssignedItems, closed: Set[str] = frozenset()) -> list[str]:
        """Those that are not assigned to a reviewer and not settled.

        An item is settled once enough reviewers, and everybody it is assigned to, have answered. Whoever begins later
        does not change it.
        """
        return [
            item
            for item in self.items
            if item not in assigned.own
            and item not in self.unblinded
            and self.project.by_id[item].group not in closed
            and (item in self.awaited or assigned.reviewers[item] < self.project.reviewers_each)
        ]


def find_flagged(project: Project, database: Database) -> Flagged:
    """What is flagged by the votes that stand."""
    found = verdicts_on(_part(project, *_rejected_by_any(project, database)), database)
    items = [item for item, verdict in found.items() if verdict.against and not verdict.closed_by_group]
    return Flagged(project, items, database.unanswered_items(), database.unblinded_items())


def own_order(project: Project, reviewer: int) -> Callable[[str], tuple[bytes, bytes]]:
    """The sort key of a reviewer's own order; items compared with one class stay together."""
    by_id, key = project.by_id, _pseudo_random_key(reviewer, project.seed)

    def sort_key(item: str) -> tuple[bytes, bytes]:
        beside, own = by_id[item].beside, key(item)
        return own if beside is None else key(beside), own

    return sort_key


def asked_in_order(project: Project, reviewer: int) -> list[str]:
    """The items to be reviewed in a reviewer's own order, which takes longer to find than all else of an assignment."""
    return sorted(project.asked, key=own_order(project, reviewer))


def free_items(
    project: Project, assigned: AssignedItems, closed: Set[str] = frozenset(), order: Sequence[str] | None = None
) -> list[str]:
    """The items that still need a reader, and that the reviewer may be assigned; in the project's order, or another."""
    reviewers, own, most = assigned.reviewers, assigned.own, project.readers_each
    free = [item for item in (project.asked if order is None else order) if item not in own and reviewers[item] < most]
    return [item for item in free if project.by_id[item].group not in closed] if closed else free


def find_closed_groups(project: Project, database: Database) -> Set[str]:
    """The groups that enough reviewers closed: missing votes on them would change nothing."""
    if not project.screen.closing:
        return frozenset()
    items = _group_members(
        project, {item for item, _ in database.items_chosen(project.screen.closing)} & project.by_id.keys()
    )
    stand = standing(vote for vote in database.votes(items=items) if vote.round != "training")
    reviewers = database.assigned(items)
    return closed_groups(project, stand, {item: reviewers.get(item, ()) for item in items})


def update_group_answers(project: Project, database: Database, reviewer: int, items: Iterable[str]) -> None:
    """Marks items as answered where the reviewer's vote on another of their group answers them, and only while it stands."""
    members = _group_members(project, items) if project.screen.closing else []
    if not members:
        return

    def answered(votes: Iterable[Vote]) -> set[str]:
        own = standing(votes)
        derived = derived_votes(project, own, {item: [reviewer] for item in members})
        return {*(item for _, item in own), *(vote.item for vote in derived)}

    database.update_answered(reviewer, members, answered)


def with_groups(project: Project, items: Collection[str]) -> Project:
    """The project with only some items and the others of their groups, votes on which may decide about them.

    Verdicts on such a part equal those on the whole project; reading all votes would take seconds.
    """
    return _part(project, items, {group for item in items if (group := project.by_id[item].group) is not None})


def verdicts_on(part: Project, database: Database) -> dict[str, Verdict]:
    """The verdicts on a part of the project, by the votes on it."""
    items = list(part.by_id)
    return verdicts(part, database.vote_columns(items), database.assigned(items))


def contested_part(project: Project, database: Database, reviewer: int) -> Project:
    """The project with only those items of a reviewer that may be disputed, and the groups that may be closed."""
    items, closing = _rejected_by_any(project, database)
    if project.screen.form == "box":  # who keeps an item may have drawn another box
        items |= database.items_with_votes(2)
    return _part(project, items.intersection(database.assigned_to(reviewer)), closing)


def _rejected_by_any(project: Project, database: Database) -> tuple[set[str], set[str]]:
    """Items that somebody did not keep, and groups that somebody closed, whether the votes stand or not."""
    chosen = database.items_chosen(choice.name for choice in project.screen.choices if not choice.keeps)
    closing = [project.by_id[item] for item, choice in chosen if choice in project.screen.closing and item in project.by_id]
    return {item for item, _ in chosen}, {item.group for item in closing if item.group is not None}


def _part(project: Project, items: Collection[str], groups: Collection[str]) -> Project:
    return dataclasses.replace(project, items=tuple(one for one in project.items if one.id in items or one.group in groups))


def _group_members(project: Project, items: Iterable[str]) -> list[str]:
    """The ids of all items in the groups of some."""
    groups = {project.by_id[item].group for item in items}
    return [item.id for group in groups if group is not None for item in project.by_group.get(group, ())]


def _mixed(items: Sequence[str], gold: Sequence[str], reviewer: int, seed: int) -> list[str]:
    """Items in their order, with gold items inserted at unpredictable positions."""
    order, key = list(items), _pseudo_random_key(reviewer, seed)
    for item in gold:
        order.insert(int.from_bytes(key(f"gold {item}"), "big") % (len(order) + 1), item)
    return order


def _pseudo_random_key(reviewer: int, seed: int) -> Callable[[str], bytes]:
    begin = f"{seed}\0{reviewer}\0".encode()
    return lambda text: hashlib.blake2b(begin + text.encode(), digest_size=8).digest()
