"""Duplicates as people look for them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from blotches import blotches, darker, shrunk
from command import Shiftproof
from toys import COLOURS, save_colour_network

ASKED = ("curate", "duplicates", "photos")


@pytest.fixture
def shiftproof(shiftproof: Shiftproof) -> Shiftproof:
    """Runs the command in a folder with four photos, one of them a copy and one known to the model."""
    pictures = {
        "photos/cat/1.png": blotches(1),
        "photos/cat/2.png": blotches(2),
        "photos/dog/3.png": shrunk(blotches(1)),
        "photos/dog/4.png": blotches(4),
        "training/old.png": darker(blotches(4)),
    }
    for path, image in pictures.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Pillow.fromarray(image).save(path)
    return shiftproof


def test_people_see_the_steps_and_what_looks_like_what(shiftproof: Shiftproof) -> None:
    said = shiftproof(*ASKED, "--quiet")
    assert said.code == 0
    assert [line.split()[-1] for line in said.out.splitlines()] == ["left", "4", "4", "3"]
    assert said.err.startswith("dog/3.png: near-duplicate of cat/1.png in photos: ")


def test_what_is_left_and_what_went_are_written(shiftproof: Shiftproof) -> None:
    said = shiftproof(*ASKED, "--against", "training", "-o", "distinct", "--report", "pairs.html")
    assert said.out.splitlines()[-2:] == ["distinct", "pairs.html"]
    assert [sample.id for sample in sp.open_dataset("distinct?allow_outside=true").samples] == ["cat/1.png", "cat/2.png"]
    rows = list(csv.DictReader(Path("distinct/duplicates.csv").read_text().splitlines()))
    assert [(row["id"], row["other"], row["other_set"], row["by"]) for row in rows] == [
        ("dog/4.png", "old.png", "training", "hash"),
        ("dog/3.png", "cat/1.png", "photos", "hash"),
    ]
    page = Path("pairs.html").read_text()
    assert "2 of 4 images of photos are near-duplicates" in page
    assert page.count("data:image/webp") == 4


def test_json_has_every_reason(shiftproof: Shiftproof) -> None:
    told = json.loads(shiftproof(*ASKED, "--bits", "8", "--json").out)
    assert told["left"] == ["cat/1.png", "cat/2.png", "dog/4.png"]
    (removed,) = told["removed"]
    assert (removed["id"], removed["other"], removed["by"]) == ("dog/3.png", "cat/1.png", "hash")
    assert [step["left"] for step in told["steps"]] == [4, 4, 3]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("--against", "nowhere"), "no such file or folder: nowhere"),
        (("--feature-model", "lit:0"), "did you mean lite"),
    ],
)
def test_mistakes_are_one_sentence(shiftproof: Shiftproof, typed: tuple[str, ...], told: str) -> None:
    said = shiftproof(*ASKED, *typed)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert told in said.err


def test_what_was_found_alike_is_one_case_for_studies_unless_another_is_named(
    shiftproof: Shiftproof, tmp_path: Path
) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    Path("classes.txt").write_text("\n".join(sorted(COLOURS)))
    for seed in range(6):
        for copy, image in enumerate((blotches(seed), shrunk(blotches(seed)))):
            path = Path("twins", sorted(COLOURS)[seed % 3], f"{copy}-{seed}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Pillow.fromarray(image).save(path)
    model = ["colours.onnx", "twins", "--preprocess", "unit,resize=squash", "--classes", "classes.txt", "--quiet"]
    asked = ["measure", *model[:-1], "--studies", "accuracy"]

    def cases(*typed: str) -> tuple[int, int, str]:
        told = json.loads(shiftproof(*asked, *typed, "--json").out)
        (found,) = (one for one in told["findings"] if one.get("metric") == "top1_accuracy")
        assert told["datasets"][0]["clusters"] == (None if found["clusters"] == 12 else found["clusters"])
        return found["images"], found["clusters"], found.get("cases", "")

    shiftproof("predict", *model)
    assert cases() == (12, 12, "")
    shiftproof("curate", "duplicates", "twins", "-o", "distinct", "--quiet")
    assert cases() == (12, 6, "6 images (near-duplicates joined)")
    assert cases("--cluster", "image") == (12, 12, "")
    assert cases("--cluster", "distinct/duplicates.csv") == (12, 6, "6 clusters")
    Path("twins").rename("moved")  # files are known by what they hold
    asked[2] = "moved"
    assert cases() == (12, 6, "6 images (near-duplicates joined)")


def test_the_last_look_for_duplicates_counts(shiftproof: Shiftproof) -> None:
    from shiftproof.runs.store import Store

    shiftproof(*ASKED, "--quiet")
    assert len(list(Store("runs").alike())) == 1
    shiftproof(*ASKED, "--bits", "0", "--quiet")
    assert list(Store("runs").alike()) == []
