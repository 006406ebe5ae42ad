"""Algorithm 1 of the ImageNet-A-Plus paper: an object detector as a classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from boxed_toys import ColourDetector, draw_scenes
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import is_correct
from shiftproof.metrics.accuracy import best_classes
from shiftproof.models.classifiers.boxes_as_classes import (
    NOTHING,
    boxes_as_classes,
    scores_behind_nothing,
    scores_in_random_order,
)
from shiftproof.models.options import Fill
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.types import Found, Image
from toys import COLOURS

FOUND = Found(np.zeros((4, 4)), np.array([0.9, 0.8, 0.6, 0.3]), np.array([7, 2, 7, 5]))
"""Two boxes of class 7, one of class 2 and one of class 5."""

CHOICES: list[tuple[Fill, int]] = [("random", 0), ("random", 1), ("empty", 0), ("empty", 1)]


def scene(*colours: str) -> Image:
    """Stripes of these colours on black, each half as broad as the one before it."""
    image = np.zeros((8, 64, 3), np.uint8)
    start = 0
    for place, colour in enumerate(colours):
        image[:, start : start + (32 >> place)] = COLOURS[colour]
        start += 32 >> place
    return image


def test_classes_stand_in_the_order_of_their_best_boxes_and_the_rest_behind_them_at_random() -> None:
    orders = {tuple(best_classes(random_scores(seed)[None], 10)[0].tolist()) for seed in range(20)}
    assert {order[:3] for order in orders} == {(7, 2, 5)}
    assert {frozenset(order[3:]) for order in orders} == {frozenset({0, 1, 3, 4, 6, 8, 9})}
    assert len(orders) == 20  # of 5040 orders of seven classes


def random_scores(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(scores_in_random_order(FOUND, 10, np.random.default_rng(seed)))


def test_every_class_without_a_box_is_as_likely_as_any_other_to_come_next() -> None:
    fourth = [int(best_classes(random_scores(seed)[None], 4)[0, 3]) for seed in range(1400)]
    counts = np.bincount(fourth, minlength=10)
    assert counts[[2, 5, 7]].tolist() == [0, 0, 0]
    # 200 are expected of each; the chi-squared statistic of six degrees of freedom passes 22.46 once in a thousand
    assert ((counts[[0, 1, 3, 4, 6, 8, 9]] - 200) ** 2 / 200).sum() < 22.46


def test_a_place_that_is_left_empty_is_never_right() -> None:
    best = best_classes(scores_behind_nothing(FOUND, 10)[None], 5)
    assert best[0].tolist() == [7, 2, 5, 10, 11]
    none = Found(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int))
    first = best_classes(scores_behind_nothing(none, 10)[None], 5)
    assert not any(is_correct(np.array([label]), first, k=5)[0] for label in range(10))


def test_scores_below_zero_still_stand_before_classes_without_a_box() -> None:
    found = Found(np.zeros((2, 4)), np.array([-0.5, -3.0]), np.array([1, 0]))
    for scores in (scores_in_random_order(found, 3, np.random.default_rng(0)), scores_behind_nothing(found, 3)):
        assert best_classes(scores[None], 2)[0].tolist() == [1, 0]


def test_the_broadest_colour_wins_whatever_else_is_in_the_batch() -> None:
    model = boxes_as_classes(ColourDetector())
    images = np.stack([scene("red", "blue"), scene("green"), scene(), scene("blue", "green", "red")])
    together = model(images).scores
    blue, green, red = range(3)
    assert together[[0, 1, 3]].argmax(axis=1).tolist() == [red, green, blue]
    assert together[0, [red, blue]].tolist() == [0.5, 0.25]
    alone = np.concatenate([model(images[[place]]).scores for place in (3, 2, 1, 0)])[::-1]
    assert np.array_equal(together, alone)


def test_what_is_drawn_depends_on_the_pixels_and_the_seed_alone() -> None:
    images = np.random.default_rng(0).integers(0, 12, (40, 8, 8, 3), np.uint8)  # too dark for any colour
    first, again, other = (boxes_as_classes(ColourDetector(), seed=seed)(images).scores for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(set(first.argmax(axis=1).tolist())) == 3


def test_what_answers_depend_on_tells_models_apart() -> None:
    refs = [boxes_as_classes(ColourDetector(), fill=fill, seed=seed).ref for fill, seed in CHOICES]
    assert [ref.name for ref in refs] == [
        "colours as classifier",
        "colours as classifier, seed 1",
        "colours as classifier, places left empty",
        "colours as classifier, places left empty",
    ]
    assert len({ref.fingerprint for ref in refs}) == 3  # where nothing is drawn, no seed counts
    assert boxes_as_classes(ColourDetector(names=("red", "blue"))).ref.fingerprint not in {ref.fingerprint for ref in refs}


def test_detectors_of_unnamed_classes_and_unknown_ways_to_fill_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="did you mean empty"):
        boxes_as_classes(ColourDetector(), fill="emty")  # type: ignore[arg-type]
    monkeypatch.setattr(ColourDetector, "classes", None)
    with pytest.raises(BadInput, match="does not name its classes"):
        boxes_as_classes(ColourDetector())


def test_the_detector_is_told_the_size_of_its_input_in_either_layout() -> None:
    last = ColourDetector()
    boxes_as_classes(last)(np.zeros((2, 6, 9, 3), np.uint8))
    first = ColourDetector(preprocessing=ImagePreprocessing(layout="nchw"), names=())
    boxes_as_classes(first)(np.zeros((2, 3, 6, 9), np.uint8))
    assert last.asked == first.asked == [(6, 9), (6, 9)]


def test_studies_run_on_it_and_count_images_without_boxes_as_wrong(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for colour in COLOURS:
        draw_scenes(photos / colour, {f"{colour}.png": {colour: (4, 4, 20, 20)}})
    draw_scenes(photos / "blue", {"none.png": {}})
    model = boxes_as_classes(ColourDetector(), fill="empty")
    images = sp.open_dataset(photos)
    said = sp.predict(model, images, store=tmp_path / "runs", workers=0)
    assert said.classes is not None
    first = dict(zip(said.ids, (said.classes.names[place] for place in said.top5.classes[:, 0]), strict=True))
    assert first == {"blue/blue.png": "blue", "blue/none.png": NOTHING, "green/green.png": "green", "red/red.png": "red"}
    results = sp.measure(AccuracyStudy(models=[model], dataset=images), store=tmp_path / "runs", datasets=[images])
    found = {one.metric: one.value for one in results.measurements if "class" not in one.about}
    assert found["top1_accuracy"] == found["top5_accuracy"] == 0.75
