"""The server that people's browsers talk to: on this machine alone unless told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from shiftproof.errors import BadInput
from shiftproof.review.app import LOOPBACK

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
    except OSError as problem:
        if door is not None:
            door.close()
        raise BadInput(f"cannot listen at {host} port {port}: {problem.strerror or problem}") from problem
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


def serve(app: ASGIApp, door: socket.socket) -> None:
    """Answers until Ctrl-C. No request is logged: tokens are in their paths."""
    settings = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # or whoever guesses tokens could say to come from elsewhere each time
        ws="none",
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    with door, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[door])
