"""What tests of reviews share: a database on SQLite and, where one is named, on PostgreSQL too; a reviewer at a browser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from patience import PATIENCE
from review.browsing import Reviewing, photo_project
from review.databases import POSTGRES, empty_database
from review.served import served
from shiftproof.curation.project import Project
from shiftproof.review.database import Database

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    with empty_database(request.param, tmp_path) as url:
        if url is None:
            pytest.skip(f"{POSTGRES} is not set: no PostgreSQL to test with")
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def take_seats(browser: Browser) -> Iterator[Callable[..., list[Reviewing]]]:
    """Serves a project to people, each at an own browser; what pages complain of fails the test, but for what is missing."""
    complaints: list[str] = []
    with contextlib.ExitStack() as stack:

        def take(
            project: Project, *names: str, device: dict[str, Any] | None = None, options: Sequence[str] = ()
        ) -> list[Reviewing]:
            server = stack.enter_context(served(project.folder, *options, invite=names))
            laptop = {"viewport": {"width": 1366, "height": 768}}
            people = []
            for name in names:
                page = stack.enter_context(browser.new_context(**(device or laptop))).new_page()
                page.set_default_timeout(1000 * PATIENCE)
                page.on("console", lambda message: complaints.append(message.text))
                page.on("pageerror", lambda error: complaints.append(str(error)))
                people.append(Reviewing(page, server, project, name))
            return people

        yield take
    assert [complaint for complaint in complaints if "Failed to load resource" not in complaint] == []


@pytest.fixture
def sit_down(take_seats: Callable[..., list[Reviewing]], tmp_path: Path) -> Callable[..., Reviewing]:
    """Sits Ada down at a project of photos."""

    def sit(
        screen: str = "clarity", *, device: dict[str, Any] | None = None, options: Sequence[str] = (), **more: Any
    ) -> Reviewing:
        (ada,) = take_seats(photo_project(tmp_path / "project", screen, **more), "Ada", device=device, options=options)
        return ada

    return sit
