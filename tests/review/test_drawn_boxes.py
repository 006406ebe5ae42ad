"""Boxes that people drew on labelled photos, from the project to crops that people judge."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from blotches import blotches
from command import Shiftproof
from review.reviewed_projects import judge
from shiftproof.curation.boxes import UsualShares
from shiftproof.curation.crop_set import box_project, crop_project, curate_crops
from shiftproof.curation.project import load_project
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.export import candidate_images, drawn_boxes
from shiftproof.review.summary import summarize
from shiftproof.types import Classes

MANIFEST = "path,labels\na.png,cat\nb.png,cat|dog\nc.png,\n"


@pytest.fixture
def photos(tmp_path: Path) -> ImageList:
    """Photos of a cat, of a cat with a dog, and of nobody knows what."""
    (tmp_path / "photos").mkdir()
    for seed, name in enumerate("abc"):
        Pillow.fromarray(blotches(seed, width=200, height=100)).save(tmp_path / "photos" / f"{name}.png")
    (tmp_path / "photos" / "manifest.csv").write_text(MANIFEST)
    return open_dataset(tmp_path / "photos")


def box(left: float, top: float, right: float, bottom: float) -> dict[str, object]:
    """An answer whose four points are the middles of the sides."""
    across, down = (left + right) / 2, (top + bottom) / 2
    return {"choice": "box", "points": [[across, top], [left, down], [across, bottom], [right, down]]}


def test_a_photo_is_asked_about_once_for_each_of_its_classes(photos: ImageList, tmp_path: Path) -> None:
    project = box_project(photos, tmp_path / "boxes")
    assert load_project(tmp_path / "boxes") == project
    assert [(item.id, item.label) for item in project.items] == [
        ("a.png cat", "cat"),
        ("b.png cat", "cat"),
        ("b.png dog", "dog"),
    ]
    assert "c.png,with a label,has no label" in (tmp_path / "boxes" / "photos.csv").read_text()
    with pytest.raises(BadInput, match="has no labels"):
        box_project(open_dataset(photos.location or "", labels="none"), tmp_path / "none")


def test_a_class_that_an_export_would_make_two_of_is_refused(photos: ImageList, tmp_path: Path) -> None:
    (tmp_path / "photos" / "manifest.csv").write_text("path,label\na.png,cat|dog\n")
    with pytest.raises(BadInput, match=r"cat\|dog would be read as several classes"):
        box_project(open_dataset(tmp_path / "photos"), tmp_path / "boxes")
    assert not (tmp_path / "boxes" / "project.json").exists()


def test_drawn_boxes_become_a_boxed_set_and_crops_that_are_judged(
    photos: ImageList, tmp_path: Path, database: Database
) -> None:
    project = box_project(photos, tmp_path / "boxes")
    deleted = {"choice": "delete", "reasons": ["label wrong"]}
    judge(
        database,
        {
            "a.png cat": [box(0.1, 0.2, 0.5, 0.6), box(0.2, 0.2, 0.5, 0.8)],
            "b.png cat": [deleted, deleted],
            "b.png dog": [box(0.5, 0.0, 1.0, 1.0), box(0.5, 0.0, 1.0, 1.0)],
        },
    )
    boxed = drawn_boxes(project, summarize(project, database).verdicts, photos)
    assert boxed.truths is not None
    assert boxed.truths.ids == ("a.png", "b.png")
    # the mean of two is their median, in pixels of 200 x 100
    np.testing.assert_allclose(boxed.truths.boxes, [[30, 20, 100, 70], [100, 0, 200, 100]])
    assert boxed.classes is not None
    assert [boxed.classes.names[label] for label in boxed.truths.classes] == ["cat", "dog"]
    usual = UsualShares("by hand", Classes(("cat", "dog")), np.array([0.5, 0.5]))
    made = curate_crops(boxed, tmp_path / "hard", usual, workers=0)
    judged = crop_project(made, boxed, tmp_path / "crops")
    assert load_project(tmp_path / "crops") == judged
    assert [(item.id, item.label) for item in judged.items] == [(one.id, one.boxed.key) for one in made.choice.left]
    # a crop is cut out anew for people, from the same pixels as the file that was written
    written = open_dataset(tmp_path / "hard")
    assert [item.facts["id"] for item in judged.items] == [sample.id for sample in written.samples]
    with Pillow.open(judged.image(judged.items[0].images[0])) as seen, Pillow.open(tmp_path / "hard/cat/a.png") as saved:
        assert seen.size == saved.size
    assert judged.making.steps == made.choice.steps


def test_both_boxes_of_a_photo_of_two_classes_are_exported(
    photos: ImageList, tmp_path: Path, shiftproof: Shiftproof
) -> None:
    box_project(photos, tmp_path / "boxes")
    database = Database(tmp_path / "boxes" / "review.sqlite")
    cat, dog = box(0.0, 0.0, 0.5, 1.0), box(0.25, 0.5, 1.0, 1.0)
    judge(database, {"b.png cat": [cat, cat], "b.png dog": [dog, dog]})
    database.close()
    said = json.loads(shiftproof("curate", "export", "boxes", "set", "--layout", "coco", "--json").out)
    again = open_dataset(said["location"])
    assert again.truths is not None
    assert again.classes is not None
    found = zip(again.truths.classes, again.truths.boxes.tolist(), strict=True)
    # in pixels of 200 x 100
    assert {again.classes.names[label]: box for label, box in found} == {"cat": [0, 0, 100, 100], "dog": [50, 50, 200, 100]}
    assert [len(sample.labels) for sample in again.samples] == [2]
    assert {one["key"]: one["images"] for one in said["card"]["classes"]} == {"cat": 1, "dog": 1}


def test_before_the_review_a_photo_has_all_its_classes(photos: ImageList, tmp_path: Path) -> None:
    before = candidate_images(box_project(photos, tmp_path / "boxes"))
    assert {sample.id: len(sample.labels) for sample in before.samples} == {"a.png": 1, "b.png": 2}


def test_without_a_box_that_was_kept_there_is_no_set(photos: ImageList, tmp_path: Path) -> None:
    project = box_project(photos, tmp_path / "boxes")
    with pytest.raises(BadInput, match="nobody has drawn a box"):
        drawn_boxes(project, {}, photos)
