"""From photos and clips to a set that people made of them, by the commands and in browsers as its makers go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from command import Shiftproof
from patience import wait_for
from review.browsing import Reviewing
from shiftproof.curation.project import load_project
from shiftproof.datasets import open_dataset
from shiftproof.review.validation import box_of

pytestmark = pytest.mark.real

TakeSeats = Callable[..., list[Reviewing]]

HARD = ("hammer", "maraca", "gorilla", "digital_watch", "Dungeness_crab", "fountain_pen", "cleaver")
"""Photos that two small networks get wrong in all of ten crops, among others."""


def linked(folder: Path, files: list[Path]) -> Path:
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.name).symlink_to(file)
    return folder


def told(shiftproof: Shiftproof, *words: object) -> dict[str, Any]:
    """What a command says as JSON."""
    said = shiftproof(*words, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def verdicts(shiftproof: Shiftproof, folder: Path) -> dict[str, Any]:
    return told(shiftproof, "verdicts", folder)


def measured(shiftproof: Shiftproof, *words: object) -> list[dict[str, Any]]:
    return [one for one in told(shiftproof, *words, "--quiet")["findings"] if one["kind"] == "Measurement"]


def look_together(person: Reviewing, item: str) -> None:
    """Opens the page to look together, and pages to an item."""
    person.page.goto(f"{person.server.address}/together")
    while person.item() != item:
        shown = person.page.locator("#stage").get_attribute("data-ready")
        person.page.keyboard.press(".")
        wait_for(person.page, "shown => stage.dataset.ready !== shown", shown)


def change_answer(person: Reviewing, key: str) -> None:
    person.page.keyboard.press(key)
    person.page.get_by_text("Your answer is changed.").wait_for()


def test_photos_that_models_get_wrong_and_two_people_keep_are_hard_for_another_model(
    shiftproof: Shiftproof, take_seats: TakeSeats, real_data: Path, tmp_path: Path
) -> None:
    every = sorted((real_data / "ilsvrc-sample-1000").iterdir())
    photos = linked(tmp_path / "photos", [file for file in every if file.stem.partition("_")[2] in HARD] + every[::100])
    mobile = f"onnx:{real_data / 'models' / 'mobilenetv2_int8_torchvision.onnx'}?preprocess=imagenet,size=244"
    filters = ("--filter", "lite:0", "--filter", mobile)
    assert shiftproof("curate", "adversarial", photos, "hard", *filters, "--quiet").code == 0
    project = load_project(tmp_path / "hard")
    wrong = {item.id.removesuffix(".jpg").partition("_")[2]: item.id for item in project.items}
    assert set(HARD) <= wrong.keys()
    ada, ben = take_seats(project, "Ada", "Ben")
    clear, pen = {wrong[name] for name in ("hammer", "maraca", "gorilla", "digital_watch")}, wrong["fountain_pen"]
    seen = ada.answer_all(lambda item: "y" if item in clear | {pen} else "n2")
    assert sorted(seen) == sorted(wrong.values())
    ben.answer_all(lambda item: "y" if item in clear else "n3" if item == pen else "n1")
    blind = verdicts(shiftproof, project.folder)
    assert blind["outcomes"] == {"kept": 4, "rejected": len(wrong) - 4, "open": 0}
    assert blind["agreement"]["percent"] == pytest.approx(1 - 1 / len(wrong))
    look_together(ben, pen)
    change_answer(ben, "y")
    assert verdicts(shiftproof, project.folder)["outcomes"]["kept"] == 5
    assert shiftproof("curate", "export", "hard", "set", "--layout", "imagenet-a", "--quiet").code == 0
    assert {sample.id.rpartition("/")[2] for sample in open_dataset("set").samples} == clear | {pen}
    accuracies = [
        one["value"]
        for images in ("set", photos)
        for one in measured(shiftproof, "run", "lite:1", images, "--studies", "accuracy")
        if one["metric"] == "top1_accuracy"
    ]
    assert accuracies[0] < accuracies[1] / 2


def test_frames_that_two_people_find_alike_once_they_have_talked_make_a_set_for_pm_k(
    shiftproof: Shiftproof, take_seats: TakeSeats, real_data: Path, tmp_path: Path
) -> None:
    linked(tmp_path / "clips" / "n03792782", [real_data / "video" / "bikes.mp4"])
    # a taxi without a bicycle, and a bicycle at a fence with a cut three frames later
    assert shiftproof("curate", "frames", "clips", "pairs", "--anchors", "65,184", "--k", "3", "--quiet").code == 0
    project = load_project(tmp_path / "pairs")
    offsets = {item.id: (str(item.group)[-3:], int(str(item.facts["offset"]))) for item in project.items}
    after_cut, blurred = (next(item for item, place in offsets.items() if place == ("184", away)) for away in (3, -3))

    def ada_says(item: str) -> str:
        return "a" if offsets[item][0] == "065" else "b" if item == after_cut else "s"

    ada, ben = take_seats(project, "Ada", "Ben")
    assert len(ada.answer_all(ada_says)) == 7, "one answer for all pairs of the bad anchor"
    ben.answer_all(lambda item: "r" if item == blurred else "s" if item == after_cut else ada_says(item))
    assert verdicts(shiftproof, project.folder)["outcomes"] == {"kept": 4, "rejected": 8, "open": 0}
    look_together(ada, blurred)
    ada.page.keyboard.press("t")
    ada.page.keyboard.type("No more than the other one.")
    ada.page.keyboard.press("Enter")
    look_together(ben, blurred)
    ben.page.locator("#comments li", has_text="No more than the other one.").wait_for()
    change_answer(ben, "s")
    found = verdicts(shiftproof, project.folder)
    assert found["outcomes"] == {"kept": 5, "rejected": 7, "open": 0}
    assert sum(one["closed_by_group"] for one in found["verdicts"]) == 6
    assert shiftproof("curate", "export", "pairs", "alike", "--layout", "vid-robust", "--quiet").code == 0
    profile = measured(shiftproof, "run", "lite:0", "alike", "--minutes", "0.01")  # enough for what needs no corruption
    asked = {one["about"].get("k"): one["images"] for one in profile}
    assert asked[3] == 1, "the anchor that is left"
    assert sorted(int(str(sample.facts["offset"])) for sample in open_dataset("alike").samples) == [-3, -2, -1, 0, 1, 2]


def test_boxes_that_two_people_draw_by_keys_and_by_clicks_are_cut_out_and_exported(
    shiftproof: Shiftproof, take_seats: TakeSeats, real_data: Path, tmp_path: Path
) -> None:
    every = sorted((real_data / "ilsvrc-sample-1000").iterdir())
    linked(tmp_path / "photos", [file for file in every if file.stem.partition("_")[2] in ("maraca", "digital_watch")])
    assert shiftproof("curate", "boxes", "photos", "boxes", "--quiet").code == 0
    project = load_project(tmp_path / "boxes")
    ada, ben = take_seats(project, "Ada", "Ben")
    ways = {"Left": 5, "Up": 4, "Right": 9, "Down": 7}
    drawn = [key for way, leaps in ways.items() for key in (*[f"Shift+Arrow{way}"] * leaps, "Space")]
    ada.answer_all(lambda _: (*drawn, "Enter"))
    ben.begin()
    for _ in project.items:
        ben.item()
        picture = ben.page.locator("#stage img").bounding_box()
        assert picture is not None
        for x, y in ((0.2, 0.5), (0.7, 0.5), (0.5, 0.3), (0.5, 0.7)):
            ben.page.mouse.click(picture["x"] + x * picture["width"], picture["y"] + y * picture["height"])
        ben.page.keyboard.press("Enter")
    boxes: dict[str, list[tuple[float, ...]]] = {}
    for vote in ben.saved():
        boxes.setdefault(vote.item, []).append(box_of(vote.answer or {}))
    found = {one["item"]: one["box"] for one in verdicts(shiftproof, project.folder)["verdicts"]}
    between = {item: [sum(sides) / 2 for sides in zip(*two, strict=True)] for item, two in boxes.items()}
    assert found == {item: pytest.approx(box) for item, box in between.items()}
    (tmp_path / "usual.csv").write_text("wnid,share\n" + "".join(f"{item.label},0.5\n" for item in project.items))
    crops = ("curate", "crops", "photos", "crops", "--annotated", "boxes", "--shares", "usual.csv", "--quiet")
    assert shiftproof(*crops).code == 0
    assert shiftproof("curate", "export", "boxes", "boxed", "--layout", "coco", "--quiet").code == 0
    exported = json.loads((tmp_path / "boxed" / "annotations.json").read_text())["annotations"]
    areas = sorted(one["bbox"][2] * one["bbox"][3] for one in exported)
    assert sorted(area_of(crop) / 2 for crop in (tmp_path / "crops").rglob("*.png")) == pytest.approx(areas, rel=0.03)


def area_of(picture: Path) -> int:
    with Pillow.open(picture) as opened:
        return opened.width * opened.height


def test_two_people_are_tested_on_photos_and_their_numbers_come_out(
    shiftproof: Shiftproof, take_seats: TakeSeats, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    rounds = ("--training-per-class", "1", "--qualify", "4", "--test", "8", "--pass-mark", "0.75", "--quiet")
    assert shiftproof("curate", "human-test", draw_photos(8), "-o", "people", *rounds).code == 0
    project = load_project(tmp_path / "people")
    truth = {item.id: str((item.answer or {})["class"][0]) for item in project.items}
    names = sorted(set(truth.values()))
    mistaken = sorted(item.id for item in project.items if item.role == "asked")[:2]

    def answered(person: Reviewing, wrong: list[str]) -> None:
        def keys(item: str) -> list[str]:
            return [*(next(one for one in names if one != truth[item]) if item in wrong else truth[item]), "Enter"]

        person.page.keyboard.press("Tab")  # to the button that consents
        person.page.keyboard.press("Enter")
        person.page.wait_for_url("**/work")
        assert len(person.answer_all(keys)) == len(project.items)

    ada, ben = take_seats(project, "Ada", "Ben")
    answered(ada, [])
    answered(ben, mistaken)
    tested = verdicts(shiftproof, project.folder)["human_test"]
    accuracies, together = (
        [one["value"] for one in tested if one["metric"] == metric] for metric in ("human_accuracy", "both_correct")
    )
    assert accuracies == [1, 6 / 8]
    assert together == [6, 2, 0, 0], "both, only one, only the other, neither"
    said = shiftproof("verdicts", project.folder)
    assert ": 8 items, by" in said.out
    assert "kept" not in said.out, "a wrong name rejects no image"
