"""The test of people, by keys alone: training with the answers, a qualification without, and the test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from patience import wait_for
from review.browsing import Reviewing
from shiftproof.curation.project import Item, ReviewClass
from shiftproof.review.database import Database

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
CLASSES = (
    ReviewClass("n1", "tench", "also called Tinca tinca", ("animal", "fish"), ("0.png", "1.png")),
    ReviewClass("n2", "goldfish", "also called Carassius auratus", ("animal", "fish"), ("1.png",)),
    ReviewClass("n3", "race car", "also called racer", ("artifact", "vehicle"), ("2.png",)),
)


def known(name: str, role: str, key: str, group: str | None = None) -> Item:
    return Item(name, ("3.png",), role=role, group=group, answer={"choice": "answer", "class": [key]})  # type: ignore[arg-type]


def items(tries: int = 1) -> tuple[Item, ...]:
    gold = [known(f"gold {attempt}{n}", "gold", "n1", f"try {attempt}") for attempt in range(1, tries + 1) for n in range(2)]
    return (known("lesson", "training", "n2"), *gold, *(known(f"test {n}", "asked", "n3") for n in range(3)))


def name(person: Reviewing, text: str) -> str:
    """Types a name and answers with it; the item that was asked about."""
    item = person.item()
    person.page.keyboard.type(text)
    person.page.keyboard.press("Enter")
    return item


@pytest.fixture
def tested(sit_down: SitDown) -> Callable[..., Reviewing]:
    def sit(**more: object) -> Reviewing:
        settled = {"items": items(), "classes": CLASSES, "pass_mark": 0.9, "consent": "We keep your answers."}
        return sit_down("human-test", **{**settled, **more})

    return sit


def lookups(person: Reviewing) -> dict[int, int]:
    database = Database(person.project.folder / "review.sqlite")
    try:
        return database.lookups()
    finally:
        database.close()


def test_people_agree_train_qualify_and_are_tested_without_a_mouse(tested: Callable[..., Reviewing]) -> None:
    ada = tested()
    assert "We keep your answers." in ada.page.locator(".consent").inner_text()
    ada.page.keyboard.press("Tab")
    ada.page.keyboard.press("Enter")
    assert name(ada, "fish") == "lesson"  # the first of those that are fish is the goldfish: its name has the word
    assert "Right" in ada.go_on()
    assert "The training is over" in ada.go_on()
    assert {name(ada, "tench") for _ in range(2)} == {"gold 10", "gold 11"}
    ada.page.get_by_role("heading", name="You have qualified").wait_for()
    ada.page.locator("#count", has_text="0 of 3").wait_for()
    assert "Qualification" not in ada.page.locator("#count").inner_text()
    assert "You have qualified" in ada.go_on()
    seen = [name(ada, text) for text in ("car", "gold", "rac")]
    assert "All done" in ada.go_on()
    answers = ada.answers()
    assert [answers[item]["class"] for item in seen] == ["n3", "n2", "n3"]
    assert sorted(seen) == ["test 0", "test 1", "test 2"]


def test_who_fails_is_told_so_and_gets_no_item_of_the_test(tested: Callable[..., Reviewing]) -> None:
    ada = tested(consent="", items=items()[1:])
    ada.begin()
    seen = [name(ada, "goldfish"), name(ada, "tench")]
    told = ada.go_on()
    assert "50 % of your answers were right, and 90 % were needed" in told
    assert sorted(seen) == sorted(ada.answers())
    ada.page.goto(ada.server.address)
    assert "50 % right" in ada.page.locator(".result").inner_text()
    assert ada.page.locator("a.begin").count() == 0


def test_a_second_try_has_other_items(tested: Callable[..., Reviewing]) -> None:
    ada = tested(consent="", items=items(tries=2)[1:])
    ada.begin()
    first = {name(ada, "goldfish"), name(ada, "tench")}
    assert "You may try again" in ada.go_on()
    second = {name(ada, "tench"), name(ada, "tench")}
    assert "You have qualified" in ada.go_on()
    assert ada.item().startswith("test")
    assert (first, second) == ({"gold 10", "gold 11"}, {"gold 20", "gold 21"})


def test_pictures_of_a_class_are_looked_up_and_counted_once_answers_count(tested: Callable[..., Reviewing]) -> None:
    ada = tested(consent="", items=items()[1:])
    ada.begin()
    ada.item()
    ada.page.keyboard.type("race")
    with ada.page.expect_response("**/api/lookups"):
        ada.page.keyboard.press("Shift+Enter")
    shown = ada.page.locator(".looked-up")
    assert "artifact › vehicle" in shown.inner_text()
    assert shown.locator("img").count() == 1
    ada.page.keyboard.press("Escape")
    assert shown.is_hidden()
    assert ada.page.locator("#class-search").input_value() == "race", "what was typed is still there"
    ada.page.keyboard.press("Escape")
    assert [name(ada, "tench") for _ in range(2)]
    ada.go_on()
    ada.item()
    ada.page.keyboard.press("ArrowDown")
    with ada.page.expect_response("**/api/lookups"):
        ada.page.keyboard.press("Shift+Enter")
    assert shown.locator("h2").inner_text() == "goldfish", "the first by name, by arrows alone"
    assert lookups(ada) == {2: 1}, "what was looked up before the test is not counted"


def test_a_name_is_taken_back_and_there_to_be_changed(tested: Callable[..., Reviewing]) -> None:
    ada = tested(consent="", items=items()[3:], pass_mark=None)
    ada.begin()
    item = name(ada, "gold")
    ada.item()
    ada.page.keyboard.press("Escape")
    ada.page.keyboard.press("z")
    wait_for(ada.page, "() => document.querySelector('#class-search').value === 'goldfish'")
    assert ada.item() == item
    assert "Taken back: goldfish" in ada.said()
    ada.page.keyboard.press("Escape")
    name(ada, "tench")
    assert ada.answers() == {item: {"choice": "answer", "class": "n1"}}
