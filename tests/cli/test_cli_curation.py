"""The commands that build test sets, as people use them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Shiftproof
from shiftproof.models import wrap_model
from shiftproof.types import Classifier

CANDIDATES = """n01440764
n02121808
n02119789
n02666943
n02678897
n02666196
"""
"""Tench, domestic cat, kit fox (inside, a hypernym of inside, inside), abattoir, adapter, abacus (inside)."""


@pytest.fixture
def shiftproof(shiftproof: Shiftproof) -> Shiftproof:
    """Runs the command in a folder with a list of candidates and two classes of images."""
    Path("candidates.txt").write_text(CANDIDATES)
    for wnid in ("n02666943", "n02678897"):
        Path("21k", wnid).mkdir(parents=True)
        for number in range(6):
            Pillow.new("RGB", (16, 16), (40 * number, 99, 9)).save(Path("21k", wnid, f"{wnid}_{number}.png"))
    return shiftproof


ASKED = ("curate", "novel-classes", "--id-classes", "ilsvrc2012", "--candidates", "candidates.txt")


def rows_of(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_json_has_the_steps_the_classes_and_every_reason(shiftproof: Shiftproof) -> None:
    told = json.loads(shiftproof(*ASKED, "--json").out)
    assert [step["left"] for step in told["steps"]] == [6, 3, 2, 2]
    assert all(set(step) == {"name", "left"} for step in told["steps"])
    assert told["classes"] == ["n02666943", "n02678897"]
    assert {removal["name"]: removal["reason"] for removal in told["removed"]} == {
        "tench": "is an ID class",
        "kit fox": "is an ID class",
        "abacus": "is an ID class",
        "domestic cat": "is a hypernym of tabby",
    }


def test_people_see_a_table_and_get_the_reasons_as_files(shiftproof: Shiftproof) -> None:
    said = shiftproof(*ASKED, "-o", "novel")
    assert said.code == 0
    assert [line.split()[-1] for line in said.out.splitlines()] == ["left", "6", "3", "2", "2", "novel"]
    kept = rows_of("novel/classes.csv")
    assert [row["wnid"] for row in kept] == ["n02666943", "n02678897"]
    # an abattoir is a building, as a library is, and an adapter a device, as a crutch is not
    assert "n03661043" in kept[0]["sisters"].split("|")
    assert "n03141823" not in kept[1]["sisters"].split("|")
    removed = rows_of("novel/removed.csv")
    assert {(row["wnid"], row["cause"]) for row in removed} >= {("n02121808", "n02123045")}
    assert len(removed) == 4


def test_what_was_written_can_be_chosen_from_again(shiftproof: Shiftproof) -> None:
    shiftproof(*ASKED, "-o", "novel")
    again = json.loads(shiftproof(*ASKED[:-1], "novel/classes.csv", "--chosen", "novel/classes.csv", "--json").out)
    assert len(again["classes"]) == 2
    Path("hand.txt").write_text("abattoir\nn02084071\n")
    said = shiftproof(*ASKED, "--chosen", "hand.txt", "--json")
    assert json.loads(said.out)["classes"] == ["n02666943"]
    assert "1 of 2 chosen classes are no candidates: n02084071" in said.err


def test_subtrees_go_by_word_or_wnid_or_not_at_all(shiftproof: Shiftproof) -> None:
    Path("candidates.txt").write_text("n02666943\nn10091651\nn02678897\n")
    steps = {
        without: json.loads(shiftproof(*ASKED, *(x for one in without for x in ("--exclude-hyponyms", one)), "--json").out)[
            "steps"
        ]
        for without in ((), ("none",), ("building", "n00007846"))
    }
    assert [step["name"] for step in steps[()]][-1] == "nothing under organism"
    assert len(steps["none",]) == 3
    assert [step["name"] for step in steps["building", "n00007846"]][-2:] == [
        "nothing under building",
        "nothing under person",
    ]


@pytest.mark.parametrize(
    ("typed", "steps", "left"),
    [
        (("--sisters",), ["sisters of ID classes"], ["n02666943", "n04453156"]),
        (("--boundary", "before"), ["nothing under the most general decision boundary"], ["n02666943", "n02689434"]),
        (
            ("--boundary", "before", "--sisters"),
            ["nothing under the most general decision boundary", "sisters of ID classes"],
            ["n02666943"],
        ),
        (
            ("--boundary", "after", "--sisters"),
            ["sisters of ID classes", "nothing under the most general decision boundary"],
            ["n02666943"],
        ),
    ],
)
def test_the_boundary_and_sisters_are_steps_in_the_order_asked_for(
    shiftproof: Shiftproof, typed: tuple[str, ...], steps: list[str], left: list[str]
) -> None:
    # an abattoir stands beside a library, a toothbrush beside a paintbrush and under no other class; an air hammer neither
    Path("candidates.txt").write_text("n02666943\nn04453156\nn02689434\n")
    told = json.loads(shiftproof(*ASKED, *typed, "--json").out)
    assert [step["name"] for step in told["steps"]][4:] == steps
    assert told["classes"] == left


def test_the_seed_decides_which_images_are_chosen(shiftproof: Shiftproof) -> None:
    asked = (*ASKED, "--images", "21k", "--per-class", "2", "-o", "novel", "--json")
    chosen = [json.loads(shiftproof(*asked, "--seed", seed).out)["images"] for seed in (0, 1, 2, 0)]
    assert chosen[0] == chosen[3]
    assert chosen[1] != chosen[0] or chosen[2] != chosen[0]


def test_images_of_the_classes_become_a_manifest(shiftproof: Shiftproof) -> None:
    asked = (*ASKED, "--images", "21k", "--per-class", "4", "-o", "novel")
    said = shiftproof(*asked)
    assert "8 images of 2 classes; 0 classes have none" in said.err
    images = sp.open_dataset("novel", allow_outside=True)
    assert len(images.samples) == 8
    written = {path.name: path.read_bytes() for path in Path("novel").iterdir()}
    assert set(written) == {"classes.csv", "removed.csv", "manifest.csv"}
    told = json.loads(shiftproof(*asked, "--json").out)
    assert {wnid: len(ids) for wnid, ids in told["images"].items()} == {"n02666943": 4, "n02678897": 4}
    assert {path.name: path.read_bytes() for path in Path("novel").iterdir()} == written


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--images", "21k"], "name its folder with -o"),
        (["--images", "nowhere", "-o", "out"], "nowhere is not a folder"),
        (["--exclude-hyponyms", "organsm"], "did you mean organism"),
        (["--chosen", "nowhere.txt"], "there is no file nowhere.txt"),
    ],
)
def test_mistakes_are_one_sentence(shiftproof: Shiftproof, arguments: list[str], told: str) -> None:
    said = shiftproof(*ASKED, *arguments)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert told in said.err


def test_lists_that_are_none_are_one_sentence(shiftproof: Shiftproof) -> None:
    Path("candidates.txt").write_text("# Read me\nThis is not a list.\n")
    said = shiftproof(*ASKED)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "candidates.txt is not a list of classes" in said.err


def test_pairs_for_review_come_from_stored_features(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path], colour_model: Classifier
) -> None:
    inside, outside = draw_photos(2), Path("21k")
    for images in (inside, outside):
        sp.predict(colour_model, sp.open_dataset(images, labels="none"), keep="features", store="runs")
    said = shiftproof("curate", "pairs", inside, outside, "--feature-model", "colours", "--first", "5", "-o", "pairs.csv")
    assert (said.code, said.out) == (0, "pairs.csv\n")
    assert "inappropriate class" in said.err
    rows = rows_of("pairs.csv")
    assert len(rows) == 5
    assert [float(row["distance"]) for row in rows] == sorted(float(row["distance"]) for row in rows)
    assert {row["outside_class"] for row in rows} <= {"n02666943", "n02678897"}
    assert all(row["inside"].startswith(row["inside_class"]) for row in rows)
    told = json.loads(shiftproof("curate", "pairs", inside, outside, "--feature-model", "colours", "--json").out)
    assert told == {"pairs": 12, "outside": 12, "inside": 6, "list": "pairs.csv"}


def test_pairs_without_features_say_how_to_make_them(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    inside = draw_photos(1)
    model = wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="bare", version="1", size=(16, 16))
    sp.predict(model, sp.open_dataset(inside), store="runs")
    said = shiftproof("curate", "pairs", inside, "21k", "--feature-model", "bare")
    assert said.code == 1
    assert "--keep features" in said.err
