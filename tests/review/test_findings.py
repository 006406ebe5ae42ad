"""What a review came to, as a report draws it: counts by hand, and the page in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from command import Shiftproof
from review.reviewed_projects import judge, photo_project
from shiftproof.catalog import METRICS
from shiftproof.curation.project import Project
from shiftproof.curation.section import NAMES
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.decoding import decode_image
from shiftproof.review.database import Database
from shiftproof.review.findings import picture_opener, review_results
from shiftproof.review.summary import summarize
from shiftproof.types import Results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REASONED = {"choice": "reject", "reasons": ["drawing"]}


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    return open_dataset(draw_photos(2))


@pytest.fixture
def project(tmp_path: Path, photos: ImageList) -> Project:
    return photo_project(tmp_path / "project", photos)


def judged(project: Project, database: Database, *said: list[Any]) -> Results:
    """As many items as there are answers, judged so; the others are open."""
    judge(database, {item.id: answers for item, answers in zip(project.items, said, strict=False)})
    return review_results(project, summarize(project, database))


def numbers(results: Results, metric: str, key: str) -> dict[str, float]:
    return {str(one.about[key]): one.value for one in results.measurements if one.metric == metric}


def test_the_funnel_goes_from_everything_to_what_people_kept(project: Project, database: Database) -> None:
    results = judged(project, database, ["keep", "keep"], ["keep", "keep"], [REASONED, REASONED])
    asked = len(project.items)
    assert numbers(results, "left_after_step", "step") == {
        "start": 40,
        "wrong": 12,
        "asked": asked,
        "under review": asked,
        "reviewed": 3,
        "kept in review": 2,
    }


def test_shares_are_of_what_was_decided_and_of_what_was_rejected(project: Project, database: Database) -> None:
    results = judged(project, database, ["keep", "keep"], [REASONED, "reject"], [REASONED, "keep"], ["unsure", "unsure"])
    (kept,) = [one for one in results.measurements if one.metric == "kept_share"]
    assert (kept.value, kept.images) == (1 / 4, 4)
    assert numbers(results, "rejection_share", "reason") == {"drawing": 2 / 3, "unsure": 1 / 3}
    (agreement,) = [one for one in results.measurements if one.metric == "percent_agreement"]
    assert (agreement.value, agreement.images) == (3 / 4, 4)


def test_failure_modes_are_shares_of_what_was_looked_at(tmp_path: Path, photos: ImageList, database: Database) -> None:
    project = photo_project(tmp_path / "modes", photos, screen="failure-modes")
    pose, both = ({"choice": "pose", "tags": tags} for tags in (["pose"], ["pose", "size"]))
    results = judged(project, database, [pose, pose], [both, both], [both, pose], [pose, pose])
    assert numbers(results, "failure_mode_share", "failure_mode") == {"pose": 1.0, "size": 1 / 4}
    assert not [one for one in results.measurements if one.metric == "kept_share"]  # nothing was to be kept or not
    (shown,) = results.galleries
    assert shown.items[1].caption == "the blue one; pose, size; 2 answers"


def test_galleries_show_both_outcomes_with_the_reason_and_their_pixels(project: Project, database: Database) -> None:
    results = judged(project, database, ["keep", "keep"], [REASONED, REASONED])
    kept, rejected = results.galleries
    assert [(one.id, one.caption) for one in kept.items] == [(project.items[0].id, "the blue one; 2 of 2 for it")]
    assert [(one.id, one.caption) for one in rejected.items] == [
        (project.items[1].id, "the blue one; drawing; 0 of 2 for it")
    ]
    image = picture_opener(project)(kept.dataset, kept.items[0].id)
    original = Path(project.making.sources[0]["location"], kept.items[0].id)
    assert np.array_equal(image, decode_image(original.read_bytes()))


def test_reviewers_are_letters(project: Project, database: Database) -> None:
    results = judged(project, database, ["keep", "keep"], ["keep", "reject"])
    assert numbers(results, "agreement_with_others", "reviewer") == {"Reviewer A": 1 / 2, "Reviewer B": 1 / 2}
    assert "Ada" not in results.to_json()


def test_every_number_and_gallery_of_a_review_has_its_place_in_the_report(project: Project, database: Database) -> None:
    results = judged(project, database, ["keep", "keep"], [REASONED, REASONED])
    assert {one.metric for one in results.measurements} <= NAMES & METRICS.keys()
    assert {gallery.name for gallery in results.galleries} <= NAMES


@pytest.mark.real
def test_the_report_tells_how_the_set_was_made(
    shiftproof: Shiftproof, browser: Browser, project: Project, tmp_path: Path
) -> None:
    database = Database(project.folder / "review.sqlite")
    judge(database, {project.items[0].id: ["keep", "keep"], project.items[1].id: [REASONED, REASONED]})
    database.close()
    said = shiftproof("verdicts", "project", "-o", "made.html")
    assert said.out.endswith("made.html\n"), said.err
    page = browser.new_context(offline=True).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto((tmp_path / "made.html").as_uri())
    page.wait_for_selector("html[data-drawn]")
    assert page.locator(".drawing").count() == 2  # the funnel and the reasons
    page.click("#open-all")
    page.locator(".drawing svg").nth(1).wait_for()
    assert page.locator("h1").inner_text() == "Review of Hard photos"
    bars = page.locator(".drawing").first.locator(".mark-rect path")
    widths = bars.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert len(widths) == 6
    assert widths == sorted(widths, reverse=True)
    assert page.locator(".gallery img").count() == 2
    assert complaints == []
