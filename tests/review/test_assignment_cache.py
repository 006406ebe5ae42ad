"""Who has what, as a server knows it: the same as the database says, whoever else gives out and takes back."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, event

from patience import PATIENCE
from shiftproof.review import assignment_cache
from shiftproof.review.assignment_cache import AssignedItems
from shiftproof.review.database import Database
from shiftproof.review.votes import SubmittedVote

ITEMS = [f"item {number}" for number in range(30)]


def invited(database: Database, name: str) -> int:
    database.invite(name)
    return database.reviewers()[-1].id


def test_servers_that_give_out_and_take_back_in_turn_know_of_each_other(database_url: str) -> None:
    servers, chance = [Database(database_url), Database(database_url)], random.Random(7)
    people = [invited(servers[0], name) for name in ("Ada", "Ben", "Cem")]
    for turn in range(40):
        server, person = chance.choice(servers), chance.choice(people)
        if chance.random() < 0.2:
            server.release(person)
        else:
            wanted, has = chance.sample(ITEMS, 4), server.assigned_items(person).own
            given = server.assign(person, lambda _, wanted=wanted: wanted)  # type: ignore[misc]
            assert given == [one for one in wanted if one not in has]
        if turn % 3 == 0 and server.assigned_items(person).own:
            server.add(
                person, [SubmittedVote(f"vote {turn}", min(server.assigned_items(person).own), "first", {"choice": "keep"})]
            )
        just_come = Database(database_url)
        for one in people:
            fresh = just_come.assigned_items(one)
            assert +fresh.reviewers == Counter(item for whom in people for item in servers[0].assigned_to(whom))
            assert [(+server.assigned_items(one).reviewers, server.assigned_items(one).own) for server in servers] == [
                fresh
            ] * 2
        just_come.close()
    for server in servers:
        server.close()


def test_who_gives_out_sees_what_another_server_gave_just_before(database_url: str) -> None:
    one, other = Database(database_url), Database(database_url)
    ada, ben = invited(one, "Ada"), invited(one, "Ben")
    seen: list[Counter[str]] = []

    def note(has: AssignedItems) -> list[str]:
        seen.append(has.reviewers)
        return ["a"]

    for server, person in ((one, ada), (other, ben), (one, ada)):
        server.assign(person, note)
    assert seen == [Counter(), Counter(a=1), Counter(a=2)]
    one.close()
    other.close()


def test_what_was_not_written_after_all_is_not_held(database_url: str) -> None:
    one, other = Database(database_url), Database(database_url)
    ada, ben = invited(one, "Ada"), invited(one, "Ben")
    one.assign(ada, lambda _: ["a"])

    def fail(_has: AssignedItems) -> list[str]:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        one.assign(ada, fail)
    other.assign(ben, lambda _: ["b"])  # as many changes as the one that failed would have made
    assert one.assigned_items(ada) == AssignedItems(Counter("ab"), frozenset("a"))
    one.close()
    other.close()


def test_what_is_told_of_is_not_changed_by_what_follows(database: Database) -> None:
    ada = invited(database, "Ada")
    before = database.assigned_items(ada)
    database.assign(ada, lambda _: ["a"])
    assert before == AssignedItems(Counter(), frozenset())


def test_what_nobody_else_changed_is_read_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, reads, read = invited(database, "Ada"), [], assignment_cache._read

    def counted(connection: Connection) -> assignment_cache.Assignments:
        reads.append(connection)
        return read(connection)

    monkeypatch.setattr(assignment_cache, "_read", counted)
    for item in "abc":
        database.assign(ada, lambda _, item=item: [item])  # type: ignore[misc]
        assert database.assigned_items(ada).own == frozenset("abc"[: "abc".index(item) + 1])
    assert len(reads) == 1


def test_those_who_wait_share_a_transaction_and_one_that_fails_holds_up_no_other(database: Database) -> None:
    people = [invited(database, name) for name in ("Ada", "Ben", "Cem", "Dee")]
    commits: list[object] = []
    event.listen(database._engine, "commit", commits.append)

    def given(*wishes: tuple[int, Callable[[AssignedItems], list[str]]]) -> list[Any]:
        """What those get who come while another is at it."""
        begun = threading.Event()

        def wait(_has: AssignedItems) -> list[str]:
            begun.set()
            until(lambda: database._assigner.waiting == len(wishes))
            return []

        with ThreadPoolExecutor(len(people)) as threads:
            first = threads.submit(database.assign, people[0], wait)
            assert begun.wait(PATIENCE)
            others = [threads.submit(database.assign, *wish) for wish in wishes]
            first.result()
            return [one.exception() or one.result() for one in others]

    def fail(_has: AssignedItems) -> list[str]:
        raise RuntimeError("in the middle")

    def all_of(has: AssignedItems) -> list[str]:
        return [item for item in "ab" if has.reviewers[item] < 2]

    found = given(*((person, all_of) for person in people[1:]))
    assert sorted(found) == [[], ["a", "b"], ["a", "b"]], "the last of them sees what the others got just before"
    assert len(commits) == 2
    problem, mine = given((people[1], fail), (people[2], lambda _: ["c"]))
    assert isinstance(problem, RuntimeError)
    assert mine == ["c"]
    assert database.assigned_items(people[2]).own >= {"c"}


def until(met: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < give_up
        time.sleep(0.001)
