"""What cases are made of: small valid files, and bytes that are changed at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LARGEST = 128 * 1024
"""Bytes of a changed file: what is wrong with a reader shows in small ones."""

Documents: TypeAlias = "Callable[[bytes], SearchStrategy[bytes]]"
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
    def similar(self) -> SearchStrategy[bytes]:
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
