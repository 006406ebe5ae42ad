"""Who has what, as a server knows it: the same as the database says, whoever else gives out and takes back."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from sqlalchemy import Connection

from shiftproof.review import holdings
from shiftproof.review.database import Database
from shiftproof.review.holdings import Holding
from shiftproof.review.votes import Sent

ITEMS = [f"item {number}" for number in range(30)]


def as_read(database_url: str, reviewer: int) -> Holding:
    """What a server says that has just come."""
    database = Database(database_url)
    held = database.given(reviewer)
    database.close()
    return held


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
            wanted, has = chance.sample(ITEMS, 4), server.given(person).own
            given = server.hand_out(person, lambda _, wanted=wanted: wanted)  # type: ignore[misc]
            assert given == [one for one in wanted if one not in has]
        if turn % 3 == 0 and server.given(person).own:
            server.add(person, [Sent(f"vote {turn}", min(server.given(person).own), "first", {"choice": "keep"})])
        for one in people:
            fresh = as_read(database_url, one)
            assert +fresh.people == Counter(item for whom in people for item in servers[0].assigned_to(whom))
            assert [(+server.given(one).people, server.given(one).own) for server in servers] == [fresh] * 2
    for server in servers:
        server.close()


def test_who_gives_out_sees_what_another_server_gave_just_before(database_url: str) -> None:
    one, other = Database(database_url), Database(database_url)
    ada, ben = invited(one, "Ada"), invited(one, "Ben")
    seen: list[Counter[str]] = []

    def note(has: Holding) -> list[str]:
        seen.append(has.people)
        return ["a"]

    for server, person in ((one, ada), (other, ben), (one, ada)):
        server.hand_out(person, note)
    assert seen == [Counter(), Counter(a=1), Counter(a=2)]
    one.close()
    other.close()


def test_what_was_not_written_after_all_is_not_held(database_url: str) -> None:
    one, other = Database(database_url), Database(database_url)
    ada, ben = invited(one, "Ada"), invited(one, "Ben")
    one.hand_out(ada, lambda _: ["a"])

    def fail(_has: Holding) -> list[str]:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        one.hand_out(ada, fail)
    other.hand_out(ben, lambda _: ["b"])  # as many changes as the one that failed would have made
    assert one.given(ada) == Holding(Counter("ab"), frozenset("a"))
    one.close()
    other.close()


def test_what_is_told_of_is_not_changed_by_what_follows(database: Database) -> None:
    ada = invited(database, "Ada")
    before = database.given(ada)
    database.hand_out(ada, lambda _: ["a"])
    assert before == Holding(Counter(), frozenset())


def test_what_nobody_else_changed_is_read_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, reads, read = invited(database, "Ada"), [], holdings._read

    def counted(connection: Connection) -> holdings.Held:
        reads.append(connection)
        return read(connection)

    monkeypatch.setattr(holdings, "_read", counted)
    for item in "abc":
        database.hand_out(ada, lambda _, item=item: [item])  # type: ignore[misc]
        assert database.given(ada).own == frozenset("abc"[: "abc".index(item) + 1])
    assert len(reads) == 1
