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
from shiftproof.review.vote_table import Batches
from shiftproof.review.votes import SubmittedVote, Vote, standing

KEEP = {"choice": "keep"}
A_MOMENT = 0.5
"""Seconds in which a vote that waits for nobody is written."""


def sent(vote_id: str, item: str = "a", **more: Any) -> SubmittedVote:
    return SubmittedVote(vote_id, item, "first", **{"answer": KEEP, **more})


def person(database: Database, name: str, *items: str) -> int:
    found = database.reviewer_with(database.invite(name))
    assert found is not None
    database.assign(found.id, lambda _: items)
    return found.id


def in_one_batch(database: Database, together: Sequence[tuple[int, SubmittedVote]]) -> list[Future[int]]:
    """What becomes of votes that have all come before the first of them is written."""
    batches = database._vote_writer._batches
    with ThreadPoolExecutor(len(together)) as pool:
        with batches._lock:
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
    assert [database.next_items(one, 9) for one in (ada, ben)] == [["b"], ["a", "b"]]


def test_an_id_that_comes_for_two_items_at_once_answers_the_first(database: Database) -> None:
    ada = person(database, "Ada", "a", "b")
    first, second = in_one_batch(database, [(ada, sent("1", "a")), (ada, sent("1", "b"))])
    assert first.result() == 1
    assert isinstance(second.exception(), BadInput)
    assert database.next_items(ada, 9) == ["b"]


def test_a_vote_that_comes_twice_at_once_is_new_once(database: Database) -> None:
    ada = person(database, "Ada", "a")
    assert [one.result() for one in in_one_batch(database, [(ada, sent("1"))] * 3)] == [1, 0, 0]


@pytest.mark.parametrize("odd", [sent("2", "b", note="\ud800"), sent("2", "b", answer={"choice": b"keep"})])
def test_a_vote_that_cannot_be_kept_holds_up_no_other(database: Database, odd: SubmittedVote) -> None:
    ada, ben = person(database, "Ada", "a", "b"), person(database, "Ben", "a", "b")
    first, strange, last = in_one_batch(database, [(ada, sent("1")), (ben, odd), (ben, sent("3"))])
    assert (first.result(), last.result()) == (1, 1)
    assert strange.exception() is not None
    assert sorted(vote.id for vote in database.votes()) == ["1", "3"]
    assert [database.next_items(one, 9) for one in (ada, ben)] == [["b"], ["b"]]


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
    assert database.next_items(ada, 9) == []


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
    assert database.next_items(ada, 9) == []


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
        other.update_answered(ada, ["a", "b"], speaks_for_both)

    with ThreadPoolExecutor(1) as pool:
        taken_back = pool.submit(take_back)
        one.update_answered(ada, ["a", "b"], slowly)
        taken_back.result(timeout=PATIENCE)
    assert one.next_items(ada, 9) == ["a", "b"]


def test_more_items_than_a_question_may_name_are_settled_too(database: Database) -> None:
    ada = person(database, "Ada", "a", "b", "c")
    database.add(ada, [sent("1", "c")])
    many = ["a", "b", *(f"other {number}" for number in range(70_000))]
    database.update_answered(ada, many, lambda own: {"a", *(vote.item for vote in own)})
    assert database.next_items(ada, 9) == ["b"]


def test_those_who_come_while_one_is_at_it_are_done_together() -> None:
    begun, go_on = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def double(jobs: Sequence[int]) -> list[int | Exception]:
        batches.append(list(jobs))
        begun.set()
        go_on.wait(timeout=PATIENCE)
        return [2 * job for job in jobs]

    work: Batches[int, int] = Batches(double, threading.Lock())
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(work.run, 0)
        begun.wait(timeout=PATIENCE)
        others = [pool.submit(work.run, job) for job in range(1, 9)]
        while work.waiting < 8:
            pass
        go_on.set()
        assert [first.result(), *(other.result() for other in others)] == [2 * job for job in range(9)]
    assert list(map(len, batches)) == [1, 8]


def test_an_error_of_a_batch_is_met_by_all_who_are_in_it() -> None:
    turn = threading.Lock()
    batches: list[int] = []

    def broken(jobs: Sequence[int]) -> list[int | Exception]:
        batches.append(len(jobs))
        raise OSError("the disk is full")

    work: Batches[int, int] = Batches(broken, turn)
    with ThreadPoolExecutor(3) as pool:
        with turn:
            jobs = [pool.submit(work.run, job) for job in range(3)]
            while work.waiting < 3:
                pass
        assert [str(job.exception(timeout=PATIENCE)) for job in jobs] == ["the disk is full"] * 3
    assert batches == [3]


def test_an_error_of_one_is_met_by_its_own_thread_and_an_error_of_all_by_all() -> None:
    def half(jobs: Sequence[int]) -> list[int | Exception]:
        return [ValueError(job) if job % 2 else job // 2 for job in jobs]

    def broken(_jobs: Sequence[int]) -> list[int | Exception]:
        raise OSError("the disk is full")

    work: Batches[int, int] = Batches(half, threading.Lock())
    assert work.run(4) == 2
    with pytest.raises(ValueError, match="3"):
        work.run(3)
    with pytest.raises(OSError, match="full"):
        Batches(broken, threading.Lock()).run(1)
