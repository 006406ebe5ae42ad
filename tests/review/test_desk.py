"""What people are shown next and what becomes of their answers, alone and together."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.project import Item, Project, ReviewClass, Role
from shiftproof.errors import BadInput
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.desk import Desk
from shiftproof.review.summary import summarize
from shiftproof.review.together import items_together

NUMBERS = itertools.count(1)


def desk_of(database: Database, items: int = 6, **more: Any) -> Desk:
    asked = [Item(f"item {number}", ("1.jpg",)) for number in range(items)]
    gold = Item("known", ("1.jpg",), role="gold", answer={"choice": "keep"})
    settled: dict[str, Any] = {"items": (*asked, gold), "classes": (ReviewClass("bird", "bird"),)}
    return Desk(Project(Path("nowhere"), "test", "clarity", **{**settled, **more}), database)


def invited(desk: Desk, *names: str) -> list[Reviewer]:
    """People who have been given all there is."""
    for name in names:
        desk.database.invite(name)
    people = desk.database.reviewers()
    for person in people:
        desk.queue(person, "first", 20)
    return people


def say(desk: Desk, person: Reviewer, item: str, choice: str | None, **more: Any) -> str:
    """Votes; the id of the vote, or AssertionError with the reason where it is refused."""
    vote = {"id": f"vote {next(NUMBERS):06}", "item": desk.name_of(f"item {item}"), "round": "first", "milliseconds": 2000}
    taken = desk.take(person, [{**vote, "answer": None if choice is None else {"choice": choice}, **more}])
    assert not taken.refused, taken.refused
    (kept,) = taken.accepted
    return kept


def shown(desk: Desk, person: Reviewer, count: int = 20) -> set[str]:
    return {desk.items[one["id"]].id for one in desk.queue(person, "first", count)}


def test_what_was_answered_is_asked_no_more_until_it_is_undone(database: Database) -> None:
    desk = desk_of(database)
    (ada,) = invited(desk, "Ada")
    assert len(shown(desk, ada)) == 7
    first = say(desk, ada, "item 0", "keep")
    again = say(desk, ada, "item 0", "reject", supersedes=first)
    assert "item 0" not in shown(desk, ada)
    assert (desk.progress(ada).done, desk.progress(ada).given) == (1, 7)
    say(desk, ada, "item 0", None, supersedes=again)
    assert "item 0" not in shown(desk, ada), "what the change replaced counts again"
    say(desk, ada, "item 0", None, supersedes=first)
    assert "item 0" in shown(desk, ada)
    assert desk.progress(ada).done == 0
    assert desk.progress(ada).seconds_each == 2


def test_items_the_page_has_are_not_sent_again(database: Database) -> None:
    desk = desk_of(database)
    (ada,) = invited(desk, "Ada")
    some = desk.queue(ada, "first", 3)
    others = desk.queue(ada, "first", 20, besides=[one["id"] for one in some])
    assert len(others) == 4
    assert not {one["id"] for one in some} & {one["id"] for one in others}


def test_what_is_left_is_what_others_have_no_place_for(database: Database) -> None:
    desk = desk_of(database, 120, reviewers_each=1)
    (ada,) = invited(desk, "Ada")
    assert desk.progress(ada).left == 70
    desk.queue(ada, "first", 60)
    assert desk.progress(ada).left == 20
    database.invite("Ben")
    ben = database.reviewers()[1]
    assert Desk(desk.project, database).progress(ben).left == 20
    assert len(desk.queue(ben, "first", 200)) == 21, "and the item of a known answer"
    assert desk.queue(ada, "first", 200, besides=desk.items) == []


def test_nobody_is_asked_who_did_not_agree(database: Database) -> None:
    desk = desk_of(database, consent="We keep your answers.")
    (ada,) = invited(desk, "Ada")
    assert not desk.has_agreed(ada)
    database.mark(ada.id, consented=True)
    assert desk.has_agreed(database.reviewers()[0])


@pytest.fixture
def dispute(database: Database) -> tuple[Desk, Reviewer, Reviewer, dict[str, str]]:
    """Two people who agree on item 0, do not on item 1, and of whom one has not judged item 2."""
    desk = desk_of(database)
    ada, ben = invited(desk, "Ada", "Ben")
    votes = {f"Ada {number}": say(desk, ada, f"item {number}", "keep") for number in range(3)}
    votes |= {"Ben 0": say(desk, ben, "item 0", "keep"), "Ben 1": say(desk, ben, "item 1", "reject", note="blurred")}
    return desk, ada, ben, votes


Dispute = tuple[Desk, Reviewer, Reviewer, dict[str, str]]


def test_people_see_each_others_votes_where_they_differ_and_no_names(dispute: Dispute) -> None:
    desk, ada, ben, votes = dispute
    (seen,) = items_together(desk, ada).items
    assert desk.items[seen["id"]].id == "item 1"
    assert sorted(one["who"] for one in seen["votes"]) == ["A", "B"]
    assert [one["answer"]["choice"] for one in seen["votes"] if one["own"]] == ["keep"]
    assert [one["note"] for one in seen["votes"] if not one["own"]] == ["blurred"]
    assert seen["vote"] == votes["Ada 1"]
    assert (seen["outcome"], seen["settled"]) == ("rejected", False)
    assert "Ada" not in str(seen).replace(votes["Ada 1"], "")
    (of_ben,) = items_together(desk, ben).items
    assert [one["who"] for one in of_ben["votes"]] == [one["who"] for one in seen["votes"]]
    assert [one["own"] for one in of_ben["votes"]] == [not one["own"] for one in seen["votes"]]


def test_a_changed_vote_settles_a_dispute_and_can_be_changed_back(dispute: Dispute) -> None:
    desk, _, ben, votes = dispute
    changed = say(desk, ben, "item 1", "keep", round="open", supersedes=votes["Ben 1"])
    (seen,) = items_together(desk, ben).items
    assert (seen["outcome"], seen["settled"], seen["vote"]) == ("kept", True, changed)
    assert summarize(desk.project, desk.database).agreement.percent == 0.5, "agreement is that of the first votes"
    say(desk, ben, "item 1", None, round="open", supersedes=changed)
    (seen,) = items_together(desk, ben).items
    assert (seen["outcome"], seen["vote"]) == ("rejected", votes["Ben 1"])


def test_open_votes_and_comments_are_for_disputed_items_alone(dispute: Dispute) -> None:
    desk, ada, _, votes = dispute
    for item in ("item 0", "item 2", "item 5", "known"):
        with pytest.raises(AssertionError, match="not looked at together"):
            say(desk, ada, item, "reject", round="open")
        with pytest.raises(BadInput, match="not looked at together"):
            desk.comment(ada, {"id": "comment 1", "item": desk.name_of(f"item {item}"), "text": "why?"})
    with pytest.raises(AssertionError, match="same person"):
        say(desk, ada, "item 1", "reject", round="open", supersedes=votes["Ben 1"])


def test_first_votes_come_too_late_once_people_talk_but_one_sent_again_does_not(dispute: Dispute) -> None:
    desk, ada, ben, votes = dispute
    item = desk.name_of("item item 1")
    for _ in range(2):
        desk.comment(ben, {"id": "comment 1", "item": item, "text": "look at the wing"})
    (seen,) = items_together(desk, ada).items
    assert [(one["text"], one["own"]) for one in seen["comments"]] == [("look at the wing", False)]
    with pytest.raises(AssertionError, match="too late"):
        say(desk, ada, "item 1", "reject", supersedes=votes["Ada 1"])
    assert say(desk, ada, "item 1", "keep", id=votes["Ada 1"]) == votes["Ada 1"]


def test_who_has_seen_what_others_said_changes_no_first_vote_any_more(dispute: Dispute) -> None:
    desk, ada, ben, votes = dispute
    changed = say(desk, ada, "item 1", "unsure", supersedes=votes["Ada 1"])
    items_together(desk, ada)
    for choice in ("reject", None):
        with pytest.raises(AssertionError, match="too late"):
            say(desk, ada, "item 1", choice, supersedes=changed)
    assert [desk.items[one["item"]["id"]].id for one in desk.last_votes(ada)] == ["item 2", "item 0"], "nor is it offered"
    say(desk, ada, "item 0", "unsure", supersedes=votes["Ada 0"])
    say(desk, ben, "item 1", "unsure", supersedes=votes["Ben 1"])
    assert summarize(desk.project, desk.database).verdicts["item 1"].choices == {"unsure": 2}, "Ben has not looked yet"


@pytest.mark.parametrize("text", ["", "x" * 2001, None, 5, ["x"]])
def test_a_comment_is_a_text_that_can_be_read(dispute: Dispute, text: object) -> None:
    desk, ada, _, _ = dispute
    with pytest.raises(BadInput, match="text should be a text of 1 to 2,000 letters"):
        desk.comment(ada, {"id": "comment 1", "item": desk.name_of("item item 1"), "text": text})


def test_strangers_to_an_item_neither_see_nor_comment_it(dispute: Dispute) -> None:
    desk, _, _, _ = dispute
    desk.database.invite("Cem")
    cem = desk.database.reviewers()[2]
    assert items_together(desk, cem).items == []
    with pytest.raises(BadInput, match="not looked at together"):
        desk.comment(cem, {"id": "comment 1", "item": desk.name_of("item item 1"), "text": "me too"})


def test_only_classes_of_the_project_are_looked_up(database: Database) -> None:
    desk = desk_of(database)
    (ada,) = invited(desk, "Ada")
    for _ in range(2):
        desk.look_up(ada, {"id": "lookup 1", "class": "bird"})
    assert database.lookups() == {ada.id: 1}
    for key in ("cat", None, ["bird"]):
        with pytest.raises(BadInput, match="no such class"):
            desk.look_up(ada, {"id": "lookup 2", "class": key})


def test_a_summary_tells_how_each_person_worked(dispute: Dispute) -> None:
    desk, ada, ben, _ = dispute
    say(desk, ada, "known", "keep")
    say(desk, ben, "known", "reject", milliseconds=4000)
    found = summarize(desk.project, desk.database)
    assert [(person.answered, person.gold_accuracy, person.median_seconds) for person in found.people] == [
        (4, 1.0, 2.0),
        (3, 0.0, 2.0),
    ]
    assert found.outcomes == {"kept": 1, "rejected": 1, "open": 4}
    assert found.disputed == ("item 1",)
    keep, reject = found.answers.names.index("keep"), found.answers.names.index("reject")
    assert found.people[0].confusion[keep, [keep, reject]].tolist() == [1, 1], "items of a known answer stay out of it"
    assert (found.people[0].agreement, found.agreement.items) == (0.5, 2)


def test_a_summary_of_nothing_is_empty(database: Database) -> None:
    desk = desk_of(database)
    found = summarize(desk.project, database)
    assert (found.votes, found.people, found.agreement.percent, found.agreement.fleiss) == (0, (), None, None)
    assert found.outcomes == {"kept": 0, "rejected": 0, "open": 6}


def test_people_with_classes_of_their_own_are_asked_about_these_alone(database: Database) -> None:
    """Ada has birds and cats, Ben cats and fish, Cem all; training and known items too."""
    roles: list[Role] = ["asked", "asked", "gold", "training"]
    items = [
        Item(f"{key} {number}", ("1.jpg",), key, role=role, answer=None if role == "asked" else {"choice": "keep"})
        for key in ("bird", "cat", "fish", "cat|dog")
        for number, role in enumerate(roles)
    ]
    own = {"Ada": ["bird", "cat"], "Ben": ["cat", "fish"]}
    desk = Desk(Project(Path("nowhere"), "test", "clarity", tuple(items), reviewers_each=3, reviewer_classes=own), database)
    ada, ben, cem = invited(desk, "Ada", "Ben", "Cem")
    seen = {person.name: {desk.project.by_id[one].label for one in shown(desk, person)} for person in (ada, ben, cem)}
    assert seen == {
        "Ada": {"bird", "cat", "cat|dog"},
        "Ben": {"cat", "fish", "cat|dog"},
        "Cem": {"bird", "cat", "fish", "cat|dog"},
    }
    assert [{item.label for item in desk.training(person)} for person in (ada, ben)] == [
        {"bird", "cat", "cat|dog"},
        {"cat", "fish", "cat|dog"},
    ]
    assert desk.progress(ada).left == 0
    assert desk.round_of(ada) == "training"


def test_a_qualification_is_of_the_own_classes_too(database: Database) -> None:
    gold = [Item(f"{key} known", ("1.jpg",), role="gold", answer={"class": [key]}) for key in ("bird", "cat")]
    asked = [Item(f"{key} asked", ("1.jpg",), answer={"class": [key]}) for key in ("bird", "cat")]
    classes = (ReviewClass("bird", "bird"), ReviewClass("cat", "cat"))
    project = Project(
        Path("nowhere"), "test", "human-test", (*gold, *asked), classes, pass_mark=0.9, reviewer_classes={"Ada": ["cat"]}
    )
    desk = Desk(project, database)
    database.invite("Ada")
    (ada,) = database.reviewers()
    assert [desk.items[one["id"]].id for one in desk.queue(ada, "qualification", 9)] == ["cat known"]
    say(desk, ada, "cat known", None, round="qualification", answer={"choice": "answer", "class": "cat"})
    (ada,) = database.reviewers()
    assert desk.round_of(ada) == "first"
    assert shown(desk, ada) == {"cat asked"}
