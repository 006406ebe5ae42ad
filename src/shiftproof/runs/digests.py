"""A cache of image digests by path, size and modification time, so that no file is hashed twice.

A cache that cannot be read or written (a full disk, a store without write permission) costs time, never a result; one
that is damaged is quarantined and rebuilt.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

from shiftproof.datasets.image_list import is_away
from shiftproof.files import quarantine
from shiftproof.types import ImageSource

DIGEST_LETTERS = 32

BLOCK = 16
"""Images that a thread hashes one after the other."""

THREADS, THREADS_AWAY = 4, 16
"""Files that are read at once, on this machine and at a URL, where each is waited for."""

TABLE = "CREATE TABLE digests (stamp TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID"
"""All that the file holds: a view or a trigger in its place would be a program, and could run for ever."""

WHOLE_DIGESTS = "SELECT stamp, digest FROM digests WHERE length(digest) = ? AND digest NOT GLOB '*[^0-9a-f]*'"


def digest_of(data: bytes) -> str:
    """The hash of the bytes of one image."""
    return hashlib.blake2b(data, digest_size=DIGEST_LETTERS // 2).hexdigest()


class DigestCache:
    """Stamps and digests of so many letters in one SQLite file, which several processes may use at once."""

    def __init__(self, path: Path, letters: int = DIGEST_LETTERS) -> None:
        self.path = path
        self.letters = letters

    def digests(self, sources: Sequence[ImageSource]) -> list[str | None]:
        """The digest of each image, reading only those the cache does not know; None for one that cannot be read."""
        away = any(map(is_away, sources[:1]))
        with ThreadPoolExecutor(THREADS_AWAY if away else THREADS) as threads:
            stamps = list(threads.map(stamp_of, sources) if away else map(stamp_of, sources))
            known = self.known()
            missing = [place for place, stamp in enumerate(stamps) if stamp is None or stamp not in known]
            # some at a time: handing an image to a thread takes as long as hashing a small one
            blocks = [missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]
            read = threads.map(lambda block: [_digest(sources[place]) for place in block], blocks)
            fresh = dict(zip(missing, chain.from_iterable(read), strict=True))
        self.remember((stamps[place], digest) for place, digest in fresh.items())
        return [fresh[place] if place in fresh else known[stamp or ""] for place, stamp in enumerate(stamps)]

    def remember(self, pairs: Iterable[tuple[str | None, str | None]]) -> None:
        """Adds digests that a run computed while it had the bytes in hand."""
        rows = [(stamp, digest) for stamp, digest in pairs if stamp is not None and digest is not None]
        if rows:
            with suppress(OSError, sqlite3.Error, UnicodeDecodeError), closing(self._connect()) as database, database:
                database.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?)", rows)

    def known(self) -> dict[str, str]:
        """Every cached digest by its stamp."""
        if not self.path.is_file() and not self.path.is_symlink():
            return {}
        try:
            with closing(self._connect()) as database:
                found = database.execute(WHOLE_DIGESTS, (self.letters,)).fetchall()
        except (OSError, sqlite3.OperationalError):  # locked, read-only, full
            return {}
        # UnicodeDecodeError where it complains of what is no text, MemoryError where a length in it is damaged
        except (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError) as error:
            why = str(error) or "a length in it is none"
            quarantine(self.path, why, "the images are hashed again, which takes a little time")
            return {}
        return dict(found)

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_symlink():
            raise sqlite3.DatabaseError("it is a link, and may lead to somebody else's file")
        database = sqlite3.connect(self.path, timeout=60)
        database.execute("PRAGMA journal_mode=WAL")
        # a cache may lose its last entries with the power; it must only never be wrong
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
        if database.execute("SELECT sql FROM sqlite_master").fetchall() != [(TABLE,)]:
            database.close()
            raise sqlite3.DatabaseError("it holds something else than digests")
        return database


def stamp_of(source: ImageSource) -> str | None:
    try:
        stamp = source.stamp()
    except OSError:
        return None
    # a digest of the stamp: names that are not valid text would not go into the database
    return None if stamp is None else digest_of(stamp.encode("utf-8", "surrogateescape"))


def _digest(source: ImageSource) -> str | None:
    try:
        return digest_of(source.read())
    except OSError:
        return None
