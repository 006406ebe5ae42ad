"""Fifty people at two votes a second each, over HTTP against a server process, on SQLite and on PostgreSQL.

    python benchmarks/review_load.py

Every item goes to all fifty, and each of them has answered a thousand of 5,000 items before. Then the same with a server
that is killed five times. SHIFTPROOF_TEST_POSTGRES names a PostgreSQL server; without it, SQLite alone.
Aim: no error, no vote lost or counted twice, and 99 of 100 votes acknowledged within 100 ms.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sqlalchemy import create_engine, insert

from harness import save

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the simulated reviewers are those of the tests

from review.databases import empty_database
from review.served import Served, drawn_project, served
from review.simulated import check_votes, reviewers_at_work
from shiftproof.curation.project import Project
from shiftproof.review.database import Database
from shiftproof.review.schema import assignments, votes

PEOPLE = [f"person {number}" for number in range(50)]
ITEMS, BEFORE = 5000, 1000
SECONDS = int(os.environ.get("SECONDS_EACH", "60"))


def answer_before(project: Project, url: str) -> None:
    """Gives every person items and answers them, as a thousand votes each would have left it."""
    database, engine = Database(url), create_engine(url)
    for name in PEOPLE:
        database.invite(name)
    for person in database.reviewers():
        # other items for each, overlapping as they would
        mine = [project.items[place % ITEMS].id for place in range(97 * person.id, 97 * person.id + BEFORE)]
        about = {"reviewer": person.id}
        given = [{**about, "item": item, "position": place, "answered": True} for place, item in enumerate(mine)]
        said = {**about, "round": "first", "answer": {"choice": "keep"}, "note": "", "milliseconds": 900, "received": 0.0}
        with engine.begin() as connection:
            connection.execute(insert(assignments), given)
            connection.execute(insert(votes), [{**said, "id": f"{person.id} {item}", "item": item} for item in mine])
    database.close()
    engine.dispose()


def told(what: str, seconds: Sequence[float]) -> dict[str, float]:
    figures = {str(share): float(np.percentile(seconds, share) * 1000) for share in (50, 95, 99, 100)}
    shown = ", ".join(f"{share} %: {value:.1f} ms" for share, value in figures.items())
    print(f"  {what}: {len(seconds):,}; {shown}", flush=True)
    return figures


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far, as Linux tells it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work(server: Served, database: Database, *, kills: int) -> dict[str, dict[str, float]]:
    before = max((vote.number for vote in database.votes()), default=0)
    with reviewers_at_work(server, PEOPLE) as crew:
        for _ in range(kills):
            time.sleep(SECONDS / (kills + 1))
            server.kill()
            server.start()
        spent, taken = cpu_seconds(server.process.pid), database.count()
        time.sleep(SECONDS / (kills + 1))
        spent, taken = cpu_seconds(server.process.pid) - spent, database.count() - taken
    check_votes(crew, database, before=before)
    # a busy machine makes every answer late, and yet this stays the same
    print(f"  {1000 * spent / taken:.1f} ms of the server's CPU for each vote, with all that people fetch beside it")
    votes_taken = [one for reviewer in crew for one in reviewer.vote_seconds]
    fetches = [one for reviewer in crew for one in reviewer.fetch_seconds]
    return {"votes": told("votes", votes_taken), "fetches": told("fetches of six items", fetches)}


def main() -> None:
    figures = {}
    for kind in ("sqlite", "postgresql"):
        for kills in (0, 5):
            with tempfile.TemporaryDirectory() as folder, empty_database(kind, Path(folder)) as url:
                if url is None:
                    continue
                project = drawn_project(Path(folder) / "set", ITEMS, reviewers_each=len(PEOPLE))
                answer_before(project, url)
                with served(Path(folder) / "set", "--database", url, invite=PEOPLE) as server:
                    database = Database(url)
                    print(f"{kind}, killed {kills} times", flush=True)
                    figures[f"{kind}, {kills} kills"] = work(server, database, kills=kills)
                    database.close()
    save("review_load", figures)


if __name__ == "__main__":
    main()
