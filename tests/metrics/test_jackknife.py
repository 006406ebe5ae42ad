"""Intervals by leaving clusters out: against formulas for means, drawing again, and simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import cluster_mean_interval, jackknife_interval
from shiftproof.metrics.resampling import BLOCKS, _blocks_of


def bounds(found: tuple[float, float] | None) -> tuple[float, float]:
    assert found is not None
    return found


def test_without_skew_the_interval_of_a_mean_is_students() -> None:
    values = np.append(np.arange(20.0), -np.arange(20.0)) + 3
    low, high = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert bounds(cluster_mean_interval(values, level=0.9)) == pytest.approx((low, high))
    by_leaving_out = jackknife_interval(lambda kept: float(values[kept].mean()), np.arange(40), level=0.9)
    assert bounds(by_leaving_out) == pytest.approx((low, high))


def test_clusters_are_the_cases_of_a_mean() -> None:
    generator = np.random.default_rng(1)
    alone = generator.exponential(size=50)
    copies = bounds(cluster_mean_interval(np.repeat(alone, 8), clusters=np.repeat(np.arange(50), 8)))
    assert copies == pytest.approx(bounds(cluster_mean_interval(alone)))


@pytest.mark.parametrize("sizes", [False, True])
def test_leaving_out_gives_a_mean_the_interval_of_its_formula(sizes: bool) -> None:
    generator = np.random.default_rng(2)
    clusters = np.repeat(np.arange(40), generator.integers(1, 9, 40) if sizes else 3)
    values = generator.exponential(size=len(clusters))
    by_leaving_out = bounds(jackknife_interval(lambda kept: float(values[kept].mean()), clusters))
    # a ratio of sums where sizes differ: equal to first order
    close = 0.05 if sizes else 1e-9
    assert by_leaving_out == pytest.approx(bounds(cluster_mean_interval(values, clusters=clusters)), abs=close)


@pytest.mark.parametrize("cases", [26, 60, 5000])
@pytest.mark.parametrize("two", [False, True])
def test_a_statistic_is_computed_no_more_than_sixty_times(cases: int, two: bool) -> None:
    calls: list[int] = []

    def counted(kept: NDArray[np.bool_]) -> float:
        calls.append(int(kept.sum()))
        return float(kept.mean())

    jackknife_interval(counted, np.arange(cases), second=np.arange(cases) % 2 == 0 if two else None)
    assert len(calls) <= BLOCKS + 1
    left_out = [cases - kept for kept in calls[1:]]
    assert sum(left_out) == cases
    assert max(left_out) - min(left_out) <= 1


def test_two_samples_that_share_clusters_vary_together() -> None:
    generator = np.random.default_rng(3)
    photos = generator.normal(size=200)
    values = np.append(photos + 0.1 * generator.normal(size=200), photos + 0.1 * generator.normal(size=200))
    second = np.arange(400) >= 200

    def difference(kept: NDArray[np.bool_]) -> float:
        return float(values[kept & second].mean() - values[kept & ~second].mean())

    apart = bounds(jackknife_interval(difference, np.arange(400), second=second))
    shared = bounds(jackknife_interval(difference, np.arange(400) % 200, second=second))
    assert apart[1] - apart[0] == pytest.approx(2 * 1.97 * np.sqrt(2 * photos.var() / 200), rel=0.25)
    paired = values[200:] - values[:200]
    assert shared[1] - shared[0] == pytest.approx(2 * 1.97 * paired.std() / np.sqrt(200), rel=0.35)


@pytest.mark.parametrize("clustered", [False, True])
def test_skewed_losses_of_26_clusters_hold_the_truth(clustered: bool) -> None:
    generator = np.random.default_rng(4)
    held, by_student, rounds = 0, 0, 1000
    points = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    truth, reach = float(np.logaddexp(0, -(2 + 2.5 * points)).mean()), stats.t.ppf(0.975, 25)
    for _ in range(rounds):
        clusters = np.repeat(np.arange(26), generator.integers(1, 21, 26) if clustered else 1)
        common = generator.normal(size=26)[clusters]
        share = 1 / 3 if clustered else 0
        easy = np.sqrt(share) * common + np.sqrt(1 - share) * generator.normal(size=len(clusters))
        values = np.logaddexp(0, -(2 + 2.5 * easy))
        low, high = bounds(cluster_mean_interval(values, clusters=clusters))
        held += low <= truth <= high
        if not clustered:
            by_student += abs(values.mean() - truth) <= reach * values.std(ddof=1) / np.sqrt(26)
    assert 0.915 <= held / rounds <= 0.975
    assert by_student < 0.915 * rounds


def test_a_share_near_its_end_is_as_open_as_a_case_that_was_not_seen() -> None:
    # 25 sequences without a flip and one with two in thirty: most is not known
    values = np.append(np.zeros(25), 2 / 30)
    low, high = bounds(cluster_mean_interval(values, bounds=(0.0, 1.0)))
    assert 0 <= low < values.mean() < 0.05 < high
    none = bounds(cluster_mean_interval(np.zeros(26), bounds=(0.0, 1.0)))
    assert none == pytest.approx((0.0, stats.t.ppf(0.975, 25) ** 2 / (26 + stats.t.ppf(0.975, 25) ** 2)))
    assert cluster_mean_interval(np.zeros(26)) is None  # without bounds nothing is known of what does not vary


def test_bounds_are_those_of_the_number_and_mirror_with_it() -> None:
    values = np.random.default_rng(5).beta(1, 6, size=40)
    low, high = bounds(cluster_mean_interval(values, bounds=(0.0, 1.0)))
    turned = bounds(cluster_mean_interval(10 - 5 * values, bounds=(5.0, 10.0)))
    assert turned == pytest.approx((10 - 5 * high, 10 - 5 * low))


def test_too_few_clusters_and_numbers_that_do_not_exist_have_no_interval() -> None:
    values = np.arange(40.0)
    assert cluster_mean_interval(values, clusters=np.arange(40) % 4) is None
    assert jackknife_interval(lambda kept: float(values[kept].mean()), np.arange(40) % 4) is None
    second = np.arange(40) < 4
    assert jackknife_interval(lambda kept: float(values[kept].mean()), np.arange(40), second=second) is None
    assert jackknife_interval(lambda kept: 1.0 if kept[7] else float("nan"), np.arange(40)) is None
    with pytest.raises(BadInput, match=r"\(images,\)"):
        cluster_mean_interval(np.ones((3, 3)))


@pytest.mark.parametrize("clusters", [BLOCKS + 1, 1000, 70_001])
def test_clusters_are_dealt_to_the_same_blocks_every_time(clusters: int) -> None:
    """Stored intervals can be had again: shuffling the numbers of blocks deals as permuting those of clusters does."""
    dealt = np.random.default_rng(0).permutation(clusters) * BLOCKS // clusters
    assert _blocks_of(clusters, BLOCKS).tolist() == dealt.tolist()
