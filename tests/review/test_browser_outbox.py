"""A connection that is lost: it is shown, one can go on, and every answer arrives once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from patience import PATIENCE, wait_until
from review.browsing import WAITING_VOTES, Reviewing
from shiftproof.curation.project import Item

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
VOTES = "**/api/votes"


def test_answers_given_without_a_server_arrive_once_when_it_is_back(sit_down: SitDown) -> None:
    ada = sit_down(count=9)
    ada.begin()
    seen = ada.press("y")
    ada.saved()
    ada.server.kill()
    seen += ada.press("n", "y", "u")
    connection = ada.page.locator("#connection[data-state=lost]")
    connection.wait_for()
    ada.page.get_by_text("3 answers kept here").wait_for()
    ada.page.evaluate("async () => (await import('/static/connection.js')).showLost({ message: 'no picture' })")
    assert "3 answers kept here" in connection.inner_text(), "a picture that does not come matters less"
    assert len(ada.votes()) == 1
    ada.press("z")
    seen.pop()
    seen += ada.press("n")
    ada.server.start()
    choices = ("keep", "reject", "keep", "reject")
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip(seen, choices, strict=True)}
    assert ada.page.locator("#connection").inner_text() == "Saved"
    seen += ada.press(*"yyyyy")
    assert "All done" in ada.go_on()
    assert sorted(ada.answers()) == sorted(seen) == sorted(f"item {number}" for number in range(9))


def test_answers_that_wait_outlive_a_reload_and_are_not_asked_again(sit_down: SitDown) -> None:
    ada = sit_down(count=5)
    ada.begin()
    ada.page.route(VOTES, lambda route: route.abort())
    seen = ada.press("y", "n")
    assert ada.page.evaluate(WAITING_VOTES) == 2
    ada.page.reload()
    seen += ada.press("u")
    assert len(set(seen)) == 3
    assert ada.votes() == []
    ada.page.unroute(VOTES)
    choices = ("keep", "reject", "unsure")
    assert ada.answers() == {item: {"choice": choice} for item, choice in zip(seen, choices, strict=True)}


def test_answers_that_wait_are_sent_in_the_order_they_were_given(sit_down: SitDown) -> None:
    """A reason replaces the answer before it: sent first, it would be refused."""
    ada = sit_down(count=7)
    ada.begin()
    ada.page.route(VOTES, lambda route: route.abort())
    seen = []
    for _ in range(6):
        seen += ada.press("n")
        ada.page.keyboard.press("3")
    assert ada.page.evaluate(WAITING_VOTES) == 12
    ada.page.unroute(VOTES)
    ada.page.reload()
    ada.saved()
    assert ada.answers() == {item: {"choice": "reject", "reasons": ["unclear"]} for item in seen}


class Assignments:
    """Votes that wait on their way to the server until they are let go."""

    def __init__(self, ada: Reviewing) -> None:
        self.page, self.is_over = ada.page, False
        self.waiting: list[Route] = []
        self.page.route(VOTES, lambda route: self.hold(route))

    def hold(self, route: Route) -> None:
        if self.is_over:
            route.continue_()
        else:
            self.waiting.append(route)

    def some(self) -> None:
        """Waits until there are some."""
        deadline = time.monotonic() + PATIENCE
        while not self.waiting:
            assert time.monotonic() < deadline, "no votes were sent"
            self.page.wait_for_timeout(10)

    def let_go(self) -> None:
        self.is_over = True
        for route in self.waiting:
            route.continue_()


def test_an_answer_taken_back_before_the_server_had_it_is_kept_with_its_undo(sit_down: SitDown) -> None:
    ada = sit_down(count=4)
    ada.begin()
    ada.item()
    held = Assignments(ada)
    (first,) = ada.press("y")
    held.some()
    (second,) = ada.press("n")
    third = ada.press("z")
    assert ada.press("z") == [second]
    assert ada.press("u") == [first]
    assert ada.votes() == []
    held.let_go()
    kept, rejected, *undone, unsure = ada.saved()
    assert [(vote.item, vote.choice) for vote in (kept, rejected, unsure)] == [
        (first, "keep"),
        (second, "reject"),
        (first, "unsure"),
    ]
    assert [(vote.answer, vote.supersedes) for vote in undone] == [(None, rejected.id), (None, kept.id)]
    assert ada.answers() == {first: {"choice": "unsure"}}
    assert [*ada.press("y"), *ada.press("y")] == [second, *third]


def test_a_training_answer_taken_back_before_the_server_had_it_is_asked_again(sit_down: SitDown) -> None:
    training = [Item(f"training {n}", (f"{n}.png",), "bird", role="training", answer={"choice": "keep"}) for n in range(3)]
    ada = sit_down(items=(*training, Item("asked", ("3.png",), "bird")))
    ada.begin()
    assert ada.item() == "training 0"
    held = Assignments(ada)
    ada.press("n")
    held.some()
    ada.page.keyboard.press("z")
    assert ada.item() == "training 0"
    held.let_go()
    assert [vote.choice for vote in ada.saved()] == ["reject", None]
    assert not ada.is_seen("#interlude"), "nobody answers it any more"
    assert ada.press("y") == ["training 0"]
    assert "Right" in ada.go_on()
    assert ada.item() == "training 1"


SLOW_PICTURES = """() => {
  const { decode } = HTMLImageElement.prototype;
  const late = new Promise((resolve) => (window.decodeAll = resolve));
  HTMLImageElement.prototype.decode = function () { return late.then(() => decode.call(this)); };
}"""


def test_two_answers_taken_back_at_once_are_asked_once_each(sit_down: SitDown) -> None:
    ada = sit_down(items=tuple(Item(f"item {number}", (f"{number}.png",), "bird") for number in range(5)))
    ada.begin()
    first, _ = ada.press("y", "y")
    third = ada.item()
    ada.saved()
    ada.page.reload()
    assert ada.item() == third
    ada.page.evaluate(SLOW_PICTURES)
    ada.page.keyboard.press("z")
    wait_until(lambda: len(ada.votes()) == 3)
    ada.page.keyboard.press("z")
    wait_until(lambda: len(ada.votes()) == 4)
    ada.page.evaluate("() => decodeAll()")
    seen = ada.press(*"nnnnn")
    assert seen[0] == first
    assert len(set(seen)) == 5
    assert "All done" in ada.go_on()


def test_an_answer_that_was_taken_but_not_acknowledged_counts_once(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()

    def lose_the_reply(route: Route) -> None:
        route.fetch()
        route.abort()

    ada.page.route(VOTES, lose_the_reply, times=1)
    [first] = ada.press("y")
    assert [(vote.item, vote.choice) for vote in ada.saved()] == [(first, "keep")]


def test_whoever_is_no_longer_known_is_told_and_goes_on_once_the_link_was_opened_again(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()
    ada.item()
    ada.page.context.clear_cookies()
    ada.press("y")
    ada.page.get_by_text("Not saved: open your invitation link again; 1 answer kept here").wait_for()
    elsewhere = ada.page.context.new_page()
    elsewhere.goto(ada.server.links["Ada"])
    assert len(ada.saved()) == 1


def test_a_note_that_no_database_takes_holds_up_nothing(sit_down: SitDown) -> None:
    ada = sit_down(count=3)
    ada.begin()
    ada.press("t")
    ada.page.evaluate("() => { document.querySelector('#note textarea').value = 'odd \\0 and \\ud800 half'; }")
    ada.page.keyboard.press("Enter")
    ada.press("y", "n")
    assert [vote.note for vote in ada.saved()] == ["odd  and \ufffd half", ""]


def test_two_windows_of_one_person_send_every_answer_once(sit_down: SitDown) -> None:
    ada = sit_down(count=8)
    ada.begin()
    other = Reviewing(ada.page.context.new_page(), ada.server, ada.project)
    other.page.goto(ada.server.address + "/work")
    other.item()  # it has the same items in stock
    ada.page.route(VOTES, lambda route: route.abort())
    seen = ada.press("y", "n", "y")
    assert other.press("n") == seen[:1]
    other.page.reload()  # and finds what the first window could not send
    assert other.item() not in seen
    other.page.reload()
    ada.page.unroute(VOTES)
    ada.saved()
    votes = other.saved()
    assert len({vote.id for vote in votes}) == len(votes) == 4
    assert {vote.item for vote in votes} == set(seen)
