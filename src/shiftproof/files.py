"""Files as everyone reads and writes them: strangers' files with care, our own whole or not at all."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shiftproof.errors import BadInput, StoreError

HALF_CHARACTER = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates without their other half, which no file can hold; the others stand for bytes of names that are not UTF-8."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that spreadsheets would compute."""


def read_regular(path: str | Path, *, most: int | None = None) -> bytes:
    """The bytes of a regular file; OSError for a pipe, a device or a folder, for more than `most` bytes, or no such file."""
    if problem := impossible_name(str(path)):
        raise OSError(errno.EINVAL, problem)
    # not blocking: opening a pipe would wait for whoever writes into it
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, more than the {most:,} that are read")
        # not more than it says to hold: some files of the system never end
        data = os.read(file, status.st_size)
        while len(data) < status.st_size and (more := os.read(file, status.st_size - len(data))):
            data += more
        return data
    finally:
        os.close(file)


def impossible_name(name: str) -> str | None:
    r"""Why no file can be called so; None where one can.

    >>> impossible_name("a.jpg"), impossible_name("a\0.jpg")
    (None, 'a name with a NUL character')
    """
    if "\0" in name:
        return "a name with a NUL character"
    return "a name with half a character in it" if not name.isascii() and HALF_CHARACTER.search(name) else None


def read_text(path: str | Path, *, errors: str = "strict") -> str:
    """The text of a file in UTF-8; BadInput where there is none."""
    try:
        return io.TextIOWrapper(io.BytesIO(read_regular(path)), encoding="utf-8-sig", errors=errors).read()
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not text in UTF-8: {problem}") from problem


def read_json(path: str | Path) -> Any:
    """What a JSON file holds; BadInput where it cannot be read."""
    return parse_json(read_text(path), path)


def parse_json(text: str | bytes, where: str | Path, *, unique: bool = False) -> Any:
    """What a JSON text holds; BadInput in a sentence that begins with `where` it stands.

    With `unique`, also where a name stands twice in an object: the last would count, without a word of the first.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise BadInput(f"{where} gives {repeated(name for name, _ in pairs)!r} twice; remove one of them")
        return found

    try:
        value = json.loads(text, object_pairs_hook=once if unique else None)
        # only an escape can bring half a character in, as "\\ud800"
        escaped = isinstance(text, bytes) or re.search(r"\\u[dD]", text)
        if escaped and (half := HALF_CHARACTER.search(json.dumps(value, ensure_ascii=False))):
            raise BadInput(f"{where} holds half a character, {half[0]!a} without what should stand beside it")
    except RecursionError as problem:
        raise BadInput(f"{where} is nested too deeply to be read") from problem
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise BadInput(f"{where} is not JSON: {problem}") from problem
    except ValueError as problem:  # of whole numbers alone: Python reads no more than some thousand digits
        raise BadInput(f"{where} holds a number of thousands of digits") from problem
    return value


def repeated(names: Iterable[str]) -> str | None:
    """The first name that stands there twice, as one of two columns.

    >>> repeated(["path", "label", "label"])
    'label'
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def defused(cell: Any) -> Any:
    """A cell of a table for people: a text that a spreadsheet would take for a formula begins with an apostrophe.

    >>> defused("=1+1"), defused(-1.5)
    ("'=1+1", -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


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
    unfinished = (scratch or path.parent) / f".{uuid.uuid4().hex}"
    try:
        in_place = path.is_symlink() or (path.exists() and not path.is_file())
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
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return StoreError(f"cannot write {path}: a file stands where a folder should be")
    return StoreError(f"cannot write {path}: {error.strerror or error}")


def cache_folder() -> Path:
    """Where things are kept that can be made again: SHIFTPROOF_CACHE, or the user's own cache folder."""
    if named := os.environ.get("SHIFTPROOF_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shiftproof"
