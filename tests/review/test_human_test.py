"""What a test of people comes to: rounds on the server, numbers by hand, models beside them, and the report."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.human_test import HumanTest, human_findings, human_test_of
from shiftproof.review.qualification import Attempt, Qualification
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_lookup, accept_votes
from shiftproof.review.summary import summarize
from shiftproof.review.votes import Vote
from shiftproof.types import Gallery, Measurement

CLASSES = (ReviewClass("cat", "cat"), ReviewClass("dog", "dog"))
PEOPLE = [Reviewer(n, name, "reviewer", consented=True, trained=True, qualified=0.9) for n, name in ((1, "Ada"), (2, "Ben"))]


def known(name: str, role: str = "asked", group: str | None = None) -> Item:
    return Item(name, ("1.jpg",), role=role, group=group, answer={"choice": "answer", "class": ["cat"]})  # type: ignore[arg-type]


def project_of(*items: Item, **more: Any) -> Project:
    return Project(Path("nowhere"), "test", "human-test", items, CLASSES, **{"pass_mark": 0.9, **more})


def taken_test(right: np.ndarray[Any, Any]) -> tuple[Project, HumanTest]:
    """A test in which people were right as the rows say, an item each; -1 where somebody gave no answer."""
    project = project_of(*(known(f"item {row}") for row in range(len(right))))
    votes = [
        Vote(f"{row} {person}", row, person + 1, f"item {row}", "first", {"choice": "answer", "class": ["dog", "cat"][good]})
        for row, answers in enumerate(right.tolist())
        for person, good in enumerate(answers)
        if good >= 0
    ]
    return project, human_test_of(project, votes, PEOPLE, {1: 4})


def numbers(found: list[Measurement | Gallery], metric: str) -> dict[str, Measurement]:
    """Measurements by what sets them apart."""
    some = [one for one in found if isinstance(one, Measurement) and one.metric == metric]
    return {" ".join(str(value) for key, value in one.about.items() if key != "dataset"): one for one in some}


def test_the_published_test_gives_its_published_numbers() -> None:
    """384 images right by both, 93 and 76 by one alone, 47 by neither: 79.5 and 76.7 %."""
    right = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [384, 93, 76, 47], axis=0)
    found = human_findings(*taken_test(right), models={})
    accuracy = numbers(found, "human_accuracy")
    assert {who: f"{100 * one.value:.1f}" for who, one in accuracy.items()} == {"Person A": "79.5", "Person B": "76.7"}
    assert accuracy["Person A"].ends == clopper_pearson(477, 600)
    together = numbers(found, "both_correct")
    assert [one.value for one in together.values()] == [384, 93, 76, 47]
    shares = numbers(found, "subset_share")
    assert {subset: round(one.value * one.images) for subset, one in shares.items()} == {
        "easy": 384,
        "middle": 169,
        "hard": 47,
    }
    assert [one.value for one in numbers(found, "human_subset_accuracy").values()] == [93 / 169, 76 / 169]
    assert {who: one.value for who, one in numbers(found, "class_lookups").items()} == {"Person A": 4, "Person B": 0}
    (gallery,) = [one for one in found if isinstance(one, Gallery)]
    assert gallery.items[0].caption == "cat; answered dog"


def test_models_are_told_on_each_subset() -> None:
    right = np.array([[1, 1], [1, 1], [1, 0], [0, 0]])
    found = human_findings(*taken_test(right), models={"net": np.array([1, 0, 1, 0]), "blind": np.array([0, 0, 0, -1])})
    assert {who: one.value for who, one in numbers(found, "human_test_accuracy").items()} == {"net": 0.5, "blind": 0.0}
    by_subset = {who: (one.value, one.images) for who, one in numbers(found, "subset_accuracy").items()}
    assert by_subset == {
        "net easy": (0.5, 2),
        "blind easy": (0.0, 2),
        "net middle": (1.0, 1),
        "blind middle": (0.0, 1),
        "net hard": (0.0, 1),  # the other has no answer to it
    }


def test_images_that_too_few_people_answered_wait() -> None:
    _, test = taken_test(np.array([[1, 1], [1, -1]]))
    assert [item.id for item in test.items] == ["item 0"]


def test_only_tests_of_people_are_taken_for_one() -> None:
    with pytest.raises(BadInput, match="curate human-test makes one"):
        human_test_of(Project(Path("nowhere"), "test", "clarity", (Item("a", ("1.jpg",)),)), [], PEOPLE, {})


def answer(service: ReviewService, person: Reviewer, item: str, key: str, **more: Any) -> str | None:
    """The reason for which an answer is refused; None where it is taken."""
    round_ = more.pop("round", "qualification")
    vote = {"id": uuid.uuid4().hex, "item": service.opaque_name(f"item {item}"), "round": round_, **more}
    refused = accept_votes(service, person, [{"answer": {"choice": "answer", "class": key}, **vote}]).refused
    return next(iter(refused.values()), None)


@pytest.fixture
def service(database: Database) -> ReviewService:
    gold = [known(f"gold {attempt}{n}", "gold", f"try {attempt}") for attempt in (1, 2) for n in range(2)]
    database.invite("Ada")
    return ReviewService(project_of(*gold, known("asked")), database)


def ada(service: ReviewService) -> Reviewer:
    return service.database.reviewers()[0]


def next_items(service: ReviewService) -> set[str]:
    person = ada(service)
    return {service.items[one["id"]].id for one in service.queue(person, service.round_of(person), 9)}


def test_who_qualifies_is_tested_and_the_known_items_are_not_strewn_in(service: ReviewService) -> None:
    assert next_items(service) == {"gold 10", "gold 11"}
    assert answer(service, ada(service), "gold 10", "cat") is None
    assert service.progress(ada(service)).done == 1
    assert answer(service, ada(service), "asked", "cat") == "this item is none of the qualification, or that is over"
    assert "not assigned" in str(answer(service, ada(service), "asked", "cat", round="first"))
    assert answer(service, ada(service), "gold 11", "cat") is None
    assert (ada(service).qualified, service.round_of(ada(service)), next_items(service)) == (1.0, "first", {"asked"})
    assert service.qualification_result(ada(service)) == {"share": 1.0, "pass_mark": 0.9, "passed": True, "tries_left": 0}
    (person,) = summarize(service.project, service.database).people
    assert (person.known, person.right, person.answered) == (2, 2, 0)


@pytest.mark.parametrize(("right", "passed"), [(180, True), (179, False)])
def test_a_share_that_is_just_the_pass_mark_is_enough(right: int, passed: bool) -> None:
    items = tuple(known(f"gold {number}", "gold") for number in range(200))
    attempt = Attempt(items, frozenset(item.id for item in items), right)
    assert Qualification(0.9, (attempt,)).passed == passed


def test_classes_are_looked_up_freely_until_the_answers_count(service: ReviewService) -> None:
    accept_lookup(service, ada(service), {"id": "look up 1", "class": "cat"})
    for item in ("gold 10", "gold 11"):
        assert answer(service, ada(service), item, "cat") is None
    assert service.database.lookups() == {}
    for _ in range(2):
        accept_lookup(service, ada(service), {"id": "look up 2", "class": "cat"})
    assert service.database.lookups() == {ada(service).id: 1}


def test_an_answer_counts_as_it_stood_when_the_last_one_came(service: ReviewService) -> None:
    """A wrong answer that is changed before the end is right; after the end nothing changes."""
    assert answer(service, ada(service), "gold 10", "dog", id="the first vote") is None
    assert answer(service, ada(service), "gold 10", "cat", supersedes="the first vote") is None
    assert answer(service, ada(service), "gold 11", "cat", id="the last vote") is None
    assert "over" in str(answer(service, ada(service), "gold 11", "dog", supersedes="the last vote"))
    assert answer(service, ada(service), "gold 11", "cat", id="the last vote") is None, (
        "one that is sent again is acknowledged"
    )
    assert ada(service).qualified == 1.0


def test_the_second_try_is_the_last_one(service: ReviewService) -> None:
    for item in ("gold 10", "gold 11"):
        assert answer(service, ada(service), item, "dog") is None
    told = service.qualification_result(ada(service))
    assert told is not None
    assert (told["share"], told["passed"], told["tries_left"], next_items(service)) == (
        0.0,
        False,
        1,
        {"gold 20", "gold 21"},
    )
    assert service.last_votes(ada(service)) == [], "answers of a try that is over cannot be taken back"
    assert answer(service, ada(service), "gold 20", "cat") is None
    assert [vote["answer"]["class"] for vote in service.last_votes(ada(service))] == ["cat"]
    assert answer(service, ada(service), "gold 21", "dog") is None
    told = service.qualification_result(ada(service))
    assert told is not None
    assert (told["share"], told["tries_left"], next_items(service)) == (0.5, 0, set())
    assert "not assigned" in str(answer(service, ada(service), "asked", "cat", round="first"))


def test_nothing_that_pages_get_tells_the_class(service: ReviewService) -> None:
    shown = service.queue(ada(service), "qualification", 9)
    assert all(one["label"] is None and not one["shown"] for one in shown)
    assert "cat" not in json.dumps(shown)
