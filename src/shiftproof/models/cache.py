"""Files that can be made again, kept in the user's cache folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """Where made files are kept: ``SHIFTPROOF_CACHE``, else the user's cache folder."""
    if chosen := os.environ.get("SHIFTPROOF_CACHE"):
        return Path(chosen)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "shiftproof"


def save_whole(path: Path, data: bytes) -> None:
    """Write the file so that it appears whole or not at all, also beside another process that writes the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
