"""How long tests wait for what other processes do: until it is done, and on a busy machine that is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE = 120.0
"""Seconds after which something will never happen."""


def wait_until(happened: Callable[[], bool], otherwise: str = "it never happened", *, every: float = 0.005) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(every)


def wait_for(page: Page, condition: str, argument: Any = None) -> None:
    """Until JavaScript holds in a page; `Page.wait_for_function` evaluates strings there, which our pages forbid."""
    # a page that is asked all the time has none left to draw
    wait_until(lambda: bool(page.evaluate(condition, argument)), f"never true: {condition}", every=0.03)
