"""The command as tests type it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Said(NamedTuple):
    """How the command ended, and what it printed."""

    code: int
    out: str
    err: str


Shiftproof = Callable[..., Said]
