"""Votes that speak for a whole group: a bad anchor closes all its pairs, an ambiguous pair ends its class.

They are never copied: what follows from one is computed with the verdicts, so that taking it back opens the group again.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping

from shiftproof.curation.project import Project
from shiftproof.review.votes import Vote

Stand = Mapping[tuple[int, str], Vote]
"""The vote that counts of each person on each item, as `votes.standing` gives it."""


def derived_votes(project: Project, stand: Stand, assigned: Mapping[str, Iterable[int]]) -> list[Vote]:
    """What people who closed a group are taken to say of its other items that were given to them and have no answer yet."""
    return [
        dataclasses.replace(vote, item=item.id, derived=True)
        for group, closing in _closing(project, stand).items()
        for item in project.by_group[group]
        for person in assigned.get(item.id, ())
        if (vote := closing.get(person)) is not None and (person, item.id) not in stand
    ]


def closed_groups(project: Project, stand: Stand, people: Mapping[str, Iterable[int]]) -> set[str]:
    """The groups that more than half of the people asked about any one of the items closed, there or at another item."""
    return {
        group
        for group, closing in _closing(project, stand).items()
        for asked in (set(people[item.id]) for item in project.by_group[group])
        if 2 * len(asked & closing.keys()) > max(len(asked), project.reviewers_each)
    }


def _closing(project: Project, stand: Stand) -> dict[str, dict[int, Vote]]:
    """For each group that anybody closed, the vote of each person who did: the last, where there are several."""
    found: dict[str, dict[int, Vote]] = defaultdict(dict)
    closing = [vote for vote in stand.values() if vote.choice in project.screen.closing]
    for vote in sorted(closing, key=lambda vote: vote.number):
        item = project.by_id.get(vote.item)
        if item is not None and item.group is not None and item.role == "asked":
            found[item.group][vote.reviewer] = vote
    return found
