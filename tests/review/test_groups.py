"""Who closes a group is asked no more about it, until the vote is taken back."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.project import Item, Project
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_votes

BAD = {"choice": "bad anchor"}
SIMILAR = {"choice": "similar"}


def pairs_of(anchors: str, each: int) -> Project:
    pairs = [Item(f"{anchor}{number}", ("1.jpg", "2.jpg"), group=anchor) for anchor in anchors for number in range(each)]
    return Project(Path("nowhere"), "test", "pair", tuple(pairs))


@pytest.fixture
def vote() -> Callable[..., str]:
    """Sends a vote for a person; its id comes back."""
    numbers = itertools.count()

    def send(
        service: ReviewService, reviewer: Reviewer, item: str, answer: dict[str, str] | None, supersedes: str | None = None
    ) -> str:
        sent: dict[str, Any] = {
            "id": f"vote-{next(numbers):04}",
            "item": service.opaque_name(f"item {item}"),
            "round": "first",
        }
        taken = accept_votes(service, reviewer, [{**sent, "answer": answer, "supersedes": supersedes}])
        assert taken.accepted == [sent["id"]]
        return str(sent["id"])

    return send


def person(database: Database, name: str) -> Reviewer:
    found = database.reviewer_with(database.invite(name))
    assert found is not None
    return found


def waiting(service: ReviewService, reviewer: Reviewer) -> set[str]:
    return {service.items[item["id"]].id for item in service.queue(reviewer, "first", 1000)}


def test_pairs_of_a_bad_anchor_are_asked_no_more_until_the_vote_is_taken_back(
    database: Database, vote: Callable[..., str]
) -> None:
    service = ReviewService(pairs_of("ab", 5), database)
    ada, ben = person(database, "Ada"), person(database, "Ben")
    assert len(waiting(service, ada)) == len(waiting(service, ben)) == 10
    vote(service, ada, "a1", SIMILAR)
    closed = vote(service, ada, "a3", BAD)
    assert waiting(service, ada) == {f"b{number}" for number in range(5)}
    assert service.progress(ada).done == 5
    assert len(waiting(service, ben)) == 10
    vote(service, ada, "a3", None, supersedes=closed)
    assert len(waiting(service, ada)) == 9
    assert service.progress(ada).done == 1


def test_a_pair_whose_vote_is_taken_back_is_asked_no_more_where_its_anchor_is_bad(
    database: Database, vote: Callable[..., str]
) -> None:
    service = ReviewService(pairs_of("ab", 5), database)
    ada = person(database, "Ada")
    waiting(service, ada)
    judged = vote(service, ada, "a1", SIMILAR)
    vote(service, ada, "a3", BAD)
    vote(service, ada, "a1", None, judged)
    assert waiting(service, ada) == {f"b{number}" for number in range(5)}


def test_who_finds_an_anchor_bad_and_then_judges_the_pair_in_another_tab_is_asked_about_the_others_again(
    database: Database, vote: Callable[..., str]
) -> None:
    service = ReviewService(pairs_of("ab", 5), database)
    ada = person(database, "Ada")
    everything = waiting(service, ada)
    vote(service, ada, "a3", BAD)
    vote(service, ada, "a3", SIMILAR)
    assert waiting(service, ada) == everything - {"a3"}


def test_items_of_a_closed_group_that_are_handed_out_later_are_not_asked_either(
    database: Database, vote: Callable[..., str]
) -> None:
    service = ReviewService(pairs_of("ab", 60), database)
    ada = person(database, "Ada")
    first = next(service.items[item["id"]] for item in service.queue(ada, "first", 1))
    vote(service, ada, first.id, BAD)
    other = {"a": "b", "b": "a"}[first.id[0]]
    assert waiting(service, ada) == {f"{other}{number}" for number in range(60)}
    assert service.progress(ada).done == 60


def test_nobody_else_is_asked_about_a_group_that_enough_people_closed(
    database: Database, vote: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftproof.review.service.CACHE_SECONDS", 0.0)
    service = ReviewService(dataclasses.replace(pairs_of("ab", 5), reviewers_each=3), database)
    ada, ben, cem = (person(database, name) for name in ("Ada", "Ben", "Cem"))
    waiting(service, ada), waiting(service, ben)
    vote(service, ada, "a3", BAD)
    assert service.progress(cem).left == 10
    closed = vote(service, ben, "a1", BAD)
    assert service.progress(cem).left == 5
    assert waiting(service, cem) == {f"b{number}" for number in range(5)}
    vote(service, ben, "a1", None, supersedes=closed)
    assert len(waiting(service, cem)) == 10
