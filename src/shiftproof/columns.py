"""Columns: texts and numbers of millions of rows, a few bytes each instead of a Python object.

A short column lies in memory. A long one lies in a file without a name, in the folder for temporary files, and is mapped:
the system reads what is used, and the file goes with the process.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import IO, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shiftproof.errors import BadInput

Item = TypeVar("Item")
Number = TypeVar("Number", bound=np.generic)

IN_MEMORY = 2**24
"""Bytes of a column that stay in memory."""

BLOCK = 2**12
"""Rows that are Python objects at a time: few enough for the cache of a processor."""

FEW = 2**16
"""Texts that are looked up in a dictionary, and different texts of a column that is coded."""


def room(shape: int | tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """An array to be filled, in a mapped file where it is large; in memory where there is no room for the file."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if size <= IN_MEMORY or not hasattr(os, "posix_fallocate"):
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(prefix="shiftproof-") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)  # now: a disk that fills up later would end the process
        except OSError:
            return np.empty(shape, kind)
        return np.asarray(np.memmap(file, kind, "r+", shape=shape))


@overload
def in_blocks(items: NDArray[Number], size: int | None = None) -> Iterator[tuple[int, NDArray[Number]]]: ...
@overload
def in_blocks(items: Sequence[Item], size: int | None = None) -> Iterator[tuple[int, Sequence[Item]]]: ...
def in_blocks(items: Any, size: int | None = None) -> Iterator[tuple[int, Any]]:
    """Some items at a time, with the place of the first."""
    size = size or BLOCK
    for start in range(0, len(items), size):
        yield start, items[start : start + size]


class Growing:
    """Bytes that are added to, and then read."""

    def __init__(self) -> None:
        self._held = bytearray()  # what is in no file yet
        self._file: IO[bytes] | None = None

    def add(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > IN_MEMORY:
            self._flush()

    def whole(self) -> bytes | mmap.mmap:
        if self._file is None:
            return bytes(self._held)
        self._flush()
        with self._file as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _flush(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="shiftproof-")  # noqa: SIM115 closed when it is read
                weakref.finalize(self, self._file.close)  # or nobody reads it
            self._file.write(self._held)
            self._file.flush()
        except OSError as problem:
            raise BadInput(
                f"a long list needs room in {tempfile.gettempdir()}: {problem.strerror or problem}; make some there, or "
                "name another folder in the environment variable TMPDIR"
            ) from problem
        self._held.clear()


class GrowingNumbers:
    """A column of numbers that is added to, and then read."""

    def __init__(self, kind: DTypeLike) -> None:
        self._kind, self._bytes = np.dtype(kind), Growing()

    def add(self, numbers: NDArray[Any]) -> None:
        self._bytes.add(np.ascontiguousarray(numbers, self._kind).tobytes())

    def whole(self) -> NDArray[Any]:
        return np.frombuffer(self._bytes.whole(), self._kind)


class Texts(Sequence[str]):
    """Texts one behind the other.

    >>> names = Texts.of(["a.png", "é.png", ""])
    >>> names[1], len(names), names.place("é.png"), list(names) == ["a.png", "é.png", ""]
    ('é.png', 3, 1, True)
    """

    def __init__(self, data: bytes | mmap.mmap, ends: NDArray[np.int64]) -> None:
        self._data, self._ends = data, ends  # where each text ends, in bytes

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        growing = GrowingTexts()
        for _, some in in_blocks(texts):
            growing.add(some)
        return growing.whole()

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return self._block(start, stop) if step == 1 else [self[one] for one in range(start, stop, step)]
        row = range(len(self))[place]
        return _decoded(self._data[self._start(row) : int(self._ends[row])])

    def __iter__(self) -> Iterator[str]:
        # not by yielding: one by one through a generator takes three times as long
        return chain.from_iterable(self._block(start, start + BLOCK) for start in range(0, len(self), BLOCK))

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.place(text) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return self is other or (np.array_equal(self._ends, other._ends) and self._data[:] == other._data[:])
        if not isinstance(other, (tuple, list)) or len(other) != len(self):
            return False
        return all(own == theirs for own, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))  # as of the tuple that it is equal to

    def __reduce__(self) -> tuple[Any, ...]:
        return Texts, (self._data[:], np.array(self._ends))

    def take(self, places: NDArray[np.integer]) -> Texts:
        """Some of the texts, in this order."""
        growing = GrowingTexts()
        for start in range(0, len(places), BLOCK):
            some = places[start : start + BLOCK].tolist()
            alike = len(some) == some[-1] + 1 - some[0] and all(after == one + 1 for one, after in pairwise(some))
            growing.add(self._block(some[0], some[-1] + 1) if alike else [self[place] for place in some])
        return growing.whole()

    def place(self, text: str) -> int | None:
        """Where a text stands first; None where it does not."""
        if len(self) <= FEW:
            return self._place_of.get(text)
        found = int(self._looked_up([text])[0])
        return None if found < 0 else found

    def places(self, texts: Sequence[str], near: int = 0) -> NDArray[np.int64]:
        """Where each of some texts stands first, -1 where it does not; soonest told of those that stand together `near`."""
        if self.has_at(near, texts):
            return np.arange(near, near + len(texts))
        if len(self) <= FEW:
            return np.fromiter((self._place_of.get(text, -1) for text in texts), np.int64, len(texts))
        return self._looked_up(texts)

    def has_at(self, place: int, texts: Sequence[str]) -> bool:
        """Whether these texts stand together at a place, and none of them before."""
        stop = place + len(texts)
        if stop > len(self) or not texts or self[place] != texts[0] or self.repeated is not None:
            return False
        data, ends = _packed(texts)
        start = self._start(place)
        return self._data[start : start + len(data)] == data and np.array_equal(ends + start, self._ends[place:stop])

    @property
    def has_empty(self) -> bool:
        """Whether some text is empty."""
        return bool(len(self)) and (
            not self._ends[0] or any(np.diff(some).min(initial=1) == 0 for some in self._overlapping())
        )

    def may_hold(self, part: str) -> bool:
        """Whether a text holds this; perhaps also where it ends one text and begins the next."""
        return self._data.find(part.encode()) >= 0

    def some_begin(self, letter: str) -> bool:
        """Whether some text, of which none is empty, begins with an ASCII letter."""
        data, code = np.frombuffer(self._data, np.uint8), ord(letter)
        return bool(len(data)) and bool(
            data[0] == code or any((data[some[:-1]] == code).any() for some in self._overlapping())
        )

    def _overlapping(self) -> Iterator[NDArray[np.int64]]:
        """Where texts end, some at a time, each time from the last of those before."""
        return (self._ends[start : start + FEW + 1] for start in range(0, len(self) - 1, FEW))

    @cached_property
    def repeated(self) -> int | None:
        """The first place whose text stands before it too; None where all texts differ."""
        if len(self) <= FEW:
            known = self._place_of
            return None if len(known) == len(self) else next(row for row, text in enumerate(self) if known[text] != row)
        found = len(self)
        for start in range(0, len(self), BLOCK):
            entries = self._index[start : start + BLOCK + 1]
            hashes = entries >> self._bits
            for place in (start + np.flatnonzero(hashes[1:] == hashes[:-1])).tolist():
                found = self._repeated_behind(place, found)
        return found if found < len(self) else None

    def _repeated_behind(self, place: int, found: int) -> int:
        """The row behind a place of the index, where an earlier one has its text and it stands before `found`; else that."""
        row, text = int(self._index[place + 1] & self._mask), None
        hashed = self._index[place + 1] >> self._bits
        while row < found and place >= 0 and self._index[place] >> self._bits == hashed:
            text = self[row] if text is None else text
            if self[int(self._index[place] & self._mask)] == text:
                return row
            place -= 1
        return found

    def _start(self, row: int) -> int:
        return int(self._ends[row - 1]) if row else 0

    def _block(self, start: int, stop: int) -> list[str]:
        stop = min(stop, len(self))
        if start >= stop:
            return []
        first = self._start(start)
        data, ends = self._data[first : int(self._ends[stop - 1])], (self._ends[start:stop] - first).tolist()
        if data.isascii():
            text = data.decode("ascii")
            return [text[begin:end] for begin, end in pairwise([0, *ends])]
        return [_decoded(data[begin:end]) for begin, end in pairwise([0, *ends])]

    @cached_property
    def _place_of(self) -> dict[str, int]:
        return {text: place for place, text in reversed([*enumerate(self)])}

    @cached_property
    def _bits(self) -> np.uint64:
        """How many bits of an entry of the index are the place."""
        return np.uint64(len(self).bit_length())

    @property
    def _mask(self) -> np.uint64:
        return (np.uint64(1) << self._bits) - np.uint64(1)

    @cached_property
    def _index(self) -> NDArray[np.uint64]:
        """Hash and place of each text in one number, in the order of the hashes."""
        index = room(len(self), np.uint64)
        for start in range(0, len(self), BLOCK):
            hashes = _hashes(self._block(start, start + BLOCK)) >> self._bits << self._bits
            index[start : start + BLOCK] = hashes | np.arange(start, start + len(hashes), dtype=np.uint64)
        index.sort()
        return index

    def _looked_up(self, texts: Sequence[str]) -> NDArray[np.int64]:
        found = np.full(len(texts), -1)
        hashes = _hashes(texts) >> self._bits
        at = np.searchsorted(self._index, hashes << self._bits)
        left = np.arange(len(texts))
        while len(left):
            entries = self._index[np.minimum(at[left], len(self) - 1)]
            same = (at[left] < len(self)) & (entries >> self._bits == hashes[left])
            left, rows = left[same], (entries & self._mask)[same].astype(np.int64)
            right = self._are(rows, [texts[one] for one in left.tolist()])
            found[left[right]] = rows[right]
            left = left[~right]  # another text of the same hash: the next entry may be it
            at[left] += 1
        return found

    def _are(self, rows: NDArray[np.int64], texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each row holds the text beside it."""
        data, ends = self._data, self._ends[rows].tolist()
        starts = np.where(rows > 0, self._ends[rows - 1], 0).tolist()
        told = (text.encode("utf-8", "surrogatepass") for text in texts)
        alike = (data[start:end] == one for start, end, one in zip(starts, ends, told, strict=True))
        return np.fromiter(alike, np.bool_, len(texts))


class GrowingTexts:
    """A column of texts that is added to, and then read."""

    def __init__(self) -> None:
        self._data, self._ends, self._size = Growing(), GrowingNumbers(np.int64), 0

    def add(self, texts: Sequence[str]) -> None:
        if texts:
            data, ends = _packed(texts)
            self._data.add(data)
            self._ends.add(ends + self._size)
            self._size += len(data)

    def whole(self) -> Texts:
        return Texts(self._data.whole(), self._ends.whole())


class Coded(Sequence[Item], Generic[Item]):
    """A column of few different values: a number for each row, and what it stands for.

    >>> Coded(np.array([0, 1, 0]), ["cat", "dog"])[2]
    'cat'
    """

    def __init__(self, codes: NDArray[np.integer], values: Sequence[Item]) -> None:
        self.codes, self.values = codes, values

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        values = self.values
        if isinstance(place, slice):
            return [values[code] for code in self.codes[place].tolist()]
        return values[int(self.codes[place])]

    def __iter__(self) -> Iterator[Item]:
        for _, some in in_blocks(self):
            yield from some

    def take(self, places: NDArray[np.integer]) -> Coded[Item]:
        return Coded(self.codes[places], self.values)


class GrowingCells:
    """A column of texts that is added to: coded as long as there are few different ones, and as they are beyond that."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._codes = GrowingNumbers(np.int32)
        self._texts: GrowingTexts | None = None

    def add(self, cells: Sequence[str]) -> None:
        if self._texts is not None:
            self._texts.add(cells)
            return
        known = self._known
        for cell in dict.fromkeys(cells):
            known.setdefault(cell, len(known))
        self._codes.add(np.fromiter(map(known.__getitem__, cells), np.int32, len(cells)))
        if len(known) > FEW:
            self._texts = GrowingTexts()
            for _, some in in_blocks(self._coded()):
                self._texts.add(some)
            self._known = {}

    def whole(self) -> Coded[str] | Texts:
        return self._coded() if self._texts is None else self._texts.whole()

    def _coded(self) -> Coded[str]:
        return Coded(self._codes.whole(), [*self._known])


class Parsed(Sequence[Item], Generic[Item]):
    """A column of texts, each as what it says."""

    def __init__(self, texts: Texts, parse: Callable[[str], Item]) -> None:
        self.texts, self.parse = texts, parse

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        return [*map(self.parse, self.texts[place])] if isinstance(place, slice) else self.parse(self.texts[place])

    def __iter__(self) -> Iterator[Item]:
        return map(self.parse, self.texts)

    def take(self, places: NDArray[np.integer]) -> Parsed[Item]:
        return Parsed(self.texts.take(places), self.parse)


def _packed(texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
    """Texts one behind the other, and where each ends."""
    together = "".join(texts)
    if together.isascii():
        return together.encode("ascii"), np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(parts), np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    return np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)
