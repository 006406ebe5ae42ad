"""A classifier asked about likely objects one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from boxed_toys import ColourDetector, draw_scenes
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics.accuracy import best_classes
from shiftproof.models import ImagePreprocessing, wrap_detector, wrap_model
from shiftproof.models.classifiers.boxes_as_classes import NOTHING, boxes_as_classes
from shiftproof.models.classifiers.proposals import Grid, crops_of, proposals
from shiftproof.types import Boxes, Classifier, Condition, Image, Inputs, Logits, ObjectDetector
from toys import COLOURS

IMAGE = np.arange(40 * 60 * 3).reshape(40, 60, 3).astype(np.uint8)


def shapes(*boxes: tuple[float, float, float, float], most: int = 20) -> list[tuple[int, ...]]:
    return [
        crop.shape[:2] for crop in crops_of(IMAGE, np.array(boxes, float).reshape(-1, 4), max_proposals=most, min_side=10)
    ]


def test_boxes_that_are_small_or_touch_an_edge_are_not_looked_at() -> None:
    good = (10.0, 5.0, 30.0, 25.0)
    small = [(10, 5, 19.9, 25), (10, 5, 30, 14.9)]
    at_an_edge = [(0, 5, 30, 25), (0.4, 5, 30, 25), (10, -3, 30, 25), (10, 5, 60, 25), (10, 5, 59.5, 25), (10, 5, 30, 40)]
    assert shapes(good, *small, *at_an_edge) == [(20, 20)]
    assert shapes((1, 1, 59, 39), (10, 5, 20, 15)) == [(38, 58), (10, 10)]


def test_the_whole_image_is_looked_at_where_no_box_is_left() -> None:
    assert shapes() == shapes((0, 0, 60, 40)) == [(40, 60)]


def test_the_first_boxes_that_stay_are_looked_at_and_no_more() -> None:
    assert shapes((0, 0, 30, 30), (5, 5, 25, 20), (5, 5, 26, 20), (5, 5, 27, 20), most=2) == [(15, 20), (15, 21)]


def test_a_crop_has_the_pixels_that_its_box_touches() -> None:
    (crop,) = crops_of(IMAGE, np.array([[10.6, 5.0, 30.2, 25.0]]), max_proposals=20, min_side=10)
    assert np.array_equal(crop, IMAGE[5:25, 10:31])


def scene() -> Image:
    """A broad green stripe at the edge, a red patch with a hole in it and a smaller blue one, all on grey."""
    image = np.full((64, 64, 3), 128, np.uint8)
    image[:, :40] = COLOURS["green"]
    image[8:28, 42:60] = COLOURS["red"]
    image[14:22, 46:56] = 128
    image[40:52, 45:57] = COLOURS["blue"]
    return image


def test_the_crop_that_the_classifier_is_surest_of_speaks_for_the_image(colour_model: Classifier) -> None:
    """The whole picture is green, which touches the edge; red is the likeliest object, but blue by itself the purest."""
    whole = colour_model(np.stack([colour_model.preprocessing.from_image(scene())])).scores
    answers = proposals(ColourDetector(), colour_model, output="most-confident")(scene()[None], features=True)
    patch = np.broadcast_to(np.array(COLOURS["blue"], np.uint8), (12, 12, 3))
    expected = colour_model(colour_model.preprocessing.from_image(patch)[None], features=True)
    assert whole.argmax() == 1
    assert np.allclose(answers.scores, expected.scores)
    assert answers.features is not None
    assert expected.features is not None
    assert np.allclose(answers.features, expected.features)


CROPS = {"a": 0.9, "b": 0.6, "c": 0.8, "a again": 0.7}
"""Crops of an image by what a made-up classifier says of them, and how sure it is; two of them show an a."""


def speaking_model() -> Classifier:
    """Reads off a crop's first pixel which class it is to name among five, and how sure it is, in percent."""

    def answer(inputs: Inputs) -> Logits:
        named, sure = inputs[:, 0, 0, 0].astype(int), inputs[:, 1, 0, 0].astype(float) / 100
        rest = np.arange(5) == (named[:, None] + 1) % 5
        return np.where(np.arange(5) == named[:, None], sure[:, None], np.where(rest, 1 - sure[:, None], 0))

    preprocess = ImagePreprocessing(size=None, rule="none", value_range="0..255", mean=(0.0,), std=(1.0,))
    names = ["a", "b", "c", "d", "e"]
    return wrap_model(answer, name="says", version="1", class_names=names, gives="probabilities", preprocess=preprocess)


def spoken_scene() -> tuple[Image, ObjectDetector]:
    """An image of four patches that say what they are, and a detector that proposes them in this order."""
    image = np.zeros((40, 100, 3), np.uint8)
    lefts = [2 + 24 * place for place in range(len(CROPS))]
    for left, (name, sure) in zip(lefts, CROPS.items(), strict=True):
        image[5:35, left : left + 20] = ("abc".index(name[0]), round(100 * sure), 0)
    boxes = [[left, 5, left + 20, 35] for left in lefts]
    detector = wrap_detector(
        lambda inputs: [(boxes, [0.9, 0.8, 0.7, 0.6], [0] * 4) for _ in inputs],
        name="found", version="1", class_names=["thing"], size=(40, 100), preprocess="squash",
    )  # fmt: skip
    return image, detector


def test_classes_stand_in_the_order_of_their_surest_crops() -> None:
    """Algorithm 1 for top-k: crops of .9 for a, .6 for b, .8 for c and .7 for a again give a, c, b."""
    image, detector = spoken_scene()
    model = proposals(detector, speaking_model())
    scores = model(image[None]).scores
    assert best_classes(scores, 3)[0].tolist() == [0, 2, 1]
    assert scores[0, [0, 2, 1]].tolist() == pytest.approx([0.9, 0.8, 0.6])
    assert (scores[0, 3:] < 0).all(), "what no crop shows lies behind all that some crop does"
    assert model.gives == "scores"
    surest = proposals(detector, speaking_model(), output="most-confident")(image[None]).scores
    assert best_classes(surest, 2)[0].tolist() == [0, 1], "one crop alone has its own second guess behind it"


def test_what_no_crop_shows_follows_at_random_or_not_at_all() -> None:
    image, detector = spoken_scene()
    orders = {
        tuple(best_classes(proposals(detector, speaking_model(), seed=seed)(image[None]).scores, 5)[0]) for seed in range(12)
    }
    assert orders == {(0, 2, 1, 3, 4), (0, 2, 1, 4, 3)}
    again = proposals(detector, speaking_model(), seed=3)
    assert np.array_equal(again(image[None]).scores, again(np.stack([image, image])).scores[1:])
    empty = proposals(detector, speaking_model(), fill="empty")
    assert best_classes(empty(image[None]).scores, 5)[0].tolist() == [0, 2, 1, 5, 6]
    assert empty.classes is not None
    assert empty.classes.names[5:] == (NOTHING,) * 5


def test_crops_that_are_equally_sure_stand_in_the_order_of_their_boxes_even_in_single_floats() -> None:
    from shiftproof.models.classifiers.proposals import classes_of_crops

    found = classes_of_crops(np.array([4, 1, 3]), np.array([1.0, 1.0, 1 - 1e-12]))
    single = found.scores.astype(np.float32)
    assert found.classes.tolist() == [4, 1, 3]
    assert (np.diff(single) < 0).all()


def test_how_many_crops_and_how_small_can_be_chosen() -> None:
    image, detector = spoken_scene()
    two = proposals(detector, speaking_model(), fill="empty", max_proposals=2)(image[None]).scores
    assert best_classes(two, 3)[0].tolist() == [0, 1, 5], "the first two show an a and a b"
    broad = proposals(detector, speaking_model(), fill="empty", min_side=21)(image[None]).scores
    assert best_classes(broad, 2)[0].tolist() == [1, 5], "none is 21 wide, so the whole image is asked, which says b"


def test_detectors_of_rectangular_inputs_propose_boxes_where_they_lie() -> None:
    """The paper's 800 x 600, height first: a box in the input comes back in pixels of a smaller image."""
    seen: list[tuple[int, ...]] = []

    def detect(inputs: Inputs) -> list[tuple[list[list[float]], list[float], list[int]]]:
        seen.append(inputs.shape)
        return [([[200.0, 150.0, 600.0, 450.0]], [0.9], [0])] * len(inputs)

    detector = wrap_detector(
        detect, name="wide", version="1", class_names=["thing"], size=(600, 800), preprocess="squash,size=600x800"
    )
    image = np.zeros((90, 120, 3), np.uint8)
    (found,) = detector.detect(detector.preprocessing.from_image(image)[None], [(90, 120)])
    assert seen == [(1, 3, 600, 800)]
    assert found.boxes.tolist() == [[30, 22.5, 90, 67.5]]
    scores = boxes_as_classes(detector)(detector.preprocessing.from_image(image)[None]).scores
    assert scores.ravel() == pytest.approx([0.9])


def test_one_crop_alone_is_the_likeliest_object(colour_model: Classifier) -> None:
    scores = proposals(ColourDetector(), colour_model, max_proposals=1)(scene()[None]).scores
    assert scores.argmax() == 2  # red is broader than blue, so the detector is surer of it


def test_models_that_take_any_size_are_asked_crop_by_crop() -> None:
    mean = wrap_model(
        lambda inputs: 20 * inputs.mean(axis=(2, 3))[:, ::-1],
        name="any",
        version="1",
        class_names=sorted(COLOURS),
        size=None,
        preprocess="mean=0,std=1",
    )
    assert proposals(ColourDetector(), mean)(scene()[None]).scores.argmax() == 0


def test_without_a_detector_windows_are_slid_over_the_image(colour_model: Classifier) -> None:
    image = np.full((90, 90, 3), 128, np.uint8)
    image[27:63, 27:63] = COLOURS["blue"]
    image[:, :20] = image[:, 70:] = COLOURS["green"]
    assert colour_model(colour_model.preprocessing.from_image(image)[None]).scores.argmax() == 1
    assert proposals("grid", colour_model)(image[None]).scores.argmax() == 0


def test_an_aspect_is_width_over_height() -> None:
    flat = Grid(scales=(0.25,), aspects=(4.0,)).windows(200, 400)[0]
    assert (flat[2:] - flat[:2]).tolist() == pytest.approx([100, 25])


@pytest.mark.parametrize(("height", "width"), [(100, 100), (60, 200), (333, 250), (24, 32)])
def test_windows_lie_inside_keep_their_shape_and_leave_no_gap(height: int, width: int) -> None:
    boxes = Grid().windows(height, width)
    across, down = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    assert boxes[:, :2].min() >= 1
    assert boxes[:, 2].max() <= width - 1 + 1e-9
    assert boxes[:, 3].max() <= height - 1 + 1e-9
    assert set((across / down).round(6)) <= {0.5, 1.0, 2.0}
    assert set((np.sqrt(across * down) / min(height, width)).round(6)) <= {0.35, 0.5, 0.7}
    squares = boxes[np.isclose(across, 0.35 * min(height, width)) & np.isclose(down, across)]
    assert all(covered(squares, row, column) for row in range(1, height - 1) for column in range(1, width - 1, 7))
    middles = np.hypot((boxes[:, 0] + boxes[:, 2]) / (2 * width) - 0.5, (boxes[:, 1] + boxes[:, 3]) / (2 * height) - 0.5)
    assert (np.diff(middles) >= -1e-5).all()
    assert middles[0] < 1e-9


def covered(boxes: Boxes, row: int, column: int) -> bool:
    left, top, right, bottom = boxes.T
    return bool(((left <= column) & (column <= right) & (top <= row) & (row <= bottom)).any())


def test_bad_windows_and_unknown_sources_of_crops_are_refused(colour_model: Classifier) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        Grid(scales=(1.5,))
    with pytest.raises(BadInput, match="not by 'edges'"):
        proposals("edges", colour_model)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no probabilities"):
        proposals("grid", boxes_as_classes(ColourDetector()))
    with pytest.raises(UnknownName, match="no output of proposals called 'best'"):
        proposals("grid", colour_model, output="best")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="at least one crop"):
        proposals("grid", colour_model, max_proposals=0)


def test_what_answers_depend_on_tells_models_apart(colour_model: Classifier) -> None:
    models = [
        proposals(ColourDetector(), colour_model),
        proposals(ColourDetector(names=("red",)), colour_model),
        proposals(ColourDetector(), colour_model, max_proposals=5),
        proposals(ColourDetector(), colour_model, min_side=5),
        proposals("grid", colour_model),
        proposals(ColourDetector(), colour_model, output="most-confident"),
        proposals(ColourDetector(), colour_model, fill="empty"),
        proposals(ColourDetector(), colour_model, seed=1),
        proposals(Grid(scales=(0.5,)), colour_model),
    ]
    assert len({model.ref.fingerprint for model in models}) == len(models)
    assert models[0].ref.name == "colours on crops by colours"
    assert proposals(Grid(), colour_model).ref == models[4].ref


def test_images_of_many_sizes_and_conditions_run_on_it(colour_model: Classifier, tmp_path: Path) -> None:
    for colour in COLOURS:
        draw_scenes(tmp_path / "photos" / colour, {f"{number}.png": {colour: (4, 4, 20, 20)} for number in range(2)})
    images = sp.open_dataset(tmp_path / "photos")
    model = proposals(ColourDetector(), colour_model)
    for condition in (sp.CLEAN, Condition("contrast", 1, edition="imagenet-224")):
        said = sp.predict(model, images, condition=condition, store=tmp_path / "runs", keep="features", workers=0)
        assert len(said) == 6
        assert said.need_features().shape[1] == 48
    clean = sp.predict(model, images, store=tmp_path / "runs", workers=0)
    assert (clean.top5.classes[:, 0] == clean.labels[:, 0]).all()
