"""What people look at together is found without reading every vote, and is the same as if all had been read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.project import Item, Project
from shiftproof.review.adjudication import AROUND, disputed_items
from shiftproof.review.database import Database
from shiftproof.review.service import ReviewService
from shiftproof.review.verdicts import disputed, verdicts
from shiftproof.review.votes import Round, SubmittedVote, Vote, VoteColumns

BOXES = [(0.1, 0.1, 0.5, 0.5), (0.1, 0.1, 0.55, 0.5), (0.6, 0.6, 0.9, 0.9)]


def answer_to(project: Project, chance: random.Random) -> dict[str, Any]:
    """Most would keep an item; boxes lie together or apart."""
    choice = chance.choice(project.screen.choices) if chance.random() < 0.3 else project.screen.choices[0]
    if project.screen.form != "box" or not choice.keeps:
        return {"choice": choice.name}
    left, top, right, bottom = chance.choice(BOXES)
    return {"choice": choice.name, "points": [[left, top], [right, top], [left, bottom], [right, bottom]]}


def vote_at_random(project: Project, database: Database, people: list[int], chance: random.Random) -> None:
    """First votes on most of what each person has, some taken back or replaced, and some changed when they sat together."""
    for person in people:
        database.assign(person, lambda _: [item.id for item in project.items if chance.random() < 0.95])
        for item in database.assigned_to(person):
            if chance.random() < 0.2:
                continue  # another vote may speak for it
            first = f"{person} {item}"
            database.add(person, [SubmittedVote(first, item, "first", answer_to(project, chance))])
            if chance.random() < 0.2:
                again = answer_to(project, chance) if chance.random() < 0.8 else None
                later: Round = "first" if chance.random() < 0.5 else "open"
                database.add(person, [SubmittedVote(f"{first} again", item, later, again, supersedes=first)])


@pytest.mark.parametrize("screen", ["clarity", "pair", "extreme-points", "class-pair"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_all_votes_come_to(database: Database, screen: str, seed: int) -> None:
    items = tuple(Item(f"item {number}", ("1.jpg", "2.jpg"), group=f"group {number // 4}") for number in range(24))
    project = Project(Path("nowhere"), "test", screen, items, reviewers_each=2)
    tokens = [database.invite(name) for name in ("Ada", "Ben")]
    people = [person for token in tokens if (person := database.reviewer_with(token)) is not None]
    vote_at_random(project, database, [person.id for person in people], random.Random(seed))
    votes, assigned = database.votes(), database.assigned()
    outcomes = {item: verdict.outcome for item, verdict in verdicts(project, votes, assigned).items()}
    service = ReviewService(project, database)
    for person in people:
        theirs = [item for item in disputed(project, votes, assigned) if person.id in assigned[item]]
        seen = disputed_items(service, person).items
        assert [service.items[one["id"]].id for one in seen] == theirs
        assert [one["outcome"] for one in seen] == [outcomes[item] for item in theirs]
        assert 0 < len(seen) < len(items)


def test_only_votes_on_what_somebody_would_not_keep_are_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    items = tuple(Item(f"item {number}", ("1.jpg",)) for number in range(6))
    project = Project(Path("nowhere"), "test", "clarity", items, reviewers_each=1)
    ada = database.reviewer_with(database.invite("Ada"))
    assert ada is not None
    database.assign(ada.id, lambda _: [item.id for item in items])
    for item in items:
        choice = "reject" if item.id == "item 3" else "keep"
        database.add(ada.id, [SubmittedVote(item.id, item.id, "first", {"choice": choice})])
    read: list[str] = []
    votes, columns = database.votes, database.vote_columns

    def noting_votes(**which: Any) -> list[Vote]:
        found = votes(**which)
        read.extend(vote.item for vote in found)
        return found

    def noting_columns(items: Sequence[str] | None = None) -> VoteColumns:
        found = columns(items)
        read.extend(found.items)
        return found

    monkeypatch.setattr(database, "votes", noting_votes)
    monkeypatch.setattr(database, "vote_columns", noting_columns)
    assert len(disputed_items(ReviewService(project, database), ada).items) == 1
    assert set(read) == {"item 3"}


def test_of_many_items_those_around_one_are_told_and_count_as_seen(database: Database) -> None:
    items = tuple(Item(f"item {number:02}", ("1.jpg",)) for number in range(3 * AROUND))
    service = ReviewService(Project(Path("nowhere"), "test", "clarity", items, reviewers_each=1), database)
    ada = database.reviewer_with(database.invite("Ada"))
    assert ada is not None
    database.assign(ada.id, lambda _: [item.id for item in items])
    database.add(ada.id, [SubmittedVote(item.id, item.id, "first", {"choice": "reject"}) for item in items])
    names = [service.opaque_name(f"item {item.id}") for item in items]
    seen: set[str] = set()
    for shown, first, last in (
        (0, 0, AROUND),
        (AROUND + 2, 2, 2 * AROUND + 2),
        (3 * AROUND - 1, 2 * AROUND - 1, 3 * AROUND),
    ):
        found = disputed_items(service, ada, names[shown])
        assert [one["id"] for one in found.items] == names[first : last + 1]
        assert (found.before, found.all) == (first, 3 * AROUND)
        seen.update(item.id for item in items[first : last + 1])
        assert database.unblinded_items(ada.id) == seen
    assert disputed_items(service, ada, "no such name") == disputed_items(service, ada, names[0])
