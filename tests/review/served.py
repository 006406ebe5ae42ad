"""A review that a server process of its own serves, for tests over real HTTP."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


class Served:
    """A server process: `address` of it, and `links` of those invited."""

    def __init__(self, folder: Path, *options: str, invite: Sequence[str] = (), files: int | None = None) -> None:
        self._folder, self._options = folder, options
        # where it may have so many open and no more
        self._shell = () if files is None else ("sh", "-c", f'ulimit -n {files}; exec "$0" "$@"')
        self.port = free_port()
        self.links: Mapping[str, str] = {}
        self.start(*(f"--invite={name}" for name in invite))

    def start(self, *options: str) -> None:
        """Starts the server, again after it was ended; where it was before."""
        review = [sys.executable, "-m", "shiftproof", "review", str(self._folder), "--json", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*self._shell, *review, *self._options, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = ""
        while not said.endswith("\n}\n"):  # the end of the JSON, which is printed when the server listens
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            said += line
        told = json.loads(said)
        self.address = told["address"]
        self.links = {**self.links, **{link["name"]: link["link"] for link in told["links"]}}

    def kill(self) -> None:
        """Ends the process as a power cut would."""
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL
        self.process.communicate()

    def stop(self) -> tuple[int, str, str]:
        """Ends it as Ctrl-C would: exit code, and what it printed since it listened."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


@contextlib.contextmanager
def served(folder: Path, *options: str, invite: Sequence[str] = (), files: int | None = None) -> Iterator[Served]:
    """A project served until the block ends."""
    server = Served(folder, *options, invite=invite, files=files)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()
