"""The HTTP server: by default it listens on the loopback address alone."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from shiftproof.errors import BadInput
from shiftproof.review.app import LOOPBACK
from shiftproof.review.connection_limits import (
    ACCEPTED_AT_ONCE,
    BACKLOG,
    IDLE_SECONDS,
    MAX_CONNECTIONS,
    SPARE_FILES,
    Connection,
    ConnectionLimiter,
    Proxy,
    files_for,
)

SECONDS_TO_END = 3
"""Grace period of responses in progress when the server shuts down."""


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "review.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether a host stands for all addresses of this machine."""
    return host in ("0.0.0.0", "::")  # noqa: S104 compared, not bound


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, on any free port for 0; BadInput where it cannot be bound."""
    sock: socket.socket | None = None
    try:
        # with the protocol named: the event loop sets TCP_NODELAY only where it knows that it is TCP
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen()
    except (OSError, UnicodeError) as problem:  # the latter for an invalid host name
        if sock is not None:
            sock.close()
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"cannot listen at {host} port {port}: {reason}") from problem
    return sock


@dataclass(frozen=True)
class Address:
    """The public address of the server."""

    link: str  # base URL of links
    names: tuple[str, ...]  # host names that it responds to; others may be DNS rebinding
    encrypted: bool


def address_of(host: str, port: int, known_as: str | None = None) -> Address:
    """The public address of a server at a host and port, or `known_as` behind a proxy.

    >>> address_of("127.0.0.1", 8000).link, address_of("::1", 8000, known_as="https://review.example/").link
    ('http://127.0.0.1:8000', 'https://review.example')
    """
    own = [socket.gethostname(), *_addresses(socket.gethostname())] if is_everywhere(host) else [host]
    names = [f"[{name}]" if ":" in name else name for name in own]
    if known_as is None:
        return Address(f"http://{names[0]}:{port}", (*names, *LOOPBACK), encrypted=False)
    url = urlsplit(known_as)
    if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/"):
        raise BadInput(f"expected an address such as https://review.example, got {known_as}")
    return Address(f"{url.scheme}://{url.netloc}", (url.hostname, *names, *LOOPBACK), encrypted=url.scheme == "https")


def _addresses(name: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        return []


def proxies_at(addresses: Sequence[str]) -> list[Proxy]:
    """The networks of trusted proxies; BadInput for an invalid address.

    >>> [str(proxy) for proxy in proxies_at(["10.1.0.0/16", "::1"])]  # the first also as an IPv6 socket sees it
    ['10.1.0.0/16', '::ffff:a01:0/112', '::1/128']
    """
    found: list[Proxy] = []
    for address in addresses:
        try:
            network = ipaddress.ip_network(address)
        except ValueError as problem:
            raise BadInput(f"expected a proxy's address, such as 127.0.0.1 or 10.1.0.0/16: {problem}") from problem
        found.append(network)
        if network.version == 4:
            found.append(ipaddress.ip_network(f"::ffff:{network.network_address}/{96 + network.prefixlen}"))
    return found


class Server(uvicorn.Server):
    """uvicorn's server with a ConnectionLimiter."""

    def __init__(self, settings: uvicorn.Config, limiter: ConnectionLimiter) -> None:
        super().__init__(settings)
        self._limiter = limiter

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(BACKLOG)  # accepted a few at a time, and none refused meanwhile
        self._limiter.watch(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._limiter.close_unfinished()
        await super().shutdown(sockets)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Whether a log record is worth the terminal; a response cancelled by the shutdown is not."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def serve(app: ASGIApp, sock: socket.socket, *, proxies: Sequence[Proxy] = ()) -> None:
    """Serves until Ctrl-C; `proxies` are trusted to name the sender of a request.

    Requests are not logged: tokens are in their paths.
    """
    limiter = ConnectionLimiter(files_for(MAX_CONNECTIONS + SPARE_FILES) - SPARE_FILES, proxies=proxies)
    # uvicorn expects a type, but only calls it
    protocol: Any = partial(Connection, limiter)
    settings = uvicorn.Config(
        app,
        http=protocol,
        access_log=False,
        log_level="error",  # malformed requests, however many, are not worth logging
        lifespan="off",
        server_header=False,
        # of proxies only, or whoever guesses tokens could forge another address each time
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[str(proxy) for proxy in proxies],
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
    with sock, contextlib.suppress(KeyboardInterrupt):
        Server(settings, limiter).run(sockets=[sock])
