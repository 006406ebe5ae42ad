"""Distances between frames and their spread: by hand, in wider numbers, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ecdf

from shiftproof.errors import BadInput
from shiftproof.metrics import empirical_cdf, l_infinity_distance


def test_the_distance_is_the_largest_change_of_any_pixel_in_either_direction() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.integers(0, 256, (2, 6, 5, 4, 3)).astype(np.uint8)
    wide = np.abs(first.astype(int) - second.astype(int)).reshape(6, -1).max(axis=1) / 255
    assert l_infinity_distance(first, second).tolist() == l_infinity_distance(second, first).tolist() == wide.tolist()


def test_one_anchor_is_compared_with_all_its_neighbours() -> None:
    frames = np.random.default_rng(1).integers(0, 256, (4, 5, 4, 3)).astype(np.uint8)
    each = [float(l_infinity_distance(frames[:1], frame[None])[0]) for frame in frames]
    assert l_infinity_distance(frames[:1], frames).tolist() == each
    assert each[0] == 0


def test_a_spread_is_scipys_with_ties() -> None:
    values = np.random.default_rng(2).integers(0, 20, 100) / 19
    ours, theirs = empirical_cdf(values), ecdf(values).cdf
    assert ours.values.tolist() == theirs.quantiles.tolist()
    assert ours.shares == pytest.approx(theirs.probabilities)
    asked = [-1.0, 0.0, 0.31, float(values[0]), 2.0]
    assert [ours.at(value) for value in asked] == pytest.approx(theirs.evaluate(asked))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (np.zeros((1, 2, 2, 3)), np.zeros((1, 2, 2, 3)), "uint8"),
        (np.zeros((2, 2, 2, 3), np.uint8), np.zeros((3, 2, 2, 3), np.uint8), "alike"),
        (np.zeros((1, 2, 3, 3), np.uint8), np.zeros((1, 2, 2, 3), np.uint8), "alike"),
        (np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2, 3), np.uint8), "pairs"),
    ],
)
def test_frames_of_other_types_or_sizes_are_refused(first: np.ndarray, second: np.ndarray, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        l_infinity_distance(first, second)


def test_nothing_has_no_spread() -> None:
    with pytest.raises(BadInput, match="at least one"):
        empirical_cdf(np.array([]))
