"""Objects and input sizes as the command is typed."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from command import Shiftproof
from shiftproof.models import load_model
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.reference import ilsvrc_classes
from toys import save_colour_network

PREPARED = ("--preprocess", "squash,size=16,mean=0,std=1", "--classes", "names.txt", "--workers", 0, "--quiet")
BOXES = Path(__file__).parents[1] / "boxes" / "ilsvrc_objects.json"


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
    assert set(numbers(ran.out, "object_accuracy", "view")) == {"image", "crop", "alone", "enlarged"}
    assert numbers(ran.out, "object_share_overlap", "beside") == {"boxes": pytest.approx(1.0)}
    assert "Object and background" in Path("r.html").read_text()
    again = shiftproof(
        "report", "colours", boxes, "--studies", "objects", "--views", "alone,enlarged", "-o", "s.html", "--json"
    )
    assert again.code == 0, again.err
    assert set(numbers(again.out, "object_difference", "effect")) == {"background removed", "object enlarged", "both"}


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ("objects", "Objects classified correctly"),
        ("input-sizes", "Accuracy at this input size"),
        ("saliency", "Salient region off the object"),
    ],
)
def test_every_study_of_objects_says_its_numbers_to_people(
    shiftproof: Shiftproof, boxes: Path, study: str, told: str
) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", study, "--input-sizes", 8, "--verbose")
    assert ran.code == 0, ran.err
    assert told in ran.out


def test_without_anything_to_measure_no_report_is_written(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes.parent / "red", *PREPARED, "--studies", "saliency")
    assert (ran.code, ran.out) == (1, "")
    assert not Path("report.html").exists()


def test_a_set_without_boxes_says_so(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof(
        "run", "colours.onnx", boxes.parent / "red", *PREPARED, "--label", "red", "--studies", "accuracy,objects"
    )
    assert ran.code == 0, ran.err
    assert "left out: red: objects and background are told apart by boxes, and the dataset has none" in ran.err


def test_objects_are_not_cut_out_of_a_part_of_a_set(shiftproof: Shiftproof, boxes: Path) -> None:
    text = boxes.read_text()
    for name, wnid in {"blue": "n01440764", "green": "n01443537", "red": "n01484850"}.items():
        text = text.replace(f'"name": "{name}"', f'"name": "{wnid}"')
    boxes.write_text(text)
    Path("some.txt").write_text("n01440764\n")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "objects", "--only-classes", "some.txt")
    assert (ran.code, "leave out --only-classes and --coarse-classes" in ran.err) == (1, True), ran.err


def test_a_look_nobody_knows_is_answered_with_the_known_ones(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "objects", "--views", "alon")
    assert (ran.code, ran.err.strip()) == (1, "shiftproof: no view of an object called 'alon'; did you mean alone?")


def test_a_model_of_one_size_is_asked_about_small_pictures_and_again_from_the_store(
    shiftproof: Shiftproof, boxes: Path
) -> None:
    asked = ("--studies", "input-sizes", "--input-sizes", "8,12,32", "-o", "r.html", "--json")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, *asked)
    assert ran.code == 0, ran.err
    accuracy = numbers(ran.out, "input_size_accuracy", "input_size")
    assert set(accuracy) == {8, 12, 16}
    results = json.loads(ran.out)
    assert results["skipped"] == ["colours on boxes: nothing at 32, which it does not take or was not run at"]
    assert {card["name"] for card in results["models"]} == {
        "colours",
        "colours on pictures of 8",
        "colours on pictures of 12",
    }
    again = shiftproof("measure", "colours", boxes, "--studies", "input-sizes", "--input-sizes", "8,12", "--json")
    assert again.code == 0, again.err
    assert numbers(again.out, "input_size_accuracy", "input_size") == accuracy


def test_crops_are_shown_at_their_scale_and_found_in_the_store_again(shiftproof: Shiftproof, boxes: Path) -> None:
    """Boxes of exactly half their images have SF 1/2: at SF x 24 they are 12 pixels wide, at SF x 32 16, as the input is."""
    asked = ("--studies", "objects", "--views", "crop", "--crop-sizes", "24,32,64", "--json")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, *asked, "-o", "r.html")
    assert ran.code == 0, ran.err
    rows = [one for one in json.loads(ran.out)["findings"] if one.get("metric") == "scaled_crop_accuracy"]
    shown = {one["about"]["times"]: (one["about"]["scale_factor"], one["about"]["side"], one["images"]) for one in rows}
    assert shown == {24: ("1/2", 12, 12), 32: ("1/2", 16, 12)}
    assert "no crops at 1/2 x 64" in ran.err + str(json.loads(ran.out)["skipped"]), "it takes 16 x 16 alone"
    assert "Crops at their scale" in Path("r.html").read_text()
    totals = numbers(ran.out, "scaled_crop_total", "times")
    assert set(totals) == {24, 32}
    again = shiftproof("measure", "colours", boxes, *asked)
    assert again.code == 0, again.err
    assert numbers(again.out, "scaled_crop_total", "times") == totals
    without = shiftproof(
        "measure", "colours", boxes, "--studies", "objects", "--views", "crop", "--crop-sizes", "none", "--json"
    )
    assert numbers(without.out, "scaled_crop_total", "times") == {}


def test_rectangular_input_sizes_can_be_asked_for(shiftproof: Shiftproof, boxes: Path) -> None:
    asked = ("--studies", "input-sizes", "--input-sizes", "8x12,8", "--json")
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, *asked, "-o", "r.html")
    assert ran.code == 0, ran.err
    assert set(numbers(ran.out, "input_size_accuracy", "input_size")) == {8, "8 x 12", 16}
    assert "8 × 12" in Path("r.html").read_text()
    again = shiftproof("measure", "colours", boxes, *asked)
    assert set(numbers(again.out, "input_size_accuracy", "input_size")) == {8, "8 x 12", 16}, again.err


def test_sizes_that_are_none_are_refused(shiftproof: Shiftproof, boxes: Path) -> None:
    ran = shiftproof("run", "colours.onnx", boxes, *PREPARED, "--studies", "input-sizes", "--input-sizes", "large")
    assert ran.code == 1
    assert "sizes should be some of 8 to 4096" in ran.err


@pytest.mark.real
def test_real_objects_are_lost_in_small_inputs_and_in_tight_crops(
    shiftproof: Shiftproof, real_data: Path, real_runs: Path
) -> None:
    """99 photos with the box of their class drawn by eye: EfficientNet-Lite0 crops a tight box once more."""
    location = f"coco:{BOXES}?images={real_data / 'ilsvrc-sample-1000'}"
    ran = shiftproof(
        "run",
        "lite:0",
        location,
        "--studies",
        "objects,input-sizes",
        "--input-sizes",
        "96,160",
        "--crop-sizes",
        "none",
        "--store",
        real_runs,
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
    assert numbers(ran.out, "object_accuracy", "view")["image"] == accuracy[224], "the whole images, asked once"


@pytest.mark.real
def test_crops_of_real_objects_at_their_scale_are_what_a_plain_loop_comes_to(
    shiftproof: Shiftproof, real_data: Path, real_runs: Path
) -> None:
    """Every box cut out and resized by Pillow, and shown to EfficientNet-Lite0 built for that size."""
    photos = real_data / "ilsvrc-sample-1000"
    ran = shiftproof(
        *("run", "lite:0", f"coco:{BOXES}?images={photos}", "--studies", "objects", "--views", "crop"),
        *("--crop-sizes", "112,224"),  # the 448 of the default costs ten times as much as both
        *("--store", real_runs, "--quiet", "-o", "r.html", "--json"),
    )
    assert ran.code == 0, ran.err
    found = [one for one in json.loads(ran.out)["findings"] if one.get("metric") == "scaled_crop_accuracy"]
    told = Counter({(one["about"]["side"], one["about"]["times"]): round(one["value"] * one["images"]) for one in found})
    boxes = json.loads(BOXES.read_text())
    files = {one["id"]: one["file_name"] for one in boxes["images"]}
    labels = {one["id"]: ilsvrc_classes().keys.index(one["name"]) for one in boxes["categories"]}
    model = load_model("lite:0")
    assert isinstance(model, LoadedClassifier)
    assert model.for_size is not None
    for_size = model.for_size
    built = functools.cache(lambda side: for_size((side, side)))
    right: Counter[tuple[int, int]] = Counter()
    for one in boxes["annotations"]:
        photo = Pillow.open(photos / files[one["image_id"]]).convert("RGB")
        left, top, width, height = one["bbox"]
        share = max(224 * width / photo.width, 224 * height / photo.height) / 224
        factor = next(2.0**-k for k in (4, 3, 2, 1, 0) if share <= 2.0**-k)
        crop = photo.crop((math.floor(left), math.floor(top), math.ceil(left + width), math.ceil(top + height)))
        for times in (112, 224):
            side = round(factor * times)
            pixels = (np.asarray(crop.resize((side, side), Pillow.Resampling.BICUBIC), np.float32) - 127) / 128
            inputs = np.ascontiguousarray(pixels.transpose(2, 0, 1))[None]
            right[side, times] += int(built(side)(inputs, False).scores.argmax()) == labels[one["category_id"]]
    assert right == told
    assert len(boxes["annotations"]) == sum(one["images"] for one in found) / 2 == 99
