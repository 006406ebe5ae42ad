"""pm-k mean average precision: worked by hand, and beside a loop over frames that asks pycocotools of each."""

from __future__ import annotations

import numpy as np
import pytest

from scenes import coco_evaluation, coco_mean, random_scene
from shiftproof.errors import BadInput
from shiftproof.metrics import (
    average_precision_interval,
    image_average_precision,
    match,
    matched_average_precision,
    mean_performance_under_corruption,
    pm_k_average_precision,
    pm_k_average_precision_sweep,
    relative_performance_under_corruption,
    worst_frames,
)
from shiftproof.metrics.detection import resampled_precision
from shiftproof.types import Detections, Truths

SQUARE = [0.0, 0.0, 8.0, 8.0]


def test_the_last_digit_of_a_sum_does_not_make_a_frame_the_worst() -> None:
    # one object of each of three classes, found as the first, second and sixth box in the anchor, the other way round after
    # it: both come to (1 + 1/2 + 1/6) / 3, which adds up to less from the other end
    places = [(0, 1, 2, 6), (1, 6, 2, 1)]
    assert (1 / 6 + 1 / 2 + 1) / 3 < (1 + 1 / 2 + 1 / 6) / 3
    boxes = [
        (image, kind, SQUARE if rank == found_as else [20.0, 20, 28, 28], 1 / rank)
        for image, *ranks in places
        for kind, found_as in enumerate(ranks)
        for rank in range(1, found_as + 1)
    ]
    image, kinds, corners, scores = (np.array(column) for column in zip(*boxes, strict=True))
    none, ids = np.zeros(6, dtype=bool), ("anchor", "after")
    truths = Truths(ids, np.repeat([0, 1], 3), np.array([SQUARE] * 6), np.tile([0, 1, 2], 2), none, none, np.full(6, 64.0))
    matches = match(Detections(ids, image, corners, scores, kinds), truths)
    assert worst_frames(matches, np.array([0, 1]), np.zeros(2, int), k=1).tolist() == [0]


def test_the_worst_frame_by_hand_in_three_readings() -> None:
    # frame 0 shows class 0 and finds it, frame 1 (the anchor) shows both and finds one, frame 2 finds its object after a
    # false alarm of the class it does not show
    truth_image, truth_class = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 0])
    none, ids = np.zeros(4, dtype=bool), ("before", "anchor", "after")
    truths = Truths(ids, truth_image, np.array([SQUARE] * 4), truth_class, none, none, np.full(4, 64.0))
    box_image, box_class = np.array([0, 1, 2, 2]), np.array([0, 0, 1, 0])
    found = Detections(ids, box_image, np.array([SQUARE] * 4), np.array([0.9, 0.8, 0.7, 0.6]), box_class)
    matches = match(found, truths)
    assert image_average_precision(matches).tolist() == [1, 0.5, 1]
    assert image_average_precision(matches, reading="present or predicted").tolist() == [1, 0.5, 0.5]
    # pooled, the anchor has found one of two: 51 of 101 recalls
    assert image_average_precision(matches, reading="pooled") == pytest.approx(np.array([1, 51 / 101, 0.5]))
    offsets, groups = np.array([-1, 0, 1]), np.zeros(3, dtype=int)
    assert worst_frames(matches, offsets, groups, k=1).tolist() == [1]
    assert worst_frames(matches, offsets, groups, k=1, reading="present or predicted").tolist() == [1]
    assert worst_frames(matches, offsets, groups, k=1, reading="pooled").tolist() == [2]
    # of frame 2 class 0 alone has something to find; the false alarm is of a class without objects
    assert pm_k_average_precision(matches, offsets, groups, k=1) == 0.5
    assert pm_k_average_precision(matches, offsets, groups, k=1, reading="pooled") == 1
    # of the neighbours alone the earlier of two equals
    assert worst_frames(matches, offsets, groups, k=1, include_anchor=False).tolist() == [0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("class_blind", [False, True])
def test_every_k_is_what_a_loop_over_frames_finds_with_pycocotools(seed: int, class_blind: bool) -> None:
    detections, truths = random_scene(seed, images=21, objects=120, boxes=200)
    groups, offsets = np.repeat([2, 0, 1], 7), np.tile(np.arange(-3, 4), 3)
    alone = np.array(
        [coco_mean(coco_evaluation(detections, truths, images=[row], class_blind=class_blind)[0]) for row in range(21)]
    )
    sweep = pm_k_average_precision_sweep(match(detections, truths, class_blind=class_blind), offsets, groups, largest_k=3)
    for k in range(4):
        chosen = []
        for group in range(3):
            rows = [row for row in range(21) if groups[row] == group and abs(offsets[row]) <= k]
            rank = {row: (np.nan_to_num(alone[row].round(9), nan=2), abs(offsets[row]), offsets[row]) for row in rows}
            chosen.append(min(rows, key=rank.__getitem__))
        precision, _ = coco_evaluation(detections, truths, images=sorted(chosen), class_blind=class_blind)
        assert sweep[k] == pytest.approx(coco_mean(precision), abs=1e-9)
    assert sweep[3] < sweep[0]


def test_rows_may_share_images() -> None:
    detections, truths = random_scene(6, images=9)
    matches = match(detections, truths)
    images, offsets, groups = np.array([3, 2, 4, 4, 3, 5]), np.array([0, -1, 1, 0, -1, 1]), np.repeat([0, 1], 3)
    rows = worst_frames(matches, offsets, groups, k=1, images=images)
    precision = image_average_precision(matches)[images]
    assert precision[rows].tolist() == [precision[:3].min(), precision[3:].min()]
    times = np.bincount(images[rows], minlength=9)
    by_times = matched_average_precision(matches, times=times)
    assert pm_k_average_precision(matches, offsets, groups, k=1, images=images) == by_times


def test_a_frame_without_objects_is_never_the_worst_of_several() -> None:
    detections, truths = random_scene(0, images=3)  # images 1 and 2 have no objects
    offsets, groups = np.array([2, 1, 0]), np.zeros(3, dtype=int)
    matches = match(detections, truths)
    assert worst_frames(matches, offsets, groups, k=1).tolist() == [2], "the anchor, where no frame shows anything"
    assert worst_frames(matches, offsets, groups, k=2).tolist() == [0]


def test_an_anchor_without_neighbours_has_no_say_where_it_does_not_count() -> None:
    detections, truths = random_scene(0, images=4)
    offsets, groups = np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1])
    assert worst_frames(match(detections, truths), offsets, groups, k=1, include_anchor=False).tolist() == [1]
    assert worst_frames(match(detections, truths), offsets, groups, k=0, include_anchor=False).tolist() == [0, 2]


def test_an_interval_over_chosen_frames_draws_those_alone() -> None:
    detections, truths = random_scene(7, images=20, objects=200, boxes=400)
    matches = match(detections, truths)
    times = np.arange(20) % 2
    seen = matched_average_precision(matches, times=times)
    low, high = average_precision_interval(matches, times=times) or (1, 0)
    assert low < seen < high
    assert average_precision_interval(matches, times=np.arange(20) == 3) is None
    # an image that counts twice is one case all the same
    assert average_precision_interval(matches, times=2 * times) == pytest.approx((low, high), abs=0.01)


def test_offsets_of_other_images_are_told() -> None:
    matches = match(*random_scene(0))
    with pytest.raises(BadInput, match="12 images but 3 offsets"):
        worst_frames(matches, np.array([-1, 0, 1]), np.zeros(3, dtype=int), k=1)


def test_performance_under_corruption_needs_a_table_and_something_to_lose() -> None:
    with pytest.raises(BadInput, match="corruptions, severities"):
        mean_performance_under_corruption([0.5, 0.4])
    with pytest.raises(BadInput, match="above 0"):
        relative_performance_under_corruption([[0.5, 0.4]], 0.0)


def test_drawing_some_of_the_images_again_has_the_classes_that_these_show() -> None:
    none, ids = np.zeros(3, dtype=bool), ("a", "b", "c")
    truths = Truths(ids, np.arange(3), np.array([SQUARE] * 3), np.array([0, 1, 2]), none, none, np.full(3, 64.0))
    found = Detections(ids, np.array([2]), np.array([SQUARE]), np.ones(1), np.array([2]))
    again = resampled_precision(match(found, truths), np.array([0, 2, 2]), resamples=20)
    assert again.seen.tolist() == [[0.0, 1.0]]  # of classes 0 and 2
    assert again.drawn.shape == (20, 2)
