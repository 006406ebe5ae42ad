"""The files of boxes that were drawn by eye for these tests are sound, and open over the real photos and the real clip."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.datasets import open_dataset
from shiftproof.reference import load_table

BOXES = Path(__file__).parents[1] / "boxes"
FILES = ("photos.json", "ilsvrc_objects.json", "cockatoo.json")
PHOTOS = "ilsvrc-sample-1000"


def drawn(file: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((BOXES / file).read_text(encoding="utf-8"))
    return said


@pytest.mark.parametrize("file", FILES)
def test_every_image_has_a_box_and_every_box_lies_inside_its_image(file: str) -> None:
    said = drawn(file)
    sizes = {image["id"]: (image["width"], image["height"]) for image in said["images"]}
    assert {one["image_id"] for one in said["annotations"]} == set(sizes)
    for one in said["annotations"]:
        left, top, width, height = one["bbox"]
        across, down = sizes[one["image_id"]]
        assert min(left, top) >= 0
        assert min(width, height) >= 5, "the smallest objects drawn are a few pixels wide"
        assert (left + width <= across, top + height <= down) == (True, True)
        assert one["area"] == width * height


@pytest.mark.parametrize("file", FILES)
def test_no_box_is_drawn_twice(file: str) -> None:
    boxes = Counter((one["image_id"], one["category_id"], *one["bbox"]) for one in drawn(file)["annotations"])
    assert max(boxes.values()) == 1


@pytest.mark.parametrize("file", ["photos.json", "cockatoo.json"])
def test_categories_have_the_numbers_of_coco(file: str) -> None:
    numbers = {row["name"]: int(row["category"]) for row in load_table("coco_classes")}
    assert {one["name"]: one["id"] for one in drawn(file)["categories"]} == numbers


def test_the_object_of_a_photo_is_what_its_own_label_names() -> None:
    said = drawn("ilsvrc_objects.json")
    wnids = {one["id"]: one["name"] for one in said["categories"]}
    labels = {image["id"]: image["file_name"].partition("_")[0] for image in said["images"]}
    assert {one["image_id"]: wnids[one["category_id"]] for one in said["annotations"]} == labels
    assert len(said["annotations"]) == len(labels)


def test_the_object_of_a_photo_covers_what_was_drawn_of_it_in_both_files() -> None:
    """Where all objects of a photo are of one class, the box over them is that of the other file."""
    said = drawn("photos.json")
    by_photo: dict[int, list[dict[str, Any]]] = {}
    for one in said["annotations"]:
        by_photo.setdefault(one["image_id"], []).append(one)
    names = {image["id"]: image["file_name"] for image in said["images"]}
    objects = drawn("ilsvrc_objects.json")
    covering = {
        image["file_name"]: one["bbox"] for image, one in zip(objects["images"], objects["annotations"], strict=True)
    }
    compared = 0
    for number, found in by_photo.items():
        if len(found) == 1 and names[number] in covering:
            assert found[0]["bbox"] == covering[names[number]]
            compared += 1
    assert compared > 15


@pytest.mark.real
@pytest.mark.parametrize("file", ["photos.json", "ilsvrc_objects.json"])
def test_the_photos_open_with_the_size_that_the_boxes_were_drawn_on(file: str, real_data: Path) -> None:
    images = open_dataset(BOXES / file, images=real_data / PHOTOS)
    said = drawn(file)
    assert len(images.samples) == len(said["images"])
    for sample in images.samples:
        with Pillow.open(real_data / PHOTOS / sample.id) as photo:
            assert photo.size == (sample.facts["width"], sample.facts["height"])
    truths = images.truths
    assert truths is not None
    assert len(truths.boxes) == len(said["annotations"]), "none is cut or dropped"
    assert truths.crowd.sum() == sum(one["iscrowd"] for one in said["annotations"])


@pytest.mark.real
def test_the_boxes_of_the_clip_lie_on_the_frames_around_its_anchors(real_data: Path) -> None:
    clip = real_data / "video" / "cockatoo.mp4"
    boxed = open_dataset(f"boxed:clips:{clip}?k=10&anchors=20,185,250?boxes={BOXES / 'cockatoo.json'}")
    said = {image["file_name"]: image for image in drawn("cockatoo.json")["images"]}
    assert [sample.id for sample in boxed.samples] == sorted(said)
    for sample in boxed.samples:
        about = {fact: sample.facts[fact] for fact in ("clip", "anchor", "offset", "frame")}
        assert about == {fact: said[sample.id][fact] for fact in about}
    assert Counter(sample.facts["anchor"] for sample in boxed.samples) == {
        f"cockatoo.mp4/{anchor:06d}": 21 for anchor in (20, 185, 250)
    }
    source = boxed.source(boxed.samples[0])
    assert source.decode(source.read()).shape == (720, 1280, 3)
    assert boxed.truths is not None
    edges = np.abs(np.diff(boxed.truths.boxes, axis=0))
    within = [one.facts["anchor"] == two.facts["anchor"] for one, two in zip(boxed.samples, boxed.samples[1:], strict=False)]
    assert edges[within].max() < 40, "the bird moves little from one frame to the next"
