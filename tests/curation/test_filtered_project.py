"""Review projects of what filter models left: what people see of each image, and what they never see."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import shiftproof as sp
from mixtures import Mixture, draw_mixture, mixture_model
from shiftproof.curation.adversarial import filter_adversarial
from shiftproof.curation.filtered_project import FilteredProject, save_filtered
from shiftproof.curation.filtering import FilterModels
from shiftproof.curation.project import ReviewSettings, load_project
from shiftproof.errors import BadInput, UnknownName
from shiftproof.runs.store import Store

PHOTOS: dict[str, Mixture] = {
    "red/plain": (90, 5, 5),
    "red/plainer": (96, 2, 2),
    "red/dull": (50, 25, 25),
    "red/pale": (40, 30, 30),
    "red/green": (5, 95, 0),
    "green/red": (97, 3, 0),
    "blue/plain": (0, 0, 100),
}
KNOWN = """path,label,role,answer,reason
photos/red/plain.png,red,training,keep,
photos/green/red.png,green,gold,reject,not the class
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, mixture in PHOTOS.items():
        draw_mixture(tmp_path / "photos" / f"{name}.png", mixture)
    return tmp_path


def _curated(home: Path, asking: ReviewSettings | None = None) -> FilteredProject:
    images = sp.open_dataset(home / "photos")
    filters = FilterModels([mixture_model()], Store(home / "runs"), workers=0)
    return save_filtered(filter_adversarial(images, filters), images, home / "project", review=asking)


def test_a_project_asks_about_what_is_left_the_hardest_first(home: Path) -> None:
    made = _curated(home, ReviewSettings("Odd colours", reviewers_each=3, target=2))
    project = load_project(home / "project")
    assert project == made.project
    assert (project.title, project.screen_name, project.reviewers_each, project.target) == ("Odd colours", "clarity", 3, 2)
    assert [item.id for item in project.items] == ["green/red.png", "red/green.png"]
    hardest = project.items[0]
    assert (hardest.label, dict(hardest.shown)) == ("green", {"eye": "red (97%)"})
    assert project.image(hardest.images[0]).read_bytes() == (home / "photos/green/red.png").read_bytes()
    assert hardest.facts["truth_share"] == pytest.approx(0.03)
    assert hardest.facts["source"] == str(home / "photos")


def test_examples_of_a_class_are_what_the_first_model_recognises_most_surely(home: Path) -> None:
    project = _curated(home).project
    shown = [project.image(name).read_bytes() for name in project.class_of["red"].references]
    assert shown == [(home / f"photos/red/{name}.png").read_bytes() for name in ("plainer", "plain", "dull")]
    assert project.class_of["green"].references == ()
    assert set(project.class_of) == {"red", "green"}, "nobody is asked about blue"
    assert len(list((home / "project/images").glob("*.png"))) == 2 + 3


def test_how_the_set_came_about_is_told_whole(home: Path) -> None:
    made = _curated(home)
    making = made.project.making
    assert [step.left for step in making.steps] == [7, 7, 2, 2, 2, 2]
    assert making.models == ({"name": "eye", "fingerprint": made.filtered.models[0].fingerprint},)
    assert making.choices == {"most_share": 0.15, "per_confusion": 15, "per_class": None, "classes": "all"}
    with (home / "project/images.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert {row["id"] for row in rows} == {f"{name}.png" for name in PHOTOS}
    assert all(row["step"] == "kept" or row["reason"] for row in rows)


def test_classes_short_of_their_target_are_named(home: Path) -> None:
    assert _curated(home, ReviewSettings(target=1)).short_classes == ["blue"]
    assert _curated(home, ReviewSettings(target=2)).short_classes == ["blue", "green", "red"]
    assert _curated(home).short_classes == []


def test_the_same_again_changes_nothing(home: Path) -> None:
    _curated(home)
    files = {path: path.read_bytes() for path in (home / "project").rglob("*") if path.is_file()}
    _curated(home)
    assert {path: path.read_bytes() for path in (home / "project").rglob("*") if path.is_file()} == files


def test_images_whose_answer_is_known_train_people_and_are_strewn_in(home: Path) -> None:
    (home / "known.csv").write_text(KNOWN)
    project = _curated(home, ReviewSettings(known=sp.open_dataset(home / "known.csv"))).project
    known = {item.role: item for item in project.items if item.role != "asked"}
    assert known["training"].answer == {"choice": "keep"}
    assert known["gold"].answer == {"choice": "reject", "reasons": ["not the class"]}
    assert (known["gold"].label, len(project.by_id)) == ("green", 4), "a known image may be among the candidates too"


@pytest.mark.parametrize(
    ("line", "error", "told"),
    [
        ("red,gold,maybe,", UnknownName, "maybe"),
        ("red,silver,keep,", BadInput, "a role, training or gold"),
        ("red,gold,,", BadInput, "and an answer"),
        ("red,gold,reject,ugly", BadInput, "'ugly'; reject knows several classes"),
    ],
)
def test_known_answers_are_checked_before_people_see_them(home: Path, line: str, error: type[Exception], told: str) -> None:
    (home / "known.csv").write_text(f"path,label,role,answer,reason\nphotos/red/plain.png,{line}\n")
    with pytest.raises(error, match=told):
        _curated(home, ReviewSettings(known=sp.open_dataset(home / "known.csv")))
    assert not (home / "project/project.json").exists()


def test_where_nothing_is_left_the_steps_say_why(home: Path) -> None:
    for name in ("red/green", "green/red"):
        (home / "photos" / f"{name}.png").unlink()
    with pytest.raises(BadInput, match="left for review: 5 start, 5 with a label, 0 misclassified by eye"):
        _curated(home)
