"""Boxes of a file on the images of any set, each case worked by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput
from shiftproof.types import Classes

Draw = Callable[..., Path]

XML = (
    "<annotation><object><name>{wnid}</name><generated>{generated}</generated>"
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object></annotation>"
)


def write_boxes(path: Path, ids: Sequence[str], **facts: Any) -> Path:
    """A COCO file in which every image has one bird, five pixels further right than in the image before."""
    images = [{"id": number, "file_name": name, **facts} for number, name in enumerate(ids)]
    birds = [{"image_id": number, "category_id": 16, "bbox": [5 * number, 1, 4, 3]} for number in range(len(ids))]
    categories = [{"id": 17, "name": "cat"}, {"id": 16, "name": "bird"}]
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": birds}))
    return path


@pytest.fixture
def frames(tmp_path: Path, draw: Draw) -> Path:
    for number in range(6):
        draw(tmp_path / "film" / f"frame-{number}.png", width=40)
    return tmp_path


def test_frames_keep_their_anchors_and_are_labelled_with_what_is_in_their_boxes(frames: Path) -> None:
    file = write_boxes(frames / "boxes.json", ["film/frame-1.png", "film/frame-2.png", "film/frame-3.png"])
    boxed = open_dataset(f"boxed:frames:{frames}?k=1&anchors=2?boxes={file}")
    assert boxed.classes == Classes(("bird", "cat"))
    assert [sample.labels for sample in boxed.samples] == [(0,)] * 3
    assert [sample.facts["offset"] for sample in boxed.samples] == [-1, 0, 1]
    assert boxed.truths is not None
    assert boxed.truths.boxes.tolist() == [[0, 1, 4, 4], [5, 1, 9, 4], [10, 1, 14, 4]]
    source = boxed.source(boxed.samples[0])
    assert source.decode(source.read()).shape == (8, 40, 3)
    assert boxed.ref.location is not None
    assert open_dataset(boxed.ref.location).ref == boxed.ref


def test_a_frame_near_two_anchors_has_its_boxes_for_both(frames: Path) -> None:
    file = write_boxes(frames / "boxes.json", [f"film/frame-{number}.png" for number in range(6)])
    boxed = open_dataset(f"boxed:frames:{frames}?k=1&anchors=2,3?boxes={file}")
    assert [sample.id for sample in boxed.samples if sample.facts["frame"] == 2] == [
        "film/frame-2.png",
        "film/frame-2.png@000003",
    ]
    assert {
        tuple(box) for sample in boxed.samples if sample.facts["frame"] == 2 for box in np.array(sample.boxes).tolist()
    } == {(10.0, 1.0, 14.0, 4.0)}


def test_images_that_the_file_does_not_list_are_left_out_and_counted(frames: Path) -> None:
    file = write_boxes(frames / "boxes.json", ["film/frame-1.png", "film/frame-4.png"])
    boxed = open_dataset(frames, kind="boxed", boxes=str(file))
    assert [sample.id for sample in boxed.samples] == ["film/frame-1.png", "film/frame-4.png"]
    assert boxed.notes[-1] == "4 images without boxes were left out"


def test_boxes_of_other_images_are_told_by_an_example(frames: Path) -> None:
    file = write_boxes(frames / "boxes.json", ["elsewhere/a.png"])
    with pytest.raises(BadInput, match=r"none of the 6 images .* images like elsewhere/a\.png"):
        open_dataset(frames, kind="boxed", boxes=str(file))


def test_a_folder_without_annotations_of_these_images_is_told_by_an_image(frames: Path) -> None:
    with pytest.raises(BadInput, match=r"none of the 6 images .* called film/frame-0\.png"):
        open_dataset(frames, kind="boxed", boxes=str(frames / "film"))


def test_without_boxes_it_is_said_how_to_name_them(frames: Path) -> None:
    with pytest.raises(BadInput, match=r"boxed:.*\?boxes=boxes.json"):
        open_dataset(f"boxed:{frames}")


def test_further_fields_of_an_image_in_a_coco_file_are_facts_but_not_those_of_coco(frames: Path) -> None:
    about = {"anchor": "film/frame-1.png", "offset": 0, "night": True, "license": 3, "date_captured": "2013", "tags": ["a"]}
    file = write_boxes(frames / "boxes.json", ["film/frame-1.png"], **about)
    listed = open_dataset(file, images=frames)
    assert listed.samples[0].facts == {"anchor": "film/frame-1.png", "offset": 0, "night": True}


def test_what_the_set_says_stands_before_what_the_file_says(frames: Path) -> None:
    file = write_boxes(frames / "boxes.json", ["film/frame-1.png"], offset=7, weather="rain")
    boxed = open_dataset(f"boxed:frames:{frames}?k=0&anchors=1?boxes={file}")
    assert (boxed.samples[0].facts["offset"], boxed.samples[0].facts["weather"]) == (0, "rain")


def test_the_released_frame_sets_take_boxes_from_the_xml_of_imagenet_vid(tmp_path: Path, draw: Draw) -> None:
    first, second, third = "val/a/000003.JPEG", "val/a/000005.JPEG", "val/a/000006.JPEG"
    release, annotations = tmp_path / "release", tmp_path / "Annotations" / "VID"
    (release / "metadata").mkdir(parents=True)
    (release / "metadata" / "pmsets.json").write_text(json.dumps({first: [second, third]}))
    (release / "metadata" / "labels.json").write_text(json.dumps({first: [3], second: [3], third: [3]}))
    (annotations / "val" / "a").mkdir(parents=True)
    for frame, generated in ((first, 0), (second, 1)):
        draw(release / frame)
        (annotations / frame).with_suffix(".xml").write_text(XML.format(wnid="n02084071", generated=generated))
    boxed = open_dataset(f"boxed:vid-robust:{release}?boxes={annotations}")
    assert boxed.classes is not None
    assert boxed.classes.wnids is not None
    assert len(boxed.classes) == 30, "those of the release"
    dog = boxed.classes.wnids.index("n02084071")
    assert [sample.labels for sample in boxed.samples] == [(dog,), ()], "what a tracker drew is ignored"
    assert [sample.facts["offset"] for sample in boxed.samples] == [0, 2], "the third has no annotation"
    assert boxed.truths is not None
    assert boxed.truths.boxes.tolist() == [[1, 2, 5, 6]] * 2
    assert boxed.truths.ignored.tolist() == [False, True]
