"""Objects and input sizes as the command is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import Shiftproof
from toys import save_colour_network

PREPARED = ("--prepare", "squash,size=16,mean=0,std=1", "--classes", "names.txt", "--workers", 0, "--quiet")
BOXES = Path(__file__).parent / "boxes" / "ilsvrc_objects.json"


@pytest.fixture
def boxes(tmp_path: Path, draw_photos: Callable[..., Path]) -> Path:
    """Photos of one colour each, with a box in the middle of every one."""
    photos = draw_photos(4)
    (tmp_path / "names.txt").write_text("blue\ngreen\nred\n")
    save_colour_network(tmp_path / "colours.onnx")
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.png"))
    categories = {"blue": 1, "green": 2, "red": 3}
    text = {
        "images": [{"id": place, "file_name": name, "width": 32, "height": 24} for place, name in enumerate(names)],
        "annotations": [
            {"image_id": place, "category_id": categories[Path(name).parent.name], "bbox": [8, 6, 16, 12]}
            for place, name in enumerate(names)
        ],
        "categories": [{"id": number, "name": name} for name, number in categories.items()],
    }
    (photos / "boxes.json").write_text(json.dumps(text))
    return photos / "boxes.json"


def numbers(said: str, metric: str, key: str) -> dict[Any, float]:
    found = [one for one in json.loads(said)["findings"] if one["kind"] == "Measurement" and one["metric"] == metric]
    return {one["about"][key]: one["value"] for one in found}


def test_objects_are_cut_out_asked_and_reported(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof(
        "run", "colours.onnx", boxes, *PREPARED, "--studies", "objects", "--beside-boxes", boxes, "-o", "r.html", "--json"
    )
    assert ran.code == 0, ran.err
    assert set(numbers(ran.out, "object_accuracy", "look")) == {"image", "crop", "alone", "enlarged"}
    assert numbers(ran.out, "object_share_overlap", "beside") == {"boxes": pytest.approx(1.0)}
    assert "Object and background" in Path("r.html").read_text()
    again = shiftproof(
        "report", "colours", boxes, "--studies", "objects", "--looks", "alone,enlarged", "-o", "s.html", "--json"
    )
    assert again.code == 0, again.err
    assert set(numbers(again.out, "object_difference", "effect")) == {"background removed", "object enlarged", "both"}


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ("objects", "Objects named right"),
        ("input-sizes", "Accuracy at this size"),
        ("heat-maps", "Hot region off the object"),
    ],
)
def test_every_study_of_objects_says_its_numbers_to_people(
    shiftproof: Shiftproof, boxes: Path, study: str, told: str
) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", study, "--sizes", 8)
    assert ran.code == 0, ran.err
    assert told in ran.out


def test_without_anything_to_measure_no_report_is_written(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes.parent / "red", *PREPARED, "--studies", "heat-maps")
    assert (ran.code, ran.out) == (1, "")
    assert not Path("report.html").exists()


def test_a_set_without_boxes_says_so(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof(
        "run", "colours.onnx", boxes.parent / "red", *PREPARED, "--label", "red", "--studies", "accuracy,objects"
    )
    assert ran.code == 0, ran.err
    assert "left out: red: objects are told from their background by boxes, and it has none" in ran.err


def test_objects_are_not_cut_out_of_a_part_of_a_set(shiftproof: Shiftproof, boxes: Path) -> None:
    text = boxes.read_text()
    for name, wnid in {"blue": "n01440764", "green": "n01443537", "red": "n01484850"}.items():
        text = text.replace(f'"name": "{name}"', f'"name": "{wnid}"')
    boxes.write_text(text)
    Path("some.txt").write_text("n01440764\n")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "objects", "--only-classes", "some.txt")
    assert (ran.code, "leave out --only-classes and --above" in ran.err) == (1, True), ran.err


def test_a_look_nobody_knows_is_answered_with_the_known_ones(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "objects", "--looks", "alon")
    assert (ran.code, ran.err.strip()) == (1, "shiftproof: no look of an object called 'alon'; did you mean alone?")


def test_a_model_of_one_size_is_asked_about_small_pictures_and_again_from_the_store(
    shiftproof: Shiftproof, boxes: Path
) -> None:
    asked = ("--studies", "input-sizes", "--sizes", "8,12,32", "-o", "r.html", "--json")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, *asked)
    assert ran.code == 0, ran.err
    accuracy = numbers(ran.out, "input_size_accuracy", "input_size")
    assert set(accuracy) == {8, 12, 16}
    results = json.loads(ran.out)
    assert results["skipped"] == ["colours on boxes: nothing at 32, which it does not take or was not asked at"]
    assert {card["name"] for card in results["models"]} == {
        "colours",
        "colours on pictures of 8",
        "colours on pictures of 12",
    }
    again = shiftproof("measure", "colours", boxes, "--studies", "input-sizes", "--sizes", "8,12", "--json")
    assert again.code == 0, again.err
    assert numbers(again.out, "input_size_accuracy", "input_size") == accuracy


def test_sizes_that_are_none_are_refused(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "input-sizes", "--sizes", "large")
    assert ran.code == 1
    assert "sizes should be some of 8 to 4096" in ran.err


@pytest.mark.real
def test_real_objects_are_lost_in_small_inputs_and_in_tight_crops(shiftproof: Shiftproof, real_data: Path) -> None:
    """99 photos with the box of their class drawn by eye: EfficientNet-Lite0 crops a tight box once more."""
    location = f"coco:{BOXES}?images={real_data / 'ilsvrc-sample-1000'}"
    ran = shiftproof(
        "run",
        "lite:0",
        location,
        "--studies",
        "objects,input-sizes",
        "--sizes",
        "96,160",
        "--quiet",
        "-o",
        "r.html",
        "--json",
    )
    assert ran.code == 0, ran.err
    effects = {
        one["about"]["effect"]: one
        for one in json.loads(ran.out)["findings"]
        if one["kind"] == "Measurement" and one["metric"] == "object_difference"
    }
    assert effects["cropped"]["interval"][1] < 0 < effects["object enlarged"]["interval"][1]
    both = effects["background removed"]["value"] + effects["object enlarged"]["value"]
    assert both == pytest.approx(effects["both"]["value"])
    accuracy = numbers(ran.out, "input_size_accuracy", "input_size")
    assert accuracy[96] < accuracy[160] - 0.1
    assert numbers(ran.out, "object_accuracy", "look")["image"] == accuracy[224], "the whole images, asked once"
