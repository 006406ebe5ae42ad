"""Files that are there whole or not at all, what keeps one from being read, and the folder for what can be made again."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftproof.errors import BadInput, StoreError, StoreWarning

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    LOCKS = False
else:
    LOCKS = True

UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.unfinished")
"""Names of files that are being written, here and by nobody else."""

SURELY_LEFT = 3600.0
"""Seconds after which nobody writes a file any more, where the system cannot tell whether its writer lives."""

_swept: set[Path] = set()


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
    What a killed writer left in the folder goes when a process first writes into it.
    """
    if not path.name or "\0" in str(path):
        raise StoreError(f"cannot write {str(path)!r}: it names no file")
    folder = scratch or path.parent
    held = None
    unfinished = folder / f".{uuid.uuid4().hex}.unfinished"
    try:
        in_place = path.is_symlink() or (path.exists() and not path.is_file())
        path.parent.mkdir(parents=True, exist_ok=True)
        if not in_place:
            if folder not in _swept:
                sweep(folder)
                _swept.add(folder)
            held = _held(unfinished)
        yield path if in_place else unfinished
        if not in_place:
            unfinished.replace(path)
    except OSError as error:
        raise refusal(error, path) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _held(path: Path) -> int:
    """A new file, locked for as long as its writer lives, so that nobody takes it for left over."""
    while True:
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        if not LOCKS:
            return file
        with suppress(OSError):  # a network folder without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(file).st_ino:
                return file
        os.close(file)  # swept between making and locking it


def sweep(folder: Path) -> None:
    """Removes what killed writers left half-written in a folder, and nothing that somebody still writes."""
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if UNFINISHED.fullmatch(name)]
        for name in names:
            _remove_left(folder / name)


def _remove_left(path: Path) -> None:
    with suppress(OSError):  # gone, being written, or not ours
        if not LOCKS:
            if time.time() - path.stat().st_mtime > SURELY_LEFT:
                path.unlink()
            return
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(file)


@contextmanager
def alone(root: Path, *, wait: bool = False) -> Iterator[None]:
    """Nobody else writes here meanwhile, where the system can tell; the lock goes with the process, however that ends.

    StoreError where another process does, or a `wait` until it is done.
    """
    if not LOCKS:
        yield
        return
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise StoreError(f"another run is writing into {root}; wait for it, or name another folder") from error
        except OSError:
            pass  # a network folder without locks
        yield
    finally:
        os.close(folder)


@contextmanager
def locked(folder: Path, *, alone: bool) -> Iterator[bool]:
    """Whether a folder is locked, `alone` or with others; False where it is not there, or is others' and was to be alone.

    A lock with others is waited for. It goes with the process, however that ends.
    """
    if not LOCKS:
        yield True
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a network folder without locks
        yield folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat())
    finally:
        os.close(descriptor)


def set_aside(path: Path, reason: str, remedy: str) -> None:
    """Takes a damaged file out of use, keeps it for whoever wants to look into it, and says so with what makes up for it."""
    endings = ("damaged", *(f"{number}.damaged" for number in range(2, 1000)))
    kept = next(found for ending in endings if not (found := path.with_name(f"{path.name}.{ending}")).exists())
    try:
        path.rename(kept)
        where = f"set aside as {kept.name}"
    except FileNotFoundError:
        return  # another process set it aside
    except OSError as error:
        where = f"left where it is ({error.strerror})"
    warnings.warn(f"{path} is damaged ({reason}), {where} and not used; {remedy}", StoreWarning, stacklevel=2)


def refusal(error: OSError, path: Path) -> StoreError:
    """Why the file could not be written, in a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"no space left for {path}; what was committed is kept: make room and start again")
    in_the_way = None
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        in_the_way = next((folder for folder in path.parents if folder.is_file()), None)
    why = f"Not a directory: {in_the_way} is a file" if in_the_way else error.strerror or str(error)
    return StoreError(f"cannot write {path}: {why}")


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
