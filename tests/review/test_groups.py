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
from shiftproof.review.desk import Desk

BAD = {"choice": "bad anchor"}
SIMILAR = {"choice": "similar"}


def pairs_of(anchors: str, each: int) -> Project:
    pairs = [Item(f"{anchor}{number}", ("1.jpg", "2.jpg"), group=anchor) for anchor in anchors for number in range(each)]
    return Project(Path("nowhere"), "test", "pair", tuple(pairs))


@pytest.fixture
def vote() -> Callable[..., str]:
    """Sends a vote for a person; its id comes back."""
    numbers = itertools.count()

    def send(desk: Desk, reviewer: Reviewer, item: str, answer: dict[str, str] | None, supersedes: str | None = None) -> str:
        sent: dict[str, Any] = {"id": f"vote-{next(numbers):04}", "item": desk.name_of(f"item {item}"), "round": "first"}
        taken = desk.take(reviewer, [{**sent, "answer": answer, "supersedes": supersedes}])
        assert taken.accepted == [sent["id"]]
        return str(sent["id"])

    return send


def person(database: Database, name: str) -> Reviewer:
    found = database.reviewer_with(database.invite(name))
    assert found is not None
    return found


def waiting(desk: Desk, reviewer: Reviewer) -> set[str]:
    return {desk.items[item["id"]].id for item in desk.queue(reviewer, "first", 1000)}


def test_pairs_of_a_bad_anchor_are_asked_no_more_until_the_vote_is_taken_back(
    database: Database, vote: Callable[..., str]
) -> None:
    desk = Desk(pairs_of("ab", 5), database)
    ada, ben = person(database, "Ada"), person(database, "Ben")
    assert len(waiting(desk, ada)) == len(waiting(desk, ben)) == 10
    vote(desk, ada, "a1", SIMILAR)
    closed = vote(desk, ada, "a3", BAD)
    assert waiting(desk, ada) == {f"b{number}" for number in range(5)}
    assert desk.progress(ada).done == 5
    assert len(waiting(desk, ben)) == 10
    vote(desk, ada, "a3", None, supersedes=closed)
    assert len(waiting(desk, ada)) == 9
    assert desk.progress(ada).done == 1


def test_a_pair_whose_vote_is_taken_back_is_asked_no_more_where_its_anchor_is_bad(
    database: Database, vote: Callable[..., str]
) -> None:
    desk = Desk(pairs_of("ab", 5), database)
    ada = person(database, "Ada")
    waiting(desk, ada)
    judged = vote(desk, ada, "a1", SIMILAR)
    vote(desk, ada, "a3", BAD)
    vote(desk, ada, "a1", None, judged)
    assert waiting(desk, ada) == {f"b{number}" for number in range(5)}


def test_who_finds_an_anchor_bad_and_then_judges_the_pair_in_another_tab_is_asked_about_the_others_again(
    database: Database, vote: Callable[..., str]
) -> None:
    desk = Desk(pairs_of("ab", 5), database)
    ada = person(database, "Ada")
    everything = waiting(desk, ada)
    vote(desk, ada, "a3", BAD)
    vote(desk, ada, "a3", SIMILAR)
    assert waiting(desk, ada) == everything - {"a3"}


def test_items_of_a_closed_group_that_are_handed_out_later_are_not_asked_either(
    database: Database, vote: Callable[..., str]
) -> None:
    desk = Desk(pairs_of("ab", 60), database)
    ada = person(database, "Ada")
    first = next(desk.items[item["id"]] for item in desk.queue(ada, "first", 1))
    vote(desk, ada, first.id, BAD)
    other = {"a": "b", "b": "a"}[first.id[0]]
    assert waiting(desk, ada) == {f"{other}{number}" for number in range(60)}
    assert desk.progress(ada).done == 60


def test_nobody_else_is_asked_about_a_group_that_enough_people_closed(
    database: Database, vote: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftproof.review.desk.RECOUNT_SECONDS", 0.0)
    desk = Desk(dataclasses.replace(pairs_of("ab", 5), reviewers_each=3), database)
    ada, ben, cem = (person(database, name) for name in ("Ada", "Ben", "Cem"))
    waiting(desk, ada), waiting(desk, ben)
    vote(desk, ada, "a3", BAD)
    assert desk.progress(cem).left == 10
    closed = vote(desk, ben, "a1", BAD)
    assert desk.progress(cem).left == 5
    assert waiting(desk, cem) == {f"b{number}" for number in range(5)}
    vote(desk, ben, "a1", None, supersedes=closed)
    assert len(waiting(desk, cem)) == 10
