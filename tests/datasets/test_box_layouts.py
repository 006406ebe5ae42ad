"""Boxes through the store: found once, resumed, read beside what is there, in the classes of the set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from boxed_toys import NAMES, SCENES, ColourDetector, draw_scenes
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.label_spaces import Scoring, Unmatched
from shiftproof.errors import BadInput, ClassMismatch, MissingRuns, NotKept
from shiftproof.metrics import mean_average_precision
from shiftproof.metrics.boxes import match
from shiftproof.options import PredictionSettings
from shiftproof.runs.load import load_found, load_predictions, meet
from shiftproof.runs.predict import fill
from shiftproof.runs.rows import Wanted, gathered_boxes
from shiftproof.runs.store import Store
from shiftproof.runs.write import detect_batch, record
from shiftproof.types import CLEAN, Classes, Classifier, Condition, Dataset, Detections, Found, FoundObjects, Inputs, Run


@pytest.fixture
def scenes(tmp_path: Path) -> ImageList:
    return sp.open_dataset(f"coco:{draw_scenes(tmp_path / 'scenes')}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def boxes_by_image(found: FoundObjects) -> dict[str, dict[str, tuple[float, ...]]]:
    rows = zip(found.detections.image, found.detections.classes, found.detections.boxes.tolist(), strict=True)
    by_image: dict[str, dict[str, tuple[float, ...]]] = {key: {} for key in found.detections.ids}
    for image, place, box in rows:
        by_image[found.detections.ids[image]][found.classes.names[place]] = tuple(box)
    return by_image


def test_what_is_found_comes_back_by_image_and_class(scenes: ImageList, store: Store) -> None:
    found = sp.predict(ColourDetector(), scenes, store=store)
    assert boxes_by_image(found) == SCENES
    assert found.truths is not None
    assert mean_average_precision(found.detections, found.truths) == 1
    assert found.sizes.tolist() == [[24, 32], [32, 32], [24, 32], [32, 32]]


def test_a_detector_is_told_the_sizes_of_the_images_it_is_asked_about(scenes: ImageList, store: Store) -> None:
    detector = ColourDetector()
    sp.predict(detector, scenes, store=store)
    assert sorted(detector.asked) == [(24, 32), (24, 32), (32, 32), (32, 32)]


def test_images_with_stored_boxes_are_not_asked_again(scenes: ImageList, store: Store) -> None:
    first = sp.predict(ColourDetector(), scenes, store=store, batch_size=2)
    again = ColourDetector()
    second = sp.predict(again, scenes, store=store)
    assert again.asked == []
    assert boxes_by_image(second) == boxes_by_image(first)


def test_boxes_scattered_over_files_come_back_in_the_order_of_the_set(tmp_path: Path, store: Store) -> None:
    draw_scenes(tmp_path / "some", {"d.png": SCENES["d.png"], "b.png": SCENES["b.png"]}, heights=(24,))
    sp.predict(ColourDetector(), sp.open_dataset(tmp_path / "some"), store=store, batch_size=1)
    draw_scenes(tmp_path / "some", SCENES, heights=(24,))
    detector = ColourDetector()
    found = sp.predict(detector, sp.open_dataset(f"coco:{tmp_path / 'some' / 'boxes.json'}"), store=store, batch_size=1)
    assert boxes_by_image(found) == SCENES
    assert len(detector.asked) == 2


def test_an_image_answered_with_no_numbers_is_skipped(scenes: ImageList, store: Store) -> None:
    class Broken(ColourDetector):
        def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> list[Found]:
            found = super().detect(inputs, sizes)
            return [Found(one.boxes * np.nan, one.scores, one.classes) if len(one.boxes) == 3 else one for one in found]

    found = sp.predict(Broken(), scenes, store=store)
    assert found.detections.ids == ("a.png", "b.png", "c.png")
    assert [image.id for image in found.skipped_images] == ["d.png"]
    assert found.truths is not None
    assert len(found.truths.boxes) == 3


def test_boxes_of_classes_the_set_does_not_have_are_left_out_and_counted(tmp_path: Path, store: Store) -> None:
    draw_scenes(tmp_path / "red", {"a.png": SCENES["a.png"]})
    (tmp_path / "red" / "boxes.json").write_text(
        '{"images": [{"id": 0, "file_name": "a.png", "width": 32, "height": 24}], "categories": [{"id": 7, "name": "Red"}],'
        ' "annotations": [{"image_id": 0, "category_id": 7, "bbox": [2, 3, 10, 6]}]}'
    )
    found = sp.predict(ColourDetector(), sp.open_dataset(f"coco:{tmp_path / 'red' / 'boxes.json'}"), store=store)
    assert boxes_by_image(found) == {"a.png": {"Red": (2, 3, 12, 9)}}
    assert found.convention["boxes of other classes"] == "1, left out"


def test_classes_a_detector_lacks_are_an_error_ignored_or_never_found(scenes: ImageList, store: Store) -> None:
    colour_blind = ColourDetector(names=("red", "blue"))
    with pytest.raises(ClassMismatch, match=r"1 of 3 classes of the boxes.*green.*--unmatched"):
        sp.predict(colour_blind, scenes, store=store, scoring=Scoring())
    ignored, missed = (
        sp.predict(colour_blind, scenes, store=store, scoring=Scoring(unmatched=unmatched))
        for unmatched in ("unlabelled", "wrong")
    )
    assert ignored.truths is not None
    assert missed.truths is not None
    assert mean_average_precision(ignored.detections, ignored.truths) == 1
    assert mean_average_precision(missed.detections, missed.truths) == pytest.approx(2 / 3)
    assert (ignored.truths.ignored == (ignored.truths.classes == 1)).all()


@pytest.mark.parametrize("unmatched", ["error", "unlabelled", "wrong"])
def test_a_detector_that_has_no_class_of_the_boxes_is_an_error_whatever_becomes_of_single_ones(unmatched: Unmatched) -> None:
    with pytest.raises(ClassMismatch, match="2 of 2 classes of the boxes are not among the 3 classes of the detector"):
        meet(Classes(("lilac", "pink")), Classes(NAMES), 3, Scoring(unmatched=unmatched))


def test_two_classes_of_the_boxes_cannot_be_one_of_the_detector() -> None:
    with pytest.raises(ClassMismatch, match="light red and Light_Red are one class of the detector"):
        meet(Classes(("light red", "Light_Red")), Classes(("light red",)), 1)


def test_a_box_on_an_object_of_a_class_the_detector_lacks_is_no_false_alarm_of_localization(tmp_path: Path) -> None:
    truths = {"red": (2, 3, 12, 9), "lilac": (20, 10, 30, 16)}
    draw_scenes(tmp_path / "two", {"a.png": {"red": truths["red"], "blue": truths["lilac"]}})
    images, boxes = [{"id": 0, "file_name": "a.png", "width": 32, "height": 24}], list(enumerate(truths.items()))
    annotations = [
        {"image_id": 0, "category_id": number, "bbox": [left, top, right - left, bottom - top]}
        for number, (_, (left, top, right, bottom)) in boxes
    ]
    categories = [{"id": number, "name": name} for number, (name, _) in boxes]
    (tmp_path / "two" / "boxes.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [*categories, {"id": 9, "name": "blue"}]})
    )
    found = sp.predict(
        ColourDetector(),
        sp.open_dataset(f"coco:{tmp_path / 'two' / 'boxes.json'}"),
        store=Store(tmp_path / "runs"),
        scoring=Scoring(unmatched="unlabelled"),
    )
    assert found.truths is not None
    assert len(found.detections.boxes) == 2  # red, and what it takes for blue
    matches = match(found.detections, found.truths, class_blind=True)
    assert (matches.hit[0].sum(), matches.left_out[0].sum()) == (1, 1)


def test_images_that_are_turned_upright_are_told_where_their_boxes_are_of_the_stored_pixels(tmp_path: Path) -> None:
    on_its_side = Pillow.Exif()
    on_its_side[0x0112] = 6
    Pillow.new("RGB", (32, 24)).save(tmp_path / "a.jpg", exif=on_its_side)
    for told, (width, height) in {True: (32, 24), False: (24, 32)}.items():
        images = [{"id": 0, "file_name": "a.jpg", "width": width, "height": height}]
        boxes = {"images": images, "annotations": [], "categories": [{"id": 1, "name": "red"}]}
        (tmp_path / "boxes.json").write_text(json.dumps(boxes))
        found = sp.predict(ColourDetector(), sp.open_dataset(tmp_path / "boxes.json"), store=Store(tmp_path / "runs"))
        assert found.sizes.tolist() == [[32, 24]]
        assert ("images whose size differs from the annotation" in found.convention) == told


def test_images_without_boxes_are_answered_in_the_detectors_own_classes(tmp_path: Path, store: Store) -> None:
    draw_scenes(tmp_path / "scenes")
    found = sp.predict(ColourDetector(), sp.open_dataset(tmp_path / "scenes"), store=store)
    assert found.truths is None
    assert found.classes.names == NAMES
    assert boxes_by_image(found) == SCENES


def test_boxes_under_a_condition_are_rows_of_their_own(scenes: ImageList, store: Store) -> None:
    darker = Condition("brightness", 5, edition="imagenet-224")
    found = sp.predict(ColourDetector(), scenes, store=store, condition=darker)
    assert boxes_by_image(found) == {name: {} for name in SCENES}  # no colour is what it was
    assert boxes_by_image(sp.predict(ColourDetector(), scenes, store=store)) == SCENES


def test_detectors_have_no_class_scores_and_classifiers_no_boxes(
    scenes: ImageList, colour_model: Classifier, store: Store
) -> None:
    with pytest.raises(NotKept, match="outputs boxes"):
        fill(ColourDetector(), scenes, store=store, settings=PredictionSettings(keep="logits"))
    with pytest.raises(NotKept, match="name an object detector"):
        fill(colour_model, scenes, store=store, keep="boxes")
    detector = ColourDetector()
    sp.predict(detector, scenes, store=store)
    with pytest.raises(MissingRuns):
        load_predictions(Run(detector.ref, scenes.ref), scenes, store=store)


def test_missing_boxes_are_told_with_the_command_that_makes_them(scenes: ImageList, store: Store) -> None:
    with pytest.raises(MissingRuns, match=r"sp\.predict\(detector, images, store=") as missing:
        load_found(Run(ColourDetector().ref, scenes.ref), scenes, store=store)
    assert missing.value.for_command().endswith("--boxes auto")


@dataclass
class Recorded(ColourDetector):
    """Boxes that were written down: those of the scenes, the least sure first."""

    def detections_in(self, images: Dataset) -> Detections:
        ids = tuple(sample.id for sample in images.samples)
        rows = [(ids.index(key), NAMES.index(name), box) for key in SCENES for name, box in SCENES[key].items()]
        scores = np.linspace(0.1, 0.9, len(rows))
        places, classes, boxes = (np.array(column) for column in zip(*rows, strict=True))
        return Detections(ids, places, boxes.astype(float), scores, classes)


def test_what_was_written_down_is_stored_without_asking(scenes: ImageList, store: Store) -> None:
    recorded = Recorded()
    found = sp.predict(recorded, scenes, store=store)
    assert boxes_by_image(found) == SCENES
    assert recorded.asked == []
    first = found.detections.scores[found.detections.image == 0]
    assert (np.diff(first) < 0).all()  # surest first
    assert found.sizes.tolist() == [[24, 32], [32, 32], [24, 32], [32, 32]]  # as the set tells them: height, width
    assert sum(len(list(path.glob("*.safetensors"))) for path in (store.root / "rows").iterdir()) == 1
    assert boxes_by_image(sp.predict(recorded, scenes, store=store)) == SCENES
    assert record(recorded, scenes, CLEAN, store=store) == (0, [])  # nothing is written twice
    with pytest.raises(BadInput, match="none under fog 3"):
        sp.predict(recorded, scenes, store=store, condition=Condition("fog", 3, edition="imagenet-224"))


def test_boxes_scattered_over_files_come_in_the_order_the_images_are_wanted() -> None:
    counts = {Path("first"): [2, 0, 1], Path("second"): [1, 3]}
    files = {
        path: {
            "image_sizes": np.array([[number, 10 * place] for place in range(len(some))]),
            "box_counts": np.array(some),
            "boxes": np.array([[number, place, 0, 0] for place, count in enumerate(some) for _ in range(count)]),
            "box_scores": np.arange(sum(some)) / 10,
            "box_classes": np.arange(sum(some)),
        }
        for number, (path, some) in enumerate(counts.items())
    }
    # where each image is wanted, and its row in the file: not in the order of the files
    places = {
        Path("first"): Wanted(np.array([3, 0]), np.array([0, 2])),
        Path("second"): Wanted(np.array([2, 1]), np.array([0, 1])),
    }
    found = gathered_boxes(places, 4, lambda path, name: files[path][name])
    assert found["box_counts"].tolist() == [1, 3, 1, 2]
    assert found["image_sizes"].tolist() == [[0, 20], [1, 10], [1, 0], [0, 0]]
    assert found["boxes"][:, :2].tolist() == [[0, 2], [1, 1], [1, 1], [1, 1], [1, 0], [0, 0], [0, 0]]
    assert found["box_classes"].tolist() == [2, 1, 2, 3, 0, 0, 1]


def test_each_image_of_a_mixed_batch_is_told_its_own_size() -> None:
    def whole(inputs: Inputs) -> list[tuple[list[list[int]], list[float], list[int]]]:
        return [([[0, 0, image.shape[2], image.shape[1]]], [0.5], [0]) for image in inputs]

    detector = sp.wrap_detector(whole, name="whole", version="1", class_names=["all"], size=None)
    shapes = [(24, 32), (40, 16), (24, 32), (8, 8)]
    answers = detect_batch(detector, [np.zeros((3, *shape)) for shape in shapes], shapes)
    assert [one.boxes.tolist() for one in answers.found] == [[[0, 0, width, height]] for height, width in shapes]
    kept = answers.arrays([3, 1])  # the others are no numbers, say
    assert kept["image_sizes"].tolist() == [[8, 8], [40, 16]]
    assert kept["boxes"].tolist() == [[0, 0, 8, 8], [0, 0, 16, 40]]
