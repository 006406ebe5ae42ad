"""Files as everyone reads and writes them: strangers' files with care, our own whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from shiftproof.errors import BadInput, StoreError, StoreWarning
from shiftproof.places import is_url, local_file

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

HALF_CHARACTER = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates without their other half, which no file can hold; the others stand for bytes of names that are not UTF-8."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that spreadsheets would compute."""


def read_regular(path: str | Path, *, most: int | None = None) -> bytes:
    """The bytes of a regular file; OSError for a pipe, a device or a folder, for more than `most` bytes, or no such file."""
    if is_url(path):
        from shiftproof.remote import read

        return read(str(path), most=most)
    file = _open_regular(path)
    try:
        status = os.fstat(file)
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, more than the {most:,} that are read")
        # not more than it says to hold: some files of the system never end
        data = os.read(file, status.st_size)
        while len(data) < status.st_size and (more := os.read(file, status.st_size - len(data))):
            data += more
        return data
    finally:
        os.close(file)


def _open_regular(path: str | Path) -> int:
    """An open regular file; OSError for anything else."""
    if problem := impossible_name(str(path)):
        raise OSError(errno.EINVAL, problem)
    # not blocking: opening a pipe would wait for whoever writes into it
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "not a regular file")


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


@contextmanager
def reading_text(path: str | Path, *, errors: str = "strict") -> Iterator[TextIO]:
    """A file of text in UTF-8, to be read line by line; BadInput where there is none."""
    try:
        with os.fdopen(_open_regular(local_file(str(path))), encoding="utf-8-sig", errors=errors) as file:
            yield file
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
    import json

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


def csv_bytes(rows: Sequence[Sequence[object]]) -> bytes:
    """Rows as a CSV file, with file names as the disk has them."""
    import csv

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def load_csv(path: str | Path, what: str) -> list[dict[str, str]]:
    """The rows of a CSV file by column, without comment lines (#); BadInput where it cannot be read as `what`."""
    import csv

    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read as {what}: {problem}") from problem


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, clear the screen or turn the line around, and show nothing themselves."""


def printable(text: str) -> str:
    r"""A text for a terminal: what would steer it, such as a name that holds an escape sequence, is spelled out.

    >>> print(printable("a\x1b[2J.jpg"))
    a\x1b[2J.jpg
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def encodable(text: str) -> str:
    r"""The text with \u escapes for what no encoding has: parts of file names that are not valid text.

    >>> encodable("caf\udce9.jpg")
    'caf\\udce9.jpg'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def write_whole(
    path: Path, data: bytes, *, scratch: Path | None = None, inside: Path | None = None, synced: bool = True
) -> None:
    """Writes a file that is there whole or not at all; the options are those of `writing`.

    Even after a power cut, unless it is not `synced`: that takes as long as all the rest.
    """
    if is_url(path):
        _check_written(path)
        path.write_bytes(data)
        return
    with writing(path, scratch=scratch, inside=inside) as unfinished, unfinished.open("wb") as file:
        file.write(data)
        if synced:
            file.flush()
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe cannot be brought to disk
                os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Brings a file that was not synced to disk; one that is gone is none."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        os.fsync(file.fileno())


def write_new(path: Path, data: bytes) -> None:
    """Writes a file that only one of several processes can write; FileExistsError where it is there."""
    if is_url(path):
        from shiftproof.remote import write

        write(str(path), data, new=True)
        return
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def writing(path: Path, *, scratch: Path | None = None, inside: Path | None = None) -> Iterator[Path]:
    """A hidden path beside the given one, moved into its place once it is written; StoreError in a sentence otherwise.

    `scratch` is another folder of the same disk for the hidden path, where what killed writers leave is easy to find.
    What is no plain file, such as a link or /dev/stdout, is written where it is: moving something there would destroy it.
    Not so `inside` a folder that is ours, though a stranger may have sent it: there a link is replaced, and one that leads
    out of it on the way is refused. What a killed writer left in the folder goes when a process first writes into it.
    """
    _check_written(path)
    if is_url(path):
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="shiftproof-") as own:
            written = Path(own, path.name)
            yield written
            path.write_bytes(written.read_bytes())
        return
    if inside is not None:
        check_inside(path.parent, inside)
    folder = scratch or path.parent
    held, moved = None, False
    unfinished = folder / f".{os.urandom(16).hex()}.unfinished"
    try:
        in_place = inside is None and (path.is_symlink() or (path.exists() and not path.is_file()))
        if folder not in _swept or not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        if not in_place:
            if folder not in _swept:
                sweep(folder)
                _swept.add(folder)
            held = _held(unfinished)
        yield path if in_place else unfinished
        if not in_place:
            unfinished.replace(path)
            moved = True
    except OSError as error:
        raise refusal(error, path) from error
    finally:
        if not moved:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _check_written(path: Path) -> None:
    if not path.name or "\0" in str(path):
        raise StoreError(f"cannot write {str(path)!r}: it names no file")


def check_inside(path: Path, top: Path) -> None:
    """StoreError where what lies below a folder of ours leads out of it: nothing is written or deleted there."""
    if is_url(path):
        return  # there are no links on object storage
    if os.pardir not in path.parts and not any(map(os.path.islink, _below(os.fspath(path), os.fspath(top)))):
        return  # resolving both takes several times as long
    found = os.path.realpath(path)
    if not Path(found).is_relative_to(os.path.realpath(top)):
        raise StoreError(f"{path} leads out of {top}, to {found}; put what it leads to in its place, or remove it")


def _below(path: str, top: str) -> Iterator[str]:
    """The path and the folders that it lies in, up to the topmost one below `top`; as text, since each file is asked for."""
    while path not in (top, ""):
        yield path
        path, lower = os.path.dirname(path), path
        if path == lower:
            return


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
    if is_url(folder):
        return  # one put leaves nothing behind
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

    StoreError where another process does, or a `wait` until it is done. Object storage has no locks.
    """
    if not LOCKS or is_url(root):
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

    A lock with others is waited for. It goes with the process, however that ends. Object storage has no locks.
    """
    if not LOCKS or is_url(folder):
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


def quarantine(path: Path, reason: str, remedy: str) -> None:
    """Renames a damaged file so that it is not used again, and warns with what replaces it."""
    endings = ("damaged", *(f"{number}.damaged" for number in range(2, 1000)))
    kept = next(found for ending in endings if not (found := path.with_name(f"{path.name}.{ending}")).exists())
    try:
        path.rename(kept)
        where = f"quarantined as {kept.name}"
    except FileNotFoundError:
        return  # another process quarantined it
    except OSError as error:
        where = f"left where it is ({error.strerror})"
    warnings.warn(f"{path} is damaged ({reason}), {where} and not used; {remedy}", StoreWarning, stacklevel=2)


def refusal(error: OSError, path: Path) -> StoreError:
    """The StoreError that says why a file could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"no space left for {path}; what was committed is kept: make room and start again")
    in_the_way = None
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        in_the_way = next((folder for folder in path.parents if folder.is_file()), None)
    why = f"a file stands where a folder should be, {in_the_way}" if in_the_way else error.strerror or str(error)
    return StoreError(f"cannot write {path}: {why}")


LFS_POINTER = b"version https://git-lfs"


def readable_file(path: Path) -> Path:
    """The path again: a plain file that can be read and is not empty. BadInput otherwise, in a sentence."""
    if is_url(path):
        return readable_file(Path(local_file(str(path))))
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
    """The cache folder: SHIFTPROOF_CACHE, or the user's own."""
    if named := os.environ.get("SHIFTPROOF_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shiftproof"
