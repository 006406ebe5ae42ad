"""Votes of one request are one transaction, and count as if each had come in a request of its own."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_votes
from shiftproof.review.votes import SubmittedVote, standing

KEEP, REJECT = {"choice": "keep"}, {"choice": "reject"}


@pytest.fixture
def commits(database: Database) -> list[object]:
    """Every commit of the database since."""
    found: list[object] = []
    event.listen(database._engine, "commit", lambda connection: found.append(connection))
    return found


def begun(database: Database, project: Project, name: str = "Ada") -> tuple[ReviewService, Reviewer]:
    """The review of a reviewer who has all items."""
    reviewer = database.reviewer_with(database.invite(name))
    assert reviewer is not None
    database.assign(reviewer.id, lambda _: [item.id for item in project.items])
    return ReviewService(project, database), reviewer


def clear(count: int = 100, **more: Any) -> Project:
    items = tuple(Item(f"item {number}", ("1.jpg",)) for number in range(count))
    return Project(Path("nowhere"), "test", "clarity", items, **more)


def vote(service: ReviewService, vote_id: str, item: str, answer: object = KEEP, **more: Any) -> dict[str, Any]:
    return {"id": vote_id, "item": service.opaque_name(f"item {item}"), "round": "first", "answer": answer, **more}


def test_votes_of_a_request_are_one_commit(database: Database, commits: list[object]) -> None:
    service, ada = begun(database, clear())
    commits.clear()
    receipt = accept_votes(service, ada, [vote(service, f"vote {number:04}", f"item {number}") for number in range(100)])
    assert (len(receipt.accepted), receipt.refused, len(commits)) == (100, {}, 1)
    assert database.tally(ada.id).answered == 100


def test_changes_and_undos_of_a_request_are_one_commit_with_its_votes(database: Database, commits: list[object]) -> None:
    service, ada = begun(database, clear(3))
    commits.clear()
    sent = [
        vote(service, "vote 0001", "item 0"),
        vote(service, "vote 0002", "item 1"),
        vote(service, "vote 0003", "item 0", REJECT, supersedes="vote 0001"),
        vote(service, "vote 0004", "item 1", None, supersedes="vote 0002"),
        vote(service, "vote 0005", "item 0"),  # from another page, later than the change
        vote(service, "vote 0006", "item 2", REJECT),
    ]
    receipt = accept_votes(service, ada, sent)
    assert (receipt.accepted, receipt.refused, len(commits)) == ([one["id"] for one in sent], {}, 1)
    assert [one.id for one in database.votes()] == [one["id"] for one in sent], "in the order in which they were sent"
    assert {item: one.id for (_, item), one in standing(database.votes()).items()} == {
        "item 0": "vote 0005",
        "item 2": "vote 0006",
    }
    assert database.next_items(ada.id, 9) == ["item 1"]


def test_a_refused_vote_holds_up_no_other_of_its_request(database: Database, commits: list[object]) -> None:
    service, ada = begun(database, clear(4))
    _, ben = begun(database, service.project, "Ben")
    accept_votes(service, ben, [vote(service, "vote of Ben", "item 0")])
    commits.clear()
    sent = [
        vote(service, "vote 0001", "item 0"),
        vote(service, "vote 0002", "item 0", REJECT, supersedes="vote of Ben"),
        vote(service, "vote 0003", "item 1", {"choice": "no such"}),
        vote(service, "vote of Ben", "item 2"),
        vote(service, "vote 0004", "item 3"),
    ]
    receipt = accept_votes(service, ada, sent)
    assert receipt.accepted == ["vote 0001", "vote 0004"]
    assert set(receipt.refused) == {"vote 0002", "vote 0003", "vote of Ben"}
    assert len(commits) == 1
    again = accept_votes(service, ada, sent)
    assert (again.accepted, set(again.refused)) == (receipt.accepted, set(receipt.refused)), (
        "as pages do that lost the answer"
    )
    assert database.count() == 3


def test_a_request_that_the_database_cannot_store_leaves_nothing(database: Database) -> None:
    service, ada = begun(database, clear(2))
    database.release(ada.id)
    stranger = Reviewer(ada.id + 1, "nobody", "reviewer", False, False, None)
    sent = [vote(service, "vote 0001", "item 0"), vote(service, "vote 0002", "item 1")]
    assert set(accept_votes(service, ada, sent).refused) == {"vote 0001", "vote 0002"}, "not assigned any more"
    both = [SubmittedVote(f"vote {number:04}", f"item {number}", "first", KEEP) for number in range(2)]
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        database.add(stranger.id, both)
    assert database.votes() == []


def test_a_try_that_is_over_takes_no_change_though_it_comes_in_the_same_request(database: Database) -> None:
    gold = tuple(Item(f"gold {number}", ("1.jpg",), role="gold", answer={"class": "cat"}) for number in range(2))
    classes = (ReviewClass("cat", "cat"), ReviewClass("dog", "dog"))
    project = Project(Path("nowhere"), "test", "human-test", gold, classes, pass_mark=0.9)
    service, ada = begun(database, project)

    def named(vote_id: str, item: str, key: str, **more: Any) -> dict[str, Any]:
        return vote(service, vote_id, item, {"choice": "answer", "class": key}, round="qualification", **more)

    sent = [
        named("vote 0001", "gold 0", "dog"),
        named("vote 0002", "gold 0", "cat", supersedes="vote 0001"),
        named("vote 0003", "gold 1", "dog"),
        named("vote 0004", "gold 1", "cat", supersedes="vote 0003"),
    ]
    receipt = accept_votes(service, ada, sent)
    assert (receipt.accepted, list(receipt.refused)) == (["vote 0001", "vote 0002", "vote 0003"], ["vote 0004"])
    assert [person.qualified for person in database.reviewers()] == [0.5]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("screen", ["clarity", "pair"])
def test_one_request_comes_to_the_same_as_many(tmp_path: Path, screen: str, seed: int) -> None:
    """Random votes, changes and undos, some of which are refused, at once and one by one."""
    items = tuple(Item(f"item {number}", ("1.jpg", "2.jpg"), group=f"group {number // 3}") for number in range(6))
    project = Project(Path("nowhere"), "test", screen, items, reviewers_each=1)
    names = [choice.name for choice in project.screen.choices]
    outcomes = []
    for at_once in (True, False):
        database = Database(tmp_path / f"{at_once}.sqlite")
        service, ada = begun(database, project)
        chance, ids = random.Random(seed), itertools.count(1)
        sent: list[dict[str, Any]] = []
        for _ in range(40):
            earlier = [one["id"] for one in sent]
            supersedes = chance.choice(earlier) if earlier and chance.random() < 0.5 else None
            answer = None if supersedes and chance.random() < 0.4 else {"choice": chance.choice(names)}
            on = chance.choice(items).id
            if supersedes and chance.random() < 0.8:  # mostly the item of the vote that it supersedes
                known = {service.opaque_name(f"item {item.id}"): item.id for item in items}
                on = known[next(one["item"] for one in sent if one["id"] == supersedes)]
            round_ = chance.choice(["first", "first", "first", "open"])
            sent.append(vote(service, f"vote {next(ids):04}", on, answer, supersedes=supersedes, round=round_))
        requests = [sent] if at_once else [[one] for one in sent]
        receipts = [accept_votes(service, ada, request) for request in requests]
        accepted = [one for receipt in receipts for one in receipt.accepted]
        stand = {item: one.id for (_, item), one in standing(database.votes()).items()}
        outcomes.append((accepted, stand, sorted(database.next_items(ada.id, 99))))
        database.close()
    assert outcomes[0] == outcomes[1]
