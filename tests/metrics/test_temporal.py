"""pm-k by hand, by loops over random sets, and on the released sets of ImageNet-Vid-Robust."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from metrics.random_frames import Frames, random_frames
from shiftproof.errors import BadInput
from shiftproof.metrics import (
    clopper_pearson,
    grouped_accuracy,
    per_class_accuracy,
    pm_k_accuracy,
    pm_k_correct,
    pm_k_sweep,
)

# three clips: wrong one frame before the anchor; wrong on the anchor alone; an anchor without neighbours
OFFSETS = np.array([-2, -1, 0, 1, 0, 2, 0])
GROUPS = np.array([5, 5, 5, 5, 6, 6, 9])
CORRECT = np.array([True, False, True, True, False, True, True])


def by_loops(frames: Frames, model: int, k: int, include_anchor: bool) -> dict[str, bool]:
    """Whether each anchor that has a say is right, as the definition reads."""
    answers = {}
    for group in sorted(set(frames.groups)):
        inside = [row for row in range(len(frames.groups)) if frames.groups[row] == group]
        asked = [row for row in inside if abs(frames.offsets[row]) <= k and (frames.offsets[row] or include_anchor or not k)]
        if asked:
            answers[str(group)] = all(frames.correct[model, row] for row in asked)
    return answers


@pytest.mark.parametrize(("k", "share"), [(0, 2 / 3), (1, 1 / 3), (2, 1 / 3)])
def test_an_anchor_is_right_if_it_and_all_frames_around_it_are(k: int, share: float) -> None:
    assert pm_k_accuracy(CORRECT, OFFSETS, GROUPS, k=k) == pytest.approx(share)


@pytest.mark.parametrize(("k", "share"), [(0, 2 / 3), (1, 0.0), (2, 1 / 2)])
def test_the_equation_of_the_paper_asks_neighbours_alone_and_leaves_out_anchors_without_any(k: int, share: float) -> None:
    # one away only the first clip has frames; two away the second as well, and its wrong anchor is not asked
    assert pm_k_accuracy(CORRECT, OFFSETS, GROUPS, k=k, include_anchor=False) == pytest.approx(share)


def test_without_any_neighbour_the_equation_of_the_paper_has_no_answer() -> None:
    assert np.isnan(pm_k_accuracy(CORRECT[-1:], OFFSETS[-1:], GROUPS[-1:], k=3, include_anchor=False))
    assert pm_k_accuracy(CORRECT[-1:], OFFSETS[-1:], GROUPS[-1:], k=3) == 1.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("include_anchor", [True, False])
def test_every_k_of_every_model_is_what_loops_over_the_frames_find(seed: int, include_anchor: bool) -> None:
    frames = random_frames(seed)
    sweep = pm_k_sweep(*frames, largest_k=5, include_anchor=include_anchor)
    for k in range(6):
        together = pm_k_correct(*frames, k=k, include_anchor=include_anchor)
        for model, correct in enumerate(frames.correct):
            expected = by_loops(frames, model, k, include_anchor)
            assert dict(zip(frames.groups[together.anchors], together.right[model], strict=True)) == expected
            assert (sweep.right[model, k], sweep.total[k]) == (sum(expected.values()), len(expected))
            alone = pm_k_accuracy(correct, frames.offsets, frames.groups, k=k, include_anchor=include_anchor)
            assert alone == sweep.accuracy[model, k]


@pytest.mark.parametrize("seed", range(5))
def test_with_the_anchor_in_accuracy_only_falls_as_the_neighbourhood_grows(seed: int) -> None:
    frames = random_frames(seed, anchors=200)
    accuracy = pm_k_sweep(*frames, largest_k=4).accuracy
    assert (np.diff(accuracy, axis=1) <= 0).all()
    assert (accuracy[:, 4] < accuracy[:, 0]).all()


def test_with_the_anchor_out_accuracy_can_rise_with_the_neighbourhood() -> None:
    sweep = pm_k_sweep(CORRECT, OFFSETS, GROUPS, largest_k=2, include_anchor=False)
    assert sweep.accuracy == pytest.approx([2 / 3, 0, 1 / 2])
    assert sweep.total.tolist() == [3, 1, 2]


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.array([6, 3, 0, 4, 2, 5, 1])
    shuffled = pm_k_correct(CORRECT[order], OFFSETS[order], GROUPS[order], k=1)
    assert shuffled.right.tolist() == pm_k_correct(CORRECT, OFFSETS, GROUPS, k=1).right.tolist() == [False, False, True]
    assert OFFSETS[order][shuffled.anchors].tolist() == [0, 0, 0]
    assert GROUPS[order][shuffled.anchors].tolist() == [5, 6, 9]


def test_labels_and_frame_types_of_the_anchors_give_accuracy_by_class_and_by_type() -> None:
    labels = np.array([[1, -1]] * 4 + [[0, 1]] * 2 + [[0, -1]])
    types = np.array([2, 2, 0, 2, 1, 2, 1])
    answers = pm_k_correct(CORRECT, OFFSETS, GROUPS, k=2)
    by_class = per_class_accuracy(labels[answers.anchors], answers.right, classes=2)
    assert (by_class.right.tolist(), by_class.total.tolist()) == ([1, 0], [2, 2])
    assert grouped_accuracy(answers.right, types[answers.anchors]).accuracy.tolist() == [0.0, 0.5]


def test_the_intervals_of_a_sweep_are_those_of_each_count() -> None:
    frames = random_frames(3)
    sweep = pm_k_sweep(*frames, largest_k=2)
    low, high = clopper_pearson(*sweep)
    for model, k in np.ndindex(3, 3):
        expected = clopper_pearson(int(sweep.right[model, k]), int(sweep.total[k]))
        assert (low[model, k], high[model, k]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("correct", "offsets", "groups", "words"),
    [
        ([True], [1], [4], "group 4 has no anchor"),
        ([True, True], [0, 0], [4, 4], "group 4 has offset 0 twice"),
        ([True, True, True], [2, 0, 2], [4, 4, 4], "group 4 has offset 2 twice"),
        ([True], [0, 1], [4, 4], r"correct should be \(2 frames,\)"),
        ([1, 0], [0, 1], [4, 4], "True or False"),
        ([True, True], [0, 1], [4], "got shapes"),
        ([[True, True]], [0, 1], [4, 4], "pm_k_sweep takes several models"),
    ],
)
def test_rows_that_make_no_sets_are_refused(correct: list[bool], offsets: list[int], groups: list[int], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        pm_k_accuracy(np.array(correct), np.array(offsets), np.array(groups), k=1)


def test_a_neighbourhood_of_fewer_than_no_frames_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 0"):
        pm_k_accuracy(CORRECT, OFFSETS, GROUPS, k=-1)


@pytest.mark.real
def test_the_released_sets_have_the_counts_of_the_paper_and_the_anchor_without_frames_counts_by_itself(
    real_data: Path,
) -> None:
    folder = real_data / "pmk" / "imagenet-vid-robust_metadata"
    neighbours = json.loads((folder / "pmsets.json").read_text())
    labels = json.loads((folder / "labels.json").read_text())
    assert (len(neighbours), sum(map(len, neighbours.values()))) == (1109, 21_070)
    assert sum(not frames for frames in neighbours.values()) == 1
    assert sum(len(labels[anchor]) > 1 for anchor in neighbours) == 79

    sets = [(anchor, frame) for anchor, frames in neighbours.items() for frame in (anchor, *frames)]
    groups = np.array([anchor for anchor, _ in sets])
    offsets = np.array([int(Path(frame).stem) - int(Path(anchor).stem) for anchor, frame in sets])
    everything_right = np.ones(len(sets), bool)
    assert pm_k_sweep(everything_right, offsets, groups).total.tolist() == [1109] * 11
    assert pm_k_sweep(everything_right, offsets, groups, include_anchor=False).total[10] == 1108
    only_anchors_right = offsets == 0
    assert pm_k_sweep(only_anchors_right, offsets, groups).right[[0, 10]].tolist() == [1109, 1]
