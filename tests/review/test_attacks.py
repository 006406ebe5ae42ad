"""A script of attacks over real HTTP, and each is refused: what strangers, reviewers and strange projects could try."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import secrets
import time
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie as Cookies
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from patience import PATIENCE
from review.served import NO_TLS, Served, drawn_project, get, served
from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.errors import BadInput
from shiftproof.review.app import review_app
from shiftproof.review.auth import HEADERS, MAX_BODY_BYTES, MAX_COUNTERS, MAX_GUESSES, Authenticator, GuessLimiter
from shiftproof.review.database import Database
from shiftproof.review.pages import check_all_there
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_votes

NASTY = """<script>alert("1")</script>'&</script><img src=x onerror=alert(1)>"""
KEEP = {"choice": "keep"}
Result = TypeVar("Result")


@dataclass
class Person:
    """A reviewer's browser: what it was told, and what it can send."""

    browser: httpx.Client
    key: str
    items: list[str]

    def send(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return self.browser.post(path, json=body, headers={"x-form-key": self.key, **headers})

    def vote(self, **parts: Any) -> dict[str, Any]:
        """Sends one vote, in order but for some parts; what was answered."""
        vote = {"id": str(uuid.uuid4()), "item": self.items[0], "round": "first", "answer": KEEP, "note": "", **parts}
        answer = self.send("/api/votes", {"votes": [vote]})
        assert answer.status_code == 200
        return {"sent": vote["id"], **answer.json()}


@dataclass
class Scene:
    """A server with two reviewers, and the database behind it."""

    server: Served
    project: Project
    database: Database
    ada: Person
    ben: Person

    def raw(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """An answer to a request that no library has tidied up, in Ada's name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        cookie = "; ".join(f"{name}={value}" for name, value in self.ada.browser.cookies.items())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"cookie": cookie, **named})
        answer = connection.getresponse()
        said = answer.status, answer.read()
        connection.close()
        return said


@contextmanager
def entered(server: Served, name: str) -> Iterator[Person]:
    with httpx.Client(base_url=server.address, timeout=PATIENCE, verify=NO_TLS) as browser:
        assert browser.get(server.links[name]).status_code == 303
        text = browser.get("/work").text
        settings = json.loads(text.partition('id="settings">')[2].partition("</script>")[0])
        items = browser.get("/api/items?count=20").json()["items"]
        yield Person(browser, settings["key"], [item["id"] for item in items])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("attacks") / "set"
    bird = ReviewClass("bird", NASTY, gloss=NASTY)
    items = tuple(Item(f"item {number}", (f"{number}.png",), label="bird", shown={"lite:0": NASTY}) for number in range(8))
    project = drawn_project(folder, title=NASTY, instructions=NASTY, classes=(bird,), items=items)
    (folder / "secret.txt").write_text("secret")
    with served(folder, invite=[NASTY, "Ben"]) as server, entered(server, NASTY) as ada, entered(server, "Ben") as ben:
        database = Database(folder / "review.sqlite")
        yield Scene(server, project, database, ada, ben)
        database.close()


@pytest.mark.parametrize("door", ["/picture/", "/static/", "/join/", "/"])
@pytest.mark.parametrize(
    "way",
    [
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e/secret.txt",
        "%2e%2e%2f%2e%2e%2fsecret.txt",
        "....//secret.txt",
        "..\\secret.txt",
        "..%5csecret.txt",
        "..%252fsecret.txt",
        "..%c0%afsecret.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "0.png",
        "0.png%00.jpg",
        "../app.py",
        "%2e%2e%2fapp.py",
        "",
        ".",
    ],
)
def test_no_path_leads_to_a_file(scene: Scene, door: str, way: str) -> None:
    if door + way in ("/", "/."):
        return
    status, body = scene.raw("GET", door + way)
    assert status in (307, 400, 403, 404, 405, 429)
    assert not any(told in body for told in (b"secret", b"root:", b"import ", b"PNG"))


def test_pictures_are_had_by_their_names_and_by_those_invited_alone(scene: Scene) -> None:
    item = scene.ada.browser.get("/api/items").json()["items"][0]
    path = f"/picture/{item['images'][0]}"
    answer = scene.ada.browser.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert "private" in answer.headers["cache-control"]
    assert get(scene.server.address + path).status_code == 403


def test_what_goes_with_a_picture_does_not_tell_when_it_was_put_there(tmp_path: Path, database: Database) -> None:
    """Pictures of known answers are put there last, and those of one clip together."""
    project, token = drawn_project(tmp_path / "set"), database.invite("Ada")
    for number, file in enumerate(sorted(project.pictures)):
        os.utime(project.image(file), (10_000 * number, 10_000 * number))

    async def told() -> set[tuple[tuple[str, str], ...]]:
        async with from_address(review_app(project, database), "10.0.0.1") as browser:
            await browser.get(f"/join/{token}")
            names = [item["images"][0] for item in (await browser.get("/api/items?count=8")).json()["items"]]
            answers = {name: await browser.get(f"/picture/{name}") for name in names}
        assert len(answers) == 8
        own = ("content-length", "etag")
        assert all(answer.headers["etag"] == f'"{name}"' for name, answer in answers.items())
        return {
            tuple((part, value) for part, value in answer.headers.items() if part not in own) for answer in answers.values()
        }

    assert len(awaited(told())) == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"item": "item 0"},
        {"item": "0" * 24},
        {"item": None},
        {"item": ["a"]},
        {"item": {"$ne": 1}},
        {"round": "training"},
        {"round": "open"},
        {"round": "last"},
        {"round": ["first"]},
        {"id": "short"},
        {"id": "x" * 37},
        {"id": 12345678},
        {"id": None},
        {"answer": {"choice": "win"}},
        {"answer": {"choice": "x" * 100_000}},
        {"answer": {"choice": ["keep"]}},
        {"answer": {"choice": "keep", "points": "x"}},
        {"answer": {"choice": "keep", "labels": [{}]}},
        {"answer": {"choice": "keep", "verdict": "kept"}},
        {"answer": {"choice": "reject", "reasons": ["unclear"] * 1000}},
        {"answer": {"choice": "reject", "reasons": {"unclear": 1}}},
        {"answer": {"choice": "reject", "reasons": [None]}},
        {"answer": {}},
        {"answer": []},
        {"answer": "keep"},
        {"answer": 1},
        {"answer": None},
        {"answer": None, "supersedes": "nothing at all"},
        {"supersedes": 5},
        {"supersedes": "x" * 1000},
        {"note": "x" * 2001},
        {"note": None},
        {"note": {"text": "x"}},
        {"milliseconds": -1},
        {"milliseconds": 2**31},
        {"milliseconds": 1.5},
        {"milliseconds": True},
        {"milliseconds": "9"},
    ],
    ids=repr,
)
def test_a_vote_that_no_page_would_send_is_refused(scene: Scene, parts: dict[str, Any]) -> None:
    before = scene.database.count()
    told = scene.ada.vote(**parts)
    assert told["accepted"] == []
    assert len(told["refused"]) == 1
    assert scene.database.count() == before


def test_a_refused_vote_does_not_hold_up_the_others(scene: Scene) -> None:
    good, bad = (
        {"id": str(uuid.uuid4()), "item": scene.ada.items[5], "round": "first", "answer": answer, "note": ""}
        for answer in (KEEP, {"choice": "win"})
    )
    told = scene.ada.send("/api/votes", {"votes": [bad, good]}).json()
    assert told["accepted"] == [good["id"]]
    assert list(told["refused"]) == [bad["id"]]


def test_nobody_votes_under_the_id_of_anothers_vote_or_takes_it_back(scene: Scene) -> None:
    sent = scene.ada.vote()
    assert sent["accepted"] == [sent["sent"]]
    before = scene.database.votes()
    shared = scene.ada.items[0]
    assert shared in scene.ben.items
    for forged in ({"id": sent["sent"]}, {"supersedes": sent["sent"]}, {"answer": None, "supersedes": sent["sent"]}):
        assert scene.ben.vote(item=shared, **forged)["accepted"] == []
    assert scene.database.votes() == before


def test_a_vote_sent_again_with_another_answer_stays_as_it_was(scene: Scene) -> None:
    first = scene.ada.vote(item=scene.ada.items[1])
    scene.ada.vote(item=scene.ada.items[1], id=first["sent"], answer={"choice": "reject"})
    (kept,) = (vote for vote in scene.database.votes() if vote.id == first["sent"])
    assert kept.answer == KEEP


def test_an_item_of_others_cannot_be_voted_on(tmp_path: Path, database: Database) -> None:
    service = ReviewService(drawn_project(tmp_path / "set", reviewers_each=1), database)
    for name in ("Ada", "Ben"):
        database.invite(name)
    ada, ben = database.reviewers()
    items = service.queue(ada, "first", 20)
    assert service.queue(ben, "first", 20) == []
    vote = {"id": "12345678", "item": items[0]["id"], "round": "first", "answer": KEEP}
    assert accept_votes(service, ben, [vote]).accepted == []
    assert accept_votes(service, ada, [vote]).accepted == ["12345678"]


@pytest.mark.parametrize(
    "headers",
    [
        {"x-form-key": ""},
        {"x-form-key": "0" * 64},
        {"x-form-key": "é"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1.evil.example"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("path", ["/api/votes", "/api/comments", "/api/lookups", "/consent"])
def test_what_no_page_of_ours_sent_is_refused(scene: Scene, path: str, headers: dict[str, str]) -> None:
    sent = [(name.encode(), value.encode()) for name, value in {"x-form-key": scene.ada.key, **headers}.items()]
    assert scene.ada.browser.post(path, json={}, headers=sent).status_code == 403


def test_the_form_key_of_one_person_is_worth_nothing_to_another(scene: Scene) -> None:
    stolen = Person(scene.ben.browser, scene.ada.key, scene.ben.items)
    assert stolen.send("/api/votes", {"votes": []}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/work", "/picture/x", "/api/items", "/api/last", "/api/classes", "/api/together"])
@pytest.mark.parametrize("cookie", ["", "x", "x.y", "{token}", "{token}.", "{token}.0", "{other}.{signature}"])
def test_strangers_get_nothing(scene: Scene, path: str, cookie: str) -> None:
    ((name, value),) = scene.ada.browser.cookies.items()
    token, _, signature = value.partition(".")
    other = scene.ben.browser.cookies[name].partition(".")[0]
    forged = cookie.format(token=token, other=other, signature=signature)
    status, body = scene.raw("GET", path, cookie=f"{name}={forged}")
    assert status == 403
    assert b"item" not in body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"5",
        b"null",
        b'{"votes": {}}',
        b'{"votes": [1]}',
        b'{"votes": "x"}',
        b'{"votes": [NaN]}',
        b'{"votes": [{"note": "\\ud800"}]}',
        b'{"votes": [{"note": "\\u0000"}]}',
        b"[" * 100_000,
        b'{"votes":' * 20_000,
        b'{"votes": [' + b"9" * 10_000 + b"]}",
        json.dumps({"votes": [{}] * 101}).encode(),
    ],
    ids=lambda body: repr(body[:40]),
)
@pytest.mark.parametrize("path", ["/api/votes", "/api/comments", "/api/lookups"])
def test_a_body_that_is_not_what_it_should_be_is_told_so(scene: Scene, path: str, body: bytes) -> None:
    answer = scene.ada.browser.post(path, content=body, headers={"x-form-key": scene.ada.key})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_huge_bodies_are_not_read(scene: Scene) -> None:
    key = {"x-form-key": scene.ada.key}
    huge = b" " * (MAX_BODY_BYTES + 1)
    assert scene.ada.browser.post("/api/votes", content=huge, headers=key).status_code == 413
    chunks = itertools.repeat(b" " * 65536, 8)
    assert scene.ada.browser.post("/api/votes", content=chunks, headers=key).status_code == 413
    for length in ("-1", "1e9", "9" * 30, "x"):
        status, _ = scene.raw("POST", "/api/votes", content_length=length, x_form_key=scene.ada.key)
        assert status in (400, 413)


def test_an_endless_body_is_cut_off(scene: Scene) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1000:
            sent += 1
            yield b" " * 65536

    try:
        status = scene.ada.browser.post("/api/votes", content=endless(), headers={"x-form-key": scene.ada.key}).status_code
    except httpx.TransportError:
        status = 413  # hung up on
    assert status == 413


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil.example"])
def test_another_name_of_the_host_is_refused(scene: Scene, host: str) -> None:
    status, body = scene.raw("GET", "/work", host=host)
    assert status == 400
    assert b"settings" not in body


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "BREW"])
@pytest.mark.parametrize("path", ["/", "/work", "/api/votes", "/api/items", "/picture/x", "/static/", "/join/x"])
def test_other_methods_are_refused(scene: Scene, method: str, path: str) -> None:
    before = scene.database.count()
    assert scene.raw(method, path)[0] in (400, 404, 405)
    assert scene.database.count() == before


def test_votes_are_not_sent_by_links_and_heads_have_no_body(scene: Scene) -> None:
    assert scene.raw("GET", "/api/votes?votes=[]")[0] == 405
    status, body = scene.raw("HEAD", "/work")
    assert (status, body) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/work"),
        ("GET", "/api/items"),
        ("GET", "/nothing"),
        ("GET", "/static/loop.js"),
        ("GET", "/static/nothing"),
        ("GET", "/picture/nothing"),
        ("POST", "/api/votes"),
        ("PUT", "/api/votes"),
        ("HEAD", "/"),
    ],
)
def test_every_answer_has_the_headers_that_keep_a_page_to_itself(scene: Scene, method: str, path: str) -> None:
    answer = scene.ada.browser.request(method, path)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "cache-control" in answer.headers
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_the_policy_allows_no_inline_script_no_other_site_and_no_frame_around() -> None:
    policy = dict(rule.split(maxsplit=1) for rule in HEADERS["content-security-policy"].split("; "))
    closed = {"default-src", "base-uri", "frame-ancestors"}
    assert {rule for rule, allowed in policy.items() if allowed == "'none'"} == closed
    assert {source for rule in policy.keys() - closed for source in policy[rule].split()} == {"'self'", "blob:"}
    assert policy["script-src"] == "'self'"


def from_address(app: ASGIApp, address: str) -> httpx.AsyncClient:
    """A browser at another address than ours, without a network between."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 5))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def awaited(answer: Coroutine[Any, Any, Result]) -> Result:
    """The answer, in a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, answer).result()


def test_errors_of_ours_have_the_headers_and_tell_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    token, app = database.invite("Ada"), review_app(drawn_project(tmp_path / "set"), database)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(Database, "next_items", broken)

    async def ask() -> httpx.Response:
        async with from_address(app, "127.0.0.1") as browser:
            await browser.get(f"/join/{token}")
            return await browser.get("/api/items")

    answer = awaited(ask())
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_the_cookie_is_for_the_server_alone(scene: Scene) -> None:
    cookie = get(scene.server.links["Ben"]).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "domain" not in cookie


def test_a_person_is_in_two_reviews_on_one_host_at_a_time(tmp_path: Path) -> None:
    databases = [Database(tmp_path / f"{name}.sqlite") for name in "ab"]
    gates = [Authenticator(database) for database in databases]
    cookies = Cookies()
    for gate, database, person in zip(gates, databases, ("Ada", "Eve"), strict=True):
        response = Response()
        gate.log_in(response, database.invite(person))
        cookies.load(response.headers["set-cookie"])
    held = "; ".join(f"{name}={one.value}" for name, one in cookies.items())
    request = Request({"type": "http", "headers": [(b"cookie", held.encode())]})
    assert [visitor.name for gate in gates if (visitor := gate.visitor(request))] == ["Ada", "Eve"]
    for database in databases:
        database.close()


def test_the_token_is_on_no_page(scene: Scene) -> None:
    token = scene.server.links[NASTY].rpartition("/")[2]
    for path in ("/", "/work", "/api/items", "/api/last", "/api/classes", "/api/together"):
        answer = scene.ada.browser.get(path)
        assert answer.status_code == 200
        assert token not in answer.text
        assert token not in str({name: value for name, value in answer.headers.items() if name != "set-cookie"})


@pytest.mark.parametrize("path", ["/", "/work"])
def test_names_are_escaped_in_pages(scene: Scene, path: str) -> None:
    text = scene.ada.browser.get(path).text
    assert "alert(" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert text.count("</script>") == text.count("<script")


def test_answers_in_json_are_never_taken_for_pages(scene: Scene) -> None:
    scene.ada.vote(item=scene.ada.items[4], note=NASTY)
    for path in ("/api/items", "/api/last", "/api/classes"):
        answer = scene.ada.browser.get(path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert scene.ada.browser.get("/api/last").json()["votes"][0]["note"] == NASTY


def test_odd_queries_are_answered_as_if_nothing_was_asked(scene: Scene) -> None:
    for count, most in (("99999999999999999999", 20), ("-1", 6), ("x", 6), ("²", 6), ("", 6)):
        answer = scene.ada.browser.get("/api/items", params={"count": count, "besides": "a,,\0,'--"})
        assert answer.status_code == 200
        assert len(answer.json()["items"]) <= most
    assert scene.ada.browser.get("/api/items", params={"besides": ",".join("x" * 500)}).status_code == 200


def test_guessed_tokens_are_counted_and_who_is_in_stays_in(tmp_path: Path, database: Database) -> None:
    token, app = database.invite("Ada"), review_app(drawn_project(tmp_path / "set"), database)

    async def ask() -> None:
        async with (
            from_address(app, "10.0.0.1") as guesser,
            from_address(app, "10.0.0.1") as inside,
            from_address(app, "10.0.0.2") as other,
        ):
            assert (await inside.get(f"/join/{token}")).status_code == 303
            alike = [f"{token[:4]}{number}" for number in range(MAX_GUESSES + 2)]
            told = [(await guesser.get(f"/join/{guess}")).status_code for guess in alike]
            assert told == [403] * (MAX_GUESSES - 1) + [429] * 3
            forwarded = {"x-forwarded-for": "10.0.0.9", "forwarded": "for=10.0.0.9"}
            assert (await guesser.get(f"/join/{token}", headers=forwarded)).status_code == 429, "right, but too late"
            assert (await inside.get("/api/items")).status_code == 200
            assert (await other.get(f"/join/{token}")).status_code == 303

    awaited(ask())


def test_wrong_links_lock_nobody_out_who_comes_from_the_same_address(tmp_path: Path, database: Database) -> None:
    token, app = database.invite("Ada"), review_app(drawn_project(tmp_path / "set"), database)

    async def ask() -> list[int]:
        async with from_address(app, "10.0.0.1") as browser:
            wrong = [await browser.get(f"/join/{secrets.token_urlsafe(24)}") for _ in range(5 * MAX_GUESSES)]
            return [*{answer.status_code for answer in wrong}, (await browser.get(f"/join/{token}")).status_code]

    assert awaited(ask()) == [403, 303]


def test_who_has_to_wait_is_not_forgotten_for_the_many_who_guessed_once() -> None:
    guesses = GuessLimiter()
    for _ in range(MAX_GUESSES):
        guesses.add("token", "10.0.0.1")
    for number in range(MAX_COUNTERS + 2):
        guesses.add("token", f"address {number}")
    assert guesses.too_many("token", "10.0.0.1")
    assert not guesses.too_many("other", "10.0.0.1")


class Slow(str):
    """A token whose beginning takes a while to be told."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> str:
        time.sleep(0.4)
        return super().__getitem__(place)


def test_many_guess_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses = GuessLimiter()
    monkeypatch.setattr("shiftproof.review.auth.MAX_COUNTERS", 1)
    monkeypatch.setattr("shiftproof.review.auth._is_full", lambda _: time.sleep(0.4))  # while others guess
    guesses.add("first", "10.0.0.1")
    with ThreadPoolExecutor(1) as threads:
        meanwhile = threads.submit(guesses.add, Slow("slow"), "10.0.0.1")
        time.sleep(0.1)
        for token in ("second", "third"):
            guesses.add(token, "10.0.0.1")
        meanwhile.result()


@pytest.mark.parametrize(
    "file", ["../secret.txt", "/etc/passwd", "page.html", "drawing.svg", "code.js", "..\\x.png", "a/b.png"]
)
def test_a_project_of_a_stranger_cannot_have_other_files_served(tmp_path: Path, file: str) -> None:
    project = Project(tmp_path, "strange", "clarity", (Item("a", (file,)),))
    database = Database(tmp_path / "review.sqlite")
    with pytest.raises(BadInput, match="pictures of strange should be"):
        review_app(project, database)
    database.close()


@pytest.mark.parametrize("linked", ["a.png", "."])
def test_a_link_in_a_project_of_a_stranger_does_not_lead_out_of_it(tmp_path: Path, linked: str, database: Database) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a.png").write_bytes(b"secret")
    images = tmp_path / "set" / "images"
    (images if linked != "." else images.parent).mkdir(parents=True)
    (images / linked).absolute().symlink_to(tmp_path / "home" / linked)
    project = Project(tmp_path / "set", "strange", "clarity", (Item("a", ("a.png",)),))
    with pytest.raises(BadInput, match="lacks 1 of its pictures"):
        check_all_there(project)
    token = database.invite("Ada")

    async def picture() -> tuple[int, bytes]:
        async with from_address(review_app(project, database), "10.0.0.1") as browser:
            await browser.get(f"/join/{token}")
            (item,) = (await browser.get("/api/items")).json()["items"]
            answer = await browser.get(f"/picture/{item['images'][0]}")
        return answer.status_code, answer.content

    status, body = awaited(picture())
    assert status == 404
    assert b"secret" not in body
