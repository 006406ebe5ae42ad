"""Screens on which classes are searched or compared, by keys alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from review.browsing import Reviewing
from shiftproof.curation.project import Item, ReviewClass

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
DOG = ReviewClass("n1", "dog", "man's best friend", ("animal",))
CAR = ReviewClass("n2", "race car", "also called racer", ("vehicle",))
CAT = ReviewClass("n3", "cat", "hunts mice", ("animal",))
CARAVAN = ReviewClass("n4", "caravan", "", ("vehicle",))
CLASSES = (DOG, CAR, CAT, CARAVAN)
SHOWN = tuple(f"{number}.png" for number in range(6))


def test_classes_are_added_by_search_and_taken_away_by_keys(sit_down: SitDown) -> None:
    ada = sit_down("anchor-labels", items=(Item("a", SHOWN[:1], "n1"), Item("b", SHOWN[1:2], "n1")), classes=CLASSES)
    ada.begin()
    first = ada.item()
    chips = ada.page.locator(".chip")
    assert chips.all_inner_texts() == ["dog\n×"]
    ada.page.keyboard.press("/")
    ada.page.keyboard.type("bug")  # letters of the field, though each is the key of an answer or a tool
    assert ada.page.locator(".picker .more").inner_text() == "No class fits"
    ada.page.keyboard.press("Escape")
    ada.page.keyboard.type("car")
    ada.page.keyboard.press("ArrowDown")
    ada.page.keyboard.press("Enter")
    assert chips.all_inner_texts() == ["dog\n×", "race car\n×"]
    ada.page.keyboard.type("mice")
    ada.page.keyboard.press("Enter")
    ada.page.keyboard.press("Enter")  # with nothing typed it ends the search
    ada.page.keyboard.press("Backspace")
    assert ada.said() == "cat: taken away."
    ada.press("g")
    second = ada.item()
    ada.press("Backspace", "g")
    assert ada.said() == "Add a class that is to be seen, or give another answer."
    ada.press("b")
    ada.page.keyboard.press("z")
    assert ada.item() == second
    ada.press("u")
    assert ada.answers() == {first: {"choice": "good", "labels": ["n1", "n2"]}, second: {"choice": "unsure"}}


def test_several_classes_that_were_said_together_are_all_there(sit_down: SitDown) -> None:
    ada = sit_down("anchor-labels", items=(Item("a", SHOWN[:1], "n1|n3"),), classes=CLASSES)
    ada.begin()
    ada.press("g")
    assert ada.answers() == {"a": {"choice": "good", "labels": ["n1", "n3"]}}


def test_a_search_finds_beginnings_first_and_then_what_explains(sit_down: SitDown) -> None:
    ada = sit_down("anchor-labels", items=(Item("a", SHOWN[:1]),), classes=CLASSES)
    ada.begin()
    ada.item()
    expected = {
        "": ["dog", "race car", "cat", "caravan"],
        "CA": ["cat", "caravan", "race car"],  # names that begin so come first
        "racer": ["race car"],  # another word for it
        "vehicle car": ["caravan", "race car"],
        "animal": ["dog", "cat"],
        "wolf": [],
    }
    found = ada.page.evaluate(
        """async (texts) => {
          const [{ search }, { classes }] = [await import("/static/class_search.js"), await import("/static/classes.js")];
          return texts.map((text) => search(classes, text).map((one) => one.name));
        }""",
        list(expected),
    )
    assert dict(zip(expected, found, strict=True)) == expected


def test_pictures_of_two_classes_are_turned_page_by_page(sit_down: SitDown) -> None:
    asked = Item("a", tuple(SHOWN[n % 6] for n in range(50)), "n1", beside="n3")
    cat = ReviewClass("n3", "cat", "hunts mice", ("animal",), tuple(SHOWN[n % 6] for n in range(12)))
    ada = sit_down("class-pair", items=(asked,), classes=(DOG, cat))
    ada.begin()
    ada.item()
    assert ada.page.locator(".columns h2").all_inner_texts() == ["dog", "cat"]
    counts = ada.page.locator(".columns .count")
    assert counts.all_inner_texts() == ["Pictures 1 to 9 of 50", "Pictures 1 to 9 of 12"]
    ada.press("ArrowRight")
    assert counts.all_inner_texts() == ["Pictures 10 to 18 of 50", "Pictures 10 to 12 of 12"]
    ada.press("ArrowRight")
    assert counts.all_inner_texts() == ["Pictures 19 to 27 of 50", "Pictures 1 to 9 of 12"]
    ada.press(*["ArrowRight"] * 9)
    assert ada.said() == "Pictures, page 6 of 6."
    ada.press("ArrowLeft", "-")
    assert counts.first.inner_text() == "Pictures 49 to 50 of 50"  # 16 on a page, and four pages
    ada.press("e")
    assert ada.answers() == {"a": {"choice": "semantically ambiguous"}}


def test_one_ambiguous_pair_ends_the_questions_about_a_class(sit_down: SitDown) -> None:
    pairs = [(new, known) for new in ("n1", "n2") for known in ("n3", "n4")]
    asked = tuple(Item(f"{new} {known}", SHOWN[:1], new, group=new, beside=known) for new, known in pairs)
    ada = sit_down("class-pair", items=asked, classes=CLASSES)
    ada.begin()
    first = ada.item()
    ada.press("v")
    seen = ada.press("c", "u")
    assert "All done" in ada.go_on()
    ended = first.split()[0]
    assert {item.split()[0] for item in seen} == {"n1", "n2"} - {ended}
    assert ada.answers() == {
        first: {"choice": "visually ambiguous"},
        seen[0]: {"choice": "clear"},
        seen[1]: {"choice": "unsure"},
    }


def test_a_new_picture_is_held_against_the_nearest_known_one(sit_down: SitDown) -> None:
    asked = tuple(Item(f"{group}{n}", SHOWN[n : n + 2], "n1", group=group, beside="n3") for group in "ab" for n in range(2))
    ada = sit_down("nearest-pair", items=asked, classes=CLASSES)
    ada.begin()
    first = ada.item()
    assert ada.page.locator("figcaption").all_inner_texts() == ["New: dog", "Known: cat"]
    ada.press("Space")
    assert ada.page.locator("figure").first.is_hidden()
    ada.press("x")
    seen = ada.press("y", "n")
    assert {item[0] for item in seen} == {"a", "b"} - {first[0]}
    choices = ("drop class", "keep", "drop image")
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip((first, *seen), choices, strict=True)}
