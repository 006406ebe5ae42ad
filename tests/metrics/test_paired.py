"""Paired comparison against scipy, published worked examples and simulated models whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import PairedCounts, difference_interval, holm, mcnemar_p, paired_counts


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 7), (5, 5), (10, 30), (700, 812), (20_000, 20_300)])
def test_the_exact_test_is_the_binomial_test_of_the_images_only_one_got_right(first: int, second: int) -> None:
    theirs = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar_p(first, second) == pytest.approx(theirs, rel=1e-9)
    assert mcnemar_p(first, second) == mcnemar_p(second, first)


@pytest.mark.parametrize(("first", "second"), [(1, 7), (0, 4), (6, 6), (30, 11)])
def test_the_mid_p_value_counts_equally_uneven_splits_by_half(first: int, second: int) -> None:
    splits = np.arange(first + second + 1)
    chance = stats.binom.pmf(splits, first + second, 0.5)
    unevenness, seen = np.abs(2 * splits - first - second), abs(first - second)
    expected = chance[unevenness > seen].sum() + chance[unevenness == seen].sum() / 2
    assert mcnemar_p(first, second, mid_p=True) == pytest.approx(expected)


def test_the_airway_example_of_fagerland_and_others_comes_out_as_printed() -> None:
    assert mcnemar_p(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_p(1, 7, mid_p=True) == pytest.approx(0.0391, abs=5e-5)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(BadInput, match="cannot be negative"):
        mcnemar_p(-1, 3)


def test_counts_are_those_of_the_table_of_both_models() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.random((2, 500)) < 0.7
    counts = paired_counts(first, second)
    in_turn = (first & second, first & ~second, ~first & second, ~first & ~second)
    assert list(counts) == [where.sum() for where in in_turn]
    assert counts.images == 500
    assert counts.difference == pytest.approx(first.mean() - second.mean())


def test_models_of_different_images_are_refused() -> None:
    with pytest.raises(BadInput, match="the same images"):
        paired_counts(np.array([True]), np.array([True, False]))


TRUTHS = {  # both, only first, only second, neither
    "alike and good": (0.90, 0.03, 0.03, 0.04),
    "one better": (0.60, 0.20, 0.10, 0.10),
    "one far better": (0.30, 0.55, 0.05, 0.10),
    "nearly the same model": (0.75, 0.01, 0.005, 0.235),
}


def coverage(truth: tuple[float, ...], images: int, *, level: float) -> float:
    """How often the interval holds the true difference, in 4000 sets of images drawn from the truth."""
    drawn = np.random.default_rng(7).multinomial(images, truth, size=4000)
    tables, times = np.unique(drawn, axis=0, return_counts=True)
    bounds = np.array([difference_interval(PairedCounts(*table), level=level) for table in tables.tolist()])
    difference = truth[1] - truth[2]
    return float(times @ ((bounds[:, 0] <= difference) & (difference <= bounds[:, 1])) / times.sum())


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
@pytest.mark.parametrize("images", [30, 100, 1000])
def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says(truth: tuple[float, ...], images: int) -> None:
    # 4000 sets: a coverage of 0.95 falls below 0.935 once in 80,000 times; one of 0.92 passes once in 5,000
    assert coverage(truth, images, level=0.95) >= 0.935


def test_the_coverage_check_would_notice_an_interval_that_is_too_narrow() -> None:
    assert coverage(TRUTHS["one better"], 1000, level=0.90) < 0.935


def test_two_models_that_never_differ_still_leave_some_doubt() -> None:
    low, high = difference_interval(PairedCounts(20, 0, 0, 0))
    assert low < 0 < high
    assert low == -high


def test_bounds_stay_within_what_a_difference_can_be() -> None:
    assert difference_interval(PairedCounts(0, 1, 0, 0), level=0.999)[1] == 1.0
    assert difference_interval(PairedCounts(0, 0, 1, 0), level=0.999)[0] == -1.0


@pytest.mark.parametrize("seed", range(3))
def test_holm_rejects_what_its_steps_reject(seed: int) -> None:
    p_values = np.random.default_rng(seed).random(6) ** 4
    rejected = set()
    for step, place in enumerate(np.argsort(p_values)):
        if p_values[place] > 0.05 / (6 - step):
            break
        rejected.add(int(place))
    assert set(np.flatnonzero(holm(p_values) <= 0.05)) == rejected


def test_one_question_needs_no_correction() -> None:
    assert holm(np.array([0.04])).tolist() == [0.04]
