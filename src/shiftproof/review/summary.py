"""The state of a review: verdicts, inter-annotator agreement, and statistics of each reviewer."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.project import Project
from shiftproof.metrics.agreement import (
    Ratings,
    confusions_with_others,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.qualification import is_correct_answer
from shiftproof.review.verdicts import Outcome, Verdict, needs_adjudication, verdicts
from shiftproof.review.votes import NONE, VoteColumns, total_counts


@dataclass(frozen=True)
class BlindRatings:
    """The first votes of everybody, which are blind, as a ratings matrix."""

    items: tuple[str, ...]  # with an answer
    people: tuple[int, ...]
    names: tuple[str, ...]  # of the ratings
    ratings: Ratings


@dataclass(frozen=True)
class Agreement:
    """Inter-annotator agreement of the first votes; None where there are too few."""

    items: int  # with two answers or more
    percent: float | None
    fleiss: float | None  # over items with the full number of answers
    krippendorff: float | None


@dataclass(frozen=True)
class ReviewerSummary:
    """Statistics of one reviewer."""

    reviewer: Reviewer
    given: int
    answered: int
    known: int  # gold items answered
    right: int  # of these, correctly
    median_seconds: float | None  # from seeing an item to answering it
    choices: Mapping[str, int]  # votes by choice
    confusion: NDArray[np.integer]  # own ratings against those of others on the same items, (ratings, ratings)
    lookups: int  # classes looked up during a test

    @property
    def gold_accuracy(self) -> float | None:
        """Accuracy on gold items."""
        return self.right / self.known if self.known else None

    @property
    def agreement(self) -> float | None:
        """Share of the ratings of others that are the same."""
        pairs = int(self.confusion.sum())
        return float(np.trace(self.confusion)) / pairs if pairs else None


@dataclass(frozen=True)
class Verification:
    """The cost of having everybody review flagged items only, and not every item."""

    annotators: int  # who take part, or are wanted on each flagged item where fewer have begun
    read: int  # items with a vote
    flagged: int  # of these, by the votes that stand
    votes: int  # on items that were read: given, or still wanted
    instead: int  # votes, if everybody reviewed each of them

    def __str__(self) -> str:
        return f"{self.votes:,} votes instead of {self.instead:,}"


@dataclass(frozen=True)
class Summary:
    """The state of a review."""

    votes: int
    verdicts: Mapping[str, Verdict]
    answers: BlindRatings
    agreement: Agreement
    people: tuple[ReviewerSummary, ...]
    verification: Verification | None = None  # where flags are verified

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """Number of items by outcome."""
        found = Counter(verdict.outcome for verdict in self.verdicts.values())
        return {"kept": found["kept"], "rejected": found["rejected"], "open": found["open"]}

    @property
    def disputed(self) -> tuple[str, ...]:
        """Items that need adjudication."""
        return tuple(item for item, verdict in self.verdicts.items() if needs_adjudication(verdict))

    def as_json(self) -> dict[str, Any]:
        """The summary as JSON."""
        return {
            "votes": self.votes,
            "outcomes": dict(self.outcomes),
            "agreement": dataclasses.asdict(self.agreement),
            "answers": list(self.answers.names),
            "people": [_person_as_json(person) for person in self.people],
            "verification": None if self.verification is None else dataclasses.asdict(self.verification),
            "verdicts": [{**vars(verdict), "disputed": needs_adjudication(verdict)} for verdict in self.verdicts.values()],
        }


def _person_as_json(person: ReviewerSummary) -> dict[str, Any]:
    told = {name: value for name, value in vars(person).items() if name not in ("reviewer", "confusion")}
    return {
        "name": person.reviewer.name,
        "role": person.reviewer.role,
        **told,
        "gold_accuracy": person.gold_accuracy,
        "agreement": person.agreement,
        "confusion": person.confusion.tolist(),
    }


def summarize(project: Project, database: Database) -> Summary:
    """The state of a review: verdicts from the votes that stand, agreement from the first ones."""
    return summary_of(project, database, database.vote_columns())


def summary_of(project: Project, database: Database, votes: VoteColumns) -> Summary:
    """The same from votes that were read already."""
    assigned = database.assigned()
    first = votes.during("qualification", "first").standing()
    answers = first_answers(project, first)
    found = verdicts(project, votes, assigned)
    verification = None if project.verify is None else verification_of(project, found, assigned)
    return Summary(
        len(votes),
        found,
        answers,
        agreement_of(answers, project.reviewers_each if verification is None else verification.annotators),
        tuple(_people(project, database, first, answers, assigned)),
        verification,
    )


def verification_of(project: Project, found: Mapping[str, Verdict], assigned: Mapping[str, Iterable[int]]) -> Verification:
    """The cost of verifying flags, by the verdicts and the reviewers of each item."""
    annotators = max(len(set(chain.from_iterable(assigned.values()))), project.reviewers_each)
    read = [verdict for verdict in found.values() if verdict.for_it + verdict.against]
    votes = (one.for_it + one.against if one.closed_by_group else one.assigned for one in read)
    return Verification(annotators, len(read), sum(one.against > 0 for one in read), sum(votes), len(read) * annotators)


def first_answers(project: Project, first: VoteColumns) -> BlindRatings:
    """The first votes as a ratings matrix, without gold items."""
    asked = first.on(frozenset(project.asked))
    rating = {code: _rating(project, asked.answers[code] or {}) for code in np.unique(asked.answer).tolist()}
    offered = [] if project.screen.form in ("class", "tags") else [choice.name for choice in project.screen.choices]
    names = tuple(dict.fromkeys([*offered, *sorted(rating.values())]))
    answered = {asked.items[place]: place for place in np.unique(asked.item).tolist()}
    items = tuple(item.id for item in project.items if item.id in answered)
    people = np.unique(asked.reviewer)
    row, number = np.zeros(len(asked.items), int), np.zeros(len(asked.answers), int)
    row[[answered[item] for item in items]] = np.arange(len(items))
    number[list(rating)] = [names.index(name) for name in rating.values()]
    ratings = np.full((len(items), len(people)), -1)
    ratings[row[asked.item], np.searchsorted(people, asked.reviewer)] = number[asked.answer]
    return BlindRatings(items, tuple(people.tolist()), names, ratings)


def agreement_of(answers: BlindRatings, reviewers_each: int) -> Agreement:
    """Inter-annotator agreement of the first votes."""
    given = (answers.ratings >= 0).sum(axis=1)
    several, complete = answers.ratings[given > 1], answers.ratings[given == max(reviewers_each, 2)]
    return Agreement(
        len(several),
        _known(percent_agreement(several)),
        _known(fleiss_kappa(complete)) if len(complete) else None,
        _known(krippendorff_alpha(several)),
    )


def _people(
    project: Project, database: Database, first: VoteColumns, answers: BlindRatings, assigned: Mapping[str, Sequence[int]]
) -> Iterable[ReviewerSummary]:
    given = Counter(chain.from_iterable(assigned.values()))
    looked_up = database.lookups()
    known, blind = first.on({item.id for item in project.items if item.role == "gold"}), first.during("first")
    confusion = dict(zip(answers.people, confusions_with_others(answers.ratings, len(answers.names)), strict=True))
    for reviewer in database.reviewers():
        votes, on_known = blind.of(reviewer.id), list(known.of(reviewer.id).votes())
        yield ReviewerSummary(
            reviewer,
            given[reviewer.id],
            len(votes),
            len(on_known),
            sum(is_correct_answer(project.by_id[vote.item], vote.answer or {}) for vote in on_known),
            median_seconds(votes),
            _choices(project, votes),
            confusion.get(reviewer.id, np.zeros((len(answers.names),) * 2, int)),
            looked_up.get(reviewer.id, 0),
        )


def median_seconds(votes: VoteColumns) -> float | None:
    """Median time from seeing an item to answering it."""
    spent = votes.milliseconds[votes.milliseconds != NONE]
    return float(np.median(spent)) / 1000 if len(spent) else None


def _choices(project: Project, votes: VoteColumns) -> dict[str, int]:
    different = Counter(votes.answer.tolist())
    return total_counts((_rating(project, votes.answers[code] or {}), times) for code, times in different.items())


def _rating(project: Project, answer: Mapping[str, Any]) -> str:
    """What agreement is measured on: the class, the failure modes, or the choice."""
    match project.screen.form:
        case "class":
            return str(answer["class"])
        case "tags":
            return ", ".join(sorted(answer["tags"]))
    return str(answer["choice"])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
