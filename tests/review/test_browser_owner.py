"""The owner's page, by keys alone, and closed to everybody else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable

import pytest

from patience import PATIENCE, wait_for
from review.browsing import Reviewing
from review.reviewed_projects import judge
from shiftproof.curation.project import Item
from shiftproof.review.database import Database

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]


@pytest.fixture
def owner(sit_down: SitDown) -> Reviewing:
    """The owner before the page, where Ada holds four items without an answer and two people do not agree on another."""
    seat = sit_down("clarity", items=tuple(Item(f"item {n}", (f"{n}.png",), label="<b>bird</b>") for n in range(6)))
    database = Database(seat.project.folder / "review.sqlite")
    ada = next(person.id for person in database.reviewers() if person.name == "Ada")
    database.assign(ada, lambda _: [f"item {n}" for n in range(2, 6)])
    judge(database, {"item 0": ["keep", "reject"], "item 1": ["keep", "keep"]})
    database.close()
    seat.page.goto(seat.server.links["owner"])
    seat.page.goto(f"{seat.server.address}/owner")
    return seat


def test_what_people_do_is_shown_and_a_dispute_is_opened_by_keys(owner: Reviewing) -> None:
    page = owner.page
    assert "4 of 12 answers" in page.locator("#progress").inner_text()
    assert "50 %" in page.locator("#agreement").inner_text()
    link = page.locator(".disputes a")
    assert link.locator("b").inner_text() == "<b>bird</b>", "a name is text, whatever it holds"
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/owner/item/*")
    told = page.locator("main").inner_text()
    assert "1 for it, 1 against" in told
    assert "<b>bird</b>" in told


def test_somebody_is_invited_by_keys_and_the_link_lets_them_in(owner: Reviewing) -> None:
    page = owner.page
    page.locator("#name").focus()
    page.keyboard.type("Zoe")
    page.keyboard.press("Enter")
    made = page.locator("#made-link")
    made.wait_for()
    link = made.input_value()
    assert page.evaluate("document.activeElement.id") == "made-link"
    wait_for(page, "() => document.querySelector('#people').innerText.includes('Zoe')")
    assert page.locator("#name").input_value() == ""
    page.reload()
    assert page.locator("#made-link").count() == 0, "it is shown once"
    page.goto(link)
    assert "for Zoe" in page.locator(".kind").inner_text()
    page.locator("text=Dashboard").wait_for(state="detached")


def test_owners_are_not_made_reviewers_by_a_slip(owner: Reviewing) -> None:
    owner.page.locator("#name").focus()
    owner.page.keyboard.type("owner")
    owner.page.keyboard.press("Enter")
    owner.page.wait_for_selector("#connection[data-state=refused]")
    assert "owners get their links" in owner.page.locator("#connection").inner_text()
    owner.page.reload()
    assert owner.page.locator("#people").is_visible()


def test_items_nobody_answers_are_released_and_the_focus_stays_where_it_was(owner: Reviewing) -> None:
    page = owner.page
    taking = page.locator("[data-release]")
    assert taking.inner_text() == "Release 4"
    taking.focus()
    page.keyboard.press("Enter")
    wait_for(page, "() => document.querySelector('#connection').textContent.startsWith('4 items were released')")
    assert taking.count() == 0
    assert page.evaluate("document.activeElement.textContent") == "Reviewers", "the button is gone, its part has the focus"


def test_the_page_shows_what_changes_and_leaves_the_focus_and_what_is_typed(owner: Reviewing) -> None:
    page = owner.page
    page.clock.install()
    page.reload()
    page.locator(".disputes a").focus()
    before = page.evaluate("document.activeElement.id")
    page.locator("#name").evaluate("field => (field.value = 'Z')")
    database = Database(owner.project.folder / "review.sqlite")
    judge(database, {"item 2": ["keep", "reject"]})
    database.close()
    page.clock.run_for(11_000)
    wait_for(page, "() => document.querySelectorAll('.disputes a').length === 2")
    assert page.evaluate("document.activeElement.id") == before
    assert page.locator("#name").input_value() == "Z"


def test_votes_are_files_for_the_owner_alone(owner: Reviewing) -> None:
    cookies = owner.page.context.cookies()
    own = {"cookie": "; ".join(f"{one['name']}={one['value']}" for one in cookies)}
    connection = http.client.HTTPConnection("127.0.0.1", owner.server.port, timeout=PATIENCE)

    def ask(path: str, headers: dict[str, str], body: str | None = None) -> tuple[int, bytes]:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, data = ask("/owner/votes.json", own)
    assert (status, len(json.loads(data))) == (200, 4)
    owner.page.goto(owner.server.links["Ada"])
    ada = {"cookie": "; ".join(f"{one['name']}={one['value']}" for one in owner.page.context.cookies())}
    ada["x-form-key"] = owner.page.evaluate("JSON.parse(document.getElementById('settings').textContent).key")
    for path in ("/owner", "/owner/votes.csv", "/owner/votes.json", f"/owner/item/{'0' * 24}"):
        assert {ask(path, headers)[0] for headers in (ada, {})} == {403}, path
    for path, body in (("/owner/invite", {"name": "Eve"}), ("/owner/release", {"reviewer": 1})):
        assert {ask(path, headers, json.dumps(body))[0] for headers in (ada, {})} == {403}, path
        assert ask(path, own, json.dumps(body))[0] == 403, "without the key of a form"
    connection.close()
