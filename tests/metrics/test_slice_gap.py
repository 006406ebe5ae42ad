"""The gap of a slice: published intervals, scipy's test, and what clusters take away."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact

from shiftproof.metrics import fisher_p, slice_gap
from shiftproof.metrics.slices import group_scores


def images(right: int, total: int) -> list[bool]:
    return [True] * right + [False] * (total - right)


@pytest.mark.parametrize(
    ("outside", "inside", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 20), 0.6791, 1.0)],
)
def test_intervals_are_newcombes(outside: tuple[int, int], inside: tuple[int, int], low: float, high: float) -> None:
    """Table II of Newcombe (1998), method 10."""
    correct = np.array(images(*outside) + images(*inside))
    found = slice_gap(correct, np.arange(len(correct)) >= outside[1])
    assert found.gap == pytest.approx(outside[0] / outside[1] - inside[0] / inside[1])
    assert found.interval == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_the_test_is_fishers(seed: int) -> None:
    right_in, wrong_in, right_out, wrong_out = np.random.default_rng(seed).integers(0, 30, size=4).tolist()
    theirs = fisher_exact([[right_in, wrong_in], [right_out, wrong_out]], alternative="less").pvalue
    ours = fisher_p(right_in, right_in + wrong_in, right_out, right_out + wrong_out)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_copies_of_images_make_nothing_surer() -> None:
    correct, members = np.array(images(34, 40) + images(9, 20)), np.arange(60) >= 40
    alone = slice_gap(correct, members)
    copied = slice_gap(np.repeat(correct, 10), np.repeat(members, 10), clusters=np.repeat(np.arange(60), 10))
    as_if_alone = slice_gap(np.repeat(correct, 10), np.repeat(members, 10))
    assert copied.gap == pytest.approx(alone.gap)
    assert np.ptp(copied.interval) == pytest.approx(np.ptp(alone.interval), rel=0.15)
    assert copied.p >= 0.5 * alone.p
    assert as_if_alone.p < 1e-6 * alone.p


def test_a_group_no_worse_than_the_others_is_no_slice() -> None:
    correct = np.array(images(40, 50) + images(20, 20))
    assert slice_gap(correct, np.arange(70) >= 50).p > 0.95


def test_scores_put_groups_in_the_order_of_their_p_values() -> None:
    generator = np.random.default_rng(1)
    inside = generator.integers(20, 60, size=30)
    right = generator.binomial(inside, 0.7)
    scores = group_scores(right, inside, 800, 1000)
    p_values = [fisher_p(int(one), int(of), 800 - int(one), 1000 - int(of)) for one, of in zip(right, inside, strict=True)]
    order, by_p = np.argsort(-scores), np.argsort(p_values)
    assert order[:5].tolist() == by_p[:5].tolist()
