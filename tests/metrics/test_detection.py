"""Average precision beside pycocotools: crowds, ignored objects, ties, empty images and classes, sizes, thresholds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from scenes import COCO_SIZES, coco_evaluation, coco_mean, random_scene
from shiftproof.errors import BadInput
from shiftproof.metrics import (
    average_precision,
    average_precision_interval,
    average_recall,
    image_average_precision,
    match,
    matched_average_precision,
    mean_average_precision,
    precision_at_recall,
)
from shiftproof.metrics import boxes as matching_module
from shiftproof.metrics.boxes import COCO_OVERLAPS
from shiftproof.types import Detections, Truths

SEEDS = range(12)


def agree(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are the same to 1e-9, where our nan is their -1 and they list more classes at the end."""
    known = ours.shape[-1]
    assert (theirs[..., known:] == -1).all()
    return np.allclose(np.nan_to_num(ours, nan=-1), theirs[..., :known], rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [*COCO_SIZES, (200.0, 2000.0)])
@pytest.mark.parametrize("class_blind", [False, True])
def test_every_class_agrees_with_pycocotools_at_ten_thresholds(seed: int, size: Any, class_blind: bool) -> None:
    detections, truths = random_scene(seed)
    precision, recall = coco_evaluation(detections, truths, ious=COCO_OVERLAPS, size=size, class_blind=class_blind)
    matches = match(detections, truths, iou="coco", size=size, class_blind=class_blind)
    assert agree(precision_at_recall(matches).transpose(0, 2, 1), precision)
    assert agree(average_precision(matches), precision.mean(axis=1))
    assert agree(average_recall(matches), recall)
    ours = mean_average_precision(detections, truths, iou="coco", size=size, class_blind=class_blind)
    assert ours == pytest.approx(coco_mean(precision), abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_only_the_surest_boxes_of_an_image_and_class_count(most: int) -> None:
    detections, truths = random_scene(3, images=5)
    precision, _ = coco_evaluation(detections, truths, most=most)
    assert mean_average_precision(detections, truths, most=most) == pytest.approx(coco_mean(precision), abs=1e-9)
    assert mean_average_precision(detections, truths) != pytest.approx(coco_mean(precision), abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ap_of_an_image_is_what_pycocotools_says_of_that_image_alone(seed: int) -> None:
    detections, truths = random_scene(seed)
    matches = match(detections, truths, iou=(0.5, 0.75))
    ours = image_average_precision(matches)
    for image in range(len(truths.ids)):
        precision, _ = coco_evaluation(detections, truths, ious=(0.5, 0.75), images=[image])
        assert ours[image] == pytest.approx(coco_mean(precision), abs=1e-9, nan_ok=True)
        alone = np.arange(len(truths.ids)) == image
        assert matched_average_precision(matches, times=alone) == pytest.approx(ours[image], abs=1e-12, nan_ok=True)


def test_images_counted_twice_are_as_good_as_two_copies() -> None:
    tied, truths = random_scene(5, images=8)
    # among equal scores the copies of an image stand apart and counting twice puts them together
    detections = dataclasses.replace(tied, scores=np.random.default_rng(5).permutation(len(tied.scores)) / 1000)
    times = np.array([0, 1, 2, 0, 3, 1, 1, 2])
    copies = np.repeat(np.arange(8), times)

    def copied(boxes: Any) -> Any:
        rows = [np.flatnonzero(boxes.image == image) for image in copies]
        columns = {
            column.name: getattr(boxes, column.name)[np.concatenate(rows)]
            for column in dataclasses.fields(boxes)
            if column.name not in ("ids", "image")
        }
        place = np.repeat(np.arange(len(copies)), [len(row) for row in rows])
        return dataclasses.replace(boxes, ids=tuple(map(str, range(len(copies)))), image=place, **columns)

    counted = average_precision(match(detections, truths, iou="coco"), times=times)
    theirs, _ = coco_evaluation(copied(detections), copied(truths), ious=COCO_OVERLAPS)
    assert agree(counted, theirs.mean(axis=1))


def test_pairs_in_many_parts_match_as_pairs_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = random_scene(1)
    whole = match(*scene, iou="coco", class_blind=True)
    monkeypatch.setattr(matching_module, "_PAIRS_AT_ONCE", 7)
    parts = match(*scene, iou="coco", class_blind=True)
    assert np.array_equal(whole.hit, parts.hit)
    assert np.array_equal(whole.left_out, parts.left_out)


def test_boxes_in_another_order_of_images_match_alike() -> None:
    detections, truths = random_scene(2)
    turned = Detections(
        detections.ids[::-1],
        len(detections.ids) - 1 - detections.image,
        detections.boxes,
        detections.scores,
        detections.classes,
    )
    assert np.array_equal(match(turned, truths).hit, match(detections, truths).hit)


def test_the_rows_of_matches_lead_back_to_the_boxes() -> None:
    detections, truths = random_scene(4)
    matches = match(detections, truths)
    assert np.array_equal(detections.scores[matches.row], matches.scores)
    assert np.array_equal(detections.classes[matches.row], matches.classes)
    assert np.array_equal(detections.image[matches.row], matches.image)


def one_class(boxes: list[list[float]], scores: list[float] | None = None) -> Any:
    places, zeros = np.zeros(len(boxes), dtype=int), np.zeros(len(boxes), dtype=bool)
    corners = np.array(boxes, dtype=float).reshape(-1, 4)
    if scores is not None:
        return Detections(("a",), places, corners, np.array(scores), places)
    return Truths(("a",), places, corners, places, zeros, zeros, np.ones(len(boxes)))


def test_the_area_over_every_recall_is_worked_by_hand() -> None:
    truths = one_class([[0, 0, 4, 4], [10, 0, 14, 4], [20, 0, 24, 4], [30, 0, 34, 4]])
    # right, wrong, right: precision 1 up to a recall of 1/4, then 2/3 up to 1/2, then nothing
    found = one_class([[0, 0, 4, 4], [50, 0, 54, 4], [10, 0, 14, 4]], [0.9, 0.8, 0.7])
    assert mean_average_precision(found, truths, area="voc") == pytest.approx(1 / 4 + 2 / 3 / 4)
    # 26 recalls up to 0.25 and another 25 up to 0.5
    assert mean_average_precision(found, truths) == pytest.approx((26 + 25 * 2 / 3) / 101)


def test_the_ilsvrc_threshold_forgives_small_boxes_alone() -> None:
    # 15 of 33 pixels in common: 0.45, where 6 x 4 pixels need 24 / (16 * 14) = 0.11
    assert mean_average_precision(one_class([[1, 1, 6, 4]], [1.0]), one_class([[0, 0, 5, 3]])) == 0
    assert mean_average_precision(one_class([[1, 1, 6, 4]], [1.0]), one_class([[0, 0, 5, 3]]), iou="ilsvrc") == 1
    # the same shapes fifty times as large: the bound is 0.5 again
    large = one_class([[50, 50, 300, 200]], [1.0]), one_class([[0, 0, 250, 150]])
    assert mean_average_precision(*large, iou="ilsvrc") == 0


def test_the_ilsvrc_threshold_counts_the_pixels_of_both_corners_in() -> None:
    # 5 x 3 pixels need 15 / (15 * 13) = 0.077
    truth = one_class([[0, 0, 4, 2]])
    # 3 of 27 pixels in common are enough, though the lines through the corners do not cross at all
    assert mean_average_precision(one_class([[2, 2, 6, 4]], [1.0]), truth, iou="ilsvrc") == 1
    assert mean_average_precision(one_class([[2, 2, 6, 4]], [1.0]), truth, iou=0.01) == 0
    # 2 of 28 are not: 0.071
    assert mean_average_precision(one_class([[3, 2, 7, 4]], [1.0]), truth, iou="ilsvrc") == 0


def found_or_not(found: int, images: int) -> tuple[Detections, Truths]:
    """An object an image, of which some are found and nothing else: the mean average precision is their share."""
    ids, boxes, none = tuple(map(str, range(images))), np.tile([0.0, 0, 9, 9], (images, 1)), np.zeros(images, dtype=bool)
    zeros, each = np.zeros(images, dtype=int), np.arange(images)
    truths = Truths(ids, each, boxes, zeros, none, none, np.full(images, 81.0))
    return Detections(ids, each[:found], boxes[:found], np.ones(found), zeros[:found]), truths


def test_an_interval_is_that_of_a_share_where_each_image_is_found_or_not() -> None:
    low, high = average_precision_interval(match(*found_or_not(120, 200)), area="voc") or (0, 1)
    spread = 1.96 * np.sqrt(0.6 * 0.4 / 200)
    assert (low, high) == pytest.approx((0.6 - spread, 0.6 + spread), abs=0.015)


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_intervals_of_26_images_hold_the_share_they_were_drawn_with(share: float) -> None:
    """Exactly, over all counts that a binomial distribution gives."""
    held = 0.0
    for found in range(27):
        low, high = average_precision_interval(match(*found_or_not(found, 26)), area="voc") or (np.nan, np.nan)
        held += binom.pmf(found, 26, share) * (low <= share <= high)
    assert held >= 0.93


def test_without_objects_there_is_no_number_and_without_boxes_it_is_zero() -> None:
    nothing, square = one_class([], []), one_class([[0, 0, 4, 4]])
    assert mean_average_precision(nothing, square) == 0
    assert np.isnan(mean_average_precision(one_class([[0, 0, 4, 4]], [1.0]), one_class([])))
    assert np.isnan(mean_average_precision(nothing, one_class([])))
    assert np.isnan(image_average_precision(match(nothing, one_class([])))).all()


def test_slips_are_told() -> None:
    found, truths = one_class([[0, 0, 4, 4]], [1.0]), one_class([[0, 0, 4, 4]])
    with pytest.raises(BadInput, match="above 0"):
        match(found, truths, iou=0.0)
    with pytest.raises(BadInput, match="'coco' or 'ilsvrc'"):
        match(found, truths, iou="voc")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="small, medium, large"):
        match(found, truths, size="tiny")
    with pytest.raises(BadInput, match="such as b"):
        match(dataclasses.replace(found, ids=("b",)), truths)
    with pytest.raises(BadInput, match="not a number"):
        match(dataclasses.replace(found, scores=np.array([np.nan])), truths)
    with pytest.raises(BadInput, match="0 or more"):
        match(dataclasses.replace(found, classes=np.array([-1])), truths)
    with pytest.raises(BadInput, match="'coco' or 'voc'"):
        mean_average_precision(found, truths, area="pascal")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="present or predicted"):
        image_average_precision(match(found, truths), reading="absent")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="each of 1 images"):
        average_precision(match(found, truths), times=np.ones(2))
