"""The owner's dashboard: progress, pace, agreement, disputes, warnings about careless reviewers, and the raw votes."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np

from shiftproof.curation.project import Item, Project
from shiftproof.files import csv_bytes, defused
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.review.database import Database
from shiftproof.review.summary import ReviewerSummary, Summary, median_seconds, summary_of
from shiftproof.review.verdicts import Verdict
from shiftproof.review.votes import Integers, Vote, VoteColumns, standing

HOUR = 3600.0
SHOWN_DISPUTES = 24
SHOWN_CLASSES = 60


@dataclass(frozen=True)
class ClassProgress:
    """Progress of one class towards its target."""

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
    """The pace of the review, and what is left."""

    answers: int  # given so far
    wanted: int  # of all reviewers that items are or will be assigned to
    last_hour: int
    seconds_each: float | None  # median of all answers

    @property
    def left(self) -> int:
        return max(self.wanted - self.answers, 0)

    @property
    def work_left(self) -> float | None:
        """Seconds of work that are left."""
        return None if self.seconds_each is None else self.left * self.seconds_each

    @property
    def time_left(self) -> float | None:
        """Seconds until all is answered, at the pace of the last hour."""
        return self.left / self.last_hour * HOUR if self.last_hour else None


@dataclass(frozen=True)
class ReviewerRow:
    """One reviewer, with warnings about their work and the number of unanswered items."""

    person: ReviewerSummary
    signs: Sequence[str]
    unanswered: int
    last_seen: float | None  # seconds since the latest vote


@dataclass(frozen=True)
class Dispute:
    """An item on which reviewers disagree."""

    item: Item
    verdict: Verdict
    label: str


@dataclass(frozen=True)
class Overview:
    """What the dashboard shows."""

    summary: Summary
    pace: Pace
    people: tuple[ReviewerRow, ...]
    disputes: tuple[Dispute, ...]  # the first few
    classes: tuple[ClassProgress, ...]  # where they have a target; the farthest from it first
    classes_reached: int


def overview(project: Project, database: Database, *, now: float | None = None) -> Overview:
    """The state of a review now."""
    now = time.time() if now is None else now
    votes = database.vote_columns()
    summary = summary_of(project, database, votes)
    first = votes.during("first").standing()
    signs = warnings_about(summary.people, choices_of(first))
    seen, unanswered = database.last_seen(), database.unanswered()
    people = [
        ReviewerRow(person, signs.get(number, ()), unanswered.get(number, 0), _ago(seen.get(number), now))
        for person in summary.people
        for number in [person.reviewer.id]
    ]
    disputed = sorted(summary.disputed, key=lambda item: summary.verdicts[item].agreed)  # all may be against an item, too
    disputes = [
        Dispute(project.by_id[item], summary.verdicts[item], project.label_of(project.by_id[item]))
        for item in disputed[:SHOWN_DISPUTES]
    ]
    classes = class_progress(project, summary.verdicts)
    reached = sum(one.is_reached for one in classes)
    pace = _pace(summary.verdicts, first, database.numbers_since(now - HOUR))
    return Overview(summary, pace, tuple(people), tuple(disputes), tuple(classes[:SHOWN_CLASSES]), reached)


def _ago(moment: float | None, now: float) -> float | None:
    return None if moment is None else max(now - moment, 0)


def class_progress(project: Project, verdicts: Mapping[str, Verdict]) -> list[ClassProgress]:
    """Progress of each class towards the target, the farthest first; empty where there is no target."""
    if project.target is None:
        return []
    asked = [item for item in project.items if item.id in verdicts]
    counts = Counter((project.label_of(item), verdicts[item.id].outcome) for item in asked)
    names = dict.fromkeys(project.label_of(item) for item in asked)
    rows = [ClassProgress(name, counts[name, "kept"], counts[name, "open"], project.target) for name in names]
    return sorted(rows, key=lambda row: (row.is_reached, row.kept, row.name))


def _pace(verdicts: Mapping[str, Verdict], first: VoteColumns, last_hour: Integers) -> Pace:
    asked = first.on(verdicts)
    given = {item: verdict.for_it + verdict.against for item, verdict in verdicts.items()}
    wanted = [given[item] if verdict.closed_by_group else verdict.assigned for item, verdict in verdicts.items()]
    recent = int(np.isin(asked.number, last_hour).sum())
    return Pace(sum(given.values()), sum(wanted), recent, median_seconds(asked))


MIN_ANSWERS = 20
"""Answers of a reviewer before a warning about pace or runs."""

PACE_RATIO = 3.0
"""So many times faster or slower than the others earns a warning."""

MIN_GOLD_ACCURACY = 0.8
"""Accuracy on gold items that is expected of a careful reviewer."""

RUN_PROBABILITY = 0.001
"""A run of one answer earns a warning where chance would give one so long less often than this."""


def choices_of(votes: VoteColumns) -> dict[int, list[str]]:
    """The choices of each reviewer, in order."""
    names = np.array(["" if answer is None else str(answer["choice"]) for answer in votes.answers], object)
    people = np.unique(votes.reviewer).tolist()
    return {person: names[votes.answer[votes.reviewer == person][::-1]].tolist() for person in people}


def warnings_about(people: Sequence[ReviewerSummary], chosen: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """Signs that a reviewer answers carelessly, in words, by the reviewer's id: a reason to ask, and no verdict.

    `chosen` are the choices of each reviewer in the first votes that stand, in order.
    """
    common = Counter(chain.from_iterable(chosen.values()))
    found = {}
    for person in people:
        others = [
            one.median_seconds for one in people if one is not person and one.answered >= MIN_ANSWERS and one.median_seconds
        ]
        own = chosen.get(person.reviewer.id, ())
        signs = [*_gold_warning(person), *_pace_warning(person, others), *_run_warning(own, common)]
        if signs:
            found[person.reviewer.id] = signs
    return found


def _gold_warning(person: ReviewerSummary) -> list[str]:
    """Significantly low accuracy on gold items."""
    if person.known and clopper_pearson(person.right, person.known)[1] < MIN_GOLD_ACCURACY:
        return [f"{person.right} of {person.known} gold items are correct"]
    return []


def _pace_warning(person: ReviewerSummary, others: Sequence[float]) -> list[str]:
    if person.answered < MIN_ANSWERS or not person.median_seconds or not others:
        return []
    usual = statistics.median(others)
    told = f"{person.median_seconds:.1f} s per item, others {usual:.1f} s"
    if person.median_seconds * PACE_RATIO <= usual:
        return [f"fast: {told}"]
    return [f"slow: {told}"] if person.median_seconds >= PACE_RATIO * usual else []


def _run_warning(choices: Sequence[str], common: Mapping[str, int]) -> list[str]:
    """A run of one answer that its share of all answers does not explain."""
    runs = [(len(list(run)), choice) for choice, run in groupby(choices)]
    if len(choices) < MIN_ANSWERS or not runs or len(common) < 2:
        return []
    length, choice = max(runs)
    share = common[choice] / sum(common.values())
    chance = len(choices) * (1 - share) * math.pow(share, length)  # approximate probability of such a run
    return [f"{length} times “{choice}” in a row"] if chance < RUN_PROBABILITY else []


VOTE_COLUMNS = (
    *("number", "id", "reviewer", "item", "round", "choice", "answer"),
    *("note", "milliseconds", "supersedes", "received"),
)


def votes_as_json(database: Database) -> bytes:
    """All votes in order of arrival, each with the reviewer's name and whether it stands."""
    return (json.dumps(_vote_rows(database), ensure_ascii=False, indent=1) + "\n").encode()


def votes_as_csv(database: Database) -> bytes:
    """The same as a table; a text that a spreadsheet would evaluate as a formula begins with an apostrophe."""
    rows = [[_cell(row[column]) for column in (*VOTE_COLUMNS, "counts")] for row in _vote_rows(database)]
    return csv_bytes([(*VOTE_COLUMNS, "counts"), *rows])


def _vote_rows(database: Database) -> list[dict[str, Any]]:
    names = {person.id: person.name for person in database.reviewers()}
    votes = database.votes()
    # training votes stand beside the others, and replace none of them
    training, counted = (
        [vote for vote in votes if (vote.round == "training") == is_training] for is_training in (True, False)
    )
    stand = {vote.id for some in (training, counted) for vote in standing(some).values()}
    return [_vote_row(vote, names, counts=vote.id in stand) for vote in votes]


def _vote_row(vote: Vote, names: Mapping[int, str], *, counts: bool) -> dict[str, Any]:
    return {**{column: getattr(vote, column) for column in VOTE_COLUMNS}, "reviewer": names[vote.reviewer], "counts": counts}


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else defused(value)
