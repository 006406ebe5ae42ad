"""Who comes in: tokens, cookies, signed forms, sizes, and the headers that keep a page to itself."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import deque
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiftproof.review.database import Database, Reviewer, token_digest

WEEKS = 12 * 7 * 24 * 3600
MOST_BYTES = 256 * 1024
"""Of a request's body: a hundred votes with notes have room in it."""

MOST_DIGITS = 20
"""Of a length; a number may have thousands, of which all but one are zeros, and Python does not read those."""

GUESSES, WINDOW = 10, 60.0
"""Wrong tokens that begin alike, from one address in so many seconds; more are turned away unread."""

PREFIX = 4
"""Letters of tokens that begin alike. Whoever guesses does not know those of a right one, and locks nobody else out."""

MOST_GUESSED = 10_000
"""Beginnings and addresses whose guesses are remembered; when there are more, those that need not wait are forgotten."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; img-src 'self' blob:; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guarded:
    """Puts the headers on every answer, and turns away bodies that are too large before they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or len(length) > MOST_DIGITS or int(length) > MOST_BYTES:
            await PlainTextResponse("too large", 413, dict(HEADERS))(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, _limited(receive), send_guarded)


def _limited(receive: Receive) -> Receive:
    """The same body, cut off where it is longer than its header said it would be."""
    held = 0

    async def receive_limited() -> Message:
        nonlocal held
        message = await receive()
        held += len(message.get("body", b""))
        if held > MOST_BYTES:
            return {"type": "http.disconnect"}
        return message

    return receive_limited


class Guesses:
    """Wrong tokens, counted by how they begin and where they came from: behind a proxy everybody comes from one address."""

    def __init__(self) -> None:
        self._wrong: dict[tuple[str, str], deque[float]] = {}
        self._turn = threading.Lock()

    def add(self, token: str, address: str) -> None:
        with self._turn:  # many guess at once, and what is gone through may not grow
            if len(self._wrong) > MOST_GUESSED:
                self._wrong = {one: times for one, times in self._wrong.items() if _is_full(times)}
            self._wrong.setdefault((token[:PREFIX], address), deque(maxlen=GUESSES)).append(time.monotonic())

    def too_many(self, token: str, address: str) -> bool:
        """Whether an address has to wait before another token that begins so is looked at."""
        times = self._wrong.get((token[:PREFIX], address))
        return times is not None and _is_full(times)


def _is_full(times: deque[float]) -> bool:
    return len(times) == GUESSES and times[0] > time.monotonic() - WINDOW


class Gate:
    """Lets people in by the token of their invitation, and knows them by the cookie that they got for it.

    The cookie is signed: one that was made up is never looked for, so tokens can be guessed at the door alone, where guesses
    are counted, and whoever is in stays in though others guess from the same address.
    """

    def __init__(self, database: Database, *, encrypted: bool = False) -> None:
        self._database, self._secret, self._encrypted = database, database.secret(), encrypted
        # a host has the same cookies at every port, and other reviews may be served there
        self._cookie = f"shiftproof_{self._signed('name', '')[:8]}"
        self.guesses = Guesses()

    def whose(self, token: str, address: str) -> Reviewer | None:
        """Whose token it is; None for one that is nobody's, and for every one that begins like too many guesses."""
        if self.guesses.too_many(token, address):
            return None
        found = self._database.reviewer_with(token)
        if found is None:
            self.guesses.add(token, address)
        return found

    def let_in(self, response: Response, token: str) -> None:
        """Gives the visitor the cookie; no script can read it, and other sites cannot send forms with it."""
        value = f"{token}.{self._signed('cookie', token)}"
        response.set_cookie(
            self._cookie, value, max_age=WEEKS, httponly=True, samesite="lax", secure=self._encrypted, path="/"
        )

    def visitor(self, request: Request) -> Reviewer | None:
        """Who sent a request, by its cookie; the server then keeps the connection longer than those of strangers."""
        token = self._token(request)
        found = None if token is None else self._database.reviewer_with(token)
        connection = request.scope.get("state", {}).get("connection")
        if found is not None and connection is not None:
            connection.known = True
        return found

    def has_cookie(self, request: Request) -> bool:
        """Whether a request has a cookie of ours, whoever it was given to: those of strangers are not read any further."""
        return self._token(request) is not None

    def form_key(self, request: Request) -> str:
        """What a form of this visitor must bring along, which no other site can know."""
        return self._signed("form", self._token(request) or "")

    def is_own_form(self, request: Request, key: str | None) -> bool:
        """Whether a request comes from a page of ours: it knows the key, and no other site is named as its origin."""
        origin = request.headers.get("origin")
        same_site = origin is None or origin.partition("://")[2] == request.headers.get("host")
        return same_site and _same(key or "", self.form_key(request))

    def _token(self, request: Request) -> str | None:
        token, _, signature = request.cookies.get(self._cookie, "").partition(".")
        return token if _same(signature, self._signed("cookie", token)) else None

    def _signed(self, purpose: str, token: str) -> str:
        return hmac.new(self._secret, f"{purpose} {token_digest(token)}".encode(), hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    """Compared in a time that tells nothing of how much is right."""
    return hmac.compare_digest(given.encode(), right.encode())


def sender_of(address: str) -> str:
    """What connections are counted by: an address, and of IPv6 the network, of which one machine has every address.

    >>> sender_of("10.0.0.7"), sender_of("2001:db8:1:2:3::4"), sender_of("::ffff:10.0.0.7"), sender_of("fe80::1%eth0")
    ('10.0.0.7', '2001:db8:1:2::/64', '10.0.0.7', 'fe80::/64')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found), 64), strict=False))


def address_of(request: Request) -> str:
    return sender_of(request.client.host) if request.client else ""
