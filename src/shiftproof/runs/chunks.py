"""Chunks: files of arrays in the store, each array with a checksum, so that what is read is what was written.

An array is checked when a process first reads it. Files from before there were checksums are read unchecked.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors import numpy as tensors

from shiftproof.errors import DamagedFile
from shiftproof.files import write_whole
from shiftproof.places import is_url

CHECKSUMS = "checksums"
"""The entry of a file's metadata that holds them, by the name of the array; that of the rest of the metadata has no name."""

ENTRIES = frozenset({"keep", "ids", "digests", "aside", "about"})
"""The other entries: one of another name is damage, which may have hit the name of the checksums."""

NO_FILE = "it is no plain file"

_sound: set[tuple[str, int, int, str]] = set()
_damaged: dict[tuple[str, int, int], str] = {}


def save_chunk(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str], *, synced: bool = True) -> None:
    """Writes arrays and texts as one file of a store, two folders below its own, there whole or not at all."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    checksums = {"": _of_texts(metadata), **{name: _of_array(name, array) for name, array in whole.items()}}
    data = tensors.save(whole, {**metadata, CHECKSUMS: json.dumps(checksums)})
    write_whole(path, data, inside=path.parents[2], synced=synced)


class Chunk:
    """An open file; DamagedFile where something of it is not as it was written."""

    def __init__(self, path: Path, file: Any, state: tuple[str, int, int]) -> None:
        self.path, self._file, self._state = path, file, state
        texts: dict[str, str] = dict(file.metadata() or {})
        told = texts.pop(CHECKSUMS, None)
        self.metadata: Mapping[str, str] = texts
        if told is None and texts.keys() - ENTRIES:
            raise self.damaged(f"its metadata cannot hold {min(texts.keys() - ENTRIES)!r:.40}")
        self._checksums: Mapping[str, Any] | None = None if told is None else self.json(told, dict)
        self._check("", lambda: _of_texts(texts))

    @property
    def has_checksums(self) -> bool:
        return self._checksums is not None

    @property
    def names(self) -> list[str]:
        return list(self._file.keys())

    def text(self, name: str) -> str:
        """An entry of the metadata."""
        if name not in self.metadata:
            raise self.damaged(f"it does not say its {name}")
        return self.metadata[name]

    def json(self, text: str, kind: type) -> Any:
        """A value of this kind out of a text."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.damaged("its metadata cannot be read") from error
        if not isinstance(value, kind):
            raise self.damaged("its metadata cannot be read")
        return value

    def array(self, name: str) -> NDArray[Any]:
        """An array of the file, as it was written."""
        try:
            found: NDArray[Any] = self._file.get_tensor(name)
        except SafetensorError as error:
            raise self.damaged(f"{name} cannot be read: {error}") from error
        self._check(name, lambda: _of_array(name, found))
        return found

    def length(self, name: str) -> int:
        """The first axis of an array, which is not read for it."""
        try:
            shape = self._file.get_slice(name).get_shape()
        except SafetensorError as error:
            raise self.damaged(f"{name} cannot be read: {error}") from error
        return int(shape[0]) if shape else 0

    def was_read(self, name: str) -> bool:
        """Whether this process has read an array before and found it as it was written."""
        return (*self._state, name) in _sound

    def damaged(self, reason: str) -> DamagedFile:
        """What to raise where this file is not as it should be; nothing of it is read again."""
        _damaged[self._state] = reason
        return DamagedFile(self.path, reason)

    def _check(self, name: str, checksum: Any) -> None:
        if self._checksums is None or (*self._state, name) in _sound:
            return
        if self._checksums.get(name) != checksum():
            raise self.damaged(f"the checksum of {name or 'its metadata'} does not match")
        _sound.add((*self._state, name))


@contextmanager
def reading(path: Path) -> Iterator[Chunk]:
    """A file of arrays, opened; DamagedFile where it is none."""
    if is_url(path):
        yield _fetched(path)
        return
    status = os.stat(path)
    state = (str(path), status.st_ino, status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        raise DamagedFile(path, NO_FILE)
    if state in _damaged:
        raise DamagedFile(path, _damaged[state])
    try:
        with safe_open(path, framework="numpy") as file:
            yield Chunk(path, file, state)
    except SafetensorError as error:
        _damaged[state] = str(error)
        raise DamagedFile(path, str(error)) from error


def _fetched(path: Path) -> Chunk:
    """A file at a URL, of which the cache of this machine has a copy; files of rows never change under their name."""
    from shiftproof import remote

    version = remote.known(str(path)).version
    state = (str(path), 0, hash(version))
    if state in _damaged:
        raise DamagedFile(path, _damaged[state])
    try:
        return Chunk(path, _InMemory(remote.read(str(path), version)), state)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        _damaged[state] = "it is no file of arrays"
        raise DamagedFile(path, _damaged[state]) from error


class _InMemory:
    """The bytes of a file of arrays, with those methods of an open one that are used here."""

    def __init__(self, data: bytes) -> None:
        self._arrays = tensors.load(data)
        length = int.from_bytes(data[:8], "little")
        self._metadata = dict(json.loads(data[8 : 8 + length]).get("__metadata__") or {})

    def metadata(self) -> dict[str, str]:
        return self._metadata

    def keys(self) -> list[str]:
        return list(self._arrays)

    def get_tensor(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self._arrays[name]

    def get_slice(self, name: str) -> _InMemory.Shape:
        return _InMemory.Shape(self.get_tensor(name).shape)

    class Shape(NamedTuple):
        """The shape of an array."""

        shape: tuple[int, ...]

        def get_shape(self) -> tuple[int, ...]:
            return self.shape


def _of_array(name: str, array: NDArray[Any]) -> str:
    checksum = xxhash.xxh3_128(f"{name} {array.dtype.str} {array.shape}".encode())
    if array.size:
        checksum.update(array.data)
    return checksum.hexdigest()


def _of_texts(texts: Mapping[str, str]) -> str:
    checksum = xxhash.xxh3_128()
    for name in sorted(texts):
        checksum.update(f"{name} {len(texts[name])} ".encode())
        checksum.update(texts[name].encode("utf-8", "surrogatepass"))
    return checksum.hexdigest()
