"""Adjudication: the items that reviewers disagree on after blind votes, discussed with all votes shown."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shiftproof.curation.project import Item
from shiftproof.errors import BadInput
from shiftproof.review.assignment import contested_part, with_groups
from shiftproof.review.database import Comment, Reviewer
from shiftproof.review.service import ReviewService
from shiftproof.review.validation import MAX_NOTE_LENGTH, parse_id, text_field
from shiftproof.review.verdicts import derived_votes, disputed, needs_adjudication, pseudonyms, verdicts
from shiftproof.review.votes import Vote, standing

AROUND = 20
"""Items that a page gets before the one it shows, and as many after it."""


class DisputedItems(NamedTuple):
    """A window of the disputed items of a reviewer."""

    items: list[dict[str, Any]]
    before: int  # number of items before the window
    all: int


def is_disputed(service: ReviewService, item: Item, pending: Sequence[Vote] = ()) -> bool:
    """Whether an item is in adjudication: everybody has voted, and not all to keep it."""
    part = with_groups(service.project, {item.id})
    ids = list(part.by_id)
    votes = [*service.database.votes(items=ids), *(vote for vote in pending if vote.item in part.by_id)]
    return item.id in disputed(part, votes, service.database.assigned(ids))


def accept_comment(service: ReviewService, reviewer: Reviewer, body: Mapping[str, Any]) -> None:
    """Stores a comment on an item in adjudication."""
    item = service.item_named(body.get("item"))
    text = text_field(body, "text", shortest=1, longest=MAX_NOTE_LENGTH)
    if not service.database.is_assigned(reviewer.id, item.id) or not is_disputed(service, item):
        raise BadInput("this item is not in adjudication")
    service.database.add_comment(reviewer.id, parse_id(body), item.id, text)


def disputed_items(service: ReviewService, reviewer: Reviewer, around: str = "") -> DisputedItems:
    """The disputed items of a reviewer in the order of the project, with all votes and comments, without names.

    The window is around the item of an opaque name, or at the start. An item stays here after people have come to agree on
    it, so that they can change their votes again.
    """
    every = _disputed_of(service, reviewer)
    shown = service.items.get(around)
    index = every.index(shown.id) if shown is not None and shown.id in every else 0
    before = max(index - AROUND, 0)
    window = every[before : index + AROUND + 1]
    service.database.mark_unblinded(reviewer.id, window)
    return DisputedItems(_with_votes(service, reviewer, window), before, len(every))


def _disputed_of(service: ReviewService, reviewer: Reviewer) -> list[str]:
    if not service.project.screen.adjudicated:
        return []
    part = contested_part(service.project, service.database, reviewer.id)
    ids = list(part.by_id)
    assigned = service.database.assigned(ids)
    return [item for item in disputed(part, service.database.vote_columns(ids), assigned) if reviewer.id in assigned[item]]


def _with_votes(service: ReviewService, reviewer: Reviewer, items: Sequence[str]) -> list[dict[str, Any]]:
    """Items as pages get them, with their outcomes, votes and comments."""
    part = with_groups(service.project, items)
    ids = list(part.by_id)
    votes, assigned = service.database.votes(items=ids), service.database.assigned(ids)
    found = verdicts(part, votes, assigned)
    stand = standing(votes)
    votes_on: dict[str, list[Vote]] = defaultdict(list)
    for vote in [*stand.values(), *derived_votes(part, stand, assigned)]:
        votes_on[vote.item].append(vote)
    comments_on: dict[str, list[Comment]] = defaultdict(list)
    for comment in service.database.comments():
        comments_on[comment.item].append(comment)
    return [
        {
            **service.shown(part.by_id[item]),
            "outcome": found[item].outcome,
            "settled": not needs_adjudication(found[item]),
            **_discussion(service, reviewer, votes_on[item], comments_on[item]),
        }
        for item in items
    ]


def _discussion(
    service: ReviewService, reviewer: Reviewer, votes: Sequence[Vote], comments: Sequence[Comment]
) -> dict[str, Any]:
    """The votes and comments on one item, each under the pseudonym of its author."""
    pseudonym_of = _pseudonyms(service, [*votes, *comments])
    own = next((vote.id for vote in votes if vote.reviewer == reviewer.id and not vote.derived), None)
    return {
        "vote": own,
        "votes": [
            {
                "who": pseudonym_of[vote.reviewer],
                "own": vote.reviewer == reviewer.id,
                "answer": vote.answer,
                "note": vote.note,
            }
            for vote in sorted(votes, key=lambda vote: pseudonym_of[vote.reviewer])
        ],
        "comments": [
            {
                "who": pseudonym_of[comment.reviewer],
                "own": comment.reviewer == reviewer.id,
                "text": comment.text,
                "ago": max(time.time() - comment.received, 0),
            }
            for comment in comments
        ],
    }


def _pseudonyms(service: ReviewService, authored: Iterable[Vote | Comment]) -> Mapping[int, str]:
    """A letter for each author on an item: always the same there, another on every item."""
    sort_keys = {one.reviewer: service.opaque_name(f"voice {one.reviewer} {one.item}") for one in authored}
    return dict(zip(sorted(sort_keys, key=lambda person: sort_keys[person]), pseudonyms(), strict=False))
