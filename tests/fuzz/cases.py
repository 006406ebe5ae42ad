"""What cases are made of: small valid files, with bytes changed at random or parts replaced by Hypothesis."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

LARGEST = 128 * 1024
"""Bytes of a changed file: what is wrong with a reader shows in small ones."""

Documents = Callable[[bytes], st.SearchStrategy[bytes]]
"""Valid bytes in, a strategy of similar documents out."""


@dataclass(frozen=True)
class Seed:
    """A valid folder, of which one file is changed."""

    name: str
    files: Mapping[str, bytes]
    target: str
    documents: Documents | None = None
    payload: bytes | None = None  # what is changed, where it is only a part of the file
    wrap: Callable[[bytes], bytes] = bytes  # makes the file of it: lengths and checksums put right, so that reading goes on
    mutated: bool = True  # whether its bytes are changed at random too

    @property
    def content(self) -> bytes:
        return self.files[self.target] if self.payload is None else self.payload

    @cached_property
    def similar(self) -> st.SearchStrategy[bytes]:
        """Documents like this one; checking a strategy takes Hypothesis longer than drawing from it."""
        assert self.documents is not None
        return self.documents(self.content)


ODD_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)

ODD_TEXTS = (
    "", "0", "-1", "1e400", "-1e400", "NaN", "Infinity", "1e-320", "-0.0", "007", "4611686018427387904", "9" * 5000,
    "null", "true", "\0", "\\u0000", "\\ud800", "\ud800", "\udcff", "ﬁ", "a\u0301", "\u202e", "\ufeff", "💥",
    "\r", "\n\n", "|", ",", '"', "'", "<", "&#0;", "&a;", "[" * 3000, "{" * 3000, "x" * 300, "n01440764", "=1+1",
    "..", "../outside", "/dev/zero", "/dev/null", "/proc/self/mem", "gb2312", "utf-7",
)  # fmt: skip

Edit = tuple[int, int, bytes]
"""A place, how many bytes go there, and what comes instead."""


def edits_of(content: bytes, rng: random.Random) -> list[Edit]:
    """Some random changes, more often near the beginning and the end, where headers and tables of contents are."""
    return [_edit(content, rng) for _ in range(min(1 + int(rng.expovariate(0.7)), 12))]


def _edit(content: bytes, rng: random.Random) -> Edit:
    size = len(content)
    place = rng.choice([rng.randrange(size + 1), min(rng.randrange(128), size), max(size - rng.randrange(256), 0)])
    match rng.randrange(9):
        case 0 | 1 if place < size:
            return place, 1, bytes([content[place] ^ 1 << rng.randrange(8)])
        case 2:
            return place, 1, bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))])
        case 3 | 4:
            width = rng.choice((2, 4, 8))
            number = rng.choice(ODD_NUMBERS) % 256**width
            return place, width, number.to_bytes(width, rng.choice(("little", "big")))
        case 5:
            return place, rng.choice((1, 4, 16, size)), b""
        case 6:
            return place, 0, rng.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")
        case 7:
            start = rng.randrange(size + 1)
            stretch = content[start : start + rng.choice((1, 4, 16, 64, 512))]
            return place, rng.choice((0, len(stretch))), stretch * rng.choice((1, 1, 2, 50))
        case _:
            return place, 0, rng.randbytes(rng.choice((1, 2, 4, 8, 64)))


def applied(content: bytes, edits: Sequence[Edit]) -> bytes:
    """The content with the changes made.

    >>> applied(b"abcdef", [(4, 1, b"X"), (1, 2, b"")])
    b'adXf'
    """
    for place, gone, instead in sorted(edits, reverse=True):
        content = content[:place] + instead + content[place + gone :]
    return content[:LARGEST]


def texts(content: bytes) -> st.SearchStrategy[bytes]:
    """The same text with some of its words, numbers or signs replaced, dropped or said twice."""
    words = re.findall(r"[\w.+-]+|\s+|.", content.decode("utf-8", "replace"), re.DOTALL)
    odd = (
        st.sampled_from(ODD_TEXTS)
        | st.integers().map(str)
        | st.floats().map(str)
        | st.text(max_size=5)
        | st.sampled_from(words)
    )
    change = st.tuples(st.integers(0, len(words) - 1), odd | st.none())

    def changed(changes: list[tuple[int, str | None]]) -> bytes:
        new = list(words)
        for place, word in changes:
            new[place] = new[place] * 2 if word is None else word
        return "".join(new).encode("utf-8", "surrogatepass")[:LARGEST]

    return st.lists(change, min_size=1, max_size=4).map(changed)


def jsons(content: bytes) -> st.SearchStrategy[bytes]:
    """The same JSON, or lines of it, with some parts replaced, dropped or under another name."""
    text = content.decode()
    lines = [json.loads(line) for line in text.splitlines()] if not _is_json(text) else None
    whole = json.loads(text) if lines is None else lines
    paths = list(_paths(whole))
    plain = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(ODD_TEXTS) | st.text(max_size=5)
        | st.sampled_from(ODD_NUMBERS)
    )  # fmt: skip
    odd = st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    )
    part = st.sampled_from(paths).map(lambda path: _at(whole, path))
    change = st.tuples(st.sampled_from(paths), st.sampled_from(("set", "set", "set", "drop", "rename")), odd | part)

    def changed(changes: list[tuple[tuple[Any, ...], str, Any]]) -> bytes:
        new = json.loads(json.dumps(whole))
        for path, how, value in changes:
            new = _with(new, path, how, copy.deepcopy(value))
        documents = new if lines is not None and isinstance(new, list) else [new]
        return "\n".join(json.dumps(document) for document in documents).encode("utf-8", "surrogatepass")[:LARGEST]

    return st.lists(change, min_size=1, max_size=3).map(changed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from _paths(entry, (*path, key))


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(whole: Any, path: Sequence[Any], how: str, value: Any) -> Any:
    if not path:
        return value if how == "set" else whole
    try:
        above = _at(whole, path[:-1])
        if how == "set":
            above[path[-1]] = value
        else:
            old = above.pop(path[-1])
            if how == "rename" and isinstance(above, dict):
                above[str(value)[:20]] = old
    except (KeyError, IndexError, TypeError, AttributeError):
        pass  # an earlier change took it away
    return whole
