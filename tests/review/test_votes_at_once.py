"""Votes that come at the same moment, to one server or to two: each has its own outcome, and what counts as answered is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, update

from patience import PATIENCE
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.schema import assignments, votes
from shiftproof.review.votes import Sent, Vote, standing

KEEP = {"choice": "keep"}
A_MOMENT = 0.5
"""Seconds in which a vote that waits for nobody is written."""


def sent(vote_id: str, item: str = "a", **more: Any) -> Sent:
    return Sent(vote_id, item, "first", **{"answer": KEEP, **more})


def person(database: Database, name: str, *items: str) -> int:
    found = database.reviewer_with(database.invite(name))
    assert found is not None
    database.hand_out(found.id, lambda _: items)
    return found.id


def in_one_batch(database: Database, together: Sequence[tuple[int, Sent]]) -> list[Future[int]]:
    """What becomes of votes that have all come before the first of them is written."""
    batches = database._taken_in._together
    with ThreadPoolExecutor(len(together)) as pool:
        with batches._turn:
            outcomes = []
            for reviewer, vote in together:
                outcomes.append(pool.submit(database.add, reviewer, [vote]))
                while batches.waiting < len(outcomes):
                    pass
        wait(outcomes, timeout=PATIENCE)
    return outcomes


@pytest.fixture
def servers(database_url: str) -> Iterator[list[Database]]:
    """Two that share a database."""
    opened = [Database(database_url), Database(database_url)]
    yield opened
    for database in opened:
        database.close()


def test_an_id_that_two_people_use_at_once_is_the_first_ones_alone(database: Database) -> None:
    ada, ben = person(database, "Ada", "a", "b"), person(database, "Ben", "a", "b")
    first, second = in_one_batch(database, [(ada, sent("1", "a")), (ben, sent("1", "b"))])
    assert first.result() == 1
    with pytest.raises(BadInput, match="same person"):
        second.result()
    assert [(vote.reviewer, vote.item) for vote in database.votes()] == [(ada, "a")]
    assert [database.waiting(one, 9) for one in (ada, ben)] == [["b"], ["a", "b"]]


def test_an_id_that_comes_for_two_items_at_once_answers_the_first(database: Database) -> None:
    ada = person(database, "Ada", "a", "b")
    first, second = in_one_batch(database, [(ada, sent("1", "a")), (ada, sent("1", "b"))])
    assert first.result() == 1
    assert isinstance(second.exception(), BadInput)
    assert database.waiting(ada, 9) == ["b"]


def test_a_vote_that_comes_twice_at_once_is_new_once(database: Database) -> None:
    ada = person(database, "Ada", "a")
    assert [one.result() for one in in_one_batch(database, [(ada, sent("1"))] * 3)] == [1, 0, 0]


@pytest.mark.parametrize("odd", [sent("2", "b", note="\ud800"), sent("2", "b", answer={"choice": b"keep"})])
def test_a_vote_that_cannot_be_kept_holds_up_no_other(database: Database, odd: Sent) -> None:
    ada, ben = person(database, "Ada", "a", "b"), person(database, "Ben", "a", "b")
    first, strange, last = in_one_batch(database, [(ada, sent("1")), (ben, odd), (ben, sent("3"))])
    assert (first.result(), last.result()) == (1, 1)
    assert strange.exception() is not None
    assert sorted(vote.id for vote in database.votes()) == ["1", "3"]
    assert [database.waiting(one, 9) for one in (ada, ben)] == [["b"], ["b"]]


def test_a_vote_of_nobody_holds_up_no_other(database: Database) -> None:
    ada = person(database, "Ada", "a")
    nobody, first = in_one_batch(database, [(ada + 1, sent("1")), (ada, sent("2"))])
    assert nobody.exception() is not None
    assert first.result() == 1
    assert [vote.id for vote in database.votes()] == ["2"]


def during(database_url: str, change: Callable[[Connection], object], add: Callable[[], int]) -> int:
    """What comes of adding a vote while another server is about to change something."""
    other = create_engine(database_url)
    with ThreadPoolExecutor(1) as pool:
        with other.begin() as connection:
            change(connection)
            added = pool.submit(add)
            wait([added], timeout=A_MOMENT)
        outcome = added.result(timeout=PATIENCE)
    other.dispose()
    return outcome


def test_what_is_taken_back_on_one_server_and_answered_anew_on_another_counts_as_answered(
    database_url: str, database: Database
) -> None:
    ada = person(database, "Ada", "a")
    database.add(ada, [sent("1")])
    taking_back = update(assignments).values(answered=False)
    assert during(database_url, lambda there: there.execute(taking_back), lambda: database.add(ada, [sent("2")])) == 1
    assert database.waiting(ada, 9) == []


def test_what_is_answered_anew_on_one_server_and_taken_back_on_another_counts_as_answered(
    database_url: str, database: Database
) -> None:
    ada = person(database, "Ada", "a")
    database.add(ada, [sent("1")])

    def answer_anew(there: Connection) -> None:
        anew = {"id": "2", "reviewer": ada, "item": "a", "round": "first", "answer": KEEP, "received": 0.0}
        there.execute(votes.insert().values(anew))
        there.execute(update(assignments).values(answered=True))

    taking_back = sent("3", answer=None, supersedes="1")
    assert during(database_url, answer_anew, lambda: database.add(ada, [taking_back])) == 1
    assert database.waiting(ada, 9) == []


def test_what_a_vote_spoke_for_is_asked_again_though_the_vote_is_taken_back_while_that_is_settled(
    servers: list[Database],
) -> None:
    one, other = servers
    ada = person(one, "Ada", "a", "b")
    one.add(ada, [sent("1", "a")])
    begun = threading.Event()

    def speaks_for_both(own: list[Vote]) -> set[str]:
        return {"a", "b"} if standing(own) else set()

    def slowly(own: list[Vote]) -> set[str]:
        begun.set()
        wait([taken_back], timeout=A_MOMENT)
        return speaks_for_both(own)

    def take_back() -> None:
        begun.wait(timeout=PATIENCE)
        other.add(ada, [sent("2", "a", answer=None, supersedes="1")])
        other.settle(ada, ["a", "b"], speaks_for_both)

    with ThreadPoolExecutor(1) as pool:
        taken_back = pool.submit(take_back)
        one.settle(ada, ["a", "b"], slowly)
        taken_back.result(timeout=PATIENCE)
    assert one.waiting(ada, 9) == ["a", "b"]


def test_more_items_than_a_question_may_name_are_settled_too(database: Database) -> None:
    ada = person(database, "Ada", "a", "b", "c")
    database.add(ada, [sent("1", "c")])
    many = ["a", "b", *(f"other {number}" for number in range(70_000))]
    database.settle(ada, many, lambda own: {"a", *(vote.item for vote in own)})
    assert database.waiting(ada, 9) == ["b"]
