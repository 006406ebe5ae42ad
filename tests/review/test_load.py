"""Many people at once, and a server that is killed: no vote is lost, and none counts twice."""

from __future__ import annotations

from pathlib import Path

from patience import wait_until
from review.served import drawn_project, served
from review.simulated import check_votes, reviewers_at_work
from shiftproof.review.database import Database

PEOPLE = [f"person {number}" for number in range(50)]


def test_fifty_people_lose_no_vote_and_none_counts_twice(database_url: str, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set", 1000)
    with served(tmp_path / "set", "--database", database_url, invite=PEOPLE) as server:
        database = Database(database_url)
        with reviewers_at_work(server, PEOPLE) as crew:
            wait_for_votes(database, 300)
        code, _, said = server.stop()
    assert (code, "Traceback" in said) == (0, False)
    check_votes(crew, database)
    database.close()


def test_five_kills_lose_no_acknowledged_vote(database_url: str, tmp_path: Path) -> None:
    drawn_project(tmp_path / "set", 1000)
    people = PEOPLE[:10]
    with served(tmp_path / "set", "--database", database_url, invite=people) as server:
        database = Database(database_url)
        with reviewers_at_work(server, people, pace=20) as crew:
            for _ in range(5):
                wait_for_votes(database, 20)
                server.kill()
                server.start()
        check_votes(crew, database)
        database.close()


def wait_for_votes(database: Database, more: int) -> None:
    """Until so many more are there, whenever that is: the server is then in the midst of others."""
    enough = database.count() + more
    wait_until(lambda: database.count() >= enough)
