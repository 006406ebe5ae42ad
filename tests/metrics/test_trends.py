"""Lines against scipy's, and the intervals of the ImageNet-OOD paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress, t

from shiftproof.errors import BadInput
from shiftproof.metrics import Line, fit_line, predicted_interval


@pytest.mark.parametrize("points", [3, 10, 100])
def test_a_line_and_its_errors_are_scipys(points: int) -> None:
    generator = np.random.default_rng(points)
    x = generator.normal(size=points) + 3
    y = 0.2 * x + generator.normal(size=points)
    line, second = fit_line(x, y, level=0.9), linregress(x, y)
    assert (line.slope, line.intercept) == pytest.approx((second.slope, second.intercept))
    assert (line.slope_error, line.intercept_error) == pytest.approx((second.stderr, second.intercept_stderr))
    assert line.r_squared == pytest.approx(second.rvalue**2)
    reach = t.ppf(0.95, points - 2)
    assert line.slope_interval == pytest.approx((second.slope - reach * second.stderr, second.slope + reach * second.stderr))
    assert line.intercept_interval[1] == pytest.approx(second.intercept + reach * second.intercept_stderr)
    assert line.at(x) == pytest.approx(second.intercept + second.slope * x)


def test_intervals_hold_the_truth_95_times_in_100_where_two_standard_errors_of_few_points_do_not() -> None:
    generator = np.random.default_rng(0)
    x = np.arange(4.0)
    lines = [fit_line(x, 1 + 2 * x + generator.normal(size=4)) for _ in range(2000)]

    def held(intervals: list[tuple[float, float]]) -> float:
        return float(np.mean([low <= 2 <= high for low, high in intervals]))

    # two degrees of freedom: the chance of |t| < 2 is 0.816; three standard errors of these means are 0.015 and 0.026
    assert held([line.slope_interval for line in lines]) == pytest.approx(0.95, abs=0.015)
    assert held([line.published_slope_interval for line in lines]) == pytest.approx(0.816, abs=0.026)


@pytest.mark.parametrize(("low", "high"), [(0.85, 0.874), (0.755, 0.779)])
def test_the_published_intervals_are_of_a_standard_error_of_0_006(low: float, high: float) -> None:
    middle = (low + high) / 2
    line = Line(0.0, middle, 0.0, 0.006, (0.0, 0.0), (0.0, 0.0), 0.0, 100)
    assert line.published_intercept_interval == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("points", [3, 10, 100])
def test_where_one_more_point_would_fall_is_what_the_algebra_of_least_squares_says(points: int) -> None:
    generator = np.random.default_rng(points)
    x = generator.normal(size=points) + 3
    y = 0.2 * x + generator.normal(size=points)
    design, place = np.stack([np.ones(points), x], axis=1), np.array([1.0, 5.0])
    weights, unexplained, *_ = np.linalg.lstsq(design, y)
    variance = unexplained[0] / (points - 2) * (1 + place @ np.linalg.inv(design.T @ design) @ place)
    reach = t.ppf(0.95, points - 2) * np.sqrt(variance)
    height = weights @ place
    assert predicted_interval(x, y, 5.0, level=0.9) == pytest.approx((height - reach, height + reach))


def test_two_points_do_not_say_where_a_third_would_fall() -> None:
    assert np.isnan(predicted_interval(np.array([1.0, 3.0]), np.array([2.0, 6.0]), 2.0)).all()


def test_two_points_have_a_line_and_no_interval() -> None:
    line = fit_line(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    assert (line.slope, line.intercept, line.r_squared) == (2.0, 0.0, 1.0)
    assert np.isnan([line.slope_error, *line.slope_interval, *line.intercept_interval]).all()


def test_points_at_one_height_leave_nothing_to_explain() -> None:
    line = fit_line(np.arange(5.0), np.full(5, 2.0))
    assert (line.slope, line.intercept, line.slope_error) == (0.0, 2.0, 0.0)
    assert np.isnan(line.r_squared)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "3 points at 1"),
        ([1.0], [1.0], "1 points at 1"),
        ([1.0, 2.0], [1.0], "got shapes"),
        ([1.0, np.nan], [1.0, 2.0], "not numbers"),
    ],
)
def test_what_has_no_line_is_refused(x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        fit_line(np.array(x), np.array(y))
