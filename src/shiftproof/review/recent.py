"""Counts that take a while, taken again only now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class RecentCounts(Generic[Key]):
    """A count for each of some things, up to so many seconds old."""

    def __init__(self, count: Callable[[Key], int], seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._counted: dict[Key, tuple[float, int]] = {}

    def of(self, key: Key) -> int:
        """The count of one; counted now where it is too old."""
        when, count = self._counted.get(key, (None, 0))
        if when is None or time.monotonic() - when >= self._seconds:
            count = self._count(key)
            self.note(key, count)
        return count

    def note(self, key: Key, count: int) -> None:
        """Remembers a count that became known by the way."""
        self._counted[key] = time.monotonic(), count
