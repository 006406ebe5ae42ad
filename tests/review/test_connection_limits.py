"""Connections that keep the server waiting, over real sockets: whoever was invited works on beside thousands of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image as Pillow

from patience import PATIENCE, wait_until
from review.served import NO_TLS, Served, drawn_project, get, served
from shiftproof.curation.project import Item
from shiftproof.review.connection_limits import MAX_PER_SENDER, ConnectionLimiter

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR


def connected(port: int, said: bytes = b"", *, address: str = "127.0.0.1") -> socket.socket:
    """A connection from one of this machine's addresses, over which something was said."""
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(address, 0))
    with contextlib.suppress(ConnectionError):  # closed for another one already
        client.sendall(said)
    return client


@contextlib.contextmanager
def half_sent(port: int, count: int, *, addresses: Sequence[str]) -> Iterator[list[socket.socket]]:
    """Connections over which half a request was sent."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(connected(port, HALF, address=addresses[number % len(addresses)])) for number in range(count)
        ]


def is_gone(client: socket.socket) -> bool:
    """Whether the server has closed a connection, without reading what it said."""
    watched = select.poll()
    watched.register(client, GONE)
    return bool(watched.poll(0))


def asked(client: socket.socket, path: str, **headers: str) -> int:
    """The status of the answer to a request over a connection that stays open."""
    browser = http.client.HTTPConnection("127.0.0.1")
    browser.sock = client
    browser.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = browser.getresponse()
    answer.read()
    return answer.status


def cookie_of(server: Served, name: str) -> str:
    return get(server.links[name]).headers["set-cookie"].partition(";")[0]


OTHERS = [f"127.0.{place // 100}.{2 + place % 100}" for place in range(130)]


@pytest.mark.parametrize("files", [1024, 400])
def test_1300_half_sent_requests_stop_nobody(tmp_path: Path, files: int) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", invite=["Ada", "Ben"], files=files) as server:
        cookie = cookie_of(server, "Ada")
        with connected(server.port) as before:
            assert asked(before, "/api/items", cookie=cookie) == 200
            with half_sent(server.port, 1300, addresses=OTHERS):
                assert asked(before, "/api/items", cookie=cookie) == 200, "who is in stays in"
                assert get(server.links["Ben"], timeout=5).status_code == 303, "who is not comes in"
                code, _, said = server.stop()
    assert code == 0
    assert len(said.splitlines()) == 1, said[:2000]


def test_an_address_has_a_share_of_the_connections_and_the_longest_waiting_go(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with (
        served(tmp_path / "set") as server,
        half_sent(server.port, 20, addresses=["127.0.0.3"]) as others,
        half_sent(server.port, 300, addresses=["127.0.0.2"]) as crowd,
    ):
        wait_until(lambda: sum(map(is_gone, crowd)) >= 100)
        assert all(map(is_gone, crowd[:100]))
        assert not any(map(is_gone, crowd[100:]))
        assert not any(map(is_gone, others))


def test_an_address_has_no_larger_share_for_what_is_answered_just_now() -> None:
    keeper, cut = ConnectionLimiter(), []

    class Open:
        sender, known = "127.0.0.2", False

        def cut(self) -> None:
            cut.append(self)

    many = [Open() for _ in range(MAX_PER_SENDER + 50)]
    for one in many:
        keeper.admit(one)  # type: ignore[arg-type]
        keeper.mark_busy(one)  # type: ignore[arg-type]
    assert len(cut) == 50
    of_one_invited = Open()
    of_one_invited.known = True
    keeper.admit(of_one_invited)  # type: ignore[arg-type]
    assert len(cut) == 50


def large_picture(folder: Path) -> None:
    """A project of one picture that no system holds for somebody who does not read it."""
    project = drawn_project(folder, 1, items=(Item("large", ("large.png",), label="bird"),))
    pixels = np.random.default_rng(0).integers(0, 256, (2400, 2400, 3), dtype=np.uint8)
    Pillow.fromarray(pixels).save(project.folder / "images" / "large.png", compress_level=0)


def picture_request(server: Served, cookie: str) -> bytes:
    items = get(f"{server.address}/api/items", headers={"cookie": cookie}).json()["items"]
    return f"GET /picture/{items[0]['images'][0]} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n".encode()


def comes_in(server: Served, name: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return get(server.links[name]).status_code == 303
    return False


def test_answers_that_nobody_reads_keep_nobody_out(tmp_path: Path) -> None:
    large_picture(tmp_path / "set")
    with served(tmp_path / "set", invite=["Ada", "Ben"], files=300) as server, contextlib.ExitStack() as stack:
        request = picture_request(server, cookie_of(server, "Ada"))
        unread = [stack.enter_context(connected(server.port, request)) for _ in range(50)]  # 44 may be open
        wait_until(lambda: sum(map(is_gone, unread)) >= 6)
        wait_until(
            lambda: comes_in(server, "Ben")
        )  # once the others wait to be read: until then the server is at work for them


def test_a_request_that_was_not_finished_is_no_news_when_the_server_ends(tmp_path: Path) -> None:
    large_picture(tmp_path / "set")
    with served(tmp_path / "set", invite=["Ada"]) as server, contextlib.ExitStack() as stack:
        cookie = cookie_of(server, "Ada")
        body = f"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\nContent-Length: 1000\r\n\r\n{{"
        for said in [body.encode(), picture_request(server, cookie), HALF] * 10:
            stack.enter_context(connected(server.port, said))
        assert get(server.links["Ada"]).status_code == 303  # so all those before it are in
        code, _, told = server.stop()
    assert code == 0
    assert len(told.splitlines()) == 1, told[:2000]


def test_requests_ahead_of_their_answers_are_few(still: Served) -> None:
    with connected(still.port) as client:
        with contextlib.suppress(OSError):
            client.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000)
        answers = b""
        with contextlib.suppress(OSError):
            while said := client.recv(65536):
                answers += said
    assert answers.count(b"HTTP/1.1 200") <= 10
    with connected(still.port, b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3) as client:
        few = b""
        while few.count(b"HTTP/1.1 200") < 3:
            few += client.recv(65536)


@pytest.mark.parametrize("endless", [b"0\r\nX: " + b"x" * 65536, b"0\r\n" + b"x:\r\n" * 16384, b"1;" + b"x" * 65536])
def test_a_request_without_an_end_is_not_read_for_as_long_as_it_may_take(still: Served, endless: bytes) -> None:
    head, _, tail = endless.partition(b"x")
    first = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + head
    with connected(still.port, first) as client, pytest.raises(ConnectionError):
        client.sendall((b"x" + tail) * 200)


def test_what_strangers_bring_is_not_waited_for(still: Served) -> None:
    said = b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
    with connected(still.port, said) as client:
        assert select.select([client], [], [], 10)[0]
        assert client.recv(1000).startswith(b"HTTP/1.1 403 ")


def test_nobody_speaks_for_a_proxy_behind_the_body_of_a_request(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", "--trusted-proxy", "127.0.0.2", invite=["Ada"]) as server:
        token = server.links["Ada"].rpartition("/")[2]
        told = []
        for number in range(13):
            head = f"GET /join/{token[:6]}{number} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 10.0.0.1\r\n"
            behind = f"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-For: 10.0.1.{number}\r\n\r\n"
            with connected(server.port, (head + behind).encode(), address="127.0.0.2") as client:
                told.append(client.recv(1000)[:13])
        assert told[-1] == b"HTTP/1.1 429 "


@pytest.mark.real
def test_who_keeps_the_server_waiting_is_closed_after_a_while(tmp_path: Path) -> None:
    """A head and a body that come byte by byte, nothing said at all, nothing said any more, an answer that nobody reads."""
    large_picture(tmp_path / "set")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(served(tmp_path / "set", invite=["Ada"]))
        cookie = cookie_of(server, "Ada")
        body = f"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\nContent-Length: 1000\r\n\r\n".encode()
        said = {"head": HALF, "body": body, "silent": b"", "idle": b"", "unread": b""}
        clients = {name: stack.enter_context(connected(server.port, first)) for name, first in said.items()}
        assert asked(clients["idle"], "/") == 403
        clients["unread"].sendall(picture_request(server, cookie))
        seconds = closed_after(clients, drip=("head", "body"))
        assert {name: 1 < seconds[name] < PATIENCE / 2 for name in clients} == dict.fromkeys(clients, True), seconds
        assert clients["head"].recv(1000).startswith(b"HTTP/1.1 408 ")
        assert clients["body"].recv(1000).startswith(b"HTTP/1.1 408 ")
        assert get(f"{server.address}/api/items", headers={"cookie": cookie}).status_code == 200
        assert server.stop()[2].count("\n") == 1


def closed_after(clients: Mapping[str, socket.socket], *, drip: Sequence[str]) -> dict[str, float]:
    """Seconds until the server closed each connection, while some say a letter now and then."""
    found: dict[str, float] = {}
    start = time.monotonic()
    while len(found) < len(clients) and time.monotonic() - start < PATIENCE:
        for name, client in clients.items():
            if name not in found and is_gone(client):
                found[name] = time.monotonic() - start
            elif name not in found and name in drip:
                with contextlib.suppress(OSError):
                    client.send(b"x")
        time.sleep(0.2)
    return {name: found.get(name, PATIENCE) for name in clients}


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("X-Large: " + "x" * 40_000 + "\r\n", 431),
        ("X-Large: " + "x" * 30_000 + "\r\n", 403),
        ("".join(f"X-{number}: x\r\n" for number in range(150)), 431),
        ("".join(f"X-{number}: x\r\n" for number in range(50)), 403),
    ],
    ids=["long", "long enough", "many", "many enough"],
)
def test_the_head_of_a_request_has_a_largest_size(still: Served, head: str, status: int) -> None:
    with connected(still.port, f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode()) as client:
        assert client.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_head_without_an_end_is_refused_when_it_is_too_long(still: Served) -> None:
    with connected(still.port, HALF) as client:
        with contextlib.suppress(OSError):
            for _ in range(1000):
                client.sendall(b"x" * 1000)
        wait_until(lambda: is_gone(client))


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has nothing to say on the terminal, whatever is sent to it."""
    folder = tmp_path_factory.mktemp("still") / "set"
    drawn_project(folder)
    with served(folder, invite=["Ada"]) as server:
        yield server
        assert server.stop()[2].count("\n") == 1


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\xff\xfe nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET ?x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999999999999999999\r\n\r\n",
        b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + b"0" * 5000 + b"2\r\n\r\n{}",
        b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        b"POST /api/votes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{}",
        b"GET /join/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /join/%ed%a0%80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /static/%00.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /static/" + b"x" * 5000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /static/" + b"x/" * 2500 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50,
    ],
    ids=lambda said: repr(said[:40]),
)
def test_nothing_that_strangers_send_is_worth_a_line_on_the_terminal(still: Served, said: bytes) -> None:
    for _ in range(3):
        with connected(still.port, said) as client, contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(1000)
            assert b" 500 " not in answer.partition(b"\r\n")[0]
    token = still.links["Ada"].rpartition("/")[2]
    assert get(f"{still.address}/join/{token}").status_code == 303


def test_behind_a_proxy_guesses_are_counted_by_those_who_guess(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with served(tmp_path / "set", "--trusted-proxy", "127.0.0.2", invite=["Ada"]) as server:
        token = server.links["Ada"].rpartition("/")[2]

        def answer(path: str, *, proxy: str, of: str) -> int:
            with connected(server.port, address=proxy) as client:
                return asked(client, path, x_forwarded_for=of)

        alike = [f"/join/{token[:6]}{number}" for number in range(12)]
        told = [answer(path, proxy="127.0.0.2", of="6.6.6.6, 10.0.0.1") for path in alike]
        assert set(told[-3:]) == {429}
        assert answer(f"/join/{token}", proxy="127.0.0.2", of="6.6.6.7, 10.0.0.1") == 429, "what a proxy did not say"
        assert answer(f"/join/{token}", proxy="127.0.0.2", of="6.6.6.6, 10.0.0.2") == 303
        told = [answer(path, proxy="127.0.0.3", of=f"10.0.1.{number}") for number, path in enumerate(alike)]
        assert set(told[-3:]) == {429}, "only the proxy is believed"
        assert server.stop()[2].count("\n") == 1


def test_a_proxy_may_have_any_number_of_connections(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with (
        served(tmp_path / "set", "--trusted-proxy", "127.0.0.2") as server,
        half_sent(server.port, 250, addresses=["127.0.0.2"]) as clients,
    ):
        with connected(server.port) as client:
            assert asked(client, "/") == 403  # so all those before it are in
        assert not any(map(is_gone, clients))


def test_ids_that_no_database_holds_are_nobodys(tmp_path: Path) -> None:
    drawn_project(tmp_path / "set")
    with (
        served(tmp_path / "set", invite=["Ada"]) as server,
        httpx.Client(base_url=server.address, timeout=PATIENCE, verify=NO_TLS) as owner,
    ):
        assert owner.get(server.links["owner"]).status_code == 303
        text = owner.get("/owner").text
        key = json.loads(text.partition('id="settings">')[2].partition("</script>")[0])["key"]
        statuses = {
            number: owner.post("/owner/release", json={"reviewer": number}, headers={"x-form-key": key}).status_code
            for number in (2, 2**31, 2**63, 2**64, -(2**70), 10**300, 77)
        }
        assert statuses == {2: 200} | dict.fromkeys([2**31, 2**63, 2**64, -(2**70), 10**300, 77], 404)
        assert server.stop()[2].count("\n") == 1
