"""What takes a while to find out, found out again only now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A value for each of some things, up to so many seconds old."""

    def __init__(self, find: Callable[[Key], Value], seconds: float) -> None:
        self._find, self._seconds = find, seconds
        self._found: dict[Key, tuple[float, Value]] = {}

    def of(self, key: Key) -> Value:
        """The value of one; found anew where it is too old."""
        found = self._found.get(key)
        if found is not None and time.monotonic() - found[0] < self._seconds:
            return found[1]
        value = self._find(key)
        self.note(key, value)
        return value

    def note(self, key: Key, value: Value) -> None:
        """Remembers a value that became known by the way."""
        self._found[key] = time.monotonic(), value
