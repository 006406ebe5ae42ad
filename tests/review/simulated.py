"""Reviewers that are programs: at a steady pace, pressing keys twice, undoing, sending again what nobody acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any, Protocol

from patience import PATIENCE
from shiftproof.review.database import Database
from shiftproof.review.votes import standing

AHEAD, LOW = 6, 3
"""Items that a page asks for, and how few it has left when it does."""

LOST = (OSError, http.client.HTTPException, json.JSONDecodeError)
"""What a browser meets when the server goes away in the middle."""


class Door(Protocol):
    """Where they come in: a server's port, and the link of each of them."""

    @property
    def port(self) -> int: ...
    @property
    def links(self) -> Mapping[str, str]: ...


@dataclass
class Reviewer:
    """One of them, with everything it sent and was told."""

    port: int
    link: str
    pace: float  # votes a second
    chance: random.Random
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)  # answers that were neither a success nor a lost connection
    vote_seconds: list[float] = field(default_factory=list)
    fetch_seconds: list[float] = field(default_factory=list)

    def work(self, everybody: threading.Barrier, over: threading.Event) -> None:
        """Answers item after item once everybody is there, until it is over and what is under way is acknowledged."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self._headers = {"content-type": "application/json"}
        self._enter()
        everybody.wait()
        turn = time.monotonic() + self.chance.random() / self.pace
        while not over.wait(max(turn - time.monotonic(), 0)) and self._stock:
            self._answer(self._stock.pop(0))
            if len(self._stock) <= LOW:
                self._fetch()
            turn += 1 / self.pace
        self._connection.close()

    def _enter(self) -> None:
        status, headers, _ = self._ask("GET", self.link.partition(f":{self.port}")[2])
        assert status == 303
        self._headers["cookie"] = headers["set-cookie"].partition(";")[0]
        _, _, page = self._ask("GET", "/work")
        settings = json.loads(page.decode().partition('id="settings">')[2].partition("</script>")[0])
        self._headers["x-form-key"] = settings["key"]
        self._stock = [item["id"] for item in settings["items"]]

    def _answer(self, item: str) -> None:
        choice = self.chance.choices(["keep", "reject", "unsure"], [7, 2, 1])[0]
        vote = self._vote(item, {"choice": choice})
        if self.chance.random() < 0.02:  # pressed twice
            self._send(vote)
        if self.chance.random() < 0.05:  # undone, and answered again
            self._vote(item, None, supersedes=vote["id"])
            self._vote(item, {"choice": "reject"})

    def _vote(self, item: str, answer: dict[str, Any] | None, **more: str) -> dict[str, Any]:
        name = str(uuid.UUID(int=self.chance.getrandbits(128)))
        vote = {"id": name, "item": item, "round": "first", "answer": answer, "note": "", "milliseconds": 400, **more}
        self.sent[name] = vote
        self._send(vote)
        return vote

    def _send(self, vote: dict[str, Any]) -> None:
        started = time.monotonic()
        status, _, said = self._ask("POST", "/api/votes", json.dumps({"votes": [vote]}))
        self.vote_seconds.append(time.monotonic() - started)
        if status == 200:
            told = json.loads(said)
            self.acknowledged.update(told["accepted"])
            self.refused.update(told["refused"])

    def _fetch(self) -> None:
        started = time.monotonic()
        status, _, said = self._ask("GET", f"/api/items?count={AHEAD}&besides={','.join(self._stock)}")
        self.fetch_seconds.append(time.monotonic() - started)
        if status == 200:
            self._stock += [item["id"] for item in json.loads(said)["items"]]

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """An answer, asked for again and again while nobody answers."""
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                self._connection.request(method, path, body, self._headers)
                answer = self._connection.getresponse()
                said = answer.status, answer.headers, answer.read()
                if answer.status not in (200, 303):
                    self.strange.append(f"{method} {path}: {answer.status} {said[2]!r:.200}")
                return said
            except LOST as problem:
                self._connection.close()
                if time.monotonic() > give_up:
                    self.strange.append(f"{method} {path}: {problem!r}")
                    return 0, http.client.HTTPMessage(), b""
                time.sleep(0.05)


@contextlib.contextmanager
def reviewers_at_work(server: Door, names: Sequence[str], *, pace: float = 2.0, seed: int = 0) -> Iterator[list[Reviewer]]:
    """All of them at work at once while the block runs, and after it until every vote is acknowledged."""
    crew = [Reviewer(server.port, server.links[name], pace, random.Random(f"{seed} {name}")) for name in names]
    everybody, over = threading.Barrier(len(crew) + 1, timeout=PATIENCE), threading.Event()
    threads = [threading.Thread(target=reviewer.work, args=(everybody, over)) for reviewer in crew]
    for thread in threads:
        thread.start()
    try:
        everybody.wait()
        yield crew
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def slow_connections(port: int, count: int) -> Iterator[None]:
    """Connections of strangers from many addresses while the block runs, each with a request that never ends.

    One that the server closes is opened again. They are a process of their own, and take no time from the reviewers'.
    """
    processes = multiprocessing.get_context("spawn")
    all_open = processes.Event()
    crowd = processes.Process(target=_never_end, args=(port, count, all_open), daemon=True)
    crowd.start()
    assert all_open.wait(PATIENCE)
    yield
    assert crowd.is_alive(), "they were there all the time"
    crowd.kill()
    crowd.join()


def _never_end(port: int, count: int, all_open: Event) -> None:
    places: list[socket.socket | None] = [None] * count
    while True:
        for place, held in enumerate(places):
            try:
                if held is None:
                    address = f"127.1.{place % 250}.{1 + place // 250 % 250}"
                    places[place] = socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))
                    places[place].send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")  # type: ignore[union-attr]
                else:
                    held.send(b"x")
            except OSError:
                if held is not None:
                    held.close()
                places[place] = None
        all_open.set()
        time.sleep(1)


def check_votes(crew: Sequence[Reviewer], database: Database, *, before: int = 0) -> None:
    """Every vote is in the database once and as it was sent, no other is, and what counts as answered is."""
    kept = database.votes(after=before)
    sent = {name: vote for reviewer in crew for name, vote in reviewer.sent.items()}
    acknowledged = {name for reviewer in crew for name in reviewer.acknowledged}
    assert [strange for reviewer in crew for strange in reviewer.strange] == []
    assert [reason for reviewer in crew for reason in reviewer.refused.values()] == []
    assert acknowledged == set(sent)
    assert sorted(vote.id for vote in kept) == sorted(sent)
    assert all(vote.answer == sent[vote.id]["answer"] for vote in kept)
    answered = standing(database.votes())
    for person in database.reviewers():
        assert database.tally(person.id)[1] == sum(one == person.id for one, _ in answered)
