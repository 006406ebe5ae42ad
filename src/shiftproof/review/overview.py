"""What the owner of a review sees: how far it is, how people work, what they do not agree on, and how long it will take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shiftproof.curation.project import Item, Project
from shiftproof.review.ballots import Ballots, Numbers
from shiftproof.review.care import choices_of, signs_of
from shiftproof.review.database import Database
from shiftproof.review.summary import Person, Summary, median_seconds, summary_of
from shiftproof.review.verdicts import Verdict

HOUR = 3600.0
SHOWN_DISPUTES = 24
SHOWN_CLASSES = 60


@dataclass(frozen=True)
class ClassProgress:
    """How far the items of one class are."""

    name: str
    kept: int
    open: int
    target: int

    @property
    def is_reached(self) -> bool:
        return self.kept >= self.target

    @property
    def is_out_of_reach(self) -> bool:
        return self.kept + self.open < self.target


@dataclass(frozen=True)
class Pace:
    """How fast it goes, and what is left."""

    answers: int  # that were given
    wanted: int  # of everybody whom items were or will be given to
    last_hour: int
    seconds_each: float | None  # the median of all answers

    @property
    def left(self) -> int:
        return max(self.wanted - self.answers, 0)

    @property
    def work_left(self) -> float | None:
        """Seconds of somebody's work that are left."""
        return None if self.seconds_each is None else self.left * self.seconds_each

    @property
    def time_left(self) -> float | None:
        """Seconds until all is answered, if people go on as in the last hour."""
        return self.left / self.last_hour * HOUR if self.last_hour else None


@dataclass(frozen=True)
class PersonRow:
    """One person, with what is strange about their work and what they still have to answer."""

    person: Person
    signs: Sequence[str]
    unanswered: int
    last_seen: float | None  # seconds ago that the last vote came


@dataclass(frozen=True)
class Dispute:
    """An item on which people do not agree."""

    item: Item
    verdict: Verdict
    label: str


@dataclass(frozen=True)
class Overview:
    """A review at one moment, for its owner."""

    summary: Summary
    pace: Pace
    people: tuple[PersonRow, ...]
    disputes: tuple[Dispute, ...]  # the first of them
    classes: tuple[ClassProgress, ...]  # where each has a target; those farthest from it first
    classes_reached: int


def overview(project: Project, database: Database, *, now: float | None = None) -> Overview:
    """What there is to see now."""
    now = time.time() if now is None else now
    votes = database.ballots()
    summary = summary_of(project, database, votes)
    first = votes.during("first").standing()
    signs = signs_of(summary.people, choices_of(first))
    last, unanswered = database.last_seen(), database.unanswered()
    people = [_row(person, signs, unanswered, last, now) for person in summary.people]
    disputed = sorted(summary.disputed, key=lambda item: summary.verdicts[item].agreed)  # all may be against one, too
    disputes = [
        Dispute(project.by_id[item], summary.verdicts[item], project.label_of(project.by_id[item]))
        for item in disputed[:SHOWN_DISPUTES]
    ]
    classes = class_progress(project, summary.verdicts)
    reached = sum(one.is_reached for one in classes)
    pace = _pace(summary.verdicts, first, database.numbers_since(now - HOUR))
    return Overview(summary, pace, tuple(people), tuple(disputes), tuple(classes[:SHOWN_CLASSES]), reached)


def _row(
    person: Person,
    signs: Mapping[int, Sequence[str]],
    unanswered: Mapping[int, int],
    last: Mapping[int, float],
    now: float,
) -> PersonRow:
    number = person.reviewer.id
    ago = max(now - last[number], 0) if number in last else None
    return PersonRow(person, signs.get(number, ()), unanswered.get(number, 0), ago)


def class_progress(project: Project, verdicts: Mapping[str, Verdict]) -> list[ClassProgress]:
    """How far each class is from its target, the farthest first; nothing where there is none."""
    if project.target is None:
        return []
    asked = [item for item in project.items if item.id in verdicts]
    counts = Counter((project.label_of(item), verdicts[item.id].outcome) for item in asked)
    names = dict.fromkeys(project.label_of(item) for item in asked)
    rows = [ClassProgress(name, counts[name, "kept"], counts[name, "open"], project.target) for name in names]
    return sorted(rows, key=lambda row: (row.is_reached, row.kept, row.name))


def _pace(verdicts: Mapping[str, Verdict], first: Ballots, last_hour: Numbers) -> Pace:
    asked = first.on(verdicts)
    given = {item: verdict.for_it + verdict.against for item, verdict in verdicts.items()}
    wanted = [given[item] if verdict.closed_by_group else verdict.assigned for item, verdict in verdicts.items()]
    recent = int(np.isin(asked.number, last_hour).sum())
    return Pace(sum(given.values()), sum(wanted), recent, median_seconds(asked))
