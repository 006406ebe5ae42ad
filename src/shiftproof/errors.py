"""Errors for the person who can put them right: what was expected, what came, what to do.

    ShiftproofError
    ├── UnknownName        no entry of that name in the catalog
    ├── MissingExtra       an optional library is not installed
    ├── BrokenPlugin       an entry of an installed package cannot be loaded
    ├── BadInput           a file, folder, option or array is not what it should be
    │   └── UnreadableImage    one image cannot be decoded; it is skipped, the run goes on
    ├── ClassMismatch      labels of the images and outputs of the model do not meet
    ├── NotKept            a run was stored with less than a study needs
    ├── MissingRuns        a study needs predictions that were never made
    ├── OutOfReach         a server refuses, or does not answer; what was stored is kept
    └── StoreError         the store cannot be read or written
        └── DamagedFile        a file of the store is not what was written; it is quarantined and made again

A StoreWarning tells of a damaged file, a PluginWarning of a faulty plug-in, where the work goes on without it.
The command line prints the message of an error and exits with 1. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class ShiftproofError(Exception):
    """The root of the tree above."""


class UnknownName(ShiftproofError):
    """No entry of that name; the nearest ones are offered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
        advice = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names) or 'none'}"
        super().__init__(f"no {kind} called {name!r}; {advice}")


class MissingExtra(ShiftproofError):
    """An optional library is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs: pip install 'shiftproof[{extra}]'")


class BrokenPlugin(ShiftproofError):
    """An entry of an installed package cannot be loaded, or is not what it should be."""

    def __init__(self, what: str, place: str, reason: str) -> None:
        super().__init__(f"{what} of a plug-in ({place}) cannot be used: {reason}")


class BadInput(ShiftproofError):
    """A file, folder, option or array is not what it should be."""


class UnreadableImage(BadInput):
    """One image cannot be decoded; the message is the reason, without the path."""


class ClassMismatch(ShiftproofError):
    """Labels of the images and outputs of the model do not match."""


class NotKept(ShiftproofError):
    """A run was stored with less than a study needs."""


class OutOfReach(ShiftproofError):
    """A server refuses, or does not answer: the work stops, since no image is to be skipped for that."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url, self.reason = url, reason

    def __str__(self) -> str:
        return f"{self.url} cannot be reached: {self.reason}; the same command goes on where it stopped"


class MissingRuns(ShiftproofError):
    """A study needs predictions that were never made: what is missing, and the call or the command that makes it.

    Who catches it in Python reads the call; the command prints the command.
    """

    def __init__(self, what: str, *, call: str | None = None, command: str | None = None) -> None:
        super().__init__(f"{what}; make them with: {call}" if call else what)
        self.what, self.call, self.command = what, call, command

    def for_command(self) -> str:
        """The message for whoever typed a command."""
        return f"{self.what}; make them with: {self.command}" if self.command else str(self)


class StoreError(ShiftproofError):
    """The store cannot be read or written."""


class DamagedFile(StoreError):
    """A file of the store is not what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason}) and not used; predict again, which computes it once more")
        self.path, self.reason = path, reason


class StoreWarning(UserWarning):
    """Something in the store is damaged; nothing of it is used, and the rest is."""


class PluginWarning(UserWarning):
    """An entry of an installed package is not used; everything else is."""


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names as one readable phrase, the tail counted instead of printed.

    >>> listed(["cat", "dog", "eel"], most=2)
    'cat, dog and 1 more'
    """
    names = list(names)
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
