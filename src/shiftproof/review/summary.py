"""What a review has come to: verdicts, how far people agree, and how each of them worked."""

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
from shiftproof.review.ballots import NONE, Ballots, added_up
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.qualification import is_right
from shiftproof.review.verdicts import Outcome, Verdict, needs_adjudication, verdicts


@dataclass(frozen=True)
class Answers:
    """What everybody said before they saw each other's votes."""

    items: tuple[str, ...]  # those that somebody answered
    people: tuple[int, ...]
    names: tuple[str, ...]  # of the answers
    ratings: Ratings


@dataclass(frozen=True)
class Agreement:
    """How far first votes on the same items agree; None where too few were given to say."""

    items: int  # with two answers or more
    percent: float | None
    fleiss: float | None  # over the items that as many people answered as each was meant for
    krippendorff: float | None


@dataclass(frozen=True)
class Person:
    """How one reviewer worked."""

    reviewer: Reviewer
    given: int
    answered: int
    known: int  # items of a known answer that were answered
    right: int  # and how many of these rightly
    median_seconds: float | None  # from seeing an item to answering it
    choices: Mapping[str, int]  # how often each answer was given
    confusion: NDArray[np.integer]  # own answers against those of others to the same items, (answers, answers)
    lookups: int  # classes looked up during a test

    @property
    def gold_accuracy(self) -> float | None:
        """Share of the items of a known answer that were answered rightly."""
        return self.right / self.known if self.known else None

    @property
    def agreement(self) -> float | None:
        """Share of the answers of others that were the same."""
        pairs = int(self.confusion.sum())
        return float(np.trace(self.confusion)) / pairs if pairs else None


@dataclass(frozen=True)
class Verification:
    """What it costs that everybody judges flagged items alone, and not every item."""

    annotators: int  # people who take part, or who are to judge each flagged item where so many have not begun
    read: int  # items that somebody judged
    flagged: int  # of these, by the votes that stand
    votes: int  # on items that were read: given, or still wanted
    instead: int  # votes of everybody on each of them

    def __str__(self) -> str:
        return f"{self.votes:,} votes instead of {self.instead:,}"


@dataclass(frozen=True)
class Summary:
    """A review at one moment."""

    votes: int
    verdicts: Mapping[str, Verdict]
    answers: Answers
    agreement: Agreement
    people: tuple[Person, ...]
    verification: Verification | None = None  # where flags are verified

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many items were kept, rejected, and are open."""
        found = Counter(verdict.outcome for verdict in self.verdicts.values())
        return {"kept": found["kept"], "rejected": found["rejected"], "open": found["open"]}

    @property
    def disputed(self) -> tuple[str, ...]:
        """Items that everybody has answered and that not all would keep."""
        return tuple(item for item, verdict in self.verdicts.items() if needs_adjudication(verdict))

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "votes": self.votes,
            "outcomes": dict(self.outcomes),
            "agreement": dataclasses.asdict(self.agreement),
            "answers": list(self.answers.names),
            "people": [_person_as_json(person) for person in self.people],
            "verification": None if self.verification is None else dataclasses.asdict(self.verification),
            "verdicts": [{**vars(verdict), "disputed": needs_adjudication(verdict)} for verdict in self.verdicts.values()],
        }


def _person_as_json(person: Person) -> dict[str, Any]:
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
    """What a review has come to: verdicts from the votes that stand, agreement from the first ones."""
    return summary_of(project, database, database.ballots())


def summary_of(project: Project, database: Database, votes: Ballots) -> Summary:
    """The same by votes that were read already, which takes longest where there are many."""
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
    """What verifying flags costs, by the verdicts on all items and the people each was given to."""
    annotators = max(len(set(chain.from_iterable(assigned.values()))), project.reviewers_each)
    read = [verdict for verdict in found.values() if verdict.for_it + verdict.against]
    votes = (one.for_it + one.against if one.closed_by_group else one.assigned for one in read)
    return Verification(annotators, len(read), sum(one.against > 0 for one in read), sum(votes), len(read) * annotators)


def first_answers(project: Project, first: Ballots) -> Answers:
    """The first votes on items that are asked, as ratings."""
    asked = first.on(frozenset(project.asked))
    rating = {code: _rating(project, asked.answers[code] or {}) for code in np.unique(asked.answer).tolist()}
    offered = [] if project.screen.form in ("class", "tags") else [choice.name for choice in project.screen.choices]
    names = tuple(dict.fromkeys([*offered, *sorted(rating.values())]))
    answered = {asked.items[place]: place for place in np.unique(asked.item).tolist()}
    items = tuple(item.id for item in project.items if item.id in answered)
    people = np.unique(asked.person)
    row, number = np.zeros(len(asked.items), int), np.zeros(len(asked.answers), int)
    row[[answered[item] for item in items]] = np.arange(len(items))
    number[list(rating)] = [names.index(name) for name in rating.values()]
    ratings = np.full((len(items), len(people)), -1)
    ratings[row[asked.item], np.searchsorted(people, asked.person)] = number[asked.answer]
    return Answers(items, tuple(people.tolist()), names, ratings)


def agreement_of(answers: Answers, reviewers_each: int) -> Agreement:
    """How far people agree in their first votes."""
    given = (answers.ratings >= 0).sum(axis=1)
    several, complete = answers.ratings[given > 1], answers.ratings[given == max(reviewers_each, 2)]
    return Agreement(
        len(several),
        _known(percent_agreement(several)),
        _known(fleiss_kappa(complete)) if len(complete) else None,
        _known(krippendorff_alpha(several)),
    )


def _people(
    project: Project, database: Database, first: Ballots, answers: Answers, assigned: Mapping[str, Sequence[int]]
) -> Iterable[Person]:
    given = Counter(chain.from_iterable(assigned.values()))
    looked_up = database.lookups()
    known, blind = first.on({item.id for item in project.items if item.role == "gold"}), first.during("first")
    confusion = dict(zip(answers.people, confusions_with_others(answers.ratings, len(answers.names)), strict=True))
    for reviewer in database.reviewers():
        votes, on_known = blind.of(reviewer.id), list(known.of(reviewer.id).votes())
        yield Person(
            reviewer,
            given[reviewer.id],
            len(votes),
            len(on_known),
            sum(is_right(project.by_id[vote.item], vote.answer or {}) for vote in on_known),
            median_seconds(votes),
            _choices(project, votes),
            confusion.get(reviewer.id, np.zeros((len(answers.names),) * 2, int)),
            looked_up.get(reviewer.id, 0),
        )


def median_seconds(votes: Ballots) -> float | None:
    """From seeing an item to answering it."""
    spent = votes.milliseconds[votes.milliseconds != NONE]
    return float(np.median(spent)) / 1000 if len(spent) else None


def _choices(project: Project, votes: Ballots) -> dict[str, int]:
    different = Counter(votes.answer.tolist())
    return added_up((_rating(project, votes.answers[code] or {}), times) for code, times in different.items())


def _rating(project: Project, answer: Mapping[str, Any]) -> str:
    """What is compared between people: the class that was named, the failure modes, the choice."""
    match project.screen.form:
        case "class":
            return str(answer["class"])
        case "tags":
            return ", ".join(sorted(answer["tags"]))
    return str(answer["choice"])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
