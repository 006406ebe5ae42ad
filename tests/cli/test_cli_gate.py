"""`shiftproof gate`: the verdict is the exit code, baselines are models, stored runs or files, and machines are told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Shiftproof
from shiftproof.types import Classifier, Inputs, Logits
from toys import COLOURS, colour_scores


@pytest.fixture
def photos(draw_photos: Callable[..., Path], tmp_path: Path) -> Path:
    """Sixty images of three colours from two sites, which two stored models have predicted: one right, one colour-blind."""
    folder = draw_photos(20)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    rows = [f"{name},{name.partition('/')[0]},{'pier' if place % 2 else 'dune'}" for place, name in enumerate(names)]
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join(["path,label,site", *rows]) + "\n")
    for name, scores in (("right", colour_scores), ("blind", _blind)):
        sp.predict(_model(name, scores), manifest, store=tmp_path / "runs", keep="logits")
    return manifest


def _model(name: str, scores: Callable[[Inputs], Logits]) -> Classifier:
    classes = sorted(COLOURS)
    return sp.wrap_model(
        scores, name=name, version="1", class_names=classes, size=(16, 16), preprocess="squash,mean=0,std=1"
    )


def _blind(inputs: Inputs) -> Logits:
    """Takes every red image for green."""
    scores = colour_scores(inputs)
    return np.where((scores.argmax(axis=1) == 2)[:, None], scores[:, [0, 2, 1]], scores)


def test_the_verdict_is_the_exit_code(shiftproof: Shiftproof, photos: Path) -> None:
    passed = shiftproof("gate", "right", photos, "--against", "blind", "--margin", 1)
    assert (passed.code, passed.out.splitlines()[-1]) == (0, "pass: right against blind on manifest, 60 images")
    failed = shiftproof("gate", "blind", photos, "--against", "right", "--margin", 1)
    assert (failed.code, failed.out.splitlines()[-1].partition(":")[0]) == (3, "fail")
    assert "red/000.png" in failed.out
    opened = shiftproof("gate", "right", photos, "--against", "right", "--margin", 1)
    assert opened.code == 4
    assert "images would decide it" in opened.out
    assert "the model is its own baseline" in opened.err
    for policy, code in (("pass", 0), ("fail", 3)):
        said = shiftproof("gate", "right", photos, "--against", "right", "--margin", 1, "--undecided", policy)
        assert said.code == code


def test_a_baseline_file_gives_the_same_verdict_without_the_old_model(
    shiftproof: Shiftproof, photos: Path, tmp_path: Path
) -> None:
    rule = ("--margin", 1, "--metric", "top1_accuracy", "--metric", "brier_score", "--slices", "site")
    written = shiftproof("gate", "right", photos, "--write-baseline", "baseline.json", *rule)
    assert (written.code, written.out.splitlines()[-1]) == (0, "baseline.json")
    by_model = json.loads(shiftproof("gate", "blind", photos, "--against", "right", *rule, "--json").out)
    by_file = json.loads(shiftproof("gate", "blind", photos, "--against", "baseline.json", *rule, "--json").out)
    assert by_file["checks"] == by_model["checks"]
    assert by_file["against"] == "right"
    assert len(by_file["checks"]) == 2 * (1 + 2)


def test_images_that_are_new_gone_or_changed_are_named_and_not_compared(shiftproof: Shiftproof, photos: Path) -> None:
    folder = photos.parent
    shiftproof("gate", "right", photos, "--write-baseline", "baseline.json", "--margin", 1)
    red = np.full((24, 32, 3), COLOURS["red"], np.uint8)
    Pillow.fromarray(red).save(folder / "red/new.png")
    Pillow.fromarray(red).save(folder / "red/001.png")
    lines = photos.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("red/000.png")]
    moved = [line.replace("green/003.png,green", "green/003.png,blue") for line in kept]
    photos.write_text("\n".join([*moved, "red/new.png,red,pier"]) + "\n")
    found = sp.gate(_model("right", colour_scores), photos, against="baseline.json", margin=1)
    assert found.new_images == ("red/new.png",)
    assert found.gone_images == ("red/000.png",)
    assert sorted(found.changed_images) == ["green/003.png", "red/001.png"]
    assert (found.images, found.compared) == (60, 57)
    assert any("red/000.png" in text for text in found.remarks)


def test_rules_of_a_file_need_nothing_typed(shiftproof: Shiftproof, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "shiftproof.toml").write_text(
        f"""
        [gate]
        model = "right"
        dataset = "{photos}"
        against = "blind"
        [[gate.rules]]
        margin = 1
        least = 80
        [[gate.rules]]
        slices = ["site=pier", "class"]
        margin = 5
        undecided = "pass"
        """
    )
    found = json.loads(shiftproof("gate", "--json").out)
    assert (found["verdict"], len(found["checks"])) == ("pass", 2 + 1 + 3)
    assert {check["verdict"] for check in found["checks"]} == {"pass", "undecided"}  # of 20 images, which only must not fail
    typed = json.loads(shiftproof("gate", "blind", "--against", "right", "--least", 90, "--json").out)
    assert (typed["verdict"], typed["model"], len(typed["checks"])) == ("fail", "blind", 1)


def test_machines_are_told(shiftproof: Shiftproof, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n")
    asked = (
        "gate",
        "blind",
        photos,
        "--against",
        "right",
        "--margin",
        1,
        "--junit",
        "junit.xml",
        "--markdown",
        "comment.md",
    )
    said = shiftproof(*asked)
    assert "::error title=shiftproof gate%3A fail::" in said.out
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().attrib["failures"] == "1"
    comment = (tmp_path / "comment.md").read_text()
    assert "red/00" in comment
    assert (tmp_path / "summary.md").read_text() == f"before\n{comment}"
    as_json = shiftproof(*asked, "--json")
    assert json.loads(as_json.out)["verdict"] == "fail"
    assert "::error" in as_json.err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--margin", 1), "held against a baseline"),
        ((), "there is no rule"),
        (("--margin", 1, "--against", "baseline.json"), "baseline.json is not there; write it with"),
        (("--margin", 1, "--against", "manifest.json"), "is no baseline as shiftproof gate writes it"),
        (("--margin", 1, "--against", "blnd"), "did you mean blind"),
        (("--margin", 1, "--against", "blind", "--metric", "top1_acuracy"), "did you mean top1_accuracy"),
        (("--margin", 1, "--against", "blind", "--slices", "sites"), "did you mean site"),
        (("--margin", 1, "--against", "blind", "--write-baseline", "b.json"), "leave out --against"),
        (("--rules", "rules.toml"), "no file of rules"),
        (("--least", 0.8), "write 80"),
    ],
)
def test_a_mistake_is_one_line(
    shiftproof: Shiftproof, photos: Path, tmp_path: Path, words: tuple[object, ...], answer: str
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    said = shiftproof("gate", "right", photos, *words)
    assert said.code == 1
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("shiftproof: ")
    assert answer in last


def test_a_baseline_of_other_images_is_refused(
    shiftproof: Shiftproof, photos: Path, draw_photos: Callable[..., Path]
) -> None:
    shiftproof("gate", "right", photos, "--write-baseline", "baseline.json", "--margin", 1)
    other = draw_photos(2, name="others")
    for path in other.rglob("*.png"):
        path.rename(path.with_stem(f"other{path.stem}"))
    said = shiftproof("gate", "right", other, "--against", "baseline.json", "--margin", 1)
    assert "none of its images is in others" in said.err
    (other / "red").rename(other / "orange")
    said = shiftproof("gate", "right", other, "--against", "baseline.json", "--margin", 1)
    assert "has other classes" in said.err


def test_no_model_and_no_dataset_is_told(shiftproof: Shiftproof) -> None:
    assert "which model?" in shiftproof("gate").err
    assert "which dataset?" in shiftproof("gate", "right").err


LIGHT = """
import sys

def test_light():
    assert not {"numpy", "scipy", "shiftproof.bench"} & set(sys.modules)
"""

PROJECT = """
def test_passes(shiftproof):
    assert shiftproof.gate(against="blind", margin=1).verdict == "pass"

def test_fails(shiftproof):
    shiftproof.gate("blind", against="right", margin=1)

def test_by_the_file(shiftproof):
    shiftproof.gate()

def test_a_slip(shiftproof):
    shiftproof.gate(against="blind", margin=1, metric="top1_acuracy")
"""


def test_the_plug_in_of_pytest_is_light_and_fails_tests_with_a_sentence(photos: Path, tmp_path: Path) -> None:
    """In a project of its own: nothing of ours is loaded before a test asks, not even numpy."""
    rules = f'[gate]\nmodel = "right"\ndataset = "{photos}"\n[[gate.rules]]\nleast = 99\n'
    (tmp_path / "shiftproof.toml").write_text(rules)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_model.py").write_text(PROJECT)
    (tmp_path / "tests/test_a.py").write_text(LIGHT)
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "shiftproof.pytest_plugin", "-p", "no:cacheprovider", "tests"]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(sp.__file__).parents[1]), "PATH": ""}
    ran = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert "3 failed, 2 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "fail: blind against right on manifest, 60 images" in ran.stdout
    assert "undecided; 100.0 % of 60 images" in ran.stdout
    assert "did you mean top1_accuracy" in ran.stdout
    assert "Traceback" not in ran.stdout
