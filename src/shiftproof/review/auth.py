"""Authentication: invitation tokens, signed cookies, CSRF keys, a rate limit on guesses, and security headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, TypeAlias, cast

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiftproof.errors import BadInput
from shiftproof.review.database import Database, Reviewer, token_digest
from shiftproof.review.pages import is_api, page
from shiftproof.review.validation import parse_body

COOKIE_SECONDS = 12 * 7 * 24 * 3600
MAX_BODY_BYTES = 256 * 1024
"""Enough for a hundred votes with notes."""

MAX_LENGTH_DIGITS = 20
"""Digits of a content-length; Python refuses to parse numbers of thousands of digits."""

MAX_GUESSES, WINDOW = 10, 60.0
"""Wrong tokens with one prefix from one address in so many seconds; more are turned away unread."""

PREFIX = 4
"""Characters of the prefix. Whoever guesses does not know that of a right token, and so locks nobody else out."""

MAX_COUNTERS = 10_000
"""Pairs of a prefix and an address that are remembered; beyond these, those below the limit are forgotten."""

POST_THREADS = 20
"""Requests that write, at a time; they mostly wait for one another's commit."""

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


class SecurityMiddleware:
    """Sets the security headers on every response, and refuses bodies that are too large before they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or len(length) > MAX_LENGTH_DIGITS or int(length) > MAX_BODY_BYTES:
            await PlainTextResponse("too large", 413, dict(HEADERS))(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, _limited(receive), send_with_headers)


def _limited(receive: Receive) -> Receive:
    """Cuts off a body that is longer than its content-length said."""
    held = 0

    async def receive_limited() -> Message:
        nonlocal held
        message = await receive()
        held += len(message.get("body", b""))
        if held > MAX_BODY_BYTES:
            return {"type": "http.disconnect"}
        return message

    return receive_limited


class GuessLimiter:
    """Counts wrong tokens by prefix and address: behind a proxy everybody comes from one address."""

    def __init__(self) -> None:
        self._wrong: dict[tuple[str, str], deque[float]] = {}
        self._lock = threading.Lock()

    def add(self, token: str, address: str) -> None:
        with self._lock:  # the dictionary may not grow while it is iterated over
            if len(self._wrong) > MAX_COUNTERS:
                self._wrong = {one: times for one, times in self._wrong.items() if _is_full(times)}
            self._wrong.setdefault((token[:PREFIX], address), deque(maxlen=MAX_GUESSES)).append(time.monotonic())

    def too_many(self, token: str, address: str) -> bool:
        """Whether an address has to wait before another token of this prefix is looked up."""
        times = self._wrong.get((token[:PREFIX], address))
        return times is not None and _is_full(times)


def _is_full(times: deque[float]) -> bool:
    return len(times) == MAX_GUESSES and times[0] > time.monotonic() - WINDOW


class Authenticator:
    """Logs reviewers in by the token of their invitation, and recognises them by a signed cookie.

    A cookie without a valid signature is never looked up, so tokens can be guessed at the invitation link alone, where
    guesses are limited; whoever is logged in stays so while others guess from the same address.
    """

    def __init__(self, database: Database, *, encrypted: bool = False) -> None:
        self._database, self._secret, self._encrypted = database, database.secret(), encrypted
        # cookies are shared by all ports of a host, and other reviews may be served there
        self._cookie = f"shiftproof_{self._signed('name', '')[:8]}"
        self.guesses = GuessLimiter()

    def reviewer_of(self, token: str, address: str) -> Reviewer | None:
        """The reviewer of a token; None for an unknown one, and for any whose prefix was guessed too often."""
        if self.guesses.too_many(token, address):
            return None
        found = self._database.reviewer_with(token)
        if found is None:
            self.guesses.add(token, address)
        return found

    def log_in(self, response: Response, token: str) -> None:
        """Sets the cookie; scripts cannot read it, and other sites cannot post forms with it."""
        value = f"{token}.{self._signed('cookie', token)}"
        response.set_cookie(
            self._cookie, value, max_age=COOKIE_SECONDS, httponly=True, samesite="lax", secure=self._encrypted, path="/"
        )

    def visitor(self, request: Request) -> Reviewer | None:
        """The reviewer who sent a request, by its cookie; the connection is then among the last to be closed."""
        token = self._token(request)
        found = None if token is None else self._database.reviewer_with(token)
        connection = request.scope.get("state", {}).get("connection")
        if found is not None and connection is not None:
            connection.known = True
        return found

    def has_cookie(self, request: Request) -> bool:
        """Whether a request has a validly signed cookie; the body of one without is not read."""
        return self._token(request) is not None

    def form_key(self, request: Request) -> str:
        """The CSRF key that forms of this visitor must send, which no other site can know."""
        return self._signed("form", self._token(request) or "")

    def is_own_form(self, request: Request, key: str | None) -> bool:
        """Whether a request comes from a page of ours: it has the CSRF key, and no other origin."""
        origin = request.headers.get("origin")
        same_site = origin is None or origin.partition("://")[2] == request.headers.get("host")
        return same_site and _equal(key or "", self.form_key(request))

    def _token(self, request: Request) -> str | None:
        token, _, signature = request.cookies.get(self._cookie, "").partition(".")
        return token if _equal(signature, self._signed("cookie", token)) else None

    def _signed(self, purpose: str, token: str) -> str:
        return hmac.new(self._secret, f"{purpose} {token_digest(token)}".encode(), hashlib.sha256).hexdigest()


def _equal(given: str, expected: str) -> bool:
    """Constant-time comparison."""
    return hmac.compare_digest(given.encode(), expected.encode())


def sender_of(address: str) -> str:
    """The address that connections are counted by; of IPv6 the /64 network, all of whose addresses one machine may have.

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


Handler: TypeAlias = Callable[[Request], Response]
ReviewerHandler: TypeAlias = Callable[[Request, Reviewer], Response]
FormHandler: TypeAlias = Callable[[Request, Reviewer, dict[str, Any]], Response]


def authenticator_of(request: Request) -> Authenticator:
    return cast(Authenticator, request.app.state.authenticator)


def not_invited(request: Request, *, guessing: bool = False) -> Response:
    """The response to somebody who was not invited, or guesses tokens."""
    status = 429 if guessing else 403
    if is_api(request):
        return JSONResponse({"error": "open your invitation link again"}, status)
    return page("not_invited.html", status, guessing=guessing)


def for_reviewers(handler: ReviewerHandler) -> Handler:
    """Authenticates the visitor, and passes them to the handler."""

    @wraps(handler)
    def authenticated(request: Request) -> Response:
        visitor = authenticator_of(request).visitor(request)
        return not_invited(request) if visitor is None else handler(request, visitor)

    return authenticated


def for_owners(handler: Handler) -> Handler:
    """Lets only owners through."""

    @wraps(handler)
    def authenticated(request: Request) -> Response:
        visitor = authenticator_of(request).visitor(request)
        if visitor is None or visitor.role != "owner":
            return page("not_owner.html", 403)
        return handler(request)

    return authenticated


def for_owner_forms(handler: FormHandler) -> Callable[[Request], Awaitable[Response]]:
    """The same as `for_forms`, for owners alone."""
    return for_forms(handler, owner=True)


def for_forms(handler: FormHandler, *, owner: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """Passes the visitor and the JSON body of a POST request from a page of ours; refuses anything else."""

    @wraps(handler)
    async def authenticated(request: Request) -> Response:
        if not authenticator_of(request).has_cookie(request):
            return not_invited(request)
        try:
            data = await request.body()
        except ClientDisconnect:  # gone, or cut off by SecurityMiddleware
            return JSONResponse({"error": "too large"}, 413)
        threads: ThreadPoolExecutor = request.app.state.post_threads
        return await asyncio.get_running_loop().run_in_executor(threads, checked, request, data)

    def checked(request: Request, data: bytes) -> Response:
        authenticator = authenticator_of(request)
        visitor = authenticator.visitor(request)
        if visitor is None:
            return not_invited(request)
        if not authenticator.is_own_form(request, request.headers.get("x-form-key")):
            return JSONResponse({"error": "this page is out of date; load it again"}, 403)
        try:
            body = parse_body(data)
            if owner and visitor.role != "owner":
                return JSONResponse({"error": "only the owner may do this"}, 403)
            return handler(request, visitor, body)
        except BadInput as problem:
            return JSONResponse({"error": str(problem)}, 400)

    return authenticated
