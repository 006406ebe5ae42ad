"""What people look at together, once everybody has voted blindly and not all to keep it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shiftproof.review.contested import contested
from shiftproof.review.database import Comment, Reviewer
from shiftproof.review.desk import Desk
from shiftproof.review.groups import derived_votes
from shiftproof.review.letters import letters
from shiftproof.review.verdicts import Verdict, disputed, needs_adjudication, verdicts
from shiftproof.review.votes import Vote, standing

MOST_NAMED = 10_000
"""Items whose votes are asked for by name; where there are more, all votes are read."""


def items_together(desk: Desk, reviewer: Reviewer) -> list[dict[str, Any]]:
    """The disputed items of a person in the order of the project, with what was said of each so far, without names.

    An item stays here when people have come to agree on it, so that they can change their minds again.
    """
    if not desk.project.screen.adjudicated:
        return []
    project = contested(desk.project, desk.database, reviewer.id)
    named = list(project.by_id) if len(project.items) <= MOST_NAMED else None
    votes, assigned = desk.database.votes(items=named), desk.database.assigned(named)
    mine = [item for item in disputed(project, votes, assigned) if reviewer.id in assigned[item]]
    desk.database.look(reviewer.id, mine)
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
        for item in mine
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
