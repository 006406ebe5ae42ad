"""The photos that crops were cut out of, found again by the names of the crops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from boxed_shapes import CLASSES, Shape, draw_boxed
from shiftproof.curation.boxes import UsualShares, load_shares
from shiftproof.curation.crop_set import curate_crops
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.errors import BadInput
from shiftproof.types import Classes, Classifier

MIDDLE = (40, 40, 60, 60)
SCENES = {
    "a.png": ("green", [Shape(MIDDLE, "red", "red")]),
    "b.png": ("green", [Shape(MIDDLE, "red", "red"), Shape((5, 5, 20, 20), "blue", "blue")]),
    "c.png": ("green", []),
}
USUAL = UsualShares("by hand", Classes(tuple(CLASSES)), np.array([0.9, 0.9, 0.9]))


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    return draw_boxed(tmp_path / "photos", SCENES)


def named(images: ImageList) -> dict[str, list[str]]:
    assert images.classes is not None
    return {sample.id: [images.classes.names[label] for label in sample.labels] for sample in images.samples}


def test_every_photo_with_a_crop_is_there_once_with_the_classes_of_its_crops(boxes: Path, tmp_path: Path) -> None:
    curate_crops(open_dataset(boxes), tmp_path / "hard", USUAL, times_smaller=1000, workers=0)
    photos = open_dataset(f"crop-sources:{tmp_path / 'hard'}")
    assert named(photos) == {"a.png": ["red"], "b.png": ["blue", "red"]}
    assert photos.name == "photos of hard"
    source = photos.source(photos.samples[0])
    assert source.read() == (boxes.parent / "a.png").read_bytes(), "the photo itself, uncropped"
    assert named(open_dataset(f"crop-sources:crops:{boxes}")) == named(photos)


def test_crops_and_their_photos_may_move_together_and_say_nothing_of_where_they_were(boxes: Path, tmp_path: Path) -> None:
    shares = tmp_path / "shares.csv"
    shares.write_text("class,share\nred,0.9\nblue,0.9\ngreen,0.9\n")
    told = f"coco:{boxes}?images={boxes.parent}"
    for name, location in (("hard", str(boxes)), ("harder", told)):
        curate_crops(open_dataset(location), tmp_path / "made" / name, load_shares(shares), times_smaller=1000, workers=0)
        record = json.loads((tmp_path / "made" / name / "manifest.json").read_text())
        assert str(tmp_path) not in json.dumps(record)
        assert record["usual_shares"] == "../../shares.csv"
    assert json.loads((tmp_path / "made" / "hard" / "manifest.json").read_text())["photos"] == "../../photos/boxes.json"
    for home in ("", "elsewhere"):
        if home:
            (tmp_path / home).mkdir()
            for folder in ("photos", "made"):
                (tmp_path / folder).rename(tmp_path / home / folder)
        for name in ("hard", "harder"):
            found = open_dataset(f"crop-sources:{tmp_path / home / 'made' / name}")
            assert named(found) == {"a.png": ["red"], "b.png": ["blue", "red"]}
    (tmp_path / "elsewhere" / "photos").rename(tmp_path / "gone")
    with pytest.raises(BadInput, match=r"photos of .*hard were at .*elsewhere.*, and are not there any more; say where"):
        open_dataset(f"crop-sources:{tmp_path / 'elsewhere' / 'made' / 'hard'}")


def test_records_with_the_whole_path_of_the_photos_are_still_read(boxes: Path, tmp_path: Path) -> None:
    curate_crops(open_dataset(boxes), tmp_path / "hard", USUAL, times_smaller=1000, workers=0)
    record = tmp_path / "hard" / "manifest.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "photos": str(boxes)}))
    assert named(open_dataset(f"crop-sources:{tmp_path / 'hard'}")) == {"a.png": ["red"], "b.png": ["blue", "red"]}


def test_a_model_is_asked_about_the_same_photos_with_and_without_what_is_around_their_objects(
    boxes: Path, tmp_path: Path, colour_model: Classifier
) -> None:
    """As in Table 5 of Li et al. (2021): cut out, every object is named; in its photo the green around it is."""
    curate_crops(open_dataset(boxes), tmp_path / "hard", USUAL, times_smaller=1000, workers=0)
    right = {}
    for location in (str(tmp_path / "hard"), f"crop-sources:{tmp_path / 'hard'}"):
        said = sp.predict(colour_model, open_dataset(location), store=tmp_path / "runs", workers=0)
        right[said.ids] = (said.top5.classes[:, :1] == said.labels).any(axis=1).tolist()
    assert right == {("a.png/000", "b.png/000", "b.png/001"): [True] * 3, ("a.png", "b.png"): [False] * 2}


def test_photos_that_lie_elsewhere_are_matched_by_their_names(tmp_path: Path, boxes: Path) -> None:
    """As ImageNet-A-Plus and ImageNet-A: folders of classes with files of the same name, whatever their endings."""
    for path in ("crops/red/a.png", "crops/blue/b.png", "crops/blue/lost.png"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((boxes.parent / "a.png").read_bytes())
    found = open_dataset(f"crop-sources:{tmp_path / 'crops'}?images={boxes.parent}")
    assert named(found) == {"a.png": ["red"], "b.png": ["blue"]}
    assert any("1 crops are of no photo there: blue/lost.png" in note for note in found.notes)


def test_crops_whose_photos_cannot_be_told_are_answered_with_what_to_say(tmp_path: Path, boxes: Path) -> None:
    (tmp_path / "crops" / "red").mkdir(parents=True)
    (tmp_path / "crops" / "red" / "z.png").write_bytes((boxes.parent / "a.png").read_bytes())
    with pytest.raises(BadInput, match=r"does not say where its photos are; say it, as in crop-sources:.*\?images=photos"):
        open_dataset(f"crop-sources:{tmp_path / 'crops'}")
    with pytest.raises(BadInput, match="none of the 1 crops of crops is of a photo of photos"):
        open_dataset(f"crop-sources:{tmp_path / 'crops'}?images={boxes.parent}")


def test_where_photos_lie_by_the_word_of_a_record_is_said(boxes: Path, tmp_path: Path) -> None:
    curate_crops(open_dataset(boxes), tmp_path / "hard", USUAL, times_smaller=1000, workers=0)
    photos = open_dataset(f"crop-sources:{tmp_path / 'hard'}")
    assert photos.notes[-1] == f"the photos are at {boxes}, as manifest.json says"
    assert open_dataset(f"crop-sources:{tmp_path / 'hard'}?images={boxes}").notes == photos.notes[:-1]


def test_a_record_that_leads_back_to_itself_is_one_sentence(boxes: Path, tmp_path: Path) -> None:
    curate_crops(open_dataset(boxes), tmp_path / "hard", USUAL, times_smaller=1000, workers=0)
    path = tmp_path / "hard" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"photos": "crop-sources:../hard"}))
    with pytest.raises(BadInput, match="says that its photos are those of other crops"):
        open_dataset(f"crop-sources:{tmp_path / 'hard'}")
