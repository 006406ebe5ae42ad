"""Frames, boxes and pairs before people, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import shiftproof as sp
from boxed_shapes import Shape, draw_boxed
from command import Shiftproof
from film import draw_film
from review.reviewed_projects import judge
from shiftproof.cli.curate import curate
from shiftproof.curation.project import Item, load_project
from shiftproof.review.database import Database
from shiftproof.types import Classifier


@pytest.fixture
def shiftproof(shiftproof: Shiftproof) -> Shiftproof:
    """Runs the command in a folder with two clips of nine frames."""
    draw_film(Path("film"), {"cat/a": 9, "dog/b": 9})
    return shiftproof


ASKED = ("curate", "frames", "frames:film", "pairs", "--k", "2")


def judged(project: str, said: Mapping[str, Sequence[str | Mapping[str, Any]]]) -> None:
    database = Database(Path(project) / "review.sqlite")
    judge(database, said)
    database.close()


def test_people_see_what_is_left_and_the_project_last(shiftproof: Shiftproof) -> None:
    said = shiftproof(*ASKED)
    assert said.code == 0
    assert [line.split()[-1] for line in said.out.splitlines()] == ["left", "8", "8", "pairs"]
    assert "shiftproof review pairs" in said.err
    assert "one random (seed 0)" in said.err
    project = load_project("pairs")
    assert project.making.command.startswith("shiftproof curate frames frames:film")
    assert (len(project.items), project.reviewers_each) == (8, 2)


def test_json_has_the_steps_and_reasons(shiftproof: Shiftproof) -> None:
    Path("film/cat/a/004.png").write_bytes(b"no picture")
    told = json.loads(shiftproof(*ASKED, "--anchors", "4", "--reviewers-per-item", "3", "--json").out)
    assert (told["project"], told["items"]) == ("pairs", 4)
    assert [step["left"] for step in told["steps"]] == [8, 4]
    assert all(gone["id"].startswith("cat/a/") for gone in told["removed"])
    assert load_project("pairs").reviewers_each == 3


def test_sparse_labels_are_asked_for_first(shiftproof: Shiftproof) -> None:
    Path("classes.txt").write_text("cat\ndog\neel\n")
    asked = (
        "curate",
        "frames",
        "frames:film",
        "anchors",
        "--anchors",
        "4",
        "--label-anchors",
        "--anchor-classes",
        "classes.txt",
    )
    assert shiftproof(*asked).code == 0
    assert load_project("anchors").screen_name == "anchor-labels"
    refused = shiftproof(*ASKED, "--anchors", "4", "--labelled", "anchors")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "no votes yet" in refused.err
    eel = {"choice": "good", "labels": ["eel"]}
    judged("anchors", {"cat/a/004.png": [eel, eel], "dog/b/004.png": ["bad", "bad"]})
    told = json.loads(shiftproof(*ASKED, "--anchors", "4", "--labelled", "anchors", "--json").out)
    assert [step["left"] for step in told["steps"]] == [8, 4, 4]
    assert {item.label for item in load_project("pairs").items} == {"eel"}


def known_table(columns: str, *rows: str) -> tuple[str, str]:
    """A manifest of known answers, and the option that names it."""
    Path("known.csv").write_text("\n".join([columns, *rows, ""]))
    return "--gold", "known.csv"


def known_of(project: str) -> list[Item]:
    return [item for item in load_project(project).items if item.role != "asked"]


def test_pairs_of_a_known_answer_are_asked_with_the_others(shiftproof: Shiftproof) -> None:
    known = known_table(
        "path,pictures,label,role,answer",
        "film/cat/a/000.png,film/cat/a/001.png,cat,training,similar",
        "film/dog/b/000.png,film/cat/a/001.png,wolf,gold,rain",
    )
    assert shiftproof(*ASKED, *known, "--reasons", "rain:w").code == 0
    assert [(item.role, item.answer, len(item.images)) for item in known_of("pairs")] == [
        ("training", {"choice": "similar"}, 2),
        ("gold", {"choice": "rain"}, 2),
    ]
    project = load_project("pairs")
    assert len(project.items) == 8 + 2
    assert set(project.class_of) == {"cat", "dog", "wolf"}
    assert [source["name"] for source in project.making.sources][1:] == ["known"]


def test_anchors_of_known_classes_are_asked_with_the_others(shiftproof: Shiftproof) -> None:
    known = known_table("path,label,shows,role,answer", "film/cat/a/000.png,cat,cat|dog,gold,good")
    assert shiftproof("curate", "frames", "frames:film", "anchors", "--label-anchors", *known).code == 0
    assert [item.answer for item in known_of("anchors")] == [{"choice": "good", "labels": ["cat", "dog"]}]


def test_boxes_and_crops_of_a_known_answer_are_asked_with_the_others(shiftproof: Shiftproof) -> None:
    draw_boxed(Path("photos"), {"a.png": ("green", [Shape((40, 40, 60, 60), "blue", "red")])})
    Path("usual.csv").write_text("class,share\nred,0.25\n")
    known = known_table("path,label,box,role,answer", "photos/a.png,blue,20 20 60 70,gold,box")
    assert shiftproof("curate", "boxes", "photos/boxes.json", "boxes", *known).code == 0
    (box,) = known_of("boxes")
    assert (box.label, load_project("boxes").class_of["blue"].name) == ("blue", "blue")
    known = known_table("path,label,role,answer,reason", "photos/a.png,blue,training,reject,drawing")
    asked = ("curate", "crops", "photos/boxes.json", "hard", "--shares", "usual.csv", *known)
    assert "with --project" in shiftproof(*asked).err
    assert not Path("hard").exists()
    assert shiftproof(*asked, "--project", "crops").code == 0
    assert [item.answer for item in known_of("crops")] == [{"choice": "reject", "reasons": ["drawing"]}]
    assert set(load_project("crops").class_of) == {"red", "blue"}


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ((*ASKED, "--labelled", "nowhere"), "nowhere is no review project"),
        ((*ASKED, "--labelled", "pairs", "--label-anchors"), "choose one of them"),
        ((*ASKED, "--reasons", "rain"), "words with a key each"),
        (("curate", "frames", "film/cat/a", "pairs"), "no dataset of frames around anchors"),
        ((*ASKED, "--anchors", "70"), "has no frame '70'"),
    ],
)
def test_mistakes_are_one_sentence(shiftproof: Shiftproof, typed: tuple[str, ...], told: str) -> None:
    said = shiftproof(*typed, "--quiet")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert told in said.err
    assert not Path("pairs/project.json").exists()


def test_every_project_has_instructions_that_its_maker_can_replace(shiftproof: Shiftproof) -> None:
    draw_boxed(Path("photos"), {"a.png": ("green", [Shape((40, 40, 60, 60), "blue", "red")])})
    Path("usual.csv").write_text("class,share\nred,0.25\n")
    Path("told.md").write_text("\ufeff# Look twice\n\nThen answer.\n", encoding="utf-8")
    commands = {
        "pairs": ASKED,
        "anchors": ("curate", "frames", "frames:film", "anchors", "--label-anchors"),
        "boxes": ("curate", "boxes", "photos/boxes.json", "boxes"),
        "crops": ("curate", "crops", "photos/boxes.json", "hard", "--shares", "usual.csv", "--project", "crops"),
    }
    for folder, asked in commands.items():
        assert shiftproof(*asked).code == 0
        project = load_project(folder)
        assert project.instructions == project.screen.instructions != ""
        assert shiftproof(*asked, "--instructions", "told.md").code == 0
        assert load_project(folder).instructions == "# Look twice\n\nThen answer."


def test_every_command_that_asks_people_takes_instructions() -> None:
    takes = {name: {one.name for one in command.params} for name, command in curate.commands.items()}
    asking = {name for name, options in takes.items() if "reviewers_per_item" in options}
    assert asking == {name for name, options in takes.items() if "instructions" in options}
    assert {"adversarial", "novel", "novel-classes", "pairs", "frames", "boxes", "crops", "human-test"} <= asking
    verifying = {name for name, options in takes.items() if "verify" in options}
    assert verifying == asking - {"boxes", "failure-modes", "human-test"}


def test_boxes_are_drawn_cut_out_and_judged(shiftproof: Shiftproof) -> None:
    draw_boxed(Path("photos"), {"a.png": ("green", [Shape((40, 40, 60, 60), "blue", "red")])})
    Path("photos/boxes.json").unlink()
    Path("usual.csv").write_text("class,share\nred,0.25\n")
    Path("photos/manifest.csv").write_text("path,label\na.png,red\n")
    assert shiftproof("curate", "boxes", "photos", "boxes").out.splitlines()[-1] == "boxes"
    points = [[0.5, 0.4], [0.4, 0.5], [0.5, 0.6], [0.6, 0.5]]
    judged("boxes", {"a.png red": [{"choice": "box", "points": points}] * 2})
    asked = ("curate", "crops", "photos", "hard", "--shares", "usual.csv", "--annotated", "boxes", "--project", "crops")
    assert shiftproof(*asked).code == 0
    assert [sample.facts["share_in_crop"] for sample in sp.open_dataset("hard").samples] == [0.25]
    (item,) = load_project("crops").items
    assert (item.id, item.label, item.facts["source"]) == ("a.png/000", "red", str(Path("hard").resolve()))


def test_new_classes_and_pairs_end_in_projects(
    shiftproof: Shiftproof, colour_model: Classifier, draw_photos: Callable[..., Path]
) -> None:
    draw_film(Path("21k"), {"n02666943": 3, "n03661043": 2})
    Path("candidates.txt").write_text("n02666943\nn03661043\n")
    asked = (
        "curate",
        "novel-classes",
        "--id-classes",
        "ilsvrc2012",
        "--candidates",
        "candidates.txt",
        "--project",
        "classes",
    )
    refused = shiftproof(*asked)
    assert (refused.code, "name their folder with --images" in refused.err) == (1, True)
    assert shiftproof(*asked, "--images", "21k", "--id-images", "21k", "-o", "novel").code == 0
    held = load_project("classes")
    assert {item.label for item in held.items} == {"n02666943"}
    assert len(held.class_of["n03661043"].references) == 2
    classes = known_table(
        "path,pictures,label,beside,role,answer",
        "21k/n02666943/000.png,21k/n02666943/001.png,n02666943,n03661043,gold,clear",
    )
    assert "with --project" in shiftproof(*asked[:-2], *classes).err
    Path("told.md").write_text("Look twice.")
    told = ("--instructions", "told.md", "--verify", "flagged")
    assert "are for a review project" in shiftproof(*asked[:-2], *told).err
    assert shiftproof(*asked, "--images", "21k", "--id-images", "21k", "-o", "novel", *classes, *told).code == 0
    assert (load_project("classes").instructions, load_project("classes").verify) == ("Look twice.", "flagged")
    assert [(item.beside, len(item.images)) for item in known_of("classes")] == [("n03661043", 2)]
    known = draw_photos(2)
    for images in ("21k", known):
        sp.predict(colour_model, sp.open_dataset(images, labels="none"), keep="features", workers=0)
    pairs = known_table("path,pictures,label,role,answer", "21k/n02666943/000.png,21k/n03661043/000.png,n02666943,gold,keep")
    nearest = ("curate", "pairs", str(known), "21k", "--feature-model", "colours", "--first", "4", *pairs)
    assert "with --project" in shiftproof(*nearest).err
    assert shiftproof(*nearest, "--project", "nearest", *told).code == 0
    assert (load_project("nearest").instructions, load_project("nearest").verify) == ("Look twice.", "flagged")
    assert [item.role for item in load_project("nearest").items] == ["asked"] * 4 + ["gold"]
