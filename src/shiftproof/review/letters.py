"""Letters that stand for people, where names would tell who said what."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator


def letters() -> Iterator[str]:
    """A letter for each of any number of people.

    >>> [letter for letter, _ in zip(letters(), range(28), strict=False)][24:]
    ['Y', 'Z', 'AA', 'AB']
    """
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_uppercase, repeat=length))
