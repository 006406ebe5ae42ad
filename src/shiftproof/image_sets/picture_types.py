"""How a frame of H.264 video was stored, told from the first bytes of its slices: nothing is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

FrameType = Literal["I", "P", "B"]
"""Whether a frame was stored whole, as what differs from earlier ones, or from frames on both sides."""

SLICES = (1, 2, 5)
"""Kinds of unit that begin with a slice's header: of any picture, of one in parts, of one that needs no other."""

LETTERS: tuple[FrameType, ...] = ("P", "B", "I", "P", "I")
"""By the number in the header; the last two are for switching between streams."""


def frame_type(packet: memoryview, length_size: int | None) -> FrameType | None:
    """The type of the frame in a packet; None where nothing tells.

    Its units have their lengths in front, in as many bytes as `length_size` says, or with None begin after a mark.

    >>> frame_type(memoryview(bytes.fromhex("00000002 6588")), 4), frame_type(memoryview(bytes.fromhex("000001 419a")), None)
    ('I', 'P')
    """
    starts = _after_marks(packet) if length_size is None else _after_lengths(packet, length_size)
    for start in starts:
        header = packet[start : start + 5]
        if len(header) > 1 and header[0] & 31 in SLICES:
            bits = "".join(f"{byte:08b}" for byte in header[1:])
            _, rest = _number(bits)  # where in the picture the slice begins
            number, _ = _number(rest)
            return None if number is None or number > 9 else LETTERS[number % 5]
    return None


def length_size_of(extradata: bytes | None) -> int | None:
    """In how many bytes the lengths of units are written; None where a mark stands before each unit instead."""
    return (extradata[4] & 3) + 1 if extradata and len(extradata) > 4 and extradata[0] == 1 else None


def _after_lengths(packet: memoryview, length_size: int) -> Iterator[int]:
    place = 0
    while place + length_size < len(packet):
        yield place + length_size
        place += length_size + int.from_bytes(packet[place : place + length_size], "big")


def _after_marks(packet: memoryview) -> Iterator[int]:
    data = bytes(packet)
    place = data.find(b"\0\0\1")
    while place >= 0:
        yield place + 3
        place = data.find(b"\0\0\1", place + 3)


def _number(bits: str) -> tuple[int | None, str]:
    """The number at the front, written as as many zeros as it has further digits, and what follows it; None for no number.

    >>> _number("00111101")
    (6, '101')
    """
    zeros = len(bits) - len(bits.lstrip("0"))
    end = 2 * zeros + 1
    return (int(bits[zeros:end], 2) - 1, bits[end:]) if end <= len(bits) else (None, "")
