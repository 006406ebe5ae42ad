"""A database that is out of order for a while: votes wait and arrive once, and the owner is told in a line."""

from __future__ import annotations

import json
import os
import resource
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from starlette.requests import Request

from patience import PATIENCE
from review.browsing import Reviewing
from review.databases import POSTGRES
from review.served import NO_TLS, Served, drawn_project, served
from shiftproof.review import app as outages
from shiftproof.review import schema
from shiftproof.review.app import LOG_INTERVAL, outage_handlers
from shiftproof.review.auth import HEADERS
from shiftproof.review.database import Database

ASKED_FOR_ITEMS = Request(
    {"type": "http", "method": "GET", "path": "/api/items", "headers": [], "server": ("127.0.0.1", 8000)}
)


class Scene(NamedTuple):
    """A review that is served, and what puts its database out of order."""

    server: Served
    outage: Callable[[], AbstractContextManager[None]]


class Voter:
    """A reviewer's page: the items that it has, and the key of its forms."""

    def __init__(self, client: httpx.Client, server: Served) -> None:
        client.get(server.links["Ada"])
        page = client.get("/work").text
        settings = json.loads(page.partition('id="settings">')[2].partition("</script>")[0])
        self._client, self._headers = client, {"x-form-key": settings["key"]}
        self._items = [item["id"] for item in settings["items"]]

    def vote(self) -> dict[str, Any]:
        """A vote on the next item, to be sent."""
        keep = {"choice": "keep"}
        return {"id": str(uuid.uuid4()), "item": self._items.pop(0), "round": "first", "answer": keep, "note": "x" * 500}

    def send(self, vote: dict[str, Any]) -> httpx.Response:
        return self._client.post("/api/votes", json={"votes": [vote]}, headers=self._headers)


@contextmanager
def own_database() -> Iterator[tuple[str, Engine]]:
    """The name of a database that can be closed without anybody else's noticing, and the way to the server that has it."""
    if POSTGRES not in os.environ:
        pytest.skip(f"{POSTGRES} is not set: no PostgreSQL to test with")
    name, engine = f"test_{uuid.uuid4().hex}", create_engine(os.environ[POSTGRES], isolation_level="AUTOCOMMIT")
    run(engine, f"CREATE DATABASE {name}")
    try:
        yield name, engine
    finally:
        run(engine, f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


def run(engine: Engine, statement: str, **values: str) -> None:
    with engine.connect() as connection:
        connection.execute(text(statement), values)


def end_connections(engine: Engine, name: str) -> None:
    """Ends every connection to a database, as a server does that is started anew."""
    run(engine, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name", name=name)


@contextmanager
def closed(engine: Engine, name: str) -> Iterator[None]:
    """Ends every connection to a database, and lets nobody in for a while."""
    run(engine, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    end_connections(engine, name)
    yield
    run(engine, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@contextmanager
def full_disk(server: Served, folder: Path) -> Iterator[None]:
    """Lets the server's files grow no more for a while."""
    longest = max(path.stat().st_size for path in folder.glob("review.sqlite*"))
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (longest, before[1]))
    yield
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["full", "closed"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    folder = drawn_project(tmp_path / "set").folder
    if request.param == "full":
        with served(folder, invite=["Ada"]) as server:
            yield Scene(server, lambda: full_disk(server, folder))
        return
    with own_database() as (name, engine):
        url = engine.url.set(database=name).render_as_string(hide_password=False)
        with served(folder, "--database", url, invite=["Ada"]) as server:
            yield Scene(server, lambda: closed(engine, name))


@pytest.fixture
def client(scene: Scene) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=scene.server.address, verify=NO_TLS, follow_redirects=True, timeout=PATIENCE) as opened:
        yield opened


def test_votes_wait_while_the_database_is_out_of_order_and_the_owner_hears_of_it_in_a_line(
    scene: Scene, client: httpx.Client
) -> None:
    ada = Voter(client, scene.server)
    assert ada.send(ada.vote()).status_code == 200
    waiting = ada.vote()
    with scene.outage():
        answers = [ada.send(waiting) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["error"] for answer in answers} == {"the review's database is out of order"}
    for _ in range(2):  # again, as pages do that lost the answer
        told = ada.send(waiting).json()
        assert (told["accepted"], told["refused"], told["progress"]["done"]) == ([waiting["id"]], {}, 2)
    code, _, said = scene.server.stop()
    begun, complaint = said.splitlines()
    assert (code, begun.startswith("Drawn: 8 items")) == (0, True)
    assert complaint.startswith("the review's database is out of order, and votes wait in people's browsers: ")


@pytest.mark.parametrize("scene", ["closed"], indirect=True)
def test_a_page_opened_meanwhile_says_to_try_again(scene: Scene, client: httpx.Client) -> None:
    client.get(scene.server.links["Ada"])
    with scene.outage():
        answer = client.get("/work")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert "Please try again in a minute" in answer.text
    assert answer.headers.items() >= HEADERS.items()
    assert client.get("/work").status_code == 200


@pytest.mark.real
def test_a_browser_keeps_its_answers_through_an_outage(sit_down: Callable[..., Reviewing]) -> None:
    ada = sit_down(count=4)
    ada.begin()
    seen = ada.press("y")
    assert len(ada.saved()) == 1
    with full_disk(ada.server, ada.project.folder):
        seen += ada.press("n", "u")
        ada.page.get_by_text("Not saved: the review's database is out of order; 2 answers kept here").wait_for()
    assert [(vote.item, vote.choice) for vote in ada.saved()] == list(zip(seen, ["keep", "reject", "unsure"], strict=True))


@pytest.mark.parametrize(("pause", "told"), [(LOG_INTERVAL, 1), (0.0, 3)])
def test_the_owner_is_told_again_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, pause: float, told: int
) -> None:
    monkeypatch.setattr(outages, "LOG_INTERVAL", pause)
    handle = outage_handlers()[OperationalError]
    for _ in range(3):
        handle(ASKED_FOR_ITEMS, OperationalError("SELECT 1", {}, OSError("connection refused\nIs the server running?")))
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["connection refused"] * told


@pytest.mark.parametrize(
    "problem",
    [
        OperationalError("SELECT 1", {}, OSError("connection refused")),
        InterfaceError("SELECT 1", {}, OSError("the connection is closed")),
        NoConnectionFree("all connections are taken"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_whatever_lies_with_the_database_is_answered_so_that_pages_try_again(problem: SQLAlchemyError) -> None:
    handle = next(handle for kind, handle in outage_handlers().items() if isinstance(problem, kind))
    assert handle(ASKED_FOR_ITEMS, problem).status_code == 503


@pytest.fixture
def restarted() -> Iterator[Database]:
    """A database that is open while its server was started anew: every connection leads nowhere."""
    with own_database() as (name, engine):
        database = Database(engine.url.set(database=name).render_as_string(hide_password=False))
        database.invite("Ada")
        database.count()
        end_connections(engine, name)
        yield database
        database.close()


def test_connections_that_ended_while_nobody_used_them_are_noticed_by_nobody(
    restarted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "IDLE_SECONDS", 0.0)
    restarted.invite("Ben")
    assert [person.name for person in restarted.reviewers()] == ["Ada", "Ben"]


@pytest.mark.parametrize("reading_first", [True, False])
def test_who_meets_a_connection_that_ended_is_the_only_one(
    restarted: Database, monkeypatch: pytest.MonkeyPatch, reading_first: bool
) -> None:
    monkeypatch.setattr(schema, "IDLE_SECONDS", PATIENCE)
    meets, others = (restarted.count, restarted.secret) if reading_first else (restarted.secret, restarted.count)
    with pytest.raises(OperationalError):
        meets()
    others()
    meets()


def test_a_damaged_vote_is_told_to_the_owner_in_a_line(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with (
        served(tmp_path / "set", invite=["Ada"]) as server,
        httpx.Client(base_url=server.address, verify=NO_TLS, timeout=PATIENCE) as client,
    ):
        ada = Voter(client, server)
        assert ada.send(ada.vote()).json()["accepted"]
        engine = create_engine(f"sqlite:///{tmp_path / 'set' / 'review.sqlite'}")
        with engine.begin() as connection:
            connection.execute(text("UPDATE votes SET answer = '5'"))
        engine.dispose()
        assert ada.send(ada.vote()).json()["accepted"], "others are taken"
        client.get(server.links["owner"])
        assert client.get("/owner").status_code == 503
        told = server.stop()[2].splitlines()
    assert len(told) == 2
    assert "'5' in the review's database is no answer" in told[1]
