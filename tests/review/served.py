"""A review that a server process of its own serves, for tests over real HTTP."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image as Pillow

from patience import PATIENCE
from shiftproof.curation.project import Item, Project, ReviewClass, save_project


def drawn_project(folder: Path, count: int = 8, **more: Any) -> Project:
    """A saved project of drawn pictures; every question about clarity unless told otherwise."""
    (folder / "images").mkdir(parents=True)
    files = [f"{number}.png" for number in range(min(count, 16))]
    for number, file in enumerate(files):
        pixels = np.random.default_rng(number).integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Pillow.fromarray(pixels).save(folder / "images" / file)
    asked = tuple(Item(f"item {number}", (files[number % len(files)],), label="bird") for number in range(count))
    settled = {"title": "Drawn", "screen_name": "clarity", "items": asked, "classes": (ReviewClass("bird", "bird"),)}
    project = Project(folder, **{**settled, **more})
    save_project(project)
    return project


def free_port() -> int:
    """A port that nobody has; below those that the system gives out, so that it stays free for the next start.

    Drawn anew each time: tests that run side by side would meet on the way from one port to the next.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without the machine's certificates: reading them for each client takes ten times as long as a request."""


def get(url: str, *, timeout: float = PATIENCE, **more: Any) -> httpx.Response:
    """The answer of a server without TLS."""
    return httpx.get(url, timeout=timeout, verify=NO_TLS, **more)


PROCESSES = multiprocessing.get_context("forkserver")
"""Processes are forked from one that has imported the server already: importing it takes longer than most tests."""
PROCESSES.set_forkserver_preload(["shiftproof.cli.main", "shiftproof.review.jobs", "shiftproof.review.server"])


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], folder: str, files: int | None, *streams: Connection
) -> None:
    """The command as it is typed in a folder, with standard output and error as they are given."""
    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if files is not None:  # it may have so many open and no more
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    from shiftproof.cli.main import main

    sys.argv = ["shiftproof", *arguments]
    main()


class Served:
    """A server process: `address` of it, and `links` of those invited."""

    def __init__(self, folder: Path, *options: str, invite: Sequence[str] = (), files: int | None = None) -> None:
        self._folder, self._options, self._files = folder, options, files
        self.port = free_port()
        self.links: Mapping[str, str] = {}
        self.start(*(f"--invite={name}" for name in invite))

    def start(self, *options: str) -> None:
        """Starts the server, again after it was ended; where it was before."""
        review = ["review", str(self._folder), "--json", "--port", str(self.port), *self._options, *options]
        (out, theirs), (err, their_errors) = PROCESSES.Pipe(duplex=False), PROCESSES.Pipe(duplex=False)
        given = (review, dict(os.environ), os.getcwd(), self._files, theirs, their_errors)
        self.process = PROCESSES.Process(target=run_command, args=given)
        self.process.start()
        assert self.process.pid is not None
        self.pid = self.process.pid
        for end in (theirs, their_errors):
            end.close()
        self._out, self._err = (open(os.dup(end.fileno()), encoding="utf-8") for end in (out, err))  # noqa: SIM115
        said = ""
        while not said.endswith("\n}\n"):  # the end of the JSON, which is printed when the server listens
            line = self._out.readline()
            assert line, self._ended()[1]
            said += line
        told = json.loads(said)
        self.address = told["address"]
        self.links = {**self.links, **{link["name"]: link["link"] for link in told["links"]}}

    def kill(self) -> None:
        """Ends the process as a power cut would."""
        self.process.kill()
        self._ended()
        assert self.process.exitcode == -signal.SIGKILL

    def stop(self) -> tuple[int, str, str]:
        """Ends it as Ctrl-C would: exit code, and what it printed since it listened."""
        os.kill(self.pid, signal.SIGINT)
        out, err = self._ended()
        assert self.process.exitcode is not None
        return self.process.exitcode, out, err

    def _ended(self) -> tuple[str, str]:
        """What it printed to its end."""
        self.process.join(PATIENCE)
        assert not self.process.is_alive(), "it goes on"
        with self._out, self._err:
            return self._out.read(), self._err.read()


@contextlib.contextmanager
def served(folder: Path, *options: str, invite: Sequence[str] = (), files: int | None = None) -> Iterator[Served]:
    """A project served until the block ends."""
    server = Served(folder, *options, invite=invite, files=files)
    try:
        yield server
    finally:
        if server.process.is_alive():
            server.kill()
