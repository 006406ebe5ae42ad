import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.object_detectors.loaded import BLOCK, BoxRules, Candidates, suppress
from shiftproof.types import Boxes


def overlap(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return float(width * height / (areas[0] + areas[1] - width * height))


def kept_vote_by_vote(boxes: Boxes, classes: NDArray[np.integer], most: float) -> list[int]:
    kept: list[int] = []
    for place in range(len(boxes)):
        rivals = [other for other in kept if classes[other] == classes[place]]
        if all(overlap(boxes[other], boxes[place]) <= most for other in rivals):
            kept.append(place)
    return kept


def random_boxes(seed: int, count: int, step: int = 4) -> Boxes:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 24, (count, 2)) * step
    return np.concatenate([starts, starts + rng.integers(1, 12, (count, 2)) * step], axis=1).astype(float)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [0.2, 0.5, 0.65])
def test_suppression_keeps_what_going_through_the_boxes_one_by_one_keeps(seed: int, most: float) -> None:
    boxes = random_boxes(seed, 90)
    classes = np.random.default_rng(seed + 100).integers(0, 3, 90)
    assert suppress(boxes, classes, most).tolist() == kept_vote_by_vote(boxes, classes, most)


def test_more_boxes_than_are_compared_at_once_come_out_the_same() -> None:
    boxes, classes = random_boxes(7, BLOCK + 150), np.zeros(BLOCK + 150, int)
    kept = kept_vote_by_vote(boxes, classes, 0.3)
    assert suppress(boxes, classes, 0.3).tolist() == kept
    assert suppress(boxes, classes, 0.3, most=7).tolist() == kept[:7]


def test_a_box_hidden_by_a_dropped_one_stays() -> None:
    # three steps of a staircase, each sharing 2/3 with its neighbour and 1/3 with the next but one (overlaps 1/2 and 1/5)
    boxes = np.array([[0.0, 0, 6, 1], [2, 0, 8, 1], [4, 0, 10, 1]])
    assert suppress(boxes, np.zeros(3, int), 0.4).tolist() == [0, 2]
    assert suppress(boxes, np.zeros(3, int), 0.5).tolist() == [0, 1, 2]  # exactly as much as is allowed
    assert suppress(boxes, np.array([0, 1, 0]), 0.4).tolist() == [0, 1, 2]


def test_no_boxes_are_no_boxes() -> None:
    found = BoxRules().found_among(Candidates(np.zeros((0, 4)), np.zeros((0, 3))))
    assert [part.shape for part in found] == [(0, 4), (0,), (0,)]


def test_a_box_counts_for_its_best_class_or_for_each_that_is_sure_enough() -> None:
    candidates = Candidates(np.array([[0.0, 0, 4, 4], [20, 20, 30, 30]]), np.array([[0.3, 0.6, 0.1], [0.05, 0.0, 0.2]]))
    best = BoxRules(score_threshold=0.1).found_among(candidates)
    assert (best.classes.tolist(), best.scores.tolist()) == ([1, 2], [0.6, 0.2])
    each = BoxRules(score_threshold=0.1, several=True).found_among(candidates)
    assert (each.classes.tolist(), each.scores.tolist()) == ([1, 0, 2, 2], [0.6, 0.3, 0.2, 0.1])
    assert each.boxes[1].tolist() == [0, 0, 4, 4]


def test_a_box_exactly_as_sure_as_is_asked_counts() -> None:
    boxes, scores = np.array([[0.0, 0, 4, 4], [20, 20, 30, 30]]), np.array([0.25, 0.125])
    rules = BoxRules(score_threshold=0.25)
    assert rules.found_among(Candidates(boxes, scores, np.zeros(2, int))).scores.tolist() == [0.25]
    assert rules.found_among(Candidates(boxes, scores[:, None])).scores.tolist() == [0.25]


def test_equally_sure_boxes_stay_in_their_order() -> None:
    boxes = np.arange(40)[:, None] * 10 + np.array([0.0, 0, 5, 5])
    found = BoxRules().found_among(Candidates(boxes, np.full(40, 0.5), np.zeros(40, int)))
    assert np.array_equal(found.boxes, boxes)
    few = BoxRules(max_detections=3).found_among(Candidates(boxes, np.full(40, 0.5), np.zeros(40, int)))
    assert np.array_equal(few.boxes, boxes[:3])


def test_without_an_overlap_nothing_is_dropped() -> None:
    same = Candidates(np.tile([0.0, 0, 4, 4], (5, 1)), np.full(5, 0.9), np.zeros(5, int))
    assert len(BoxRules(nms_iou=None).found_among(same).scores) == 5
    assert len(BoxRules(nms_iou=None, max_detections=3).found_among(same).scores) == 3  # beyond the number that is kept
    assert len(BoxRules(nms_iou=0.9).found_among(same).scores) == 1


def test_what_is_not_a_number_is_told_and_not_dropped() -> None:
    found = BoxRules().found_among(Candidates(np.array([[0.0, 0, np.nan, 4]]), np.array([[0.5]])))
    assert np.isnan(found.scores).all()
    assert len(found.scores) == 1


@pytest.mark.parametrize("wrong", [{"score_threshold": 1.5}, {"nms_iou": 0.0}, {"nms_iou": 1.1}, {"max_detections": 0}])
def test_impossible_rules_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        BoxRules(**wrong)  # type: ignore[arg-type]
