"""Votes in columns come to what the same votes do one by one: to the last digit, and in the same order."""

from __future__ import annotations

import dataclasses
import json
import random
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from review.databases import POSTGRES, empty_database
from review.drawn_votes import drawn_review
from review.vote_by_vote import people_vote_by_vote, rating, stand_of, verdicts_vote_by_vote
from shiftproof.curation.project import Project
from shiftproof.curation.screens import SCREENS
from shiftproof.review.adjudication import disputed_items
from shiftproof.review.assignment import find_closed_groups
from shiftproof.review.dashboard import HOUR, overview, votes_as_json
from shiftproof.review.database import Database
from shiftproof.review.human_test import human_test_of
from shiftproof.review.qualification import qualification_of
from shiftproof.review.service import ReviewService
from shiftproof.review.summary import summarize
from shiftproof.review.verdicts import disputed, needs_adjudication, verdicts
from shiftproof.review.votes import ROUNDS, SubmittedVote, VoteColumns, as_columns

Reviewed = tuple[Project, Database]


SEED = 11
"""With which every screen has items on which people differ, and groups that are closed where it can close them."""


@contextmanager
def reviewed_on(screen: str, url: str) -> Iterator[Reviewed]:
    project, database = drawn_review(url, screen, random.Random(SEED)), Database(url)
    yield project, database
    database.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of database."""
    return str(request.param)


@pytest.fixture(scope="module", params=SCREENS)
def reviewed(request: pytest.FixtureRequest, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reviewed]:
    """A review that is only read."""
    with empty_database(kind, tmp_path_factory.mktemp("reviewed")) as url:
        if url is None:
            pytest.skip(f"{POSTGRES} is not set: no PostgreSQL to test with")
        with reviewed_on(request.param, url) as both:
            yield both


@pytest.fixture(params=SCREENS)
def own_review(request: pytest.FixtureRequest, database_url: str) -> Iterator[Reviewed]:
    with reviewed_on(request.param, database_url) as both:
        yield both


def test_every_vote_is_read(reviewed: Reviewed) -> None:
    _, database = reviewed
    votes, columns = database.votes(), database.vote_columns()
    bare = [dataclasses.replace(vote, id="", supersedes=None, received=0.0) for vote in reversed(votes)]
    assert list(columns.votes()) == bare
    number = {vote.id: vote.number for vote in votes}
    assert columns.supersedes.tolist() == [number.get(str(vote.supersedes), -1) for vote in reversed(votes)]
    some = [votes[0].item, votes[-1].item]
    assert list(database.vote_columns(some).votes()) == [vote for vote in bare if vote.item in some]


def test_the_same_votes_stand(reviewed: Reviewed) -> None:
    _, database = reviewed
    votes = database.votes()
    assert any(vote.answer is None for vote in votes)
    for rounds in (ROUNDS, ("first",), ("qualification", "first"), ("open",)):
        expected = [vote.number for vote in stand_of(votes, *rounds).values()]
        for columns in (database.vote_columns(), as_columns(votes)):
            assert columns.during(*rounds).standing().number.tolist() == expected


def test_no_other_place_decides_which_votes_stand(own_review: Reviewed, monkeypatch: pytest.MonkeyPatch) -> None:
    project, database = own_review
    votes, service = database.votes(), ReviewService(project, database)
    replaced = next(vote for vote in votes if vote.round == "first" and vote.answer is not None)
    database.mark(replaced.reviewer, trained=True)
    ada = next(person for person in database.reviewers() if person.id == replaced.reviewer)
    assert service.last_votes(ada)
    monkeypatch.setattr(VoteColumns, "standing_rows", lambda _: np.zeros(0, np.intp))
    summary = summarize(project, database)
    assert not any(verdict.for_it + verdict.against for verdict in summary.verdicts.values())
    assert not any(person.answered or person.known for person in summary.people)
    assert not summary.answers.items
    assert overview(project, database).pace.answers == 0
    assert not any(row["counts"] for row in json.loads(votes_as_json(database)))
    assert service.last_votes(ada) == []
    assert disputed_items(service, ada).all == 0
    assert not find_closed_groups(project, database)
    tested = qualification_of(dataclasses.replace(project, pass_mark=0.5), votes)
    assert tested is not None
    assert not any(attempt.answered for attempt in tested.attempts)
    if project.screen.form == "class":
        assert human_test_of(project, votes, [ada], {}).items == ()
    again = SubmittedVote("once more", replaced.item, "first", replaced.answer, supersedes=replaced.id)
    assert database.submit(ada.id, [again]) == [True]
    assert replaced.item in database.next_items(ada.id, 100), "answered is what stands, and not that a vote is there"


def test_verdicts_are_the_same(reviewed: Reviewed) -> None:
    project, database = reviewed
    votes, assigned = database.votes(), database.assigned()
    expected = verdicts_vote_by_vote(project, votes, assigned)
    assert json.dumps(summarize(project, database).as_json()["verdicts"]) == json.dumps(expected)
    assert any(one["closed_by_group"] for one in expected) == bool(project.screen.closing), "or little is tested"
    assert verdicts(project, votes, assigned) == verdicts(project, database.vote_columns(), assigned)
    blind = verdicts_vote_by_vote(project, [vote for vote in votes if vote.round == "first"], assigned)
    together = [one["item"] for one in blind if one["disputed"]] if project.screen.adjudicated else []
    assert disputed(project, database.vote_columns(), assigned) == together


def test_answers_and_people_are_the_same(reviewed: Reviewed) -> None:
    project, database = reviewed
    votes, assigned = database.votes(), database.assigned()
    found = summarize(project, database)
    answers, told = found.answers, found.as_json()
    first = {at: vote for at, vote in stand_of(votes, "qualification", "first").items() if at[1] in project.asked}
    assert set(answers.items) == {item for _, item in first}
    for row, item in enumerate(answers.items):
        for column, person in enumerate(answers.people):
            vote, place = first.get((person, item)), answers.ratings[row, column]
            assert place == (-1 if vote is None else answers.names.index(rating(project, vote)))
    expected = people_vote_by_vote(project, votes, assigned, answers.names)
    people = [{name: value for name, value in one.items() if name not in ("name", "role")} for one in told["people"]]
    assert json.dumps(people) == json.dumps(expected)
    assert found.votes == len(votes)


def test_what_the_owner_sees_is_the_same(reviewed: Reviewed) -> None:
    project, database = reviewed
    votes, now = database.votes(), database.votes()[-1].received + HOUR / 2
    seen = overview(project, database, now=now)
    asked = [vote for vote in stand_of(votes, "first").values() if vote.item in project.asked]
    spent = [vote.milliseconds for vote in asked if vote.milliseconds is not None]
    assert seen.pace.seconds_each == statistics.median(spent) / 1000
    assert seen.pace.last_hour == sum(now - vote.received <= HOUR for vote in asked)
    last = {vote.reviewer: now - vote.received for vote in votes}
    assert [row.last_seen for row in seen.people] == [last[row.person.reviewer.id] for row in seen.people]
    tallies = [database.tally(row.person.reviewer.id) for row in seen.people]
    assert [row.unanswered for row in seen.people] == [tally.assigned - tally.answered for tally in tallies]
    torn = [one for one in seen.summary.verdicts.values() if needs_adjudication(one)]
    assert {dispute.item.id for dispute in seen.disputes} <= {one.item for one in torn}


def test_nothing_said_is_no_columns(database: Database) -> None:
    columns: Any = database.vote_columns()
    assert (len(columns), len(columns.standing()), list(columns.votes())) == (0, 0, [])
    assert len(as_columns([]).during("first").standing()) == 0
