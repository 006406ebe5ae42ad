"""A reviewer at a real browser: keys are pressed when there is something to answer, as a person would."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image as Pillow

from patience import wait_for
from review.served import Served, drawn_project
from shiftproof.curation.project import Item, Project
from shiftproof.review.database import Database
from shiftproof.review.service import ReviewService
from shiftproof.review.votes import Vote, standing

if TYPE_CHECKING:
    from playwright.sync_api import Page

WAITING_VOTES = "Object.keys(localStorage).length"


def photo_project(folder: Path, screen: str = "clarity", count: int = 6, **more: Any) -> Project:
    """A project of as many items, of real photos where there are some and of drawn pictures elsewhere."""
    asked = [
        Item(f"item {number}", (f"{number}.png", f"{(number + 1) % count}.png"), label="bird") for number in range(count)
    ]
    project = drawn_project(folder, count, **{"screen_name": screen, "items": tuple(asked), **more})
    data = os.environ.get("SHIFTPROOF_TEST_DATA")
    photos = sorted(Path(data, "ilsvrc-sample-1000").iterdir())[:count] if data else []
    for number, photo in enumerate(photos):
        (folder / "images" / f"{number}.png").write_bytes(as_png(photo))
    return project


@cache
def as_png(photo: Path) -> bytes:
    """For dozens of projects of the same photos: to compress one takes longer than to review it."""
    saved = io.BytesIO()
    with Pillow.open(photo) as opened:
        opened.save(saved, "png")
    return saved.getvalue()


class Reviewing:
    """One person at the page to work in, and what the server's database holds of it."""

    def __init__(self, page: Page, server: Served, project: Project, name: str = "Ada") -> None:
        self.page, self.server, self.project = page, server, project
        database = Database(project.folder / "review.sqlite")
        self._items = {name: item.id for name, item in ReviewService(project, database).items.items()}
        database.close()
        page.goto(server.links[name])

    def begin(self) -> None:
        """Opens the page to work in."""
        self.page.goto(f"{self.server.address}/work")

    def item(self) -> str:
        """The item that can be answered now."""
        shown = self.page.wait_for_selector("#stage[data-ready]", state="attached")
        assert shown is not None
        return self._items[shown.get_attribute("data-ready") or ""]

    def press(self, *keys: str) -> list[str]:
        """Presses keys one after the other, each when there is something to answer; the items that were there."""
        seen = []
        for key in keys:
            seen.append(self.item())
            self.page.keyboard.press(key)
        return seen

    def answer_all(self, keys: Callable[[str], Iterable[str]]) -> list[str]:
        """Begins, and presses the keys for each item until nothing is left; the items in the order they came."""
        self.begin()
        seen = []
        while not self._is_at_the_end():
            seen.append(self.item())
            for key in keys(seen[-1]):
                self.page.keyboard.press(key)
        self.saved()
        return seen

    def _is_at_the_end(self) -> bool:
        """Whether nothing is left to answer; goes on where something else stands between items."""
        while True:
            self.page.wait_for_selector("#stage[data-ready], #interlude:not([hidden])", state="attached")
            if not self.is_seen("#interlude"):
                return False
            if self.is_seen("#interlude[data-kind=end]"):
                return True
            self.go_on()

    def go_on(self) -> str:
        """Presses Enter where something stands between items; what stood there."""
        between = self.page.locator("#interlude")
        between.wait_for()
        told = between.inner_text()
        self.page.keyboard.press("Enter")
        return told

    def said(self) -> str:
        """What the page told those who do not see what changed."""
        return self.page.locator("#announced").inner_text()

    def is_seen(self, selector: str) -> bool:
        return self.page.locator(selector).is_visible()

    def saved(self) -> list[Vote]:
        """Every vote, in the order they came, once the server has all."""
        wait_for(self.page, f"() => !{WAITING_VOTES}")
        return self.votes()

    def votes(self) -> list[Vote]:
        """Every vote that the server has."""
        database = Database(self.project.folder / "review.sqlite")
        try:
            return database.votes()
        finally:
            database.close()

    def answers(self) -> dict[str, Any]:
        """The answer to each item that counts, in the order they came."""
        counting = sorted(standing(self.saved()).values(), key=lambda vote: vote.number)
        return {vote.item: vote.answer for vote in counting}
