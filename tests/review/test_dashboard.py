"""What the owner sees: progress, disputes, warnings about careless reviewers, and every vote as a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from review.reviewed_projects import judge
from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.review.dashboard import HOUR, class_progress, overview, votes_as_csv, votes_as_json, warnings_about
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.summary import ReviewerSummary, summarize
from shiftproof.review.votes import SubmittedVote


@pytest.fixture
def project() -> Project:
    asked = [Item(f"{label} {number}", ("1.jpg",), label=label) for label in ("bird", "fish") for number in range(3)]
    gold = Item("known", ("1.jpg",), label="bird", role="gold", answer={"choice": "keep"})
    classes = (ReviewClass("bird", "a bird"), ReviewClass("fish", "a fish"))
    return Project(Path("nowhere"), "test", "clarity", (*asked, gold), classes, target=2)


def test_progress_pace_and_disputes_are_counted(project: Project, database: Database) -> None:
    judge(database, {"bird 0": ["keep", "keep"], "bird 1": ["keep", "reject"], "fish 0": ["keep"], "known": ["reject"]})
    seen = overview(project, database)
    assert (seen.pace.answers, seen.pace.wanted, seen.pace.left) == (5, 12, 7)
    assert (seen.pace.last_hour, seen.pace.seconds_each) == (5, 3.0)  # 1, 2, 3 s of the first person, 5 and 6 of the second
    assert (seen.pace.work_left, seen.pace.time_left) == (21.0, 7 / 5 * HOUR)
    assert [(dispute.item.id, dispute.label) for dispute in seen.disputes] == [("bird 1", "a bird")]
    assert [(row.person.answered, row.person.gold_accuracy, row.unanswered) for row in seen.people] == [
        (4, 0.0, 0),
        (2, None, 0),
    ]
    later = overview(project, database, now=1e12)
    assert (later.pace.last_hour, later.pace.time_left) == (0, None)


def test_items_on_which_people_differ_come_before_those_that_all_are_against(project: Project, database: Database) -> None:
    judge(database, {"bird 0": ["reject", "reject"], "bird 1": ["keep", "reject"], "bird 2": ["keep", "keep"]})
    assert [dispute.item.id for dispute in overview(project, database).disputes] == ["bird 1", "bird 0"]


def test_classes_farthest_from_their_target_come_first(project: Project, database: Database) -> None:
    keep, reject = ["keep", "keep"], ["reject", "reject"]
    judge(database, {"bird 0": keep, "bird 1": keep, "bird 2": reject, "fish 0": reject, "fish 1": reject})
    fish, bird = class_progress(project, summarize(project, database).verdicts)
    assert (fish.name, fish.kept, fish.open, fish.is_out_of_reach, fish.is_reached) == ("a fish", 0, 1, True, False)
    assert (bird.name, bird.kept, bird.open, bird.is_out_of_reach, bird.is_reached) == ("a bird", 2, 0, False, True)


def test_every_vote_is_in_the_files_and_those_that_count_are_marked(project: Project, database: Database) -> None:
    judge(database, {"bird 0": ["keep"]})
    (kept,) = database.votes()
    database.add(1, [SubmittedVote("undone by this", "bird 0", "first", None, note="=1+1", supersedes=kept.id)])
    database.add(1, [SubmittedVote("the last vote", "bird 0", "first", {"choice": "reject", "reasons": ["unclear"]})])
    rows = json.loads(votes_as_json(database))
    assert [(row["reviewer"], row["choice"], row["counts"]) for row in rows] == [
        ("Ada", "keep", False),
        ("Ada", None, False),
        ("Ada", "reject", True),
    ]
    table = list(csv.DictReader(io.StringIO(votes_as_csv(database).decode())))
    assert [row["id"] for row in table] == [row["id"] for row in rows]
    assert table[1]["note"] == "'=1+1", "a spreadsheet would compute it"
    assert json.loads(table[2]["answer"]) == {"choice": "reject", "reasons": ["unclear"]}


def person(number: int, *, seconds: float = 3.0, right: int = 10, known: int = 10, answered: int = 100) -> ReviewerSummary:
    who = Reviewer(number, f"person {number}", "reviewer", consented=False, trained=False, qualified=None)
    return ReviewerSummary(who, answered, answered, known, right, seconds, {}, np.zeros((2, 2), int), 0)


def choices(letters: str) -> list[str]:
    return [{"k": "keep", "r": "reject"}[letter] for letter in letters]


def test_careful_people_have_no_signs() -> None:
    people = [person(1), person(2, seconds=4.0, right=9)]
    assert warnings_about(people, {1: choices("kkrkr" * 10), 2: choices("krkkr" * 10)}) == {}


@pytest.mark.parametrize(("seconds", "sign"), [(1.0, "fast"), (9.0, "slow"), (1.1, None), (8.9, None)])
def test_three_times_the_pace_of_the_others_is_a_sign(seconds: float, sign: str | None) -> None:
    found = warnings_about([person(1, seconds=seconds), person(2), person(3)], {})
    expected = {1: [f"{sign}: {seconds:.1f} s per item, others 3.0 s"]} if sign else {}
    assert found == expected


def test_nothing_is_said_of_the_pace_of_who_has_hardly_begun() -> None:
    assert warnings_about([person(1, seconds=0.2, answered=19), person(2), person(3)], {}) == {}


@pytest.mark.parametrize(("right", "known", "is_sign"), [(3, 10, True), (5, 10, False), (0, 2, False), (0, 5, True)])
def test_known_answers_are_a_sign_where_chance_does_not_explain_them(right: int, known: int, is_sign: bool) -> None:
    """Of 10 known answers up to 4 may be right by chance with 80 % care: the upper end of the exact interval decides."""
    found = warnings_about([person(1, right=right, known=known)], {})
    assert found == ({1: [f"{right} of {known} gold items are correct"]} if is_sign else {})


def test_a_run_is_a_sign_where_everybodys_answers_do_not_explain_it() -> None:
    """Half of all answers keep: 20 in a row come by chance in 1 of 10^5 such reviews; 5 in a row always."""
    mixed = "krrkkrkrrrkkkrkrrkkr" * 2
    found = warnings_about([person(1), person(2)], {1: choices("k" * 20), 2: choices(mixed + "r" * 20)})
    assert found[1] == ["20 times “keep” in a row"]
    assert warnings_about([person(1), person(2)], {1: choices(mixed), 2: choices(mixed)}) == {}
    nine = "k" * 9 + "rkrr" * 7 + "krr"  # so long a run comes to about 1 of 25 careful people
    assert warnings_about([person(1), person(2)], {1: choices(nine), 2: choices(mixed)}) == {}
