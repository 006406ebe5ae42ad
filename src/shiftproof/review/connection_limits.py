"""Limits on connections: how many may be open, how long each may take, and how much it may send.

Anybody can open connections and send nothing, or a byte now and then (slow-loris attacks). So requests and the reading of
responses have timeouts, and when there are too many connections, a new one replaces the one that has been idle longest.
Connections of authenticated reviewers (`known`) are closed last.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import math
import socket
import struct
from collections.abc import Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shiftproof.review.auth import sender_of

MAX_CONNECTIONS = 4000
"""Open connections in all; fewer where the limit of open files is lower."""

MAX_PER_SENDER = 200
"""Unauthenticated connections from one address: enough for a room of people behind one router."""

HEAD_SECONDS, BODY_SECONDS, IDLE_SECONDS, READ_SECONDS = 10, 20, 15, 30
"""Timeouts of a request's head, of its body, between two requests, and until part of a response is read."""

LINGER_SECONDS = 2
"""For the last response on a connection that is being closed."""

MAX_HEAD_BYTES, MAX_HEADERS = 32 * 1024, 100

MAX_REQUEST_BYTES = 1024 * 1024
"""Of a request with its chunk framing, and of the rest of one that was refused."""

MAX_PIPELINED = 4
"""Pipelined requests on a connection; browsers and proxies send none."""

SPARE_FILES = 256
"""Reserved for the database, pictures, and connections that are accepted before others are closed for them."""

ACCEPTED_AT_ONCE, BACKLOG = 8, 2048
"""Connections accepted per turn of the event loop, so that votes are handled between, and the backlog of the socket."""

CLOSED_AT_ONCE, PAUSE_SECONDS, SWEEP_SECONDS = 16, 0.02, 1.0
"""Expired connections closed per turn, pause between two such turns, and between two sweeps of all connections."""

LOG_INTERVAL = 60.0
"""Seconds between two log lines that no more files can be opened."""

NO_MORE_FILES = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])

_log = logging.getLogger(__name__)

Proxy = ipaddress.IPv4Network | ipaddress.IPv6Network


def files_for(wanted: int) -> int:
    """Raises the limit of open files as far as allowed; how many of those wanted are available."""
    try:
        import resource  # Unix only
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):  # some systems report a higher limit than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed
    return soft


class ConnectionLimiter:
    """All open connections, and which of them is closed for another."""

    def __init__(self, most_open: int = MAX_CONNECTIONS, *, proxies: Sequence[Proxy] = ()) -> None:
        self._most_open, self._proxies = most_open, proxies
        self._open: set[Connection] = set()
        self._of: dict[str, set[Connection]] = {}  # by sender
        # idle ones, the longest idle first
        self._unknown: dict[Connection, None] = {}
        self._unknown_of: dict[str, dict[Connection, None]] = {}
        self._known: dict[Connection, None] = {}
        self._logged, self._shutting_down = -math.inf, False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Closes expired connections, from now on."""
        loop.set_exception_handler(self._log_once)
        self._sweep(loop)

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a trusted proxy, whose connections carry many people."""
        if not self._proxies:
            return False
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def admit(self, connection: Connection) -> None:
        """Admits a new connection, and closes another where there are too many."""
        self._open.add(connection)
        self.mark_idle(connection)
        of_sender = self._of.setdefault(connection.sender, set())
        of_sender.add(connection)
        if not connection.known and sum(not one.known for one in of_sender) > MAX_PER_SENDER:
            self._close(next(iter(self._unknown_of[connection.sender])))  # itself, where all others are busy
        if len(self._open) > self._most_open:
            others = (one for one in chain(self._unknown, self._known) if one is not connection)
            self._close(next(others, connection))

    def mark_idle(self, connection: Connection) -> None:
        """Marks a connection as idle: it comes behind all other idle ones."""
        self.mark_busy(connection)
        if connection not in self._open:
            return
        if self._shutting_down and connection.is_unfinished:
            self._close(connection)
        elif connection.known:
            self._known[connection] = None
        else:
            self._unknown[connection] = None
            self._unknown_of.setdefault(connection.sender, {})[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """Marks a connection as busy: it is not closed for others while its request is handled."""
        self._known.pop(connection, None)
        self._unknown.pop(connection, None)
        of_sender = self._unknown_of.get(connection.sender)
        if of_sender is not None:
            of_sender.pop(connection, None)
            if not of_sender:
                del self._unknown_of[connection.sender]

    def forget(self, connection: Connection) -> None:
        """Removes a closed connection."""
        self._open.discard(connection)
        self.mark_busy(connection)
        of_sender = self._of.get(connection.sender, set())
        of_sender.discard(connection)
        if not of_sender:
            self._of.pop(connection.sender, None)

    def close_unfinished(self) -> None:
        """Closes unfinished connections, now and from now on: the server shuts down and waits for none of them."""
        self._shutting_down = True
        for connection in [*self._unknown, *self._known]:
            if connection.is_unfinished:
                self._close(connection)

    def _close(self, connection: Connection) -> None:
        self.forget(connection)
        connection.cut()

    def _sweep(self, loop: asyncio.AbstractEventLoop, overdue: Sequence[Connection] = ()) -> None:
        """Closes a few expired connections per turn, so that votes are handled between."""
        now = loop.time()
        overdue = overdue or [one for one in self._open if one.is_overdue(now)]
        for connection in overdue[:CLOSED_AT_ONCE]:
            if connection.is_overdue(now):  # it may have become active meanwhile
                connection.expire(now)
        rest = overdue[CLOSED_AT_ONCE:]
        loop.call_later(PAUSE_SECONDS if rest else SWEEP_SECONDS, self._sweep, loop, rest)

    def _log_once(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        """Logs a line now and then where no connection can be accepted; the event loop would log a traceback for each."""
        problem = about.get("exception")
        if not isinstance(problem, OSError) or problem.errno not in NO_MORE_FILES:
            loop.default_exception_handler(about)
        elif loop.time() - self._logged >= LOG_INTERVAL:
            self._logged = loop.time()
            _log.error("people cannot come in for the moment: %s", problem.strerror)


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP protocol with deadlines and size limits."""

    def __init__(self, limiter: ConnectionLimiter, **parts: Any) -> None:
        super().__init__(**parts)
        self._limiter = limiter
        self._arriving: Literal["head", "body"] | None = None  # of an unfinished request
        self._bytes, self._too_large = 0, False  # of an unfinished request
        self.sender, self.known = "", False
        self.due = self.read_due = math.inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self.sender, self.known = sender_of(address), self._limiter.is_proxy(address)
        self.due = self.loop.time() + HEAD_SECONDS
        self._limiter.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._arriving is None or self.transport.is_closing():
            return
        self._bytes += len(data)
        if self._arriving == "head" and self._bytes > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._bytes > MAX_REQUEST_BYTES:
            self._turn_away(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests at once")  # which ends parsing
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._arriving, self._bytes = "head", 0
        self.due = self.loop.time() + HEAD_SECONDS

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arriving == "head":  # trailers must not pass for headers that a proxy set
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._too_large = True
            raise ValueError("the head of the request is too large")  # which ends parsing
        super().on_headers_complete()
        self._arriving = "body"
        self.due = self.loop.time() + BODY_SECONDS

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._arriving = None
        if self._is_answered():
            self._rest()
        else:
            self.due = math.inf
            self._limiter.mark_busy(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._arriving is not None:
            self._limiter.mark_idle(self)
        elif self._is_answered():
            self._rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.read_due = self.loop.time() + READ_SECONDS
        self._limiter.mark_idle(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.read_due = math.inf
        if self._arriving is None and not self._is_answered():
            self._limiter.mark_busy(self)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 uvicorn's signature
        """Refuses a malformed request, and closes the connection."""
        self._turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if self._too_large else HTTPStatus.BAD_REQUEST)

    @property
    def is_unfinished(self) -> bool:
        """Whether part of a request is missing, or a response is not read."""
        return self._arriving is not None or self.read_due < math.inf

    def is_overdue(self, now: float) -> bool:
        """Whether a deadline has passed."""
        return now >= self.due or now >= self.read_due

    def expire(self, now: float) -> None:
        """Closes the connection after its deadline."""
        if self._arriving is not None and now < self.read_due:
            self._turn_away(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.cut()

    def cut(self) -> None:
        """Resets the connection: a graceful close would wait until everything sent is read."""
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # closed already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # or the kernel would wait instead
        self.transport.abort()

    def _is_answered(self) -> bool:
        """Whether no earlier request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _rest(self) -> None:
        """Waits for the next request; uvicorn closes an idle connection, unless the response is not read to its end."""
        self.due = self.loop.time() + IDLE_SECONDS + LINGER_SECONDS
        self._limiter.mark_idle(self)

    def _turn_away(self, status: HTTPStatus) -> None:
        """Closes the connection; with an error response where none has begun and it cannot pass for another response."""
        no_response_yet = not self.cycle.response_started if self._arriving == "body" else self._is_answered()
        if no_response_yet and not self.pipeline:
            self._refuse(status)
        else:
            self.cut()

    def _refuse(self, status: HTTPStatus) -> None:
        answer = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(answer.encode())
        self.transport.close()
        self._arriving, self.due = None, self.loop.time() + LINGER_SECONDS
