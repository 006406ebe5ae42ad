"""Places in the order of foreignness, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import rank_shift
from shiftproof.metrics.ranks import mid_ranks


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
