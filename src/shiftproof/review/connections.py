"""The server's connections: how many may be open, how long each may keep the server waiting, and how much it may say.

Anybody can open connections and say nothing, or a byte now and then. So a request has a time to arrive in, an answer a time
to be read in, and when there are too many connections, one that somebody new needs is taken from whoever has kept the server
waiting longest: strangers first. A connection over which somebody came who was invited is known, and goes last.
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

from shiftproof.review.gate import sender_of

MOST_OPEN = 4000
"""Connections in all; fewer where the system lets a process have fewer files open."""

MOST_OF_ONE = 200
"""Connections of strangers from one address: a room of people behind one router has enough."""

HEAD_SECONDS, BODY_SECONDS, IDLE_SECONDS, READ_SECONDS = 10, 20, 15, 30
"""For the head of a request, for its body, between two requests, and until some of an answer is read."""

LINGER_SECONDS = 2
"""For the last words of a connection that is closed."""

MOST_HEAD_BYTES, MOST_HEADERS = 32 * 1024, 100

MOST_REQUEST_BYTES = 1024 * 1024
"""Of a request with all that stands between the parts of its body, and of what still comes of one that was refused."""

MOST_AT_ONCE = 4
"""Requests that may wait on a connection for the answer to one before them; browsers and proxies send none ahead."""

SPARE_FILES = 256
"""Kept for the database, pictures, and connections that are accepted before others are closed for them."""

ACCEPTED_AT_ONCE, BACKLOG = 8, 2048
"""Connections that are accepted in one turn, between which votes are taken, and that the system may hold until then."""

CLOSED_AT_ONCE, PAUSE_SECONDS, SWEEP_SECONDS = 16, 0.02, 1.0
"""Connections that are closed in one turn because their time is up, between two such turns, and between two looks at all."""

TELL_AGAIN = 60.0
"""Seconds after which the owner is told again that no more files can be opened."""

NO_MORE_FILES = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])

_log = logging.getLogger(__name__)

Proxy = ipaddress.IPv4Network | ipaddress.IPv6Network


def files_for(wanted: int) -> int:
    """How many of the files that are wanted this process may have open, after asking the system for as many."""
    try:
        import resource  # of Unix alone
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed
    return soft


class Doorkeeper:
    """Every open connection, and which of them is closed for another."""

    def __init__(self, most_open: int = MOST_OPEN, *, proxies: Sequence[Proxy] = ()) -> None:
        self._most_open, self._proxies = most_open, proxies
        self._open: set[Connection] = set()
        self._of: dict[str, set[Connection]] = {}  # the same by their senders
        # those whose next request is waited for, the longest first
        self._strangers: dict[Connection, None] = {}
        self._strangers_of: dict[str, dict[Connection, None]] = {}
        self._known: dict[Connection, None] = {}
        self._told, self._ends = -math.inf, False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Closes what is overdue, from now on."""
        loop.set_exception_handler(self._say_once)
        self._sweep(loop)

    def is_proxy(self, address: str) -> bool:
        """Whether connections from an address are those of many people."""
        if not self._proxies:
            return False
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def admit(self, connection: Connection) -> None:
        """Lets a new connection in, at the cost of another where there are too many."""
        self._open.add(connection)
        self.wait_for(connection)
        of_sender = self._of.setdefault(connection.sender, set())
        of_sender.add(connection)
        if not connection.known and sum(not one.known for one in of_sender) > MOST_OF_ONE:
            self._end(next(iter(self._strangers_of[connection.sender])))  # itself, where all others are answered just now
        if len(self._open) > self._most_open:
            others = (one for one in chain(self._strangers, self._known) if one is not connection)
            self._end(next(others, connection))

    def wait_for(self, connection: Connection) -> None:
        """Puts a connection behind all others whose next request is waited for."""
        self.take_up(connection)
        if connection not in self._open:
            return
        if self._ends and connection.is_unfinished:
            self._end(connection)
        elif connection.known:
            self._known[connection] = None
        else:
            self._strangers[connection] = None
            self._strangers_of.setdefault(connection.sender, {})[connection] = None

    def take_up(self, connection: Connection) -> None:
        """Notes that a request is here: its connection is not closed for others while it is answered."""
        self._known.pop(connection, None)
        self._strangers.pop(connection, None)
        of_sender = self._strangers_of.get(connection.sender)
        if of_sender is not None:
            of_sender.pop(connection, None)
            if not of_sender:
                del self._strangers_of[connection.sender]

    def forget(self, connection: Connection) -> None:
        """Counts a connection no more."""
        self._open.discard(connection)
        self.take_up(connection)
        of_sender = self._of.get(connection.sender, set())
        of_sender.discard(connection)
        if not of_sender:
            self._of.pop(connection.sender, None)

    def end_unfinished(self) -> None:
        """Closes those that keep the server waiting, now and from now on: it ends, and waits for none of them."""
        self._ends = True
        for connection in [*self._strangers, *self._known]:
            if connection.is_unfinished:
                self._end(connection)

    def _end(self, connection: Connection) -> None:
        self.forget(connection)
        connection.cut()

    def _sweep(self, loop: asyncio.AbstractEventLoop, overdue: Sequence[Connection] = ()) -> None:
        """Closes a few of those whose time is up, and goes on later: votes are taken between."""
        now = loop.time()
        overdue = overdue or [one for one in self._open if one.is_overdue(now)]
        for connection in overdue[:CLOSED_AT_ONCE]:
            if connection.is_overdue(now):  # it may have gone on meanwhile
                connection.expire(now)
        rest = overdue[CLOSED_AT_ONCE:]
        loop.call_later(PAUSE_SECONDS if rest else SWEEP_SECONDS, self._sweep, loop, rest)

    def _say_once(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        """A line now and then where no connection can be accepted: the event loop would say it, at length, for each."""
        problem = about.get("exception")
        if not isinstance(problem, OSError) or problem.errno not in NO_MORE_FILES:
            loop.default_exception_handler(about)
        elif loop.time() - self._told >= TELL_AGAIN:
            self._told = loop.time()
            _log.error("people cannot come in for the moment: %s", problem.strerror)


class Connection(HttpToolsProtocol):
    """One of them: uvicorn's own, which says what it waits for and until when."""

    def __init__(self, keeper: Doorkeeper, **parts: Any) -> None:
        super().__init__(**parts)
        self._keeper = keeper
        self._arriving: Literal["head", "body"] | None = None  # of a request that is not here yet
        self._bytes, self._too_large = 0, False  # those of a request that is not here yet
        self.sender, self.known = "", False
        self.due = self.read_due = math.inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self.sender, self.known = sender_of(address), self._keeper.is_proxy(address)
        self.due = self.loop.time() + HEAD_SECONDS
        self._keeper.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._keeper.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._arriving is None or self.transport.is_closing():
            return
        self._bytes += len(data)
        if self._arriving == "head" and self._bytes > MOST_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._bytes > MOST_REQUEST_BYTES:
            self._turn_away(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_AT_ONCE:
            raise ValueError("too many requests at once")  # which ends the reading of them
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._arriving, self._bytes = "head", 0
        self.due = self.loop.time() + HEAD_SECONDS

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arriving == "head":  # what comes behind a body would be taken for what a proxy said before it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MOST_HEAD_BYTES or len(self.headers) > MOST_HEADERS:
            self._too_large = True
            raise ValueError("the head of the request is too large")  # which ends the reading of it
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
            self._keeper.take_up(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._arriving is not None:
            self._keeper.wait_for(self)
        elif self._is_answered():
            self._rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.read_due = self.loop.time() + READ_SECONDS
        self._keeper.wait_for(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.read_due = math.inf
        if self._arriving is None and not self._is_answered():
            self._keeper.take_up(self)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 uvicorn's words
        """Says that a request cannot be read, and closes the connection."""
        self._turn_away(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if self._too_large else HTTPStatus.BAD_REQUEST)

    @property
    def is_unfinished(self) -> bool:
        """Whether part of a request is not here yet, or an answer is not read."""
        return self._arriving is not None or self.read_due < math.inf

    def is_overdue(self, now: float) -> bool:
        """Whether the time is up for what is waited for: a part of a request, or some of an answer to be read."""
        return now >= self.due or now >= self.read_due

    def expire(self, now: float) -> None:
        """Closes the connection because its time is up."""
        if self._arriving is not None and now < self.read_due:
            self._turn_away(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.cut()

    def cut(self) -> None:
        """Ends the connection at once: closing it would wait until all is read that was said over it."""
        door = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # gone already
            door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # or the system would wait instead
        self.transport.abort()

    def _is_answered(self) -> bool:
        """Whether nothing is under way that was asked before."""
        return self.cycle is None or self.cycle.response_complete

    def _rest(self) -> None:
        """Waits for the next request; uvicorn closes the connection in time, but for whoever does not read to the end."""
        self.due = self.loop.time() + IDLE_SECONDS + LINGER_SECONDS
        self._keeper.wait_for(self)

    def _turn_away(self, status: HTTPStatus) -> None:
        """Ends the connection; with a word to whoever was told nothing yet, and would not take it for another answer."""
        told_nothing = not self.cycle.response_started if self._arriving == "body" else self._is_answered()
        if told_nothing and not self.pipeline:
            self._refuse(status)
        else:
            self.cut()

    def _refuse(self, status: HTTPStatus) -> None:
        answer = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(answer.encode())
        self.transport.close()
        self._arriving, self.due = None, self.loop.time() + LINGER_SECONDS
