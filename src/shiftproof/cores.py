"""How many cores this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """The cores of this process, which on a shared machine are fewer than there are.

    SHIFTPROOF_CORES says so for a worker of an engine, which has some of its node's.
    """
    given = os.environ.get("SHIFTPROOF_CORES", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
