"""The commands labels and slices, as typed: candidates, a review, corrected labels, and a slice as a rule of the gate."""

from __future__ import annotations

import csv
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Shiftproof
from review.reviewed_projects import judge
from shiftproof.curation import project as curation_project
from shiftproof.curation.project import load_project
from shiftproof.datasets import open_dataset
from shiftproof.review.database import Database
from toys import COLOURS, save_colour_network

MODEL = ("onnx:colours.onnx", "--preprocess", "squash,mean=0,std=255", "--classes", "classes.txt")


@pytest.fixture
def network(tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))


def mislabel(photos: Path) -> None:
    """Two blue photos in the folder of green ones."""
    for number in (0, 1):
        (photos / "blue" / f"{number:03}.png").rename(photos / "green" / f"blue-{number}.png")


@pytest.mark.usefixtures("network")
def test_the_whole_way_from_doubts_to_corrected_labels(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    photos = draw_photos(10)
    mislabel(photos)
    said = shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--project", "doubtful", "--quiet")
    assert said.code == 0, said.err
    first, second = said.out.splitlines()[1:3]
    assert {line.split()[0] for line in (first, second)} == {"green/blue-0.png", "green/blue-1.png"}
    assert "shiftproof review doubtful" in said.err
    assert Path("labels.html").is_file()
    project = load_project("doubtful")
    assert {project.items[0].id, project.items[1].id} == {"green/blue-0.png", "green/blue-1.png"}
    assert project.items[0].label == "green"
    assert len(Path("doubtful/labels.csv").read_text().splitlines()) == 31

    early = shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--reviewed", "doubtful")
    assert early.code == 1
    assert "no votes yet" in early.err
    blue, none = {"choice": "good", "labels": ["blue"]}, {"choice": "bad"}
    as_before = {"choice": "good", "labels": [str(project.items[2].label)]}
    votes: dict[str, Any] = {
        "green/blue-0.png": [blue, blue],
        "green/blue-1.png": [none, none],
        project.items[2].id: [as_before, as_before],
    }
    judge(Database(Path("doubtful/review.sqlite")), votes)
    said = shiftproof(
        "labels", MODEL[0], photos, *MODEL[1:], "--reviewed", "doubtful", "--corrected", "corrected.jsonl", "--json"
    )
    assert said.code == 0, said.err
    told = json.loads(said.out)
    numbers = {one["metric"]: one["value"] for one in told["results"]["findings"] if one["kind"] == "Measurement"}
    assert numbers["accuracy_as_corrected"] - numbers["accuracy_as_labelled"] == pytest.approx(2 / 30, abs=0.02)
    assert numbers["confirmed_label_errors"] == pytest.approx(2 / 3)

    corrected = open_dataset(told["corrected"])
    assert corrected.classes is not None
    labels = {one.id: [corrected.classes.keys[label] for label in one.labels] for one in corrected.samples}
    assert labels["green/blue-0.png"] == ["blue"]
    assert labels["green/blue-1.png"] == []
    assert labels["red/003.png"] == ["red"]
    facts = {one.id: one.facts for one in corrected.samples}
    assert facts["green/blue-0.png"]["reviewed"] == "label changed"
    assert facts["green/blue-0.png"]["label_before"] == "green"
    assert facts["red/003.png"]["reviewed"] is None
    planned = sp.plan(
        MODEL[0],
        corrected,
        studies=["accuracy"],
        model_options=sp.ModelSettings(preprocess=MODEL[2], classes=MODEL[4]),
    )
    assert [row["to do"] for row in planned] == [0], "what is stored of the images is found by their ids"


@pytest.mark.usefixtures("network")
def test_a_class_that_reviewers_saw_and_the_dataset_lacks_is_told(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path]
) -> None:
    photos = draw_photos(10)
    mislabel(photos)
    assert shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--project", "doubtful", "--quiet").code == 0
    blue = {"choice": "good", "labels": ["blue"]}
    judge(Database(Path("doubtful/review.sqlite")), {"green/blue-0.png": [blue, blue]})
    shutil.rmtree(photos / "blue")
    said = shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--reviewed", "doubtful")
    assert said.code == 1
    assert "reviewers saw blue" in said.err


@pytest.mark.usefixtures("network")
def test_names_that_a_spreadsheet_would_compute_are_texts(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    photos = draw_photos(4)
    (photos / "blue").rename(photos / "=blue")
    said = shiftproof("labels", MODEL[0], photos, *MODEL[1:3], "--project", "doubtful", "--suspects", 1, "--quiet")
    assert said.code == 0, said.err
    table = csv.reader(Path("doubtful/labels.csv").read_text(encoding="utf-8").splitlines())
    cells = [cell for row in table for cell in row]
    assert "'=blue" in cells
    assert not [cell for cell in cells if cell.startswith("=")]


@pytest.mark.usefixtures("network")
def test_a_manifest_that_is_not_written_is_told(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    said = shiftproof("slices", MODEL[0], draw_photos(4), *MODEL[1:], "--manifest", "sliced.jsonl", "--quiet")
    assert "no manifest is written: slices need" in said.err
    assert not Path("sliced.jsonl").exists()


def test_an_empty_name_of_a_table_is_told(shiftproof: Shiftproof) -> None:
    for form in ("--latex", "--markdown"):
        said = shiftproof("list", "recipes", form, "")
        assert said.code == 1
        assert "names no file" in said.err


@pytest.mark.usefixtures("network")
def test_slips_are_answered_before_anything_is_predicted(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    photos = draw_photos(2)
    for options, told in (
        (("--corrected", "new.jsonl"), "name their project with --reviewed"),
        (("--project", "a", "--reviewed", "b"), "choose one of them"),
        (("--reviewers-per-item", 3), "name its folder with --project"),
        (("--reviewed", "nowhere", "--corrected", "new.csv"), "JSON lines"),
    ):
        said = shiftproof("labels", MODEL[0], photos, *MODEL[1:], *options)
        assert said.code == 1
        assert told in said.err
    assert not Path("runs").exists() or not any(Path("runs").glob("*/rows*"))
    said = shiftproof("slices", MODEL[0], photos, *MODEL[1:], "--manifest", "sliced.txt")
    assert said.code == 1
    assert "sliced.jsonl" in said.err


def draw_dark_corner(root: Path, count: int = 120) -> None:
    """Photos with sites in a manifest; those of the pier are red whatever they are labelled as."""
    generator, rows = np.random.default_rng(0), []
    for place in range(count):
        colour = sorted(COLOURS)[place % 3]
        site = ["pier", "dune", "mole", "quay"][place // 3 % 4]
        shown = "red" if site == "pier" else colour
        pixels = np.clip(np.array(COLOURS[shown]) + generator.normal(0, 40, (16, 16, 3)), 0, 255).astype(np.uint8)
        (root / "pictures").mkdir(exist_ok=True)
        Pillow.fromarray(pixels).save(root / "pictures" / f"{place}.png")
        rows.append({"path": f"pictures/{place}.png", "label": colour, "site": site})
    (root / "photos.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.usefixtures("network")
def test_a_found_slice_becomes_a_rule_of_the_gate(shiftproof: Shiftproof, tmp_path: Path) -> None:
    draw_dark_corner(tmp_path)
    said = shiftproof(
        *("slices", MODEL[0], "photos.jsonl", *MODEL[1:], "--manifest", "sliced.jsonl", "--facts-alone", "--verbose"),
        "--quiet",
    )
    assert said.code == 0, said.err
    assert "site pier" in said.out
    assert Path("slices.html").is_file()
    sliced = open_dataset("sliced.jsonl")
    inside = {one.facts["site"] for one in sliced.samples if one.facts["site pier"] == "yes"}
    assert inside == {"pier"}
    gate = shiftproof(
        *("gate", MODEL[0], "sliced.jsonl", *MODEL[1:], "--least", 60, "--slices", "site pier=yes", "--quiet", "--json")
    )
    assert gate.code == 3, gate.err
    checks = json.loads(gate.out)["checks"]
    assert [one["verdict"] for one in checks if "pier" in json.dumps(one)] == ["fail"]


@pytest.mark.usefixtures("network")
def test_a_slice_of_any_name_can_be_a_rule(shiftproof: Shiftproof, tmp_path: Path) -> None:
    draw_dark_corner(tmp_path)
    rows = (tmp_path / "photos.jsonl").read_text().replace('"pier"', json.dumps('no="1" pier\\'))
    (tmp_path / "photos.jsonl").write_text(rows)
    said = shiftproof(
        *("slices", MODEL[0], "photos.jsonl", *MODEL[1:], "--manifest", "sliced.jsonl", "--facts-alone", "--json", "--quiet")
    )
    assert said.code == 0, said.err
    (rule,) = {
        one["convention"]["gate rule"] for one in json.loads(said.out)["findings"] if one.get("metric") == "slice_gap"
    }
    named = tomllib.loads(rule)["slices"]
    assert named == 'site no="1" pier\\=yes'
    gate = shiftproof(*("gate", MODEL[0], "sliced.jsonl", *MODEL[1:], "--least", 60, "--slices", named, "--quiet", "--json"))
    assert gate.code == 3, gate.err


@pytest.mark.usefixtures("network")
def test_slices_are_a_study_of_run_too(shiftproof: Shiftproof, tmp_path: Path) -> None:
    draw_dark_corner(tmp_path)
    said = shiftproof(
        "run",
        MODEL[0],
        "photos.jsonl",
        *MODEL[1:],
        "--studies",
        "error-slices,label-errors",
        "--quiet",
        "--json",
        "-o",
        "r.html",
    )
    assert said.code == 0, said.err
    found = json.loads(said.out)["findings"]
    numbers = {one["metric"] for one in found if one["kind"] == "Measurement"}
    assert {"confirmed_slices", "slice_gap", "accuracy_as_labelled"} <= numbers
    assert "likely_label_errors" in {one.get("name") for one in found}


@pytest.mark.usefixtures("network")
def test_a_project_that_cannot_be_made_leaves_nothing_behind(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = draw_photos(10)
    mislabel(photos)
    monkeypatch.setattr(curation_project, "MAX_ID_LENGTH", 3)  # which no id of these photos has
    said = shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--project", "doubtful", "--quiet")
    assert said.code == 1
    assert "cannot be stored" in said.err
    assert not Path("doubtful").exists()
    Path("doubtful").mkdir()
    Path("doubtful/mine.txt").write_text("kept")
    assert shiftproof("labels", MODEL[0], photos, *MODEL[1:], "--project", "doubtful", "--quiet").code == 1
    assert Path("doubtful/mine.txt").exists()
