"""Thresholds that keep what they promise on the images they were chosen on, and cost no more than any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import OperatingPoint, cheapest_point, clopper_pearson, fpr_at_tpr, operating_point

Scores = NDArray[Any]


def two_sides(digits: int, dtype: Any = float) -> tuple[Scores, Scores]:
    generator = np.random.default_rng(71)
    return generator.normal(size=90).round(digits).astype(dtype), generator.normal(1, 1, size=40).round(digits).astype(dtype)


def flagged(point: OperatingPoint, inside: Scores, outside: Scores) -> tuple[float, float]:
    return float((inside >= point.threshold).mean()), float((outside >= point.threshold).mean())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 1 / 3, 0.7, 1.0])
def test_false_alarms_stay_at_or_below_the_share_and_the_next_lower_threshold_has_more(
    share: float, digits: int, dtype: Any
) -> None:
    inside, outside = two_sides(digits, dtype)
    point = operating_point(inside, outside, false_alarms=share)
    assert flagged(point, inside, outside) == (point.false_alarm_rate, point.found_rate)
    assert point.false_alarm_rate <= share
    lower = [score for score in np.concatenate([inside, outside]) if score < point.threshold]
    if lower:
        assert (inside >= max(lower)).mean() > share
    else:
        assert point.false_alarm_rate == point.found_rate == 1.0


@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.75, 0.95, 1.0])
def test_enough_is_rejected_and_the_next_higher_threshold_rejects_too_little(share: float, digits: int) -> None:
    inside, outside = two_sides(digits)
    point = operating_point(inside, outside, rejected=share)
    assert flagged(point, inside, outside) == (point.false_alarm_rate, point.found_rate)
    assert point.found_rate >= share
    assert (outside > point.threshold).mean() < share
    assert point.false_alarm_rate == fpr_at_tpr(inside, outside, tpr=share)


def test_rates_have_exact_intervals() -> None:
    point = operating_point(*two_sides(9), false_alarms=0.1, level=0.9)
    assert point.false_alarm_interval == clopper_pearson(9, 90, level=0.9)
    assert point.found_interval == clopper_pearson(round(point.found_rate * 40), 40, level=0.9)


def cost_at(threshold: float, sides: tuple[Scores, Scores], prices: tuple[float, float], ood_share: float) -> float:
    """The mean cost of a crowd in which every inside and outside image stands for its part of the images to come."""
    alarms = [prices[0] * (score >= threshold) * (1 - ood_share) / len(sides[0]) for score in sides[0]]
    misses = [prices[1] * (score < threshold) * ood_share / len(sides[1]) for score in sides[1]]
    return float(sum(alarms) + sum(misses))


@pytest.mark.parametrize("prices", [(1.0, 1.0), (1.0, 20.0), (5.0, 0.5)])
@pytest.mark.parametrize("ood_share", [None, 0.01, 0.5])
@pytest.mark.parametrize("digits", [0, 9])
def test_no_threshold_is_cheaper_than_the_cheapest(
    digits: int, ood_share: float | None, prices: tuple[float, float]
) -> None:
    sides = two_sides(digits)
    natural = len(sides[1]) / (len(sides[0]) + len(sides[1]))
    point = cheapest_point(*sides, false_alarm_cost=prices[0], miss_cost=prices[1], ood_share=ood_share)
    assert point.ood_share == (natural if ood_share is None else ood_share)
    costs = {t: cost_at(t, sides, prices, point.ood_share) for t in [*np.unique(np.concatenate(sides)), np.inf]}
    assert point.expected_cost == pytest.approx(min(costs.values()))
    assert point.expected_cost == pytest.approx(costs[point.threshold])
    assert flagged(point, *sides) == (point.false_alarm_rate, point.found_rate)


def test_the_cost_of_a_chosen_point_is_that_of_its_mistakes() -> None:
    sides = two_sides(1)
    point = operating_point(*sides, rejected=0.8, false_alarm_cost=3, miss_cost=7)
    mistakes = 3 * int((sides[0] >= point.threshold).sum()) + 7 * int((sides[1] < point.threshold).sum())
    assert point.expected_cost == pytest.approx(mistakes / 130)


def test_where_misses_cost_nothing_nothing_is_flagged_and_where_alarms_cost_nothing_no_miss_is_left() -> None:
    sides = two_sides(9)
    calm, strict = cheapest_point(*sides, miss_cost=0), cheapest_point(*sides, false_alarm_cost=0)
    assert (calm.threshold, calm.false_alarm_rate, calm.found_rate, calm.expected_cost) == (np.inf, 0.0, 0.0, 0.0)
    assert (strict.threshold, strict.found_rate, strict.expected_cost) == (sides[1].min(), 1.0, 0.0)


def test_infinite_scores_can_be_flagged_but_not_let_through_alone() -> None:
    inside, outside = np.array([0.0, 1.0, np.inf]), np.array([1.0, np.inf])
    point = operating_point(inside, outside, false_alarms=0.4)
    assert (point.threshold, point.false_alarm_rate, point.found_rate) == (np.inf, 1 / 3, 0.5)
    with pytest.raises(BadInput, match="no threshold has so low an FPR: 1 of the ID images score infinity"):
        operating_point(inside, outside, false_alarms=0.1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "either false_alarms or rejected"),
        ({"false_alarms": 0.1, "rejected": 0.5}, "either false_alarms or rejected"),
        ({"false_alarms": -0.1}, "false_alarms should lie between 0 and 1, got -0.1"),
        ({"false_alarms": 5}, "false_alarms should lie between 0 and 1, got 5"),
        ({"rejected": 0.0}, "rejected should lie above 0"),
        ({"rejected": 0.5, "ood_share": 1.5}, "ood_share should lie between 0 and 1"),
        ({"rejected": 0.5, "miss_cost": -1}, "miss_cost should be a number of at least 0"),
        ({"rejected": 0.5, "false_alarm_cost": float("nan")}, "false_alarm_cost should be a number"),
        ({"rejected": 0.5, "level": 95}, "level should lie between 0 and 1"),
    ],
)
def test_impossible_wishes_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        operating_point(*two_sides(9), **options)
