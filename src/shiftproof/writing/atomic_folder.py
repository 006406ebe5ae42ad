"""A folder that appears atomically: it is written under a hidden name, and an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from shiftproof.datasets.records import CARD, CHECKSUMS
from shiftproof.errors import BadInput
from shiftproof.files import alone, refusal, write_whole, writing
from shiftproof.writing.writer import Progress, Written


class File(NamedTuple):
    """A file to write, by its path below the folder."""

    path: str
    write: Callable[[BinaryIO], object]


def plain_file(path: str, text: str) -> File:
    """A text file; file names in it are as the disk has them."""
    return File(path, lambda stream: stream.write(text.encode("utf-8", "surrogateescape")))


def json_file(path: str, told: Any) -> File:
    return plain_file(path, json.dumps(told, ensure_ascii=False, indent=1) + "\n")


def write_folder(
    root: Path,
    card: bytes,
    files: Iterable[File],
    *,
    total: int,
    about: Callable[[Mapping[str, str]], File] | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes the files, their data card and checksums, and then renames the folder to its final name.

    The `card` determines all other files: an interrupted run with the same card resumes, and a folder with it is complete.
    `about` makes one more file from the SHA-256 of the others by path. BadInput where the folder holds anything else.
    """
    growing = root.parent / f".{root.name}.unfinished"
    if root.exists():
        return _finished(root, card, total)
    try:
        growing.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, root) from error
    with alone(growing):
        if not _has(growing, card):
            _empty(growing)
            write_whole(growing / CARD, card)
        written = _write_missing(growing, files, total, progress)
        digests = _digests(growing)
        if about is not None:
            last = about(digests)
            _save(growing, last)
            digests[last.path] = _digest(growing / last.path)
        lines = "".join(_checksum_line(digests[path], path) for path in sorted(digests))
        write_whole(growing / CHECKSUMS, lines.encode("utf-8", "surrogateescape"))
        try:
            growing.rename(root)
        except OSError as error:
            raise refusal(error, root) from error
    return Written(root, written, total - written, ())


def _finished(root: Path, card: bytes, total: int) -> Written:
    if root.is_dir() and _has(root, card):
        return Written(root, 0, total, ())
    raise BadInput(f"{root} is there already and holds something else; name a new folder")


def _write_missing(growing: Path, files: Iterable[File], total: int, progress: Progress | None) -> int:
    """The number of files written now."""
    for left in growing.rglob(".*"):  # left by a killed run
        left.unlink(missing_ok=True)
    if progress:
        progress.begin(growing.name.removeprefix(".").removesuffix(".unfinished"), total, 0)
    written = 0
    for file in files:
        if not (growing / file.path).exists():
            _save(growing, file)
            written += 1
        if progress:
            progress.advance(1)
    if progress:
        progress.end()
    return written


def _save(root: Path, file: File) -> None:
    with writing(root / file.path) as unfinished, unfinished.open("wb") as stream:
        file.write(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _has(root: Path, card: bytes) -> bool:
    path = root / CARD
    return path.is_file() and path.read_bytes() == card


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _digests(root: Path) -> dict[str, str]:
    """The SHA-256 of every file by its path, in order; that of the checksums themselves is left out."""
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return {path: _digest(root / path) for path in paths if path != CHECKSUMS}


def _checksum_line(digest: str, path: str) -> str:
    r"""A line in the format of sha256sum: where the name needs escapes, the line begins with a backslash.

    >>> _checksum_line("2d71", "a.jpg"), _checksum_line("2d71", "a\nb.jpg")
    ('2d71  a.jpg\n', '\\2d71  a\\nb.jpg\n')
    """
    escaped = path.replace("\\", r"\\").replace("\n", r"\n").replace("\r", r"\r")
    return f"{digest}  {path}\n" if escaped == path else f"\\{digest}  {escaped}\n"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
