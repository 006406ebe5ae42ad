"""The loop that every screen lives in: undo, reloads, held keys, notes, a closer look, an end that is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from patience import wait_for
from review.browsing import Reviewing

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
TWICE = "() => [1, 2].forEach(() => document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'y', bubbles: true })))"


def test_undo_takes_the_answer_back_and_asks_again(sit_down: SitDown) -> None:
    ada = sit_down(count=4)
    ada.begin()
    first, second = ada.press("y", "n")
    third = ada.item()
    ada.press("z")
    assert ada.item() == second
    assert ada.said() == "Taken back: No."
    assert ada.answers() == {first: {"choice": "keep"}}
    assert ada.press("z") == [second]
    assert ada.item() == first
    assert ada.answers() == {}
    assert ada.page.locator("#count").inner_text() == "0 of 4"
    assert ada.press("u", "u", "u") == [first, second, third]
    assert ada.answers() == {item: {"choice": "unsure"} for item in (first, second, third)}


def test_undo_takes_back_a_reason_with_its_answer_also_after_a_reload(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()
    first, second = ada.press("y", "n")
    ada.press("1")
    assert ada.answers()[second] == {"choice": "reject", "reasons": ["several classes"]}
    ada.page.reload()
    ada.press("z")
    assert ada.item() == second
    assert ada.said() == "Taken back: No: Several classes."
    assert ada.answers() == {first: {"choice": "keep"}}
    ada.press("z")
    assert ada.item() == first
    assert ada.answers() == {}
    ada.press("z")
    assert ada.item() == first
    assert ada.said() == "There is nothing to take back."


def test_a_reload_goes_on_where_one_was(sit_down: SitDown) -> None:
    ada = sit_down(count=5)
    ada.begin()
    seen = ada.press("y", "n")
    ada.saved()
    there = ada.item()
    ada.page.reload()
    assert ada.item() == there
    seen += ada.press("y", "y", "y")
    assert "All done" in ada.go_on()
    assert len(set(seen)) == len(seen) == 5
    assert list(ada.answers()) == seen


def test_a_key_pressed_twice_or_held_answers_one_item(sit_down: SitDown) -> None:
    ada = sit_down(count=4)
    ada.begin()
    first = ada.item()
    ada.page.evaluate(TWICE)
    second = ada.item()
    ada.page.keyboard.down("n")
    third = ada.item()
    ada.page.keyboard.down("n")  # the browser says that it is held
    assert ada.item() == third
    assert len(ada.saved()) == 2
    assert ada.answers() == {first: {"choice": "keep"}, second: {"choice": "reject"}}


def test_a_note_goes_with_the_answer_and_its_letters_are_no_answers(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()
    ada.press("t")
    ada.page.keyboard.type("yes, <b>but</b> blurred")
    ada.page.keyboard.press("Enter")
    assert ada.page.locator("#noted").inner_text() == "Note: yes, <b>but</b> blurred"
    # a closed dialog keeps the focus until the next frame, and a key until then is none of the page's
    wait_for(ada.page, "() => document.activeElement === document.body")
    ada.press("y", "t")
    ada.page.keyboard.type("never mind")
    ada.page.keyboard.press("Escape")
    wait_for(ada.page, "() => document.activeElement === document.body")
    ada.press("n", "z", "z")
    assert ada.page.locator("#noted").inner_text() == "Note: yes, <b>but</b> blurred"  # an answer taken back keeps its note
    notes = [vote.note for vote in ada.saved() if vote.answer is not None]
    assert notes == ["yes, <b>but</b> blurred", ""]


def test_one_looks_closer_by_keys_and_by_mouse_until_the_next_item(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()
    ada.item()
    view, picture = ada.page.locator(".view"), ada.page.locator(".view img")

    def box() -> tuple[float, float, float]:
        found = picture.bounding_box()
        assert found is not None
        return found["x"], found["y"], found["width"]

    whole = box()
    ada.press("+", "+")
    closer = box()
    assert closer[2] == pytest.approx(whole[2] * 1.5**2, rel=0.01)
    ada.press("ArrowRight")
    assert box()[0] < closer[0]
    ada.press("-", "-")
    assert box() == pytest.approx(whole, abs=1)
    frame = view.bounding_box()
    assert frame is not None
    middle = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    ada.page.mouse.dblclick(*middle)
    assert box()[2] == pytest.approx(whole[2] * 3, rel=0.01)
    before = box()
    ada.page.mouse.down()
    ada.page.mouse.move(middle[0] + 40, middle[1] + 25)
    ada.page.mouse.up()
    assert box() == pytest.approx((before[0] + 40, before[1] + 25, before[2]), abs=1)
    ada.page.mouse.wheel(0, 2000)
    wait_for(ada.page, "() => !document.querySelector('.view.closer')")
    assert box() == pytest.approx(whole, abs=1)
    ada.press("+", "y")
    ada.item()
    assert not ada.is_seen(".view.closer")


def test_the_end_is_told_and_can_still_be_taken_back(sit_down: SitDown) -> None:
    ada = sit_down(count=2)
    ada.begin()
    _, last = ada.press("y", "y")
    ada.page.get_by_role("heading", name="All done").wait_for()
    assert ada.page.locator("#count").inner_text() == "2 of 2"
    ada.page.keyboard.press("z")
    assert ada.press("n") == [last]
    assert "All done" in ada.go_on()
    ada.page.get_by_role("heading", name="All done").wait_for()  # there is still nothing more
    assert ada.answers()[last] == {"choice": "reject"}


def test_from_the_end_there_is_a_way_to_what_is_looked_at_together(sit_down: SitDown) -> None:
    ada = sit_down(count=1)
    ada.begin()
    (last,) = ada.press("n")
    ada.page.get_by_role("heading", name="All done").wait_for()
    assert not ada.is_seen("#question"), "nothing is asked any more"
    ada.page.keyboard.press("3")  # but for why
    assert ada.answers()[last]["reasons"] == ["unclear"]
    ada.page.keyboard.press("Tab")
    ada.page.keyboard.press("Enter")
    ada.page.wait_for_url("**/together")


def test_help_lists_the_keys_and_is_put_away(sit_down: SitDown) -> None:
    ada = sit_down(count=2, instructions="Only birds.\n\nNo planes.")
    ada.begin()
    ada.press("?")
    told = ada.page.locator("#help").inner_text()
    assert all(words in told for words in ("Yes, keep it", "Take the last answer back", "Only birds.", "No planes."))
    ada.page.keyboard.press("y")  # answers nothing while it is read
    ada.page.keyboard.press("Escape")
    assert not ada.is_seen("#help")
    assert ada.saved() == []


def test_buttons_are_reached_by_tab_and_large_enough_for_a_finger(sit_down: SitDown) -> None:
    tablet = {"viewport": {"width": 820, "height": 1180}, "has_touch": True, "is_mobile": True}
    ada = sit_down(count=3, device=tablet)
    ada.begin()
    first = ada.item()
    buttons = [button.bounding_box() for button in ada.page.locator("button:visible").all()]
    assert all(box is not None and min(box["height"], box["width"]) >= 44 for box in buttons)
    assert ada.page.evaluate("() => document.documentElement.scrollWidth") == 820  # nothing sticks out
    ada.page.locator("[data-choice=reject]").tap()
    second = ada.item()
    ada.page.locator("[data-choice=keep]").focus()
    ada.page.keyboard.press("Enter")
    ada.item()
    assert ada.answers() == {first: {"choice": "reject"}, second: {"choice": "keep"}}
