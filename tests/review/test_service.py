"""What people are shown next and what becomes of their answers, alone and together."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.project import Item, Project, ReviewClass, Role
from shiftproof.errors import BadInput
from shiftproof.review.adjudication import accept_comment, disputed_items
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.service import ReviewService, TTLCache
from shiftproof.review.submission import accept_lookup, accept_votes
from shiftproof.review.summary import summarize

NUMBERS = itertools.count(1)


def service_of(database: Database, items: int = 6, **more: Any) -> ReviewService:
    asked = [Item(f"item {number}", ("1.jpg",)) for number in range(items)]
    gold = Item("known", ("1.jpg",), role="gold", answer={"choice": "keep"})
    settled: dict[str, Any] = {"items": (*asked, gold), "classes": (ReviewClass("bird", "bird"),)}
    return ReviewService(Project(Path("nowhere"), "test", "clarity", **{**settled, **more}), database)


def invited(service: ReviewService, *names: str) -> list[Reviewer]:
    """People who have been given all there is."""
    for name in names:
        service.database.invite(name)
    people = service.database.reviewers()
    for person in people:
        service.queue(person, "first", 20)
    return people


def say(service: ReviewService, person: Reviewer, item: str, choice: str | None, **more: Any) -> str:
    """Votes; the id of the vote, or AssertionError with the reason where it is refused."""
    vote = {
        "id": f"vote {next(NUMBERS):06}",
        "item": service.opaque_name(f"item {item}"),
        "round": "first",
        "milliseconds": 2000,
    }
    taken = accept_votes(service, person, [{**vote, "answer": None if choice is None else {"choice": choice}, **more}])
    assert not taken.refused, taken.refused
    (kept,) = taken.accepted
    return kept


def shown(service: ReviewService, person: Reviewer, count: int = 20) -> set[str]:
    return {service.items[one["id"]].id for one in service.queue(person, "first", count)}


def test_what_was_answered_is_asked_no_more_until_it_is_undone(database: Database) -> None:
    service = service_of(database)
    (ada,) = invited(service, "Ada")
    assert len(shown(service, ada)) == 7
    first = say(service, ada, "item 0", "keep")
    again = say(service, ada, "item 0", "reject", supersedes=first)
    assert "item 0" not in shown(service, ada)
    assert (service.progress(ada).done, service.progress(ada).given) == (1, 7)
    say(service, ada, "item 0", None, supersedes=again)
    assert "item 0" not in shown(service, ada), "what the change replaced counts again"
    say(service, ada, "item 0", None, supersedes=first)
    assert "item 0" in shown(service, ada)
    assert service.progress(ada).done == 0
    assert service.progress(ada).seconds_each == 2


def test_items_the_page_has_are_not_sent_again(database: Database) -> None:
    service = service_of(database)
    (ada,) = invited(service, "Ada")
    some = service.queue(ada, "first", 3)
    others = service.queue(ada, "first", 20, exclude=[one["id"] for one in some])
    assert len(others) == 4
    assert not {one["id"] for one in some} & {one["id"] for one in others}


def test_what_is_left_is_what_others_have_no_place_for(database: Database) -> None:
    service = service_of(database, 120, reviewers_each=1)
    (ada,) = invited(service, "Ada")
    assert service.progress(ada).left == 70
    service.queue(ada, "first", 60)
    assert service.progress(ada).left == 20
    database.invite("Ben")
    ben = database.reviewers()[1]
    assert ReviewService(service.project, database).progress(ben).left == 20
    assert len(service.queue(ben, "first", 200)) == 21, "and the item of a known answer"
    assert service.queue(ada, "first", 200, exclude=service.items) == []


def test_nobody_is_asked_who_did_not_agree(database: Database) -> None:
    service = service_of(database, consent="We keep your answers.")
    (ada,) = invited(service, "Ada")
    assert not service.has_consented(ada)
    database.mark(ada.id, consented=True)
    assert service.has_consented(database.reviewers()[0])


@pytest.fixture
def dispute(database: Database) -> tuple[ReviewService, Reviewer, Reviewer, dict[str, str]]:
    """Two people who agree on item 0, do not on item 1, and of whom one has not judged item 2."""
    service = service_of(database)
    ada, ben = invited(service, "Ada", "Ben")
    votes = {f"Ada {number}": say(service, ada, f"item {number}", "keep") for number in range(3)}
    votes |= {"Ben 0": say(service, ben, "item 0", "keep"), "Ben 1": say(service, ben, "item 1", "reject", note="blurred")}
    return service, ada, ben, votes


Dispute = tuple[ReviewService, Reviewer, Reviewer, dict[str, str]]


def test_people_see_each_others_votes_where_they_differ_and_no_names(dispute: Dispute) -> None:
    service, ada, ben, votes = dispute
    (seen,) = disputed_items(service, ada).items
    assert service.items[seen["id"]].id == "item 1"
    assert sorted(one["who"] for one in seen["votes"]) == ["A", "B"]
    assert [one["answer"]["choice"] for one in seen["votes"] if one["own"]] == ["keep"]
    assert [one["note"] for one in seen["votes"] if not one["own"]] == ["blurred"]
    assert seen["vote"] == votes["Ada 1"]
    assert (seen["outcome"], seen["settled"]) == ("rejected", False)
    assert "Ada" not in str(seen).replace(votes["Ada 1"], "")
    (of_ben,) = disputed_items(service, ben).items
    assert [one["who"] for one in of_ben["votes"]] == [one["who"] for one in seen["votes"]]
    assert [one["own"] for one in of_ben["votes"]] == [not one["own"] for one in seen["votes"]]


def test_a_changed_vote_settles_a_dispute_and_can_be_changed_back(dispute: Dispute) -> None:
    service, _, ben, votes = dispute
    changed = say(service, ben, "item 1", "keep", round="open", supersedes=votes["Ben 1"])
    (seen,) = disputed_items(service, ben).items
    assert (seen["outcome"], seen["settled"], seen["vote"]) == ("kept", True, changed)
    assert summarize(service.project, service.database).agreement.percent == 0.5, "agreement is that of the first votes"
    say(service, ben, "item 1", None, round="open", supersedes=changed)
    (seen,) = disputed_items(service, ben).items
    assert (seen["outcome"], seen["vote"]) == ("rejected", votes["Ben 1"])


def test_open_votes_and_comments_are_for_disputed_items_alone(dispute: Dispute) -> None:
    service, ada, _, votes = dispute
    for item in ("item 0", "item 2", "item 5", "known"):
        with pytest.raises(AssertionError, match="not in adjudication"):
            say(service, ada, item, "reject", round="open")
        with pytest.raises(BadInput, match="not in adjudication"):
            accept_comment(service, ada, {"id": "comment 1", "item": service.opaque_name(f"item {item}"), "text": "why?"})
    with pytest.raises(AssertionError, match="same person"):
        say(service, ada, "item 1", "reject", round="open", supersedes=votes["Ben 1"])


def test_first_votes_come_too_late_once_people_talk_but_one_sent_again_does_not(dispute: Dispute) -> None:
    service, ada, ben, votes = dispute
    item = service.opaque_name("item item 1")
    for _ in range(2):
        accept_comment(service, ben, {"id": "comment 1", "item": item, "text": "look at the wing"})
    (seen,) = disputed_items(service, ada).items
    assert [(one["text"], one["own"]) for one in seen["comments"]] == [("look at the wing", False)]
    with pytest.raises(AssertionError, match="too late"):
        say(service, ada, "item 1", "reject", supersedes=votes["Ada 1"])
    assert say(service, ada, "item 1", "keep", id=votes["Ada 1"]) == votes["Ada 1"]


def test_who_has_seen_what_others_said_changes_no_first_vote_any_more(dispute: Dispute) -> None:
    service, ada, ben, votes = dispute
    changed = say(service, ada, "item 1", "unsure", supersedes=votes["Ada 1"])
    disputed_items(service, ada)
    for choice in ("reject", None):
        with pytest.raises(AssertionError, match="too late"):
            say(service, ada, "item 1", choice, supersedes=changed)
    assert [service.items[one["item"]["id"]].id for one in service.last_votes(ada)] == ["item 2", "item 0"], (
        "nor is it offered"
    )
    say(service, ada, "item 0", "unsure", supersedes=votes["Ada 0"])
    say(service, ben, "item 1", "unsure", supersedes=votes["Ben 1"])
    assert summarize(service.project, service.database).verdicts["item 1"].choices == {"unsure": 2}, "Ben has not looked yet"


@pytest.mark.parametrize("text", ["", "x" * 2001, None, 5, ["x"]])
def test_a_comment_is_a_text_that_can_be_read(dispute: Dispute, text: object) -> None:
    service, ada, _, _ = dispute
    with pytest.raises(BadInput, match="text should be a text of 1 to 2,000 characters"):
        accept_comment(service, ada, {"id": "comment 1", "item": service.opaque_name("item item 1"), "text": text})


def test_strangers_to_an_item_neither_see_nor_comment_it(dispute: Dispute) -> None:
    service, _, _, _ = dispute
    service.database.invite("Cem")
    cem = service.database.reviewers()[2]
    assert disputed_items(service, cem).items == []
    with pytest.raises(BadInput, match="not in adjudication"):
        accept_comment(service, cem, {"id": "comment 1", "item": service.opaque_name("item item 1"), "text": "me too"})


def test_only_classes_of_the_project_are_looked_up(database: Database) -> None:
    service = service_of(database)
    (ada,) = invited(service, "Ada")
    for _ in range(2):
        accept_lookup(service, ada, {"id": "lookup 1", "class": "bird"})
    assert database.lookups() == {ada.id: 1}
    for key in ("cat", None, ["bird"]):
        with pytest.raises(BadInput, match="no such class"):
            accept_lookup(service, ada, {"id": "lookup 2", "class": key})


def test_a_summary_tells_how_each_person_worked(dispute: Dispute) -> None:
    service, ada, ben, _ = dispute
    say(service, ada, "known", "keep")
    say(service, ben, "known", "reject", milliseconds=4000)
    found = summarize(service.project, service.database)
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
    service = service_of(database)
    found = summarize(service.project, database)
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
    service = ReviewService(
        Project(Path("nowhere"), "test", "clarity", tuple(items), reviewers_each=3, reviewer_classes=own), database
    )
    ada, ben, cem = invited(service, "Ada", "Ben", "Cem")
    seen = {person.name: {service.project.by_id[one].label for one in shown(service, person)} for person in (ada, ben, cem)}
    assert seen == {
        "Ada": {"bird", "cat", "cat|dog"},
        "Ben": {"cat", "fish", "cat|dog"},
        "Cem": {"bird", "cat", "fish", "cat|dog"},
    }
    assert [{item.label for item in service.training(person)} for person in (ada, ben)] == [
        {"bird", "cat", "cat|dog"},
        {"cat", "fish", "cat|dog"},
    ]
    assert service.progress(ada).left == 0
    assert service.round_of(ada) == "training"


def test_a_qualification_is_of_the_own_classes_too(database: Database) -> None:
    gold = [Item(f"{key} known", ("1.jpg",), role="gold", answer={"class": [key]}) for key in ("bird", "cat")]
    asked = [Item(f"{key} asked", ("1.jpg",), answer={"class": [key]}) for key in ("bird", "cat")]
    classes = (ReviewClass("bird", "bird"), ReviewClass("cat", "cat"))
    project = Project(
        Path("nowhere"), "test", "human-test", (*gold, *asked), classes, pass_mark=0.9, reviewer_classes={"Ada": ["cat"]}
    )
    service = ReviewService(project, database)
    database.invite("Ada")
    (ada,) = database.reviewers()
    assert [service.items[one["id"]].id for one in service.queue(ada, "qualification", 9)] == ["cat known"]
    say(service, ada, "cat known", None, round="qualification", answer={"choice": "answer", "class": "cat"})
    (ada,) = database.reviewers()
    assert service.round_of(ada) == "first"
    assert shown(service, ada) == {"cat asked"}


def test_a_value_is_found_anew_once_it_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now, found = [0.0], []
    monkeypatch.setattr("shiftproof.review.service.time.monotonic", lambda: now[0])

    def find(key: str) -> int:
        found.append(key)
        return len(found)

    counts = TTLCache(find, 30.0)
    assert [counts.get("a"), counts.get("a"), counts.get("b")] == [1, 1, 2]
    now[0] = 29.0
    assert counts.get("a") == 1
    counts.put("b", 70)
    now[0] = 31.0
    assert [counts.get("a"), counts.get("b")] == [3, 70]
    assert found == ["a", "b", "a"]
