"""The frames that most models get wrong: by hand, and against sorting each set by itself."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.random_frames import random_frames
from shiftproof.errors import BadInput
from shiftproof.metrics import hardest_frames, pm_k_sweep

OFFSETS = np.array([-3, -1, 0, 1, 2])
GROUPS = np.zeros(5, int)


def answers(wrong: list[int], models: int = 3) -> np.ndarray:
    """Models of which the first so many get each frame wrong."""
    return np.arange(models)[:, None] >= np.array(wrong)


@pytest.mark.parametrize(
    ("wrong", "k", "offset"),
    [
        ([3, 1, 0, 2, 1], 3, -3),
        ([3, 1, 0, 2, 1], 2, 1),  # the worst frame is too far away
        ([2, 2, 1, 2, 2], 3, -1),  # of equals the nearest, then the earlier
        ([0, 0, 0, 0, 0], 3, 0),
        ([3, 3, 0, 3, 3], 0, 0),
    ],
)
def test_most_mistakes_then_nearness_then_time_decide(wrong: list[int], k: int, offset: int) -> None:
    assert OFFSETS[hardest_frames(answers(wrong), OFFSETS, GROUPS, k=k)].tolist() == [offset]


@pytest.mark.parametrize(
    ("wrong", "k", "offset"), [([0, 0, 3, 0, 0], 3, -1), ([0, 0, 3, 0, 1], 3, 2), ([3, 3, 0, 3, 3], 0, 0)]
)
def test_without_anchors_only_one_without_neighbours_stands_for_itself(wrong: list[int], k: int, offset: int) -> None:
    rows = hardest_frames(answers(wrong), OFFSETS, GROUPS, k=k, include_anchor=False)
    assert OFFSETS[rows].tolist() == [offset]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("include_anchor", [True, False])
def test_each_set_has_the_frame_that_comes_first_when_it_is_sorted_alone(seed: int, include_anchor: bool) -> None:
    correct, offsets, groups = random_frames(seed, models=6)
    expected = []
    for group in np.unique(groups):
        inside = [row for row in np.flatnonzero(groups == group) if abs(offsets[row]) <= 3]
        neighbours = [row for row in inside if offsets[row]]
        choice = inside if include_anchor or not neighbours else neighbours
        expected.append(min(choice, key=lambda row: (correct[:, row].sum(), abs(offsets[row]), offsets[row])))
    assert hardest_frames(correct, offsets, groups, k=3, include_anchor=include_anchor).tolist() == expected


def test_for_one_model_the_hardest_frames_are_its_own_worst_so_their_accuracy_is_pm_k() -> None:
    correct, offsets, groups = random_frames(0, models=1)
    rows = hardest_frames(correct, offsets, groups, k=3)
    assert correct[:, rows].mean(axis=1) == pytest.approx(pm_k_sweep(correct, offsets, groups, largest_k=3).accuracy[:, 3])


def test_for_many_models_a_fixed_set_is_never_harder_than_the_worst_frame_of_each() -> None:
    correct, offsets, groups = random_frames(1, models=20)
    on_fixed = correct[:, hardest_frames(correct, offsets, groups, k=4)].mean(axis=1)
    on_worst = pm_k_sweep(correct, offsets, groups, largest_k=4).accuracy[:, 4]
    assert (on_fixed >= on_worst).all()
    assert on_fixed.mean() > on_worst.mean()


def test_answers_of_a_single_model_need_their_own_row() -> None:
    with pytest.raises(BadInput, match="models, frames"):
        hardest_frames(np.ones(5, bool), OFFSETS, GROUPS, k=1)
