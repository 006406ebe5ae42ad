"""How long tests wait for what other processes do: until it is done, and on a busy machine that is late."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which something will never happen."""


def wait_until(happened: Callable[[], bool], otherwise: str = "it never happened") -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.005)
