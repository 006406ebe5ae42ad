"""What people found clear, asked about once more, from the one review to the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command import Shiftproof
from review.reviewed_projects import judge, photo_project
from shiftproof.curation.project import load_project
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.export import export, failure_mode_project
from shiftproof.review.summary import summarize


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    return open_dataset(draw_photos(2))


def test_only_what_was_kept_is_asked_about_again(
    photos: ImageList, tmp_path: Path, shiftproof: Shiftproof, database: Database
) -> None:
    judged = photo_project(tmp_path / "hard", photos, keys={"keep": "k"}, target=1)
    kept = [item.id for item in judged.items][0::2]
    votes = Database(judged.folder / "review.sqlite")
    judge(votes, {item.id: ["keep", "keep"] if item.id in kept else ["keep", "reject"] for item in judged.items})
    votes.close()
    Path("told.txt").write_text("Look twice.")
    said = shiftproof(
        "curate", "failure-modes", "hard", "mistakes", "--reviewers-per-item", "3", "--instructions", "told.txt"
    )
    assert (said.code, said.out) == (0, "mistakes\n"), said.err
    project = load_project(tmp_path / "mistakes")
    assert (project.screen_name, project.reviewers_each) == ("failure-modes", 3)
    assert project.instructions == "Look twice."
    assert [item.id for item in project.items] == kept
    assert all(project.image(name).is_file() for name in project.pictures)
    assert (project.making.steps[-1].name, project.making.steps[-1].left) == ("kept in review", len(kept))
    because = {"choice": "pose", "tags": ["pose"]}
    judge(database, {item: [because] * 3 for item in kept})
    card = export(project, summarize(project, database), tmp_path / "set", layout="manifest").card
    assert card["review"]["failure_modes"] == {"pose": len(kept)}


def test_there_is_nothing_to_ask_of_other_reviews_or_of_nothing(photos: ImageList, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing of Hard photos was kept"):
        failure_mode_project(photo_project(tmp_path / "hard", photos), {}, tmp_path / "mistakes")
    with pytest.raises(BadInput, match="asks extreme-points"):
        failure_mode_project(photo_project(tmp_path / "boxes", photos, screen="extreme-points"), {}, tmp_path / "mistakes")
    assert not (tmp_path / "mistakes").exists()
