"""A connection that is lost: it is shown, one can go on, and every answer arrives once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from review.browsing import WAITING_VOTES, Reviewing

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
    ada.page.wait_for_function("() => document.getElementById('connection').textContent.includes('3 answers kept here')")
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
