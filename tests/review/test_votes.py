"""Votes, verdicts and who judges what: computed from rows that are only ever added."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.errors import BadInput, UnknownName
from shiftproof.review.validation import check_answer
from shiftproof.review.verdicts import Verdict, needs_adjudication, verdicts
from shiftproof.review.votes import Vote, standing


def project_of(screen: str, items: Sequence[Item], **more: Any) -> Project:
    return Project(Path("nowhere"), "test", screen, tuple(items), **more)


def votes_of(said: Mapping[str, Sequence[str | dict[str, Any]]]) -> list[Vote]:
    """First votes of reviewers 1, 2, 3 ... on each item, by the name of the choice or whole; "skipped" is none."""
    numbers = itertools.count(1)
    return [
        Vote(f"{item}-{person}", next(numbers), person, item, "first", {"choice": one} if isinstance(one, str) else one)
        for item, choices in said.items()
        for person, one in enumerate(choices, 1)
        if one != "skipped"
    ]


def judged(
    screen: str, said: Mapping[str, Sequence[str | dict[str, Any]]], assigned: int, **groups: str
) -> dict[str, Verdict]:
    images = ("1.jpg", "2.jpg")
    project = project_of(screen, [Item(item, images, group=groups.get(item)) for item in said], reviewers_each=assigned)
    return verdicts(project, votes_of(said), {item: range(1, assigned + 1) for item in said})


@pytest.mark.parametrize(
    ("choices", "assigned", "outcome"),
    [
        (["keep", "keep", "reject"], 3, "kept"),
        (["keep", "reject"], 2, "rejected"),  # a tie
        (["keep"], 2, "open"),
        (["reject"], 2, "rejected"),  # one more could only tie
        (["keep", "keep"], 3, "kept"),  # the third cannot change it
        (["keep", "unsure", "reject"], 3, "rejected"),
        ([], 2, "open"),
        (["keep"], 1, "kept"),
    ],
)
def test_more_than_half_of_those_asked_keep_an_item(choices: list[str], assigned: int, outcome: str) -> None:
    assert judged("clarity", {"a": choices}, assigned)["a"].outcome == outcome


def test_nothing_is_decided_before_enough_people_were_asked() -> None:
    items = [Item(name, ("1.jpg", "2.jpg"), group="g") for name in ("alone", "unseen", "closing")]
    project = project_of("pair", items, reviewers_each=3)
    said = votes_of({"alone": ["similar"], "closing": ["bad anchor"]})
    found = verdicts(project, said, {"alone": [1], "closing": [1]})
    assert {verdict.outcome for verdict in found.values()} == {"open"}


def test_a_vote_taken_back_does_not_count_and_what_it_replaced_counts_again() -> None:
    keep, reject = {"choice": "keep"}, {"choice": "reject"}
    first = Vote("1", 1, 7, "x", "first", keep)
    changed = Vote("2", 2, 7, "x", "open", reject, supersedes="1")
    undone = Vote("3", 3, 7, "x", "open", None, supersedes="2")
    assert standing([first, changed])[7, "x"] == changed
    assert standing([undone, changed, first])[7, "x"] == first
    assert standing([first, Vote("4", 4, 7, "x", "first", None, supersedes="1")]) == {}


def test_a_bad_anchor_closes_all_its_pairs_until_the_vote_is_taken_back() -> None:
    said = {"a1": ["bad anchor", "bad anchor"], "a2": ["similar", "similar"], "b1": ["similar", "similar"]}
    found = judged("pair", said, 2, a1="a", a2="a", b1="b")
    assert [(found[item].outcome, found[item].closed_by_group) for item in said] == [
        ("rejected", True),
        ("rejected", True),
        ("kept", False),
    ]
    alone = judged("pair", {**said, "a1": ["bad anchor", "similar"]}, 2, a1="a", a2="a", b1="b")
    assert (alone["a1"].outcome, alone["a2"].outcome) == ("rejected", "kept")


def test_who_closes_a_group_is_not_missed_at_its_other_items() -> None:
    said = {"a1": ["bad anchor", "similar"], "a2": ["skipped", "similar"], "b1": ["skipped", "similar"]}
    found = judged("pair", said, 2, a1="a", a2="a", b1="b")
    assert found["a2"].choices == {"bad anchor": 1, "similar": 1}
    assert (found["a2"].outcome, found["a2"].closed_by_group) == ("rejected", False)
    assert needs_adjudication(found["a2"])
    assert found["b1"].outcome == "open"


def test_two_people_who_call_an_anchor_bad_at_different_pairs_close_it() -> None:
    said = {"a1": ["bad anchor", "similar"], "a2": ["similar", "bad anchor"], "a3": ["similar", "similar"]}
    found = judged("pair", said, 2, a1="a", a2="a", a3="a")
    assert all(verdict.closed_by_group for verdict in found.values())


@pytest.mark.parametrize("choice", ["visually ambiguous", "semantically ambiguous"])
def test_one_ambiguous_verdict_ends_a_class_that_is_held_against_several(choice: str) -> None:
    said = {"owl-hen": [choice, choice], "owl-jay": ["clear", "clear"], "oak-hen": ["clear", "clear"]}
    groups = {"owl-hen": "owl", "owl-jay": "owl", "oak-hen": "oak"}
    found = judged("class-pair", said, 2, **groups)
    assert [found[item].outcome for item in said] == ["rejected", "rejected", "kept"]
    outvoted = judged("class-pair", {**said, "owl-hen": [choice, "clear", "clear"]}, 3, **groups)
    assert [outvoted[item].closed_by_group for item in said] == [False, False, False]


def test_a_group_has_no_say_through_items_of_a_known_answer() -> None:
    known = Item("g", ("1.jpg", "2.jpg"), group="a", role="gold", answer={"choice": "bad anchor"})
    project = project_of("pair", [known, Item("a1", ("1.jpg", "2.jpg"), group="a")], reviewers_each=1)
    said = votes_of({"g": ["bad anchor"], "a1": ["similar"]})
    assert verdicts(project, said, {"g": [1], "a1": [1]})["a1"].outcome == "kept"


def test_people_look_together_at_what_everybody_judged_and_somebody_rejected() -> None:
    said = {"a": ["similar", "similar"], "b": ["similar", "blur"], "c": ["blur", "motion"], "d": ["blur"]}
    found = judged("pair", said, 2)
    assert [item for item in said if needs_adjudication(found[item])] == ["b", "c"]
    assert found["c"].choices == {"blur": 1, "motion": 1}
    assert found["a"].agreed
    assert not found["c"].agreed


def test_training_votes_and_items_of_a_known_answer_have_no_verdict() -> None:
    project = project_of("clarity", [Item("a", ("1.jpg",)), Item("g", ("1.jpg",), role="gold", answer={"choice": "keep"})])
    training = Vote("1", 1, 1, "a", "training", {"choice": "keep"})
    assert verdicts(project, [training], {"a": [1], "g": [1]}) == {
        "a": Verdict("a", "open", 0, 0, 2, {}, {}),
    }


def test_classes_that_most_people_saw_and_the_median_of_their_boxes() -> None:
    labels = judged(
        "anchor-labels",
        {"a": [{"choice": "good", "labels": some} for some in (["dog", "car"], ["dog"], ["dog", "cat"])]},
        3,
    )
    assert labels["a"].labels == ("dog",)
    corners = [[[0.1, 0.2], [0.5, 0.1], [0.9, 0.5], [0.5, 0.8]], [[0.2, 0.2], [0.5, 0.1], [0.7, 0.5], [0.5, 0.9]]]
    boxes = judged("extreme-points", {"a": [{"choice": "box", "points": some} for some in corners]}, 2)
    assert boxes["a"].box == pytest.approx((0.15, 0.1, 0.8, 0.85))
    corners.append([[0.0, 0.3], [0.6, 0.3], [0.7, 0.3], [0.5, 1.0]])
    three = judged("extreme-points", {"a": [{"choice": "box", "points": some} for some in corners]}, 3)
    assert three["a"].box == pytest.approx((0.1, 0.1, 0.7, 0.9)), "one that is far off moves nothing"


def test_people_look_together_at_boxes_that_share_less_than_half_of_their_area() -> None:
    def box(left: float, right: float) -> dict[str, Any]:
        return {"choice": "box", "points": [[left, 0.5], [right, 0.5], [left, 0.2], [left, 0.8]]}

    said = {
        "near": [box(0.1, 0.5), box(0.2, 0.5), box(0.1, 0.45)],  # 5 of 8 parts at least
        "far": [box(0.1, 0.5), box(0.1, 0.5), box(0.3, 0.6)],  # 2 of 5
        "alone": [box(0.1, 0.5)],
    }
    found = judged("extreme-points", said, 3)
    assert found["near"].overlap == pytest.approx(5 / 8)
    assert found["far"].overlap == pytest.approx(0.4)
    assert found["alone"].overlap is None
    assert [item for item in said if needs_adjudication(found[item])] == ["far"]
    assert found["far"].outcome == "kept"


@pytest.mark.parametrize(
    ("screen", "answer"),
    [
        ("clarity", {"choice": "keep"}),
        ("clarity", {"choice": "reject", "reasons": ["unclear", "drawing"]}),
        ("anchor-labels", {"choice": "good", "labels": ["dog"]}),
        ("failure-modes", {"choice": "background", "tags": ["background", "size"]}),
        ("extreme-points", {"choice": "box", "points": [[0, 0.5], [1, 0.5], [0.5, 0], [0.5, 1]]}),
        ("extreme-points", {"choice": "delete", "reasons": ["label wrong"]}),
        ("human-test", {"choice": "answer", "class": "dog"}),
    ],
)
def test_answers_that_a_screen_offers_are_taken(screen: str, answer: dict[str, Any]) -> None:
    project = project_of(screen, [], classes=(ReviewClass("dog", "dog"),))
    check_answer(project.screen, answer, project.class_of)


@pytest.mark.parametrize(
    ("screen", "answer"),
    [
        ("clarity", {}),
        ("clarity", {"choice": "similar"}),
        ("clarity", {"choice": ["keep"]}),
        ("clarity", {"choice": "keep", "reasons": ["unclear"]}),
        ("clarity", {"choice": "keep", "verdict": "kept"}),
        ("anchor-labels", {"choice": "good"}),
        ("anchor-labels", {"choice": "good", "labels": []}),
        ("anchor-labels", {"choice": "good", "labels": ["<script>"]}),
        ("anchor-labels", {"choice": "bad", "labels": ["dog"]}),
        ("failure-modes", {"choice": "background", "tags": ["luck"]}),
        ("failure-modes", {"choice": "background", "tags": []}),
        ("failure-modes", {"choice": "background", "tags": ["size"]}),
        ("extreme-points", {"choice": "delete", "points": [[0, 0.5], [1, 0.5], [0.5, 0], [0.5, 1]]}),
        ("extreme-points", {"choice": "box"}),
        ("extreme-points", {"choice": "box", "points": [[0, 0.5], [1, 0.5], [0.5, 0]]}),
        ("extreme-points", {"choice": "box", "points": [[0, 0.5], [1, 0.5], [0.5, 0.5], [0.2, 0.5]]}),
        ("extreme-points", {"choice": "box", "points": [[0, 0.5], [1, 0.5], [0.5, -0.1], [0.5, 1]]}),
        ("human-test", {"choice": "answer", "class": "cat"}),
    ],
)
def test_answers_that_a_screen_does_not_offer_are_refused(screen: str, answer: dict[str, Any]) -> None:
    project = project_of(screen, [], classes=(ReviewClass("dog", "dog"),))
    with pytest.raises((BadInput, UnknownName)):
        check_answer(project.screen, answer, project.class_of)
