"""Classifiers that go by boxes, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command import Said, Shiftproof
from toys import COLOURS, save_colour_network

SETTINGS = ("--preprocess", "unit,resize=squash", "--classes", "classes.txt")


def accuracies(said: Said) -> dict[str, Any]:
    assert said.code == 0, said.err
    found = json.loads(said.out)["findings"]
    return {one["metric"]: one for one in found if one["about"].keys() == {"model", "dataset"} and "metric" in one}


@pytest.fixture
def colours(draw_photos: Any, tmp_path: Path) -> Path:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    return Path(draw_photos(3))


def test_a_classifier_is_asked_about_windows(shiftproof: Shiftproof, colours: Path) -> None:
    asked = (
        "run",
        "proposals:onnx:colours.onnx",
        colours,
        *SETTINGS,
        "--proposals",
        "grid",
        "--studies",
        "accuracy",
        "--json",
    )
    said = shiftproof(*asked)
    accuracy = accuracies(said)["top1_accuracy"]
    assert (accuracy["value"], accuracy["images"], accuracy["about"]["model"]) == (1.0, 9, "colours on crops by grid")
    assert "note: of each image up to 20 crops by grid are classified: each predicts one class" in said.err
    few = shiftproof(*asked, "--max-proposals", 2, "--min-side", 30, "--proposal-output", "most-confident")
    assert accuracies(few)["top1_accuracy"]["images"] == 9
    assert "note: of each image up to 2 crops by grid are classified: the most confident prediction stands" in few.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("proposals:onnx:colours.onnx",), "needs --proposals"),
        (("proposals:onnx:colours.onnx", "--proposals", "grid", "--boxes", "yolox"), "a grid of proposals takes no boxes"),
        (
            ("proposals:onnx:colours.onnx", "--proposals", "grid", "--proposal-output", "most-confident", "--fill", "empty"),
            "the output for the most confident crop, which has all classes, takes no fill",
        ),
        (("onnx:colours.onnx", "--min-side", "5"), "onnx:colours.onnx as a classifier takes no min_side"),
        (("boxes:onnx:colours.onnx", "--boxes", "yolox", "--max-proposals", "5"), "takes no max_proposals"),
        (("onnx:colours.onnx", "--proposals", "grid"), "onnx:colours.onnx as a classifier takes no proposals"),
        (("boxes:onnx:colours.onnx", "--gives", "logits", "--boxes", "yolox"), "boxes:onnx:colours.onnx takes no gives"),
        (
            ("onnx:colours.onnx", "--boxes", "yolox", "--fill", "empty"),
            "takes no --fill; that is for classifiers, as boxes:MODEL is",
        ),
        (("onnx:colours.onnx", "--boxes", "yolox", "--weights", "file"), "an ONNX file takes no weights"),
        (("onnx:colours.onnx", "--boxes", "yolox", "--precision", "float16"), "an ONNX file takes no precision"),
        (("boxes:lite:0",), "no object detector called 'lite'"),
    ],
)
def test_nothing_said_of_boxes_is_passed_over_in_silence(
    typed: tuple[str, ...], told: str, shiftproof: Shiftproof, colours: Path
) -> None:
    model, *options = typed
    code, _, err = shiftproof("run", model, colours, *SETTINGS, *options, "--studies", "accuracy", "--quiet")
    assert (code, told in err) == (1, True), err


def link(folder: Path, photos: Sequence[Path]) -> None:
    folder.mkdir()
    for photo in photos:
        (folder / photo.name).symlink_to(photo)


@pytest.mark.real
@pytest.mark.parametrize("fill", ["random", "empty"])
def test_a_real_detector_classifies_photos_by_the_classes_above_theirs(
    fill: str, shiftproof: Shiftproof, real_data: Path, tmp_path: Path
) -> None:
    """Photos of dogs, most of which a detector of COCO's classes finds, and of reptiles that it has no class for."""
    dogs = sorted((real_data / "ilsvrc-sample-1000").glob("n0208[5-9]*.jpg"))
    reptiles = sorted((real_data / "ilsvrc-sample-1000").glob("n016[7-9]*.jpg"))
    link(tmp_path / "photos", [*dogs, *reptiles])
    model = f"boxes:onnx:{real_data / 'models' / 'yolox_nano.onnx'}"
    asked = ("--boxes", "yolox", "--coarse-classes", "coco", "--fill", fill, "--studies", "accuracy,calibration", "--json")
    said = shiftproof("run", model, "photos", *asked)
    found = accuracies(said)
    assert f"{len(dogs)} of {len(dogs) + len(reptiles)} images are of 1 of the 80 coarse classes" in said.err
    assert found["top1_accuracy"]["images"] == len(dogs)
    # people and bowls on these photos are found too, often before the dog; one class of 80 would be right by chance
    assert 0.5 < found["top1_accuracy"]["value"] < found["top5_accuracy"]["value"]
    assert "rms_calibration_error" not in found  # scores are no probabilities


@pytest.mark.real
def test_crops_by_a_real_detector_are_asked_of_a_real_classifier(
    shiftproof: Shiftproof, real_data: Path, tmp_path: Path
) -> None:
    link(tmp_path / "photos", sorted((real_data / "ilsvrc-sample-1000").glob("n0208[5-9]*.jpg"))[:6])
    detector = f"onnx:{real_data / 'models' / 'yolox_nano.onnx'}"
    said = shiftproof(
        *(
            "run",
            "proposals:lite:0",
            "photos",
            "--proposals",
            detector,
            "--boxes",
            "yolox",
            "--studies",
            "accuracy",
            "--json",
        )
    )
    accuracy = accuracies(said)["top1_accuracy"]
    assert accuracy["about"]["model"] == "lite:0 on crops by yolox_nano"
    assert accuracy["value"] >= 0.5
