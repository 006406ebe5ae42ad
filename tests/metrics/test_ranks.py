"""Places in the order of foreignness, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import rank_shift, rank_shift_interval
from shiftproof.metrics.roc import mid_ranks


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_places_are_those_of_scipy(digits: int) -> None:
    scores = np.random.default_rng(51).normal(size=300).round(digits)
    assert mid_ranks(scores) == pytest.approx(stats.rankdata(scores), abs=0)


def test_infinite_scores_are_first_and_last() -> None:
    assert mid_ranks(np.array([np.inf, 0.0, -np.inf, np.inf])).tolist() == [3.5, 2.0, 1.0, 3.5]


def test_shifts_add_up_to_nothing_and_turn_round_with_the_detectors() -> None:
    first, second = np.random.default_rng(52).normal(size=(2, 401)).round(1)
    shift = rank_shift(first, second)
    assert shift.shape == (401,)
    assert shift.sum() == pytest.approx(0, abs=1e-12)
    assert rank_shift(second, first) == pytest.approx(-shift, abs=0)
    assert np.abs(shift).max() < 1


def test_the_same_order_shifts_nothing() -> None:
    scores = np.random.default_rng(53).normal(size=50).round(1)
    assert rank_shift(scores, 7 * scores - 3).tolist() == [0] * 50


def test_an_image_taken_from_the_bottom_to_the_top_passes_all_others() -> None:
    before = np.arange(10.0)
    after = np.append(99.0, before[1:])
    assert rank_shift(before, after) == pytest.approx([0.9] + [-0.1] * 9)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="the same images, got 2 and 3"):
        rank_shift(np.ones(2), np.ones(3))
    with pytest.raises(BadInput, match="1 of 2 image scores are nan"):
        rank_shift(np.ones(2), np.array([1.0, np.nan]))
    with pytest.raises(BadInput, match="at least one image"):
        rank_shift(np.array([]), np.array([]))


@pytest.mark.parametrize("copies", [1, 5])
def test_the_interval_of_a_groups_shift_is_that_of_drawing_images_again(copies: int) -> None:
    generator = np.random.default_rng(41)
    first = np.repeat(generator.normal(size=300), copies)
    group = np.repeat(np.arange(300) < 90, copies)
    second = first + np.repeat(generator.normal(size=300) + 0.8 * (np.arange(300) < 90), copies)
    clusters = np.repeat(np.arange(300), copies)
    drawn = []
    for _ in range(800):
        rows = (generator.integers(300, size=300)[:, None] * copies + np.arange(copies)).ravel()
        drawn.append(rank_shift(first[rows], second[rows])[group[rows]].mean())
    low, high = rank_shift_interval(first, second, group, clusters=clusters) or (np.nan, np.nan)
    # the spread of 800 drawings is known to 2.5 %; four times that
    assert (high - low) / (2 * 1.97 * np.std(drawn)) == pytest.approx(1.0, abs=0.1)
    assert low < rank_shift(first, second)[group].mean() < high


def test_a_group_that_does_not_move_has_an_interval_without_width_and_few_clusters_have_none() -> None:
    scores, group = np.arange(50.0), np.arange(50) < 20
    assert rank_shift_interval(scores, 2 * scores, group) == (0.0, 0.0)
    assert rank_shift_interval(scores, -scores, group, clusters=np.arange(50) % 3) is None
    with pytest.raises(BadInput, match="whether it belongs"):
        rank_shift_interval(scores, -scores, np.zeros(50, bool))


def test_a_group_of_few_images_has_no_interval_however_many_others_there_are() -> None:
    generator = np.random.default_rng(5)
    first, second = generator.normal(size=(2, 300))
    assert rank_shift_interval(first, second, np.arange(300) < 4) is None
    assert rank_shift_interval(first, second, np.arange(300) < 5) is not None
    assert rank_shift_interval(first, second, np.arange(300) < 40, clusters=np.arange(300) // 10) is None  # four clusters
