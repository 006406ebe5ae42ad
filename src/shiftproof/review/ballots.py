"""Votes as columns: where there are many they are counted so in a fraction of the time that as many objects would take."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.review.votes import ROUNDS, Round, Vote, taken_back

Answer: TypeAlias = Mapping[str, Any]

Numbers: TypeAlias = NDArray[np.int64]
"""A whole number for each vote, (votes,)."""

NONE = -1
"""Where a vote has no time and replaces no other."""


@dataclass(frozen=True)
class Ballots:
    """Votes, the latest first, without their ids and notes."""

    items: Sequence[str]
    answers: Sequence[Answer | None]  # None of votes that only take another back
    number: Numbers
    person: Numbers
    item: Numbers  # its place among `items`
    round: Numbers  # its place among ROUNDS
    answer: Numbers  # its place among `answers`
    milliseconds: Numbers  # or NONE
    before: Numbers  # the number of the vote that it replaces or takes back, or NONE

    def __len__(self) -> int:
        return len(self.number)

    def some(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Ballots:
        """Those that a mask or places pick."""
        names = ("number", "person", "item", "round", "answer", "milliseconds", "before")
        places = np.flatnonzero(which) if which.dtype == bool else which  # a mask would be gone through for each column
        return dataclasses.replace(self, **{name: getattr(self, name)[places] for name in names})

    def of(self, person: int) -> Ballots:
        """Those of one person."""
        return self.some(self.person == person)

    def on(self, items: Container[str]) -> Ballots:
        """Those on some items."""
        return self.some(np.array([item in items for item in self.items], bool)[self.item])

    def during(self, *rounds: Round) -> Ballots:
        """Those of some rounds."""
        return self.some(np.isin(self.round, [ROUNDS.index(one) for one in rounds]))

    def standing(self) -> Ballots:
        """Those that count: of each person on each item the last that was not taken back or replaced."""
        replacing = self.some(self.before != NONE)
        gone = taken_back(zip(replacing.number.tolist(), replacing.before.tolist(), strict=True))
        says = np.array([answer is not None for answer in self.answers], bool)
        counting = self.some(says[self.answer] & ~np.isin(self.number, list(gone)))
        _, latest = np.unique(counting.person * len(self.items) + counting.item, return_index=True)
        return counting.some(np.sort(latest))

    def votes(self) -> Iterator[Vote]:
        """The same as objects."""
        columns = (self.number, self.person, self.item, self.round, self.answer, self.milliseconds)
        for number, person, item, round_, answer, spent in zip(*(column.tolist() for column in columns), strict=True):
            time = None if spent == NONE else spent
            yield Vote("", number, person, self.items[item], ROUNDS[round_], self.answers[answer], milliseconds=time)


def as_ballots(votes: Ballots | Iterable[Vote]) -> Ballots:
    """Votes as columns, if they are not yet."""
    if isinstance(votes, Ballots):
        return votes
    latest = sorted(votes, key=lambda vote: vote.number, reverse=True)
    number = {vote.id: vote.number for vote in latest}
    place = {item: place for place, item in enumerate(dict.fromkeys(vote.item for vote in latest))}
    rows = [
        (
            vote.number,
            vote.reviewer,
            place[vote.item],
            ROUNDS.index(vote.round),
            row,
            NONE if vote.milliseconds is None else vote.milliseconds,
            NONE if vote.supersedes is None else number.get(vote.supersedes, NONE),
        )
        for row, vote in enumerate(latest)
    ]
    return Ballots(list(place), [vote.answer for vote in latest], *np.array(rows, np.int64).reshape(-1, 7).T)


def added_up(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How often each name came, in the order in which they first did.

    >>> added_up([("keep", 2), ("reject", 1), ("keep", 3)])
    {'keep': 5, 'reject': 1}
    """
    found: dict[str, int] = {}
    for name, times in counts:
        found[name] = found.get(name, 0) + times
    return found
