"""Answers by the distance from the anchor: by hand, and by loops over random sets."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.random_frames import random_frames
from shiftproof.errors import BadInput
from shiftproof.metrics import conditional_robustness, errors_by_offset, pm_k_sweep

OFFSETS = np.array([-1, 0, 1, 3, -1, 0, 1])
GROUPS = np.array([5, 5, 5, 5, 6, 6, 6])
CORRECT = np.array([True, True, False, True, True, False, True])


def test_frames_before_and_after_count_alike_where_the_anchor_is_right() -> None:
    tally = conditional_robustness(CORRECT, OFFSETS, GROUPS, largest_k=3)
    assert (tally.right.tolist(), tally.total.tolist()) == ([1, 0, 1], [2, 0, 1])
    assert np.isnan(tally.accuracy[1])


@pytest.mark.parametrize("seed", range(3))
def test_every_distance_of_every_model_is_what_loops_over_the_frames_find(seed: int) -> None:
    correct, offsets, groups = random_frames(seed)
    tally = conditional_robustness(correct, offsets, groups, largest_k=5)
    for model, answers in enumerate(correct):
        anchor_right = {group: right for group, offset, right in zip(groups, offsets, answers, strict=True) if not offset}
        for k in range(1, 6):
            asked = [
                bool(right)
                for group, offset, right in zip(groups, offsets, answers, strict=True)
                if abs(offset) == k and anchor_right[group]
            ]
            assert (tally.right[model, k - 1], tally.total[model, k - 1]) == (sum(asked), len(asked))


def test_with_one_neighbour_each_conditional_robustness_times_anchor_accuracy_is_pm_1() -> None:
    generator = np.random.default_rng(0)
    offsets, groups = np.tile([0, 1], 100), np.repeat(np.arange(100), 2)
    correct = generator.random((4, 200)) < 0.7
    sweep = pm_k_sweep(correct, offsets, groups, largest_k=1).accuracy
    conditional = conditional_robustness(correct, offsets, groups, largest_k=1).accuracy
    assert sweep[:, 1] == pytest.approx(sweep[:, 0] * conditional[:, 0])


def test_errors_stand_at_the_offsets_that_occur() -> None:
    errors = errors_by_offset(CORRECT, OFFSETS)
    assert errors.offsets.tolist() == [-1, 0, 1, 3]
    assert errors.rate.tolist() == [0.0, 0.5, 0.5, 0.0]


def test_errors_of_several_models_add_up_to_all_their_errors() -> None:
    correct, offsets, _ = random_frames(1, models=7)
    errors = errors_by_offset(correct, offsets)
    assert errors.wrong.sum(axis=1).tolist() == (~correct).sum(axis=1).tolist()
    assert errors.total.sum() == len(offsets)
    assert errors.wrong[2].tolist() == errors_by_offset(correct[2], offsets).wrong.tolist()


def test_the_anchor_itself_is_no_distance_to_condition_on() -> None:
    with pytest.raises(BadInput, match="at least 1 away"):
        conditional_robustness(CORRECT, OFFSETS, GROUPS, largest_k=0)
