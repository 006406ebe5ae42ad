"""Bounds carried to other levels agree with those that are computed at them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from shiftproof.metrics import clopper_pearson, cluster_share_interval
from shiftproof.metrics.levels import LEAST_P, bound, one_sided_p
from shiftproof.types import Interval, Measurement

TAILS = (0.025, 0.001, 0.05 / 1000)


def share(right: int, total: int) -> Measurement:
    return Measurement("top1_accuracy", right / total, {}, total, {}, Interval(*clopper_pearson(right, total)))


@pytest.mark.parametrize("counts", [(0, 10), (1, 12), (50, 100), (99, 100), (100, 100), (731, 5000)])
@pytest.mark.parametrize("tail", TAILS)
def test_a_share_has_the_exact_bound_at_every_level(counts: tuple[int, int], tail: float) -> None:
    found = share(*counts)
    expected = clopper_pearson(*counts, level=1 - 2 * tail)
    assert (bound(found, "low", tail), bound(found, "high", tail)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("right", "total", "limit"), [(3, 40, 0.3), (0, 25, 0.5), (70, 100, 0.85)])
def test_the_p_value_of_a_share_is_that_of_the_exact_binomial_test(right: int, total: int, limit: float) -> None:
    expected = binomtest(right, total, limit, alternative="less").pvalue
    assert one_sided_p(share(right, total), "high", limit) == pytest.approx(expected, rel=1e-6)
    other = binomtest(total - right, total, 1 - limit, alternative="greater").pvalue
    assert one_sided_p(share(total - right, total), "low", 1 - limit) == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("tail", TAILS)
def test_a_share_of_images_in_clusters_allows_for_few_clusters_at_every_level(tail: float) -> None:
    generator = np.random.default_rng(3)
    clusters = np.repeat(np.arange(30), 8)
    right = generator.uniform(size=240) < generator.uniform(0.3, 1.0, size=30)[clusters]
    usual, wanted = (cluster_share_interval(right, clusters=clusters, level=1 - 2 * one) for one in (0.025, tail))
    assert usual is not None
    found = Measurement("top1_accuracy", float(right.mean()), {}, 240, {}, Interval(*usual), clusters=30)
    assert (bound(found, "low", tail), bound(found, "high", tail)) == pytest.approx(wanted, abs=1e-6)
    assert one_sided_p(found, "low", usual[0]) == pytest.approx(0.025, rel=1e-6)


def test_a_difference_follows_students_t_of_its_clusters() -> None:
    half = 0.05 * t.ppf(0.975, 19)
    found = Measurement("corruption_loss", 0.3, {}, 200, {}, Interval(0.3 - half, 0.3 + half), clusters=20)
    assert bound(found, "low", 0.001) == pytest.approx(0.3 - 0.05 * t.ppf(0.999, 19))
    assert one_sided_p(found, "low", 0.1) == pytest.approx(t.sf(0.2 / 0.05, 19), rel=1e-6)
    assert one_sided_p(found, "low", 0.35) == 1.0


def test_what_is_certain_is_told_as_very_small_and_what_has_no_interval_not_at_all() -> None:
    assert one_sided_p(share(0, 5000), "high", 0.9) == LEAST_P
    unknown = Measurement("top1_accuracy", 0.0, {}, 3, {})
    assert bound(unknown, "high", 0.01) is None
    assert one_sided_p(unknown, "high", 0.9) == 1.0
