"""A cache of image digests by path, size and modification time, so that no file is hashed twice.

A cache that cannot be read or written (a full disk, a store without write permission) costs time, never a result; one
that is damaged is quarantined and rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import Texts, in_blocks, room
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

OF_STAMPS = " AND stamp IN (SELECT value FROM json_each(?))"

SOURCES_AT_ONCE = 8192
"""Images whose stamps are looked up together."""


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
        told = [getattr(source, "digest", None) for source in sources]  # by a manifest
        if None not in told:
            return told
        with ThreadPoolExecutor(THREADS_AWAY if away else THREADS) as threads:
            stamps = list(threads.map(stamp_of, sources) if away else map(stamp_of, sources))
            known = self.known(stamps)
            known |= {stamp: digest for stamp, digest in zip(stamps, told, strict=True) if stamp and digest}
            missing = [place for place, stamp in enumerate(stamps) if stamp is None or stamp not in known]
            # some at a time: handing an image to a thread takes as long as hashing a small one
            blocks = [missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]
            read = threads.map(lambda block: [_digest(sources[place]) for place in block], blocks)
            fresh = dict(zip(missing, chain.from_iterable(read), strict=True))
        self.remember((stamps[place], digest) for place, digest in fresh.items())
        return [fresh[place] if place in fresh else known[stamp or ""] for place, stamp in enumerate(stamps)]

    def columns(self, sources: Iterable[ImageSource], count: int) -> NDArray[np.uint8]:
        """The digests of so many images, (images, bytes); zeros for one that cannot be read."""
        digests, left = room((count, DIGEST_LETTERS // 2), np.uint8), iter(sources)
        for start in range(0, count, SOURCES_AT_ONCE):
            found = self.digests(list(islice(left, SOURCES_AT_ONCE)))
            digests[start : start + len(found)] = _bytes_of(found)
        return digests

    def remember(self, pairs: Iterable[tuple[str | None, str | None]]) -> None:
        """Adds digests that a run computed while it had the bytes in hand."""
        rows = [(stamp, digest) for stamp, digest in pairs if stamp is not None and digest is not None]
        if rows:
            with suppress(OSError, sqlite3.Error, UnicodeDecodeError), closing(self._connect()) as database, database:
                database.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?)", rows)

    def known(self, stamps: Sequence[str | None] | None = None) -> dict[str, str]:
        """Every cached digest by its stamp, or those of some stamps."""
        if stamps is not None and len(stamps) > SOURCES_AT_ONCE:
            stamps = None
        if not self.path.is_file() and not self.path.is_symlink():
            return {}
        try:
            with closing(self._connect()) as database:
                if stamps is None:
                    found = database.execute(WHOLE_DIGESTS, (self.letters,)).fetchall()
                else:
                    found = database.execute(WHOLE_DIGESTS + OF_STAMPS, (self.letters, json.dumps(stamps))).fetchall()
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


class FewDigests(dict[str, str | None]):
    """The digest of every image of a dataset by its id, in the order of the dataset; None for an unreadable one."""

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Id and digest of each image, as rows of the store are looked up; made once for all of its runs."""
        return [(image, digest or "") for image, digest in self.items()]


class Digests(Mapping[str, str | None]):
    """The digest of every image of a large dataset by its id, in the order of the dataset; None for an unreadable one."""

    def __init__(self, ids: Texts, digests: NDArray[np.uint8]) -> None:
        self._ids, self._digests = ids, digests  # (images, bytes), zeros for none

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __getitem__(self, image_id: str) -> str | None:
        place = self._ids.place(image_id)
        if place is None:
            raise KeyError(image_id)
        return _texts_of(self._digests[place : place + 1])[0]

    def items(self) -> _Items:
        return _Items(self)

    def values(self) -> _Values:
        return _Values(self)

    @cached_property
    def all_readable(self) -> bool:
        """Whether there is a digest of every image."""
        return all(some.any(axis=1).all() for _, some in in_blocks(self._digests))

    def blocks(self) -> Iterator[tuple[list[str], list[str | None]]]:
        for start, ids in in_blocks(self._ids):
            yield list(ids), _texts_of(self._digests[start : start + len(ids)])

    def of(self, ids: Sequence[str], near: int) -> list[str | None]:
        """The digests of some images, which most likely stand together at a place."""
        places = self._ids.places(ids, near)
        if places.min(initial=0) < 0:
            raise KeyError(ids[int(places.argmin())])
        return _texts_of(self._digests[places])


class _Items(ItemsView[str, str | None]):
    _mapping: Digests

    def __iter__(self) -> Iterator[tuple[str, str | None]]:
        return chain.from_iterable(zip(*block, strict=True) for block in self._mapping.blocks())


class _Values(ValuesView[str | None]):
    _mapping: Digests

    def __iter__(self) -> Iterator[str | None]:
        return chain.from_iterable(digests for _, digests in self._mapping.blocks())


def _texts_of(digests: NDArray[np.uint8]) -> list[str | None]:
    text = digests.tobytes().hex()
    found: list[str | None] = [text[start : start + DIGEST_LETTERS] for start in range(0, len(text), DIGEST_LETTERS)]
    for place in np.flatnonzero(~digests.any(axis=1)).tolist():
        found[place] = None
    return found


def _bytes_of(digests: Sequence[str | None]) -> NDArray[np.uint8]:
    text = "".join(digest or "0" * DIGEST_LETTERS for digest in digests)
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(len(digests), -1)


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
