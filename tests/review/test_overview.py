"""What the owner sees, and every vote as a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from review.judged import judge
from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.review.database import Database
from shiftproof.review.overview import HOUR, class_progress, overview
from shiftproof.review.raw_votes import votes_as_csv, votes_as_json
from shiftproof.review.summary import summarize
from shiftproof.review.votes import Sent


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
    database.add(1, [Sent("undone by this", "bird 0", "first", None, note="=1+1", supersedes=kept.id)])
    database.add(1, [Sent("the last vote", "bird 0", "first", {"choice": "reject", "reasons": ["unclear"]})])
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
