"""Sets of crops from drawn photos, where every step can be worked out by hand, and from real ones."""

from __future__ import annotations

import csv
import hashlib
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from boxed_shapes import CLASSES, Shape, draw_boxed
from shiftproof.curation.boxes import UsualShares
from shiftproof.curation.crop_set import CropSet, ReferenceModels, Shown, curate_crops
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.runs.store import Store
from shiftproof.types import Classes, Classifier, Output
from toys import colour_scores

MIDDLE = (40, 40, 60, 60)
PHOTOS = {
    # a twenty-fifth of the photo; with the usual quarter around it the crop is mostly background
    "disguised.png": ("green", [Shape(MIDDLE, "blue", "red")]),
    "hidden.png": ("blue", [Shape(MIDDLE, "red", "red")]),
    "blended.png": ("red", [Shape(MIDDLE, "blue", "red")]),
    # 1 in 1000 and less than a quarter's eighth; a crowd is no object
    "tiny.png": ("green", [Shape((10, 10, 12, 15), "blue", "red"), Shape((50, 50, 90, 90), "blue", "red", crowd=True)]),
    # two of one class are one object; nobody knows how large green things are
    "several.png": (
        "green",
        [
            Shape((0, 0, 10, 10), "blue", "red"),
            Shape((30, 0, 40, 30), "blue", "red"),
            Shape((60, 60, 90, 90), "blue", "green"),
        ],
    ),
    # more of the photo than usual
    "near.png": ("green", [Shape((0, 0, 90, 90), "blue", "red")]),
}
USUAL = UsualShares("by hand", Classes(tuple(CLASSES)), np.array([0.25, np.nan, 0.25]))


@pytest.fixture
def boxed(tmp_path: Path) -> ImageList:
    return open_dataset(draw_boxed(tmp_path / "photos", PHOTOS))


@pytest.fixture
def reference(tmp_path: Path, colour_model: Classifier) -> dict[Shown, ReferenceModels]:
    store = Store(tmp_path / "runs")
    return {"tight": ReferenceModels([colour_model], store), "final": ReferenceModels([colour_model], store, "final")}


def left(made: CropSet) -> dict[str, int]:
    return {step.name: step.left for step in made.choice.steps}


def fates(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "objects.csv").open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def digest_of_folder(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_step_leaves_what_it_says(boxed: ImageList, reference: dict[Shown, ReferenceModels], tmp_path: Path) -> None:
    made = curate_crops(boxed, tmp_path / "tight", USUAL, reference=reference["tight"], workers=0)
    assert left(made) == {
        "start": 7,
        "inside images that can be read": 7,
        "of classes with a usual object proportion": 6,
        "not 8 times smaller than usual": 5,
        "misclassified by colours in the tight crop": 4,
        "cropped and written": 4,
    }
    assert {gone.item.id: gone.reason for gone in made.choice.removed} == {
        "several.png/002": "the usual proportion of its class is unknown",
        "tiny.png/000": "object proportion 0.10%, usually 25.00%",
        "hidden.png/000": "classified correctly",
    }
    assert made.whole_images == 1


def test_what_a_model_sees_of_the_object_decides_by_name(
    boxed: ImageList, reference: dict[Shown, ReferenceModels], tmp_path: Path
) -> None:
    recognised: dict[Shown, set[str]] = {"tight": {"hidden.png/000"}, "final": {"blended.png/000"}}
    for shown, expected in recognised.items():
        made = curate_crops(boxed, tmp_path / shown, USUAL, reference=reference[shown], workers=0)
        assert {gone.item.id for gone in made.choice.removed if gone.reason == "classified correctly"} == expected


def test_the_reference_model_is_wrong_on_every_final_crop(
    boxed: ImageList, reference: dict[Shown, ReferenceModels], colour_model: Classifier, tmp_path: Path
) -> None:
    curate_crops(boxed, tmp_path / "final", USUAL, reference=reference["final"], workers=0)
    said = sp.predict(colour_model, open_dataset(tmp_path / "final"), store=tmp_path / "again", workers=0)
    assert len(said) == 4
    assert not sp.metrics.is_correct(said.labels, said.top5.classes).any()


def test_windows_are_those_worked_by_hand(boxed: ImageList, tmp_path: Path) -> None:
    curate_crops(boxed, tmp_path / "crops", USUAL, workers=0)
    found = fates(tmp_path / "crops")
    # 20 x 20 is a quarter of 40 x 40 around its middle
    assert (found["hidden.png/000"]["window"], found["hidden.png/000"]["share_in_crop"]) == ("30 30 70 70", "0.250000")
    # 40 x 30 is a quarter of 80 x 60, moved to lie inside the photo
    assert (found["several.png/000"]["box"], found["several.png/000"]["window"]) == ("0 0 40 30", "0 0 80 60")
    assert found["near.png/000"]["window"] == "0 0 100 100"
    assert found["near.png/000"]["share_in_crop"] == "0.810000"
    assert (found["near.png/000"]["step"], found["hidden.png/000"]["step"]) == ("kept", "kept")
    assert "larger than usual" in found["near.png/000"]["reason"]
    assert (found["several.png/002"]["share"], found["several.png/002"]["window"]) == ("0.090000", "")


@pytest.mark.parametrize("output", ["raw", "jpeg85"])
def test_what_is_written_opens_as_a_labelled_set_with_the_pixels_of_the_photo(
    boxed: ImageList, tmp_path: Path, output: Output
) -> None:
    curate_crops(boxed, tmp_path / "crops", USUAL, output=output, workers=0)
    crops = open_dataset(tmp_path / "crops")
    assert crops.classes is not None
    by_id = {sample.id: sample for sample in crops.samples}
    assert len(by_id) == 5
    sample = by_id["several.png/000"]
    assert [crops.classes.names[label] for label in sample.labels] == ["red"]
    assert sample.facts == {"share_in_image": 0.12, "share_in_crop": 0.25, "usual_share": 0.25}
    source, photo = crops.source(sample), boxed.find("several.png")
    pixels, expected = source.decode(source.read()), photo.decode(photo.read())[0:60, 0:80]
    assert pixels.shape == expected.shape
    worst = np.abs(pixels.astype(int) - expected).max()
    assert worst == 0 if output == "raw" else worst > 0
    assert ((tmp_path / "crops" / "red" / "several.png").exists()) == (output == "raw")


def test_several_models_go_one_after_the_other_and_any_that_recognises_is_enough(
    boxed: ImageList, reference: dict[Shown, ReferenceModels], tmp_path: Path
) -> None:
    always_red = sp.wrap_model(
        lambda inputs: np.tile([0.0, 0.0, 9.0], (len(inputs), 1)), name="reds", version="1", class_names=CLASSES
    )
    both = ReferenceModels([*reference["tight"].models, always_red], reference["tight"].store)
    made = curate_crops(boxed, tmp_path / "crops", USUAL, reference=both, workers=0)
    assert [step.left for step in made.choice.steps[-3:]] == [4, 0, 0]
    assert (tmp_path / "crops" / "objects.csv").read_text().count("\n") == 8
    with pytest.raises(BadInput, match="lists no images"):
        open_dataset(tmp_path / "crops")


def test_classes_that_a_model_lacks_are_told_or_counted(boxed: ImageList, tmp_path: Path) -> None:
    model = sp.wrap_model(lambda inputs: colour_scores(inputs)[:, :2], name="two", version="1", class_names=CLASSES[:2])
    store = Store(tmp_path / "runs")
    with pytest.raises(ClassMismatch, match="not among the 2 classes of the model: red"):
        curate_crops(boxed, tmp_path / "crops", USUAL, reference=ReferenceModels([model], store), workers=0)
    lenient = ReferenceModels([model], store, scoring=Scoring(unmatched="unlabelled"))
    made = curate_crops(boxed, tmp_path / "crops", USUAL, reference=lenient, workers=0)
    assert not made.choice.left
    assert {gone.reason for gone in made.choice.removed} >= {"the model has no such class"}


@pytest.mark.parametrize("asked", [True, False], ids=["a model is asked", "no model is asked"])
def test_photos_that_cannot_be_read_are_skipped_with_their_reason(
    boxed: ImageList, reference: dict[Shown, ReferenceModels], tmp_path: Path, asked: bool
) -> None:
    (tmp_path / "photos" / "near.png").write_bytes((tmp_path / "photos" / "near.png").read_bytes()[:60])
    (tmp_path / "photos" / "several.png").unlink()
    made = curate_crops(boxed, tmp_path / "crops", USUAL, reference=reference["tight"] if asked else None, workers=0)
    kept = {one.id for one in made.choice.left}
    assert kept == {"blended.png/000", "disguised.png/000"} | (set() if asked else {"hidden.png/000"})
    reasons = {gone.item.id: gone.reason for gone in made.choice.removed}
    assert "truncated" in reasons["near.png/000"]
    assert "cannot be read" in reasons["several.png/000"]
    assert len(open_dataset(tmp_path / "crops").samples) == len(kept)


def test_photos_of_unknown_size_are_opened_for_it(tmp_path: Path) -> None:
    outside = {"outside.png": ("green", [Shape((120, 120, 140, 140), "blue", "red")])}
    unsized = open_dataset(draw_boxed(tmp_path / "photos", PHOTOS | outside, sizes=False))
    sized = open_dataset(draw_boxed(tmp_path / "same", PHOTOS))
    (tmp_path / "photos" / "near.png").write_bytes(b"")
    made = curate_crops(unsized, tmp_path / "crops", USUAL, workers=0)
    curate_crops(sized, tmp_path / "same crops", USUAL, workers=0)
    assert {gone.item.id: gone.reason for gone in made.choice.removed if gone.step.startswith("inside")} == {
        "near.png/000": "empty file",
        "outside.png/000": "its box lies outside the image of 100 x 100 pixels",
    }
    ours, theirs = fates(tmp_path / "crops"), fates(tmp_path / "same crops")
    assert all(ours[key] == row for key, row in theirs.items() if key != "near.png/000")


def test_files_of_one_name_in_other_folders_do_not_meet(tmp_path: Path) -> None:
    shapes = [Shape(MIDDLE, "blue", "red")]
    for folder in ("left", "right"):
        (tmp_path / "photos" / folder).mkdir(parents=True)
    boxed = open_dataset(draw_boxed(tmp_path / "photos", {"left/a.png": ("green", shapes), "right/a.png": ("blue", shapes)}))
    curate_crops(boxed, tmp_path / "crops", USUAL, workers=0)
    assert sorted(path.name for path in (tmp_path / "crops" / "red").iterdir()) == ["left-a.png.png", "right-a.png.png"]


def test_a_second_run_asks_no_model_and_writes_nothing(boxed: ImageList, tmp_path: Path) -> None:
    asked: list[int] = []

    def counted(inputs: np.ndarray) -> np.ndarray:
        asked.append(len(inputs))
        return colour_scores(inputs)

    model = sp.wrap_model(counted, name="counted", version="1", class_names=CLASSES, preprocess="squash,mean=0,std=1")
    reference = ReferenceModels([model], Store(tmp_path / "runs"))
    first = curate_crops(boxed, tmp_path / "crops", USUAL, reference=reference, workers=0)
    before = digest_of_folder(tmp_path / "crops")
    again = curate_crops(boxed, tmp_path / "crops", USUAL, reference=reference, workers=0)
    assert asked == [5]
    assert (first.written.written, again.written.written, again.written.written_before) == (4, 0, 4)
    assert digest_of_folder(tmp_path / "crops") == before


def test_a_folder_takes_one_choice_only(boxed: ImageList, tmp_path: Path) -> None:
    curate_crops(boxed, tmp_path / "crops", USUAL, workers=0)
    with pytest.raises(BadInput, match=r"holds a dataset made with other settings: times smaller 8.0 there, 4.0 now"):
        curate_crops(boxed, tmp_path / "crops", USUAL, times_smaller=4, workers=0)
    other = UsualShares("otherwise", USUAL.classes, USUAL.shares / 2)
    with pytest.raises(BadInput, match="their names, labels or facts differ"):
        curate_crops(boxed, tmp_path / "crops", other, workers=0)


def test_a_set_without_boxes_has_no_crops(tmp_path: Path, boxed: ImageList) -> None:
    plain = open_dataset(tmp_path / "photos", kind="folder")
    with pytest.raises(BadInput, match="photos has no boxes"):
        curate_crops(plain, tmp_path / "crops", USUAL)


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
import shiftproof as sp
from shiftproof.curation.crop_set import curate_crops
from shiftproof.curation.crop_set import ReferenceModels
from shiftproof.curation.boxes import UsualShares
from shiftproof.runs.store import Store
from shiftproof.types import Classes

class Killing:
    left = int(sys.argv[2])
    def begin(self, what, total, done): pass
    def end(self): pass
    def advance(self, images):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

home = Path(sys.argv[1])
names = ("blue", "green", "red")
model = sp.wrap_model(
    lambda inputs: 20 * inputs.mean(axis=(2, 3))[:, ::-1], name="colours", version="1", class_names=names,
    size=(16, 16), preprocess="squash,mean=0,std=1", batch_size=32,
)
usual = UsualShares("by hand", Classes(names), np.array([0.25, 0.25, 0.25]))
reference = ReferenceModels([model], Store(home / "runs"))
curate_crops(
    sp.open_dataset(home.parent / "photos" / "boxes.json"), home / "crops", usual, reference=reference, workers=0,
    progress=Killing(),
)
"""


def test_killed_while_asking_and_while_writing_and_resumed_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    photos = {}
    for number in range(80):
        left, top = rng.integers(5, 60, 2).tolist()
        painted = ("blue", "red")[number % 4 == 0]
        photos[f"{number:02}.png"] = ("green", [Shape((left, top, left + 20, top + 25), painted, "red")])
    draw_boxed(tmp_path / "photos", photos)

    script = tmp_path / "crops.py"
    script.write_text(KILLED, encoding="utf-8")

    def finish(home: str) -> None:
        """Here, since nothing is killed."""
        monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / home), "0"])
        runpy.run_path(str(script))

    def killed(home: str, dies_at: int) -> bool:
        command = [sys.executable, str(script), str(tmp_path / home), str(dies_at)]
        ended = subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return ended.returncode == -signal.SIGKILL

    finish("whole")
    expected = digest_of_folder(tmp_path / "whole" / "crops")
    assert len([name for name in expected if name.endswith(".png")]) == 60
    # three batches of 32 are answered, then four lots of 16 crops written, of which two may be worked on ahead
    assert killed("killed", 1)
    assert not (tmp_path / "killed" / "crops").exists()
    assert killed("killed", 3)
    written = list((tmp_path / "killed" / "crops").rglob("*.png"))
    assert 16 <= len(written) < 60
    assert not (tmp_path / "killed" / "crops" / "manifest.csv").exists()
    finish("killed")
    assert digest_of_folder(tmp_path / "killed" / "crops") == expected
