"""The command that picks a threshold, as people use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Said, Shiftproof
from shiftproof.studies.measure import measure
from shiftproof.studies.threshold.exported import ExportedThreshold
from shiftproof.studies.threshold.study import OperatingPointStudy, ThresholdChoice
from toys import COLOURS, save_colour_network

Draw = Callable[..., Path]


@pytest.fixture
def greys(tmp_path: Path) -> Path:
    """Pictures of no colour that the network knows."""
    folder, rng = tmp_path / "greys", np.random.default_rng(8)
    folder.mkdir()
    for number in range(40):
        pixels = np.clip(120 + rng.normal(0, 60, (24, 32, 3)) + rng.normal(0, 9, 3), 0, 255).astype(np.uint8)
        Pillow.fromarray(pixels).save(folder / f"{number:03}.png")
    return folder


@pytest.fixture
def shiftproof(shiftproof: Shiftproof, tmp_path: Path, draw_photos: Draw, greys: Path) -> Shiftproof:
    """Picks a threshold for a small network, in a folder with photos it knows and greys it does not."""
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    draw_photos(20)

    def run(*arguments: object) -> Said:
        model = ["colours.onnx", "photos", "--preprocess", "unit,resize=squash", "--classes", "classes.txt", "--quiet"]
        return shiftproof("threshold", *model, *arguments)

    return run


ASKED = ("--ood", "greys", "--ood-detector", "energy")


def test_missing_runs_are_made_and_what_is_printed_is_what_is_written(shiftproof: Shiftproof) -> None:
    code, out, err = shiftproof(*ASKED, "--found", 0.75, "--miss-cost", 10, "--ood-share", 0.01, "-o", "point.json")
    assert code == 0, err
    written = Path("point.json").read_text(encoding="utf-8")
    point = ExportedThreshold.from_json(written)
    head, *_, threshold, cost, path = out.splitlines()
    assert head.split() == ["images", "FPR", "TPR"]
    assert f"threshold: {point.threshold:.6g}, flag an image where energy scores at least that" in threshold
    assert point.expected is not None
    assert f"expected cost per image: {point.expected.cost:.4g} at an OOD share of 1.0\u202f%" in cost
    assert "cost 1 per false positive and 10 per false negative" in cost
    assert path == "point.json"
    assert "evaluated: each image by a threshold chosen on the other half" in err
    assert "on the images it was chosen on: FPR " in err
    code, out, err = shiftproof(*ASKED, "--found", 0.75, "--miss-cost", 10, "--ood-share", 0.01, "--json")
    again = json.loads(out)
    assert {**again, "made": ""} == {**json.loads(written), "made": ""}


def test_the_stored_predictions_can_be_asked_again_without_the_command(shiftproof: Shiftproof) -> None:
    shiftproof(*ASKED, "--false-alarms", 0.1, "-o", "point.json")
    point = ExportedThreshold.from_json(Path("point.json").read_text(encoding="utf-8"))
    model = sp.load_model("colours.onnx", preprocess="unit,resize=squash", classes="classes.txt")
    study = OperatingPointStudy(
        [model],
        sp.open_dataset("photos"),
        "energy",
        ThresholdChoice(false_alarms=0.1),
        ood_datasets={"greys": sp.open_dataset("greys")},
    )
    assert ExportedThreshold.of(measure(study)).threshold == point.threshold
    assert {one.name: one.images for one in point.datasets} == {"photos": 60, "greys": 40}
    assert (point.model, point.model_fingerprint) == (model.ref.name, model.ref.fingerprint)
    assert point.versions["shiftproof"] == sp.__version__


def test_several_sets_shifts_and_training_images_take_part(shiftproof: Shiftproof, draw_photos: Draw) -> None:
    draw_photos(4, "more")
    typed = ["--training", "more", "--shifted", "contrast:5", "--edition", "tiny-64", "--goal", "failure", "--cheapest"]
    code, out, err = shiftproof(
        "--ood", "warm=greys", "--ood-detector", "knn", *typed, "--set", "knn.neighbours=2", "--json"
    )
    assert code == 0, err
    told = json.loads(out)
    assert told["parameters"]["neighbours"] == 2
    assert [one["name"] for one in told["datasets"]] == ["photos", "warm", "more"]
    assert {"photos", "contrast 5", "warm"} == set(told["where_picked"]["sets"])
    assert (told["goal"], told["chosen"]) == ("failure", "lowest cost")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (ASKED, "one of the three, got none"),
        ([*ASKED, "--cheapest", "--found", 0.5], "one of the three, got 2"),
        ([*ASKED, "--cheapest", "--id", "photos"], "given twice: photos"),
        ([*ASKED, "--false-alarms", 5], "false_alarms should lie between 0 and 1, got 5"),
        ([*ASKED, "--cheapest", "--ood-share", 1.5], "ood_share should lie between 0 and 1"),
        (["--ood", "greys", "--ood-detector", "enrgy", "--cheapest"], "did you mean energy"),
        (["--ood", "greys", "--ood-detector", "vim", "--cheapest"], "vim learns from training images"),
        (["--ood-detector", "energy", "--cheapest"], "--ood"),
        ([*ASKED, "--ood", "nowhere", "--cheapest"], "nowhere"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(shiftproof: Shiftproof, typed: list[str], told: str) -> None:
    code, out, err = shiftproof(*typed, "-o", "point.json")
    assert (code, out) == (1, "")
    assert told in err
    assert err.count("\n") == 1
    assert not Path("point.json").exists()
    assert not Path("runs").exists(), "slips are told before the model is asked"
