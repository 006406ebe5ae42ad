"""The server that people's browsers talk to: on this machine alone unless told otherwise."""

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
from shiftproof.review.connections import (
    ACCEPTED_AT_ONCE,
    BACKLOG,
    IDLE_SECONDS,
    MOST_OPEN,
    SPARE_FILES,
    Connection,
    Doorkeeper,
    Proxy,
    files_for,
)

SECONDS_TO_END = 3
"""How long answers that are under way may take when the server is ended."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

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
    """Whether it stands for every address of this machine."""
    return host in ("0.0.0.0", "::")  # noqa: S104 compared, not bound


def listen(host: str, port: int) -> socket.socket:
    """An open door at an address, any free port for 0; BadInput where it cannot be had."""
    door: socket.socket | None = None
    try:
        # with the protocol named: the event loop sends small answers at once only where it knows that it is TCP
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        door = socket.socket(family, kind, protocol)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen()
    except (OSError, UnicodeError) as problem:  # the latter of a name that no host can have
        if door is not None:
            door.close()
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"cannot listen at {host} port {port}: {reason}") from problem
    return door


@dataclass(frozen=True)
class Address:
    """Where people find the server."""

    link: str  # what links begin with
    names: tuple[str, ...]  # of hosts that it answers under; a request under any other may be a trick
    encrypted: bool


def address_of(host: str, port: int, known_as: str | None = None) -> Address:
    """Where people find a server that listens at a host and port, or `known_as` through a proxy before it.

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
    """The networks that proxies are in, mostly of one address; BadInput for what is none.

    >>> [str(proxy) for proxy in proxies_at(["10.1.0.0/16", "::1"])]  # the first also as a door of IPv6 sees it
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
    """A server that watches its connections."""

    def __init__(self, settings: uvicorn.Config, keeper: Doorkeeper) -> None:
        super().__init__(settings)
        self._keeper = keeper

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for door in sockets or ():
            door.listen(BACKLOG)  # accepted a few at a time, and none turned away meanwhile
        self._keeper.watch(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._keeper.end_unfinished()
        await super().shutdown(sockets)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line is worth the terminal: that an answer was given up because the server ends is not, for each of them."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def serve(app: ASGIApp, door: socket.socket, *, proxies: Sequence[Proxy] = ()) -> None:
    """Answers until Ctrl-C; whom `proxies` name as the sender of a request is believed.

    No request is logged: tokens are in their paths.
    """
    keeper = Doorkeeper(files_for(MOST_OPEN + SPARE_FILES) - SPARE_FILES, proxies=proxies)
    # a type to uvicorn, which only calls it
    protocol: Any = partial(Connection, keeper)
    settings = uvicorn.Config(
        app,
        http=protocol,
        access_log=False,
        log_level="error",  # whoever sends nonsense, however often, is no news
        lifespan="off",
        server_header=False,
        # of proxies alone, or whoever guesses tokens could say to come from elsewhere each time
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[str(proxy) for proxy in proxies],
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    with door, contextlib.suppress(KeyboardInterrupt):
        Server(settings, keeper).run(sockets=[door])
