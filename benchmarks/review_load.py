"""Fifty people at two votes a second each, over HTTP against a server process, on SQLite and on PostgreSQL.

    python benchmarks/review_load.py [--slow 2000]

Every item goes to all fifty, and each of them has answered a thousand of 5,000 items before. They begin together, so that
all of them want further items within the same half second, time and again. Before it and after it the same people at
`bare_review.py`, which does nothing but keep each vote with a commit: what this machine can do at best, and the control.
Then the same review with a server that is killed five times. SHIFTPROOF_TEST_POSTGRES names a PostgreSQL server; without
it, SQLite alone. With --slow only the review, and again beside so many connections of strangers from other addresses
whose requests never end.
Aim: no error, no vote lost or counted twice, 99 of 100 votes acknowledged within 50 ms and every fetch within 200 ms; beside
2,000 slow connections 99 of 100 votes within 150 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sqlalchemy import create_engine, insert

from harness import figure, save

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the simulated reviewers are those of the tests

from review.databases import empty_database
from review.served import Served, drawn_project, served
from review.simulated import Reviewer, check_votes, reviewers_at_work, slow_connections
from shiftproof.curation.project import Project
from shiftproof.review.database import Database
from shiftproof.review.schema import assignments, votes

PEOPLE = [f"person {number}" for number in range(50)]
ITEMS, BEFORE = 5000, 1000
SECONDS, KILLS = int(os.environ.get("SECONDS_EACH", "60")), 5

Figures: TypeAlias = dict[str, dict[str, float]]


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


@dataclass(frozen=True)
class Bare:
    """The bare server as the simulated reviewers know it."""

    port: int
    links: dict[str, str]


@contextlib.contextmanager
def bare_server(url: str) -> Iterator[tuple[Bare, int]]:
    """A bare server and its process, until the block ends."""
    script = str(Path(__file__).parent / "bare_review.py")
    with subprocess.Popen([sys.executable, script, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        links = {name: f"http://127.0.0.1:{port}/join/{number}" for number, name in enumerate(PEOPLE)}
        yield Bare(port, links), process.pid
        process.kill()


def at_bare_server(url: str) -> Figures:
    with bare_server(url) as (server, process), reviewers_at_work(server, PEOPLE) as crew:
        cost = cost_of_votes(crew, process)
    return {**cost, **waits(crew)}


def at_review(server: Served, database: Database) -> Figures:
    with checked_work(server, database) as crew:
        cost = cost_of_votes(crew, server.pid)
    return {**cost, **waits(crew)}


def at_slow_review(server: Served, database: Database, slow: int) -> Figures:
    with slow_connections(server.port, slow):
        return at_review(server, database)


def at_killed_review(server: Served, database: Database) -> Figures:
    with checked_work(server, database) as crew:
        for _ in range(KILLS):
            time.sleep(SECONDS / (KILLS + 1))
            server.kill()
            server.start()
        time.sleep(SECONDS / (KILLS + 1))
    return waits(crew)


@contextlib.contextmanager
def checked_work(server: Served, database: Database) -> Iterator[list[Reviewer]]:
    """Everybody at work while the block runs; after it no vote may be missing or there twice."""
    before = max((vote.number for vote in database.votes()), default=0)
    with reviewers_at_work(server, PEOPLE, seed=before) as crew:
        yield crew
    check_votes(crew, database, before=before)


def cost_of_votes(crew: Sequence[Reviewer], process: int) -> Figures:
    """What a vote costs a server while everybody is at work: a busy machine makes answers late, and changes this little."""
    spent, taken = cpu_seconds(process), acknowledged(crew)
    time.sleep(SECONDS)
    each = 1000 * (cpu_seconds(process) - spent) / (acknowledged(crew) - taken)
    print(f"  {each:.1f} ms of the server's CPU for each vote, with all that people fetch beside it")
    return {"cpu": {"each": each}}


def acknowledged(crew: Sequence[Reviewer]) -> int:
    return sum(len(reviewer.acknowledged) for reviewer in crew)


def waits(crew: Sequence[Reviewer]) -> Figures:
    votes_taken = [one for reviewer in crew for one in reviewer.vote_seconds]
    fetches = [one for reviewer in crew for one in reviewer.fetch_seconds]
    return {"votes": told("votes", votes_taken), "fetches": told("fetches of six items", fetches)}


def measured(kind: str, folder: Path, url: str, slow: int) -> dict[str, Figures]:
    """One database: the bare server, the review, the bare server again, the review that is killed.

    With slow connections: the review, the review beside them, and the review again.
    """
    answer_before(drawn_project(folder / "set", ITEMS, reviewers_each=len(PEOPLE)), url)
    figures: dict[str, Figures] = {}
    with served(folder / "set", "--database", url, invite=PEOPLE) as server, contextlib.closing(Database(url)) as database:
        beside: dict[str, Callable[[], Figures]] = {
            "review": lambda: at_review(server, database),
            f"review beside {slow:,} slow connections": lambda: at_slow_review(server, database, slow),
            "review, again": lambda: at_review(server, database),
        }
        usual: dict[str, Callable[[], Figures]] = {
            "bare": lambda: at_bare_server(url),
            "review": lambda: at_review(server, database),
            "bare, again": lambda: at_bare_server(url),
            f"review, killed {KILLS} times": lambda: at_killed_review(server, database),
        }
        for name, work in (beside if slow else usual).items():
            print(f"{kind}: {name}", flush=True)
            figures[name] = work()
    first, *others = (name for name in figures if "cpu" in figures[name])
    for name in others:
        cost, late = (
            figures[name][part][key] / figures[first][part][key] for part, key in (("cpu", "each"), ("votes", "99"))
        )
        print(f"{kind}: {name} x {first}: CPU {cost:.2f}, 99 % of votes {late:.2f}", flush=True)
    return figures


def tell(kind: str, figures: dict[str, Figures]) -> None:
    """The rows of the page on speed."""
    bare, review, again = (figures[name] for name in ("bare", "review", "bare, again"))
    for work, part, share, aim in (
        ("99 % of votes", "votes", "99", "<= 50 ms"),
        ("longest fetch of six items", "fetches", "100", "<= 200 ms"),
    ):
        least = bare[part][share]
        figure(
            f"{work}, {len(PEOPLE)} reviewers at two votes a second, {kind}",
            review[part][share],
            beside=f"{least:.1f} ms at a server that only commits each vote",
            aim=aim,
            unit="ms",
            noise=again[part][share] / least,
        )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--slow", type=int, default=0, help="connections of strangers whose requests never end")
    options.add_argument("file", nargs="?", help="where figures are written")
    chosen = options.parse_args()
    slow, sys.argv[1:] = chosen.slow, [chosen.file] if chosen.file else []
    figures = {}
    for kind in ("sqlite", "postgresql"):
        with tempfile.TemporaryDirectory() as folder, empty_database(kind, Path(folder)) as url:
            if url is not None:
                figures[kind] = measured(kind, Path(folder), url, slow)
                if not slow:
                    tell(kind, figures[kind])
    save("review_slow" if slow else "review_load", figures)


if __name__ == "__main__":
    main()
