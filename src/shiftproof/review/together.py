"""What people look at together, once everybody has voted blindly and not all to keep it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shiftproof.review.contested import contested, with_kin
from shiftproof.review.database import Comment, Reviewer
from shiftproof.review.desk import Desk
from shiftproof.review.groups import derived_votes
from shiftproof.review.letters import letters
from shiftproof.review.verdicts import Verdict, disputed, needs_adjudication, verdicts
from shiftproof.review.votes import Vote, standing

AROUND = 20
"""Items that a page gets before the one it shows, and as many after it."""


class Together(NamedTuple):
    """A part of what a person looks at with others."""

    items: list[dict[str, Any]]
    before: int  # how many come before these
    all: int


def items_together(desk: Desk, reviewer: Reviewer, around: str = "") -> Together:
    """The disputed items of a person in the order of the project, with what was said of each so far, without names.

    Those around one that pages know by a name, or the first. An item stays here when people have come to agree on it, so
    that they can change their minds again.
    """
    every = _disputed_of(desk, reviewer)
    shown = desk.items.get(around)
    place = every.index(shown.id) if shown is not None and shown.id in every else 0
    before = max(place - AROUND, 0)
    some = every[before : place + AROUND + 1]
    desk.database.look(reviewer.id, some)
    return Together(_shown(desk, reviewer, some), before, len(every))


def _disputed_of(desk: Desk, reviewer: Reviewer) -> list[str]:
    if not desk.project.screen.adjudicated:
        return []
    project = contested(desk.project, desk.database, reviewer.id)
    ids = list(project.by_id)
    assigned = desk.database.assigned(ids)
    return [item for item in disputed(project, desk.database.ballots(ids), assigned) if reviewer.id in assigned[item]]


def _shown(desk: Desk, reviewer: Reviewer, items: Sequence[str]) -> list[dict[str, Any]]:
    """Items as pages get them, with everything that was said of them."""
    project = with_kin(desk.project, items)
    ids = list(project.by_id)
    votes, assigned = desk.database.votes(items=ids), desk.database.assigned(ids)
    found = verdicts(project, votes, assigned)
    said: dict[str, list[Vote]] = defaultdict(list)
    stand = standing(votes)
    for vote in [*stand.values(), *derived_votes(project, stand, assigned)]:
        said[vote.item].append(vote)
    written: dict[str, list[Comment]] = defaultdict(list)
    for comment in desk.database.comments():
        written[comment.item].append(comment)
    return [
        {
            **desk.shown(project.by_id[item]),
            **_told(found[item]),
            **_heard(desk, reviewer, said[item], written[item]),
        }
        for item in items
    ]


def _told(verdict: Verdict) -> dict[str, Any]:
    return {"outcome": verdict.outcome, "settled": not needs_adjudication(verdict)}


def _heard(desk: Desk, reviewer: Reviewer, votes: Sequence[Vote], comments: Sequence[Comment]) -> dict[str, Any]:
    """The votes and comments on one item, each with the letter of who gave it."""
    letter_of = _letters(desk, [*votes, *comments])
    own = next((vote.id for vote in votes if vote.reviewer == reviewer.id and not vote.derived), None)
    return {
        "vote": own,
        "votes": [
            {"who": letter_of[vote.reviewer], "own": vote.reviewer == reviewer.id, "answer": vote.answer, "note": vote.note}
            for vote in sorted(votes, key=lambda vote: letter_of[vote.reviewer])
        ],
        "comments": [
            {
                "who": letter_of[comment.reviewer],
                "own": comment.reviewer == reviewer.id,
                "text": comment.text,
                "ago": max(time.time() - comment.received, 0),
            }
            for comment in comments
        ],
    }


def _letters(desk: Desk, said: Iterable[Vote | Comment]) -> Mapping[int, str]:
    """A letter for each person who said something of an item: the same whenever it is asked, another on every item."""
    people = {one.reviewer: desk.name_of(f"voice {one.reviewer} {one.item}") for one in said}
    order = sorted(people, key=lambda person: people[person])
    return dict(zip(order, letters(), strict=False))
