"""Two people look together at what they do not agree on, each at an own browser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from patience import wait_for
from review.browsing import Reviewing
from shiftproof.curation.project import Item
from shiftproof.review.adjudication import AROUND
from shiftproof.review.assignment import assign_items
from shiftproof.review.database import Database
from shiftproof.review.verdicts import Verdict, verdicts
from shiftproof.review.votes import SubmittedVote

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]


@contextlib.contextmanager
def database_of(reviewing: Reviewing) -> Iterator[Database]:
    opened = Database(reviewing.project.folder / "review.sqlite")
    yield opened
    opened.close()


def vote_for_all(reviewing: Reviewing, name: str, answers: dict[str, dict[str, Any]]) -> str:
    """First votes of a person on everything; an invitation link comes back."""
    with database_of(reviewing) as database:
        token = database.invite(name)
        person = database.reviewer_with(token)
        assert person is not None
        for item in assign_items(reviewing.project, database, person.id):
            database.add(person.id, [SubmittedVote(f"{name} on {item}", item, "first", answers[item])])
    return f"{reviewing.server.address}/join/{token}"


def verdict_of(reviewing: Reviewing, item: str) -> Verdict:
    with database_of(reviewing) as database:
        return verdicts(reviewing.project, database.votes(), database.assigned())[item]


def open_together(page: Page, reviewing: Reviewing) -> None:
    page.goto(f"{reviewing.server.address}/together")
    page.wait_for_selector("#stage[data-ready]", state="attached")


def says(page: Page, words: str) -> None:
    """Waits until what is decided is told so."""
    page.locator("#decided", has_text=words).wait_for()


def test_two_people_come_to_agree_and_may_change_their_minds_again(sit_down: SitDown) -> None:
    asked = tuple(Item(name, (f"{n}.png", f"{n + 1}.png"), "bird") for n, name in enumerate(("agreed", "torn", "blurred")))
    ada = sit_down("pair", items=asked)
    similar, blur = {"choice": "similar"}, {"choice": "blur"}
    ada.page.goto(vote_for_all(ada, "Ada", {"agreed": similar, "torn": blur, "blurred": blur}))
    link = vote_for_all(ada, "Ben", {"agreed": similar, "torn": similar, "blurred": blur})
    open_together(ada.page, ada)
    assert ada.page.locator("#number").inner_text() == "1 of 2 to look at together"
    heard = ada.page.locator("#votes li").all_inner_texts()
    said = [" (you): Dissimilar: significant blur change", ": Labelled correctly, and similar"]
    assert sorted(text[1:] for text in heard) == said
    assert not {"Ada", "Ben"} & set(ada.page.content().split())
    says(ada.page, "rejected: 1 of 2")
    browser = ada.page.context.browser
    assert browser is not None
    with contextlib.closing(browser.new_context()) as context:
        ben = context.new_page()
        ben.goto(link)
        open_together(ben, ada)
        ada.page.keyboard.press("t")
        ada.page.keyboard.type("S is what <b>you</b> said. Why?")
        ada.page.keyboard.press("Enter")
        comment = ben.locator("#comments li")
        comment.wait_for()  # it comes by itself
        assert comment.inner_text().endswith("S is what <b>you</b> said. Why?")
        assert "(you)" not in comment.inner_text()
    ada.page.keyboard.press("s")
    says(ada.page, "kept: 2 of 2")
    assert verdict_of(ada, "torn").outcome == "kept"
    ada.page.keyboard.press("z")
    says(ada.page, "rejected: 1 of 2")
    assert verdict_of(ada, "torn").outcome == "rejected"
    ada.page.keyboard.press(".")
    says(ada.page, "rejected: 0 of 2")
    assert ada.page.locator("#comments li").count() == 0
    ada.page.keyboard.press("Space")
    assert ada.page.locator("figure").first.is_hidden()  # flipped in place, as in the first round
    ada.page.keyboard.press(",")
    says(ada.page, "rejected: 1 of 2")
    rounds = [(vote.item, vote.round, vote.choice) for vote in ada.votes() if vote.round == "open"]
    assert rounds == [("torn", "open", "similar"), ("torn", "open", None)]
    assert {vote.choice for vote in ada.votes() if vote.item == "agreed"} == {"similar"}


def test_reasons_and_boxes_are_told_and_may_be_changed(sit_down: SitDown) -> None:
    box = {"choice": "box", "points": [[0.25, 0.5], [0.75, 0.5], [0.5, 0.1], [0.5, 0.9]]}
    ada = sit_down("extreme-points", items=(Item("bird", ("0.png",), "bird"),))
    ada.page.goto(vote_for_all(ada, "Ada", {"bird": box}))
    vote_for_all(ada, "Ben", {"bird": {"choice": "delete", "reasons": ["not recognisable"]}})
    open_together(ada.page, ada)
    told = " ".join(ada.page.locator("#votes li").all_inner_texts())
    assert "Keep this box, 50 % of the width and 80 % of the height" in told
    assert "No box: Not recognisable" in told
    ada.page.keyboard.press("ArrowDown")  # the own box is there to be mended
    ada.page.keyboard.press("Enter")
    ada.page.get_by_text("Your answer is changed.").wait_for()
    changed = verdict_of(ada, "bird").box
    assert changed is not None
    assert changed[:3] == pytest.approx((0.25, 0.1, 0.75))
    assert changed[3] > 0.9
    ada.page.keyboard.press("d")
    ada.page.locator("#reasons").wait_for()
    ada.page.keyboard.press("2")
    ada.page.locator("#votes", has_text="No box: Not recognisable").wait_for()
    wait_for(ada.page, "() => !Object.keys(localStorage).length")
    assert verdict_of(ada, "bird").reasons == {"not recognisable": 2}


def test_boxes_that_hardly_overlap_are_seen_together_and_mended(sit_down: SitDown) -> None:
    narrow = {"choice": "box", "points": [[0.4, 0.5], [0.5, 0.5], [0.45, 0.1], [0.45, 0.9]]}
    wide = {"choice": "box", "points": [[0.4, 0.5], [0.5, 0.1], [0.5, 0.9], [0.8, 0.5]]}
    ada = sit_down("extreme-points", items=(Item("bird", ("0.png",), "bird"), Item("agreed", ("1.png",), "bird")))
    ada.page.goto(vote_for_all(ada, "Ada", {"bird": narrow, "agreed": wide}))
    vote_for_all(ada, "Ben", {"bird": wide, "agreed": wide})
    open_together(ada.page, ada)
    assert ada.page.locator("#number").inner_text() == "1 of 1 to look at together"
    says(ada.page, "kept: 2 of 2 would keep it, and more than half must. Yet the boxes hardly overlap.")
    other = ada.page.locator(".marks .other").bounding_box()
    picture = ada.page.locator("#stage img").bounding_box()
    assert other is not None
    assert picture is not None
    assert other["width"] / picture["width"] == pytest.approx(0.4, abs=0.01)
    for _ in range(4):
        ada.page.keyboard.press("Backspace")
    for x, y in ((0.4, 0.5), (0.5, 0.1), (0.5, 0.9), (0.8, 0.5)):
        ada.page.mouse.click(picture["x"] + x * picture["width"], picture["y"] + y * picture["height"])
    ada.page.keyboard.press("Enter")
    wait_for(ada.page, "() => !document.querySelector('#decided').textContent.includes('Yet')")
    assert verdict_of(ada, "bird").overlap == pytest.approx(1, abs=0.05)


def test_a_page_without_anything_to_look_at_fills_by_itself(sit_down: SitDown) -> None:
    ada = sit_down("clarity", items=(Item("bird", ("0.png",), "bird"),))
    keep, reject = {"choice": "keep"}, {"choice": "reject"}
    ada.page.goto(vote_for_all(ada, "Ada", {"bird": keep}))
    ada.page.goto(f"{ada.server.address}/together")
    ada.page.get_by_text("Nothing to look at together").wait_for()
    ada.page.keyboard.press("n")
    vote_for_all(ada, "Ben", {"bird": reject})
    says(ada.page, "rejected: 1 of 2")
    assert [vote.round for vote in ada.votes()] == ["first", "first"]


def test_many_items_are_fetched_as_one_comes_to_them(sit_down: SitDown) -> None:
    count = 2 * AROUND
    asked = tuple(Item(f"bird {number:02}", (f"{number % 2}.png",), "bird") for number in range(count))
    ada = sit_down("clarity", items=asked, reviewers_each=1)
    ada.page.goto(vote_for_all(ada, "Ada", {item.id: {"choice": "reject"} for item in asked}))
    open_together(ada.page, ada)
    number = ada.page.locator("#number")
    for place in range(2, count + 1):
        ada.page.keyboard.press(".")
        number.get_by_text(f"{place} of {count} to look at together", exact=True).wait_for()
    ada.page.keyboard.press(".")
    ada.page.get_by_text("This is the last one.").wait_for()
    ada.page.keyboard.press("y")
    says(ada.page, "kept: 1 of 1")
    assert verdict_of(ada, asked[-1].id).outcome == "kept"
    for place in range(count - 1, 0, -1):
        ada.page.keyboard.press(",")
        number.get_by_text(f"{place} of {count} to look at together", exact=True).wait_for()


def test_a_step_is_not_lost_where_the_page_refreshes_itself_meanwhile(sit_down: SitDown) -> None:
    count = AROUND + 3
    asked = tuple(Item(f"bird {number:02}", (f"{number % 2}.png",), "bird") for number in range(count))
    ada = sit_down("clarity", items=asked, reviewers_each=1)
    ada.page.goto(vote_for_all(ada, "Ada", {item.id: {"choice": "reject"} for item in asked}))
    ada.page.clock.install()  # it refreshes itself only when the clock is turned on
    open_together(ada.page, ada)
    number = ada.page.locator("#number")
    for place in range(2, AROUND + 2):
        ada.page.keyboard.press(".")
        number.get_by_text(f"{place} of {count} to look at together", exact=True).wait_for()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)
        if len(held) == 2:
            for one in held:
                one.fulfill(response=one.fetch())  # in the order in which they were asked for

    ada.page.route("**/api/together*", hold)
    ada.page.keyboard.press(".")  # to an item that is not fetched yet
    ada.page.clock.run_for(3_100)
    number.get_by_text(f"{AROUND + 2} of {count} to look at together", exact=True).wait_for()
