"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def save_whole(path: Path, data: bytes) -> None:
    """Puts `data` at `path`; whoever looks sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp files are private; a report is as readable as any file its owner makes
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
