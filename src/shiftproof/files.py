"""Files that are there whole or not at all, what keeps one from being read, and the folder for what can be made again."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftproof.errors import BadInput, StoreError


def write_whole(path: Path, data: bytes, *, scratch: Path | None = None) -> None:
    """Writes a file that is there whole or not at all, even after a power cut."""
    with writing(path, scratch=scratch) as unfinished, unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe cannot be brought to disk
            os.fsync(file.fileno())


@contextmanager
def writing(path: Path, *, scratch: Path | None = None) -> Iterator[Path]:
    """A hidden path beside the given one, moved into its place once it is written; StoreError in a sentence otherwise.

    `scratch` is another folder of the same disk for the hidden path, where what killed writers leave is easy to find.
    What is no plain file, such as a link or /dev/stdout, is written where it is: moving something there would destroy it.
    """
    if not path.name:
        raise StoreError(f"cannot write {str(path)!r}: it names no file")
    in_place = path.is_symlink() or (path.exists() and not path.is_file())
    unfinished = (scratch or path.parent) / f".{uuid.uuid4().hex}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path if in_place else unfinished
        if not in_place:
            unfinished.replace(path)
    except OSError as error:
        raise refusal(error, path) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def refusal(error: OSError, path: Path) -> StoreError:
    """Why the file could not be written, in a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"no space left for {path}; what was committed is kept: make room and start again")
    return StoreError(f"cannot write {path}: {error.strerror or error}")


LFS_POINTER = b"version https://git-lfs"


def readable_file(path: Path) -> Path:
    """The path again: a plain file that can be read and is not empty. BadInput otherwise, in a sentence."""
    told = f"{str(path)[:200]!r}" if len(str(path)) > 200 or not str(path).isprintable() else str(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise BadInput(f"{told} is {'a folder' if stat.S_ISDIR(mode) else 'a pipe or a device'}; a file was expected")
        with path.open("rb") as file:
            start = file.read(len(LFS_POINTER))
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise BadInput(f"there is no file {told}") from problem
    except OSError as problem:
        raise BadInput(f"{told} cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:  # a NUL character, which no path has
        raise BadInput(f"{told} names no file: {problem}") from problem
    if start == LFS_POINTER:
        raise BadInput(f"{told} is a Git LFS pointer, not the file that it stands for: run git lfs pull")
    if not start:
        raise BadInput(f"{told} is empty")
    return path


def cache_folder() -> Path:
    """Where things are kept that can be made again: SHIFTPROOF_CACHE, or the user's own cache folder."""
    if named := os.environ.get("SHIFTPROOF_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shiftproof"
