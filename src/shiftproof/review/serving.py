"""The server that people's browsers talk to: on this machine alone unless told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Sequence

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
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        reason = str(problem.strerror or problem).partition(" (")[0]
        raise BadInput(f"cannot listen at {host} port {port}: {reason}") from problem


def names_of(host: str, known_as: Sequence[str] = ()) -> list[str]:
    """The names under which the server answers, the one for links first; a request under any other may be a trick."""
    own = [host]
    if is_everywhere(host):
        own = [socket.gethostname(), *_addresses(socket.gethostname())]
    return list(dict.fromkeys([*known_as, *(f"[{name}]" if ":" in name else name for name in own), *LOOPBACK]))


def _addresses(name: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        return []


def serve(app: ASGIApp, door: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Answers until Ctrl-C; `ready` is called before the first answer. No request is logged: tokens are in their paths."""
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
    ready()
    with door, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[door])
