"""Where the files of tests lie, and which modules are looked through for doctests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 pytest makes a folder there that nobody else may enter
"""Files that lie in memory, where the system has such a place."""

ROOM = 4 * 2**30
"""Bytes free there, several times what all tests write."""


def pytest_configure() -> None:
    """Files of tests lie in memory: making and removing one on a disk takes many times as much of the processor."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM and not forbids_programs(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def forbids_programs(folder: Path) -> bool:
    """Whether no file there can be run, as in the memory of most containers: tests write commands that are."""
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A module without doctests is not imported to look for them."""
    is_module = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_module and ">>>" not in collection_path.read_text(encoding="utf-8") else None
