"""Who judges what, and in which order: enough people for each item, and for each person an order of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from shiftproof.curation.project import Project
from shiftproof.review.contested import doubted
from shiftproof.review.database import Database
from shiftproof.review.groups import closed_groups, derived_votes
from shiftproof.review.holdings import Holding
from shiftproof.review.verdicts import verdicts
from shiftproof.review.votes import Vote, standing

CHUNK = 50
"""Items that a person is given at a time: few enough that nobody holds what others could do."""

GOLD_EVERY = 10
"""One item of so many has a known answer, where the project has such items left for the person."""


def hand_out(
    project: Project, database: Database, reviewer: int, *, chunk: int = CHUNK, closed: Set[str] = frozenset()
) -> list[str]:
    """Gives a person the next items: first those that others have judged already, so that verdicts come soon.

    Nobody gets an item twice, none of a group that is closed, and no item goes to more than `readers_each` people; items
    with a known answer are strewn in among them and go to everybody, unless they are a qualification. Where flags are
    verified and nothing is left to read, flagged items follow, which go to everybody who takes part.
    """
    given = _hand_out_unread(project, database, reviewer, chunk, closed)
    if given or project.verify is None:
        return given
    return _hand_out_flagged(project, database, reviewer, chunk, flagged_now(project, database), closed)


def _hand_out_unread(
    project: Project, database: Database, reviewer: int, chunk: int, closed: Set[str] = frozenset()
) -> list[str]:
    gold = [item.id for item in project.items if item.role == "gold" and project.pass_mark is None]
    turn = own_order(project, reviewer)

    def choose(given: Holding) -> list[str]:
        people = given.people
        free = sorted(free_items(project, given, closed), key=people.__getitem__, reverse=True)
        fewest = people[free[:chunk][-1]] if free else 0
        # only among those that as many people have as the last of the chunk does the order decide who gets them
        sure = [item for item in free[:chunk] if people[item] > fewest]
        drawn = [item for item in free if people[item] == fewest]
        drawn.sort(key=turn)
        # of each chunk the order is the person's own, or the first of it would always be those that others had
        chosen = sorted([*sure, *drawn[: chunk - len(sure)]], key=turn)
        known = sorted((item for item in gold if item not in given.own), key=turn)
        return _strewn(chosen, known[: len(chosen) // GOLD_EVERY or bool(chosen)], reviewer, project.seed)

    return database.hand_out(reviewer, choose)


def _hand_out_flagged(
    project: Project, database: Database, reviewer: int, chunk: int, flagged: Flagged, closed: Set[str]
) -> list[str]:
    orders: dict[int, Callable[[str], tuple[str, str]]] = {}

    def turn(person: int, item: str) -> tuple[str, str]:
        return orders.setdefault(person, own_order(project, person))(item)

    def choose(given: Holding) -> list[str]:
        return sorted(flagged.free(given, closed), key=lambda item: turn(reviewer, item))[:chunk]

    given = database.hand_out_to_all(reviewer, choose, turn)
    for person, items in given.items():
        settle_groups(project, database, person, items)  # a vote of theirs may speak for what is new to them
    return given[reviewer]


@dataclass(frozen=True)
class Flagged:
    """What the people who read items would not keep, or were unsure about."""

    project: Project
    items: Sequence[str]
    awaited: Set[str]  # given to somebody who has not answered
    looked_at: Set[str]  # by people who saw what others said: nobody new could judge these blindly

    def free(self, given: Holding, closed: Set[str] = frozenset()) -> list[str]:
        """Those that a person has not been given and that are not settled.

        Settled are those that enough people have answered and everybody who was given them. Whoever begins later changes
        nothing of these.
        """
        return [
            item
            for item in self.items
            if item not in given.own
            and item not in self.looked_at
            and self.project.by_id[item].group not in closed
            and (item in self.awaited or given.people[item] < self.project.reviewers_each)
        ]


def flagged_now(project: Project, database: Database) -> Flagged:
    """What is flagged by the votes that stand."""
    part = doubted(project, database)
    found = verdicts(part, database.ballots(list(part.by_id)), database.assigned(list(part.by_id)))
    items = [item for item, verdict in found.items() if verdict.against and not verdict.closed_by_group]
    return Flagged(project, items, database.awaited(), database.looked_at())


def own_order(project: Project, reviewer: int) -> Callable[[str], tuple[str, str]]:
    """An item's place in a person's own order; items held against one class come one after the other."""

    def turn(item: str) -> tuple[str, str]:
        beside, own = project.by_id[item].beside, _turn(item, reviewer, project.seed)
        return own if beside is None else _turn(beside, reviewer, project.seed), own

    return turn


def free_items(project: Project, given: Holding, closed: Set[str] = frozenset()) -> list[str]:
    """The items that still want a reader, and that the person asking may be given."""
    people, own, most = given.people, given.own, project.readers_each
    free = [item for item in project.asked if item not in own and people[item] < most]
    return [item for item in free if project.by_id[item].group not in closed] if closed else free


def closed_now(project: Project, database: Database) -> Set[str]:
    """The groups that enough people closed: what is missing of them would change nothing."""
    if not project.screen.closing:
        return frozenset()
    kin = _kin(project, {item for item, _ in database.items_chosen(project.screen.closing)} & project.by_id.keys())
    stand = standing(vote for vote in database.votes(items=kin) if vote.round != "training")
    people = database.assigned(kin)
    return closed_groups(project, stand, {item: people.get(item, ()) for item in kin})


def settle_groups(project: Project, database: Database, reviewer: int, items: Iterable[str]) -> None:
    """Asks a person no more about items that their vote on another of the group speaks for, until it is taken back."""
    kin = _kin(project, items) if project.screen.closing else []
    if not kin:
        return

    def answered(votes: Iterable[Vote]) -> set[str]:
        own = standing(votes)
        following = derived_votes(project, own, {item: [reviewer] for item in kin})
        return {*(item for _, item in own), *(vote.item for vote in following)}

    database.settle(reviewer, kin, answered)


def _kin(project: Project, items: Iterable[str]) -> list[str]:
    """The ids of all items in the groups of some."""
    groups = {project.by_id[item].group for item in items}
    return [item.id for group in groups if group is not None for item in project.by_group.get(group, ())]


def _strewn(items: Sequence[str], known: Sequence[str], reviewer: int, seed: int) -> list[str]:
    """Items in their order, with those of a known answer at places that cannot be guessed."""
    order = list(items)
    for item in known:
        order.insert(int(_turn(f"gold {item}", reviewer, seed), 16) % (len(order) + 1), item)
    return order


def _turn(item: str, reviewer: int, seed: int) -> str:
    return hashlib.blake2b(f"{seed}\0{reviewer}\0{item}".encode(), digest_size=8).hexdigest()
