"""Several differences at once, against quantiles of known joint distributions, against simulated truth and Tukey's table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import simultaneous_differences


def quantile_of_two(correlation: float) -> float:
    """How far the larger of two standard normal numbers of this correlation is from 0, 95 times in 100."""
    pair = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], allow_singular=True)

    def inside(reach: float) -> float:
        return float(pair.cdf([reach, reach], lower_limit=[-reach, -reach]))

    low, high = 1.9, 2.3
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < 0.95 else (low, middle)
    return low


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_two_comparisons_reach_as_far_as_the_joint_normal_distribution_says(correlation: float) -> None:
    errors = np.array([0.1, 0.3])
    covariance = np.outer(errors, errors) * np.array([[1, correlation], [correlation, 1]])
    found = simultaneous_differences(np.array([0.2, -0.5]), covariance, draws=200_000)
    expected = quantile_of_two(correlation)
    for one, error in zip(found, errors, strict=True):
        assert (one.interval[1] - one.difference) / error == pytest.approx(expected, abs=0.012)
        assert (one.difference - one.interval[0]) / error == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize(("groups", "images"), [(3, 6), (6, 11)])
def test_many_against_a_control_reach_as_far_as_dunnetts_test_says(groups: int, images: int) -> None:
    # groups of equal size against one of the same size: correlation 1/2, (groups + 1) (images - 1) degrees of freedom
    generator = np.random.default_rng(31)
    samples = [generator.normal(size=images) for _ in range(groups + 1)]
    by_scipy = stats.dunnett(*samples[1:], control=samples[0], rng=np.random.default_rng(0))
    pooled = np.mean([sample.var(ddof=1) for sample in samples])
    covariance = pooled / images * (np.ones((groups, groups)) + np.eye(groups))
    estimates = np.array([sample.mean() - samples[0].mean() for sample in samples[1:]])
    degrees = (groups + 1) * (images - 1)
    found = simultaneous_differences(estimates, covariance, degrees_of_freedom=degrees, draws=100_000)
    assert [one.p for one in found] == pytest.approx(by_scipy.pvalue.tolist(), abs=0.01)
    interval = by_scipy.confidence_interval(0.95)
    reach = np.subtract(interval.high, interval.low)
    assert [one.interval[1] - one.interval[0] for one in found] == pytest.approx(reach.tolist(), rel=0.01)


def test_one_comparison_is_students() -> None:
    (found,) = simultaneous_differences(np.array([0.2]), np.array([[0.01]]), degrees_of_freedom=12, draws=200_000)
    assert found.p == pytest.approx(2 * stats.t.sf(2, 12), abs=0.002)
    assert found.interval == pytest.approx(stats.t.interval(0.95, 12, 0.2, 0.1), abs=0.003)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_an_interval_leaves_out_0_exactly_where_its_p_value_is_small(level: float) -> None:
    generator = np.random.default_rng(32)
    for _ in range(40):
        root = generator.normal(size=(8, 8))
        covariance = root @ root.T
        near = generator.choice([-1, 1], 8) * np.sqrt(np.diag(covariance)) * generator.uniform(1.5, 3.5, 8)
        found = simultaneous_differences(near, covariance, level=level, draws=999)
        assert [one.interval[0] > 0 or one.interval[1] < 0 for one in found] == [
            one.p < round(1 - level, 9) for one in found
        ]


def test_all_intervals_hold_together_as_often_as_they_say() -> None:
    generator = np.random.default_rng(33)
    covariance = 0.5 + 0.5 * np.eye(10)
    truth = generator.normal(size=10)
    root = np.linalg.cholesky(covariance)
    held = 0
    for _ in range(1000):
        found = simultaneous_differences(truth + root @ generator.normal(size=10), covariance, draws=4000)
        held += all(one.interval[0] <= value <= one.interval[1] for one, value in zip(found, truth, strict=True))
    assert 0.93 <= held / 1000 <= 0.97


def test_what_varies_together_costs_less_than_bonferronis_correction() -> None:
    covariance = 0.9 + 0.1 * np.eye(20)
    found = simultaneous_differences(np.full(20, 2.7), covariance)[0]
    assert found.p < 20 * 2 * stats.norm.sf(2.7)
    assert found.interval[1] - 2.7 < stats.norm.ppf(1 - 0.025 / 20)


def test_the_same_seed_gives_the_same_numbers_and_no_p_value_is_0() -> None:
    case = np.array([9.0, 0.1]), np.eye(2)
    assert simultaneous_differences(*case) == simultaneous_differences(*case, seed=0)
    assert simultaneous_differences(*case) != simultaneous_differences(*case, seed=1)
    assert simultaneous_differences(*case, draws=999)[0].p == 0.001


def test_what_cannot_vary_is_told_without_a_width() -> None:
    found = simultaneous_differences(np.array([0.0, 0.5, 0.1]), np.diag([0.0, 0.0, 0.01]), draws=999)
    assert [one.interval for one in found[:2]] == [(0.0, 0.0), (0.5, 0.5)]
    assert found[0].p == 1.0
    assert found[1].p == 0.001
    assert found[2].interval[1] - 0.1 == pytest.approx(0.196, abs=0.02)
    assert simultaneous_differences(np.array([]), np.zeros((0, 0))) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [({"level": 95}, "level should lie"), ({"draws": 10}, "too few"), ({"degrees_of_freedom": 0}, "degrees of freedom")],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        simultaneous_differences(np.ones(2), np.eye(2), **options)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"\(estimates, estimates\)"):
        simultaneous_differences(np.ones(2), np.eye(3))
